"""Which processes are there: each holds a lock that the system ends with it, however it ends.

No clock and no heartbeat: who can take a worker's lock knows that the worker is gone. On one machine it is a lock on a
file, in PostgreSQL a lock of a connection.
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

# Tells our locks from those of other programs in the same database: any number that is ours alone.
LOCK_SPACE = 7_276_102
# How soon a worker that waits for another asks again. A statement that waits for a lock would hold up what makes an
# index beside running transactions, and that may be what the other does.
ASK_S = 0.05
TRY_LOCK = "select pg_try_advisory_lock(hashtextextended(%s, %s))"


class Workers(ABC):
    """The locks of the workers that share one store."""

    @abstractmethod
    def join(self, worker: str) -> None:
        """Be there until `close`, under this name. Said again, it makes up for a connection that was lost."""

    @abstractmethod
    def gone(self, worker: str) -> contextlib.AbstractContextManager[bool]:
        """Whether a worker is no longer there; as long as the context lasts no other process is told so."""

    @abstractmethod
    def alone(self) -> contextlib.AbstractContextManager[None]:
        """One worker at a time, and the others wait: to make tables, say."""

    @abstractmethod
    def close(self) -> None: ...


class FileWorkers(Workers):
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: IO[bytes] | None = None
        self._path: Path | None = None

    def join(self, worker: str) -> None:
        if self._held is None:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._path = self._folder / worker
            self._held = self._take(self._path)

    @contextlib.contextmanager
    def gone(self, worker: str) -> Iterator[bool]:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
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

        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(self._folder / "alone.lock", os.O_CREAT | os.O_RDWR, 0o600), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def close(self) -> None:
        if self._held is not None and self._path is not None:
            self._path.unlink(missing_ok=True)
            self._held.close()
            self._held = None

    def _take(self, path: Path) -> IO[bytes] | None:
        import fcntl

        file = os.fdopen(os.open(path, os.O_CREAT | os.O_RDWR, 0o600), "r+b")
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
        """Asked over a connection of its own: a lock can be taken again by the connection that holds it."""
        import psycopg

        with contextlib.ExitStack() as opened:
            is_gone = False
            with contextlib.suppress(psycopg.Error):  # who cannot ask knows nothing
                connection = opened.enter_context(contextlib.closing(psycopg.connect(self._url, autocommit=True)))
                is_gone = _is_taken(connection, worker)
            yield is_gone

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        import psycopg

        with contextlib.closing(psycopg.connect(self._url, autocommit=True)) as connection:
            while not _is_taken(connection, "alone"):
                time.sleep(ASK_S)
            yield

    def close(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None


def _is_taken(connection: psycopg.Connection[Any], name: str) -> bool:
    """Whether the connection has the lock now."""
    found = connection.execute(TRY_LOCK, (name, LOCK_SPACE)).fetchone()
    return bool(found and found[0])


def workers_of(store: Store) -> Workers:
    """The workers of a store."""
    if isinstance(store.backend, Sqlite):
        return FileWorkers(beside(store, "workers"))
    return PostgresWorkers(store.url)


def database_errors() -> tuple[type[Exception], ...]:
    """What a library over SQLAlchemy raises where its database does not answer. Imported by then."""
    from sqlalchemy.exc import DBAPIError

    return (DBAPIError,)
