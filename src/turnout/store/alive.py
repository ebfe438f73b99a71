"""Which worker processes are alive: each holds a lock that the system releases when it ends, however it ends.

No clock and no heartbeat: if a worker's lock can be taken, the worker is gone. It is a lock on a file beside a SQLite
store, and a connection's lock in PostgreSQL.
"""

from __future__ import annotations

import contextlib
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from turnout.core.errors import StoreUnavailable

from .session_log import beside
from .sqlite import Sqlite
from .store import Store

if TYPE_CHECKING:
    import psycopg

# Separates our locks from those of other programs in the same database: any number of our own.
LOCK_SPACE = 7_276_102
# How often a waiting worker tries again. A statement that waits for a lock would block the building of an index beside
# running transactions, which the other worker may be doing.
RETRY_S = 0.05
TRY_LOCK = "select pg_try_advisory_lock(hashtextextended(%s, %s))"


class Workers(ABC):
    """The locks of the workers that share one store."""

    @abstractmethod
    def join(self, worker: str) -> None:
        """Hold this worker's lock until `close`. A second call takes it again if the connection was lost."""

    @abstractmethod
    def gone(self, worker: str) -> contextlib.AbstractContextManager[bool]:
        """Whether a worker is gone; within the context no other process gets that answer."""

    @abstractmethod
    def alone(self) -> contextlib.AbstractContextManager[None]:
        """A context for one worker at a time, such as for creating tables; others wait."""

    @abstractmethod
    def close(self) -> None: ...


class FileWorkers(Workers):
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: IO[bytes] | None = None
        self._path: Path | None = None

    def join(self, worker: str) -> None:
        if self._held is None:
            self._path = self._folder / worker
            self._held = self._take(self._path)

    @contextlib.contextmanager
    def gone(self, worker: str) -> Iterator[bool]:
        path = self._folder / worker
        file = self._take(path)
        if file is None:
            yield False
            return
        with file:
            yield True
            path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        import fcntl

        with self._open(self._folder / "alone.lock") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def close(self) -> None:
        if self._held is not None and self._path is not None:
            self._path.unlink(missing_ok=True)
            self._held.close()
            self._held = None

    def _open(self, path: Path) -> IO[bytes]:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return os.fdopen(os.open(path, os.O_CREAT | os.O_RDWR, 0o600), "r+b")

    def _take(self, path: Path) -> IO[bytes] | None:
        import fcntl

        file = self._open(path)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return None
        return file


class PostgresWorkers(Workers):
    def __init__(self, url: str) -> None:
        self._url = url
        self._held: psycopg.Connection[Any] | None = None

    def join(self, worker: str) -> None:
        import psycopg

        try:
            if self._held is not None:
                self._held.execute("select 1")
                return
        except psycopg.Error:
            self.close()
        try:
            connection = psycopg.connect(self._url, autocommit=True)
            _is_taken(connection, worker)
        except psycopg.Error as error:
            raise StoreUnavailable(f"no connection to hold this worker's place: {type(error).__name__}") from None
        self._held = connection

    @contextlib.contextmanager
    def gone(self, worker: str) -> Iterator[bool]:
        """Uses a connection of its own, because the connection that holds a lock can take it again."""
        import psycopg

        with contextlib.ExitStack() as opened:
            is_gone = False
            with contextlib.suppress(psycopg.Error):  # unknown: not gone
                connection = opened.enter_context(contextlib.closing(psycopg.connect(self._url, autocommit=True)))
                is_gone = _is_taken(connection, worker)
            yield is_gone

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        import psycopg

        with contextlib.closing(psycopg.connect(self._url, autocommit=True)) as connection:
            while not _is_taken(connection, "alone"):
                time.sleep(RETRY_S)
            yield

    def close(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None


def _is_taken(connection: psycopg.Connection[Any], name: str) -> bool:
    """Try to take a lock; returns whether the connection has it now."""
    found = connection.execute(TRY_LOCK, (name, LOCK_SPACE)).fetchone()
    return bool(found and found[0])


def workers_of(store: Store) -> Workers:
    """The workers of a store."""
    if isinstance(store.backend, Sqlite):
        return FileWorkers(beside(store, "workers"))
    return PostgresWorkers(store.url)


def database_errors() -> tuple[type[Exception], ...]:
    """Errors that a library over SQLAlchemy raises if its database does not answer."""
    from sqlalchemy.exc import DBAPIError

    return (DBAPIError,)
