"""What fault tests share: stores that do not wait long, and a look into the database from outside."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from store.conftest import _postgres, postgres_server, postgres_url  # noqa: F401 - the servers of tests/store
from turnout.store import Store, journal, open_store, sqlite


@pytest.fixture(autouse=True)
def _own_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store on PostgreSQL keeps its spool in the user's data folder: each test has its own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.delenv("TURNOUT_DB", raising=False)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """No long waits: a failed write is tried again soon."""
    monkeypatch.setattr(journal, "FIRST_PAUSE_S", 0.002)
    monkeypatch.setattr(journal, "LAST_PAUSE_S", 0.02)
    monkeypatch.setattr(journal, "CALM_S", 0.05)
    monkeypatch.setattr(sqlite, "BUSY_S", 0.05)


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("empty") / "turnout.db"
    open_store(str(file)).close()
    return file


@pytest.fixture
def file(tmp_path: Path, empty_database: Path) -> Path:
    """A database without rows."""
    return Path(shutil.copy(empty_database, tmp_path / "turnout.db"))


@pytest.fixture
def opened(file: Path) -> Iterator[Callable[..., Store]]:
    """Opens stores that are closed after the test."""
    stores: list[Store] = []

    def open_one(**options: object) -> Store:
        stores.append(open_store(str(file), **options))  # type: ignore[arg-type]
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()


@pytest.fixture
def stored(file: Path) -> Callable[[], list[str]]:
    """The ids of the decisions that a stranger finds in the database, parts left out."""

    def look() -> list[str]:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
            return [ident for (ident,) in connection.execute("select id from decisions where parent_id is null")]

    return look


@pytest.fixture
def spool(file: Path) -> Path:
    return file.with_name(file.name + "-spool")
