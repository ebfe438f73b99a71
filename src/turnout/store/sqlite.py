"""SQLite: one file, one writer, any number of readers.

Write-ahead logging lets readers go on while the writer commits; `synchronous=FULL` makes a commit survive a power cut.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from turnout.core.errors import StoreDamaged, StoreUnavailable

from . import sql
from .backend import Record, Unwritable, Values, grouped
from .migrate import Applied, Migration, migrations, pending
from .row import Row

# How long a writer waits for another process's lock before it says so.
BUSY_S = 2.0
# Pages copied at a time by a backup; between two of them writers get their turn.
BACKUP_PAGES = 1024
_OPEN = (
    "pragma journal_mode = wal",
    "pragma synchronous = full",
    "pragma foreign_keys = on",
    "pragma temp_store = memory",
)


class Sqlite:
    name = "sqlite"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.where = str(path)
        self._lock = threading.Lock()
        self._writer: sqlite3.Connection | None = None
        self._readers: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()

    def write(self, rows: Sequence[Row]) -> int:
        repeated = 0
        with self._writing() as connection:
            for statement, records in grouped(rows):
                added = connection.executemany(statement, records).rowcount
                repeated += len(records) - added if statement is not sql.ADD_PROFILE else 0
        return repeated

    def read(self, statement: str, values: Values) -> list[Record]:
        with self._reading() as connection:
            return connection.execute(statement, values).fetchall()

    def change(self, statement: str, values: Values) -> int:
        with self._writing() as connection:
            return connection.execute(statement, values).rowcount

    def pending(self) -> list[Migration]:
        if not self.path.exists():
            return migrations(self.name)
        with self._reading() as connection:
            return pending(migrations(self.name), _applied(connection), self.where)

    def migrate(self) -> list[Migration]:
        with self._writing() as connection:
            # Asked again inside the transaction: another process may have been quicker.
            connection.execute(sql.SCHEMA_TABLE)
            steps = pending(migrations(self.name), _applied(connection), self.where)
            for step in steps:
                for statement in step.statements:
                    connection.execute(statement)
                applied = {"number": step.number, "name": step.name, "checksum": step.checksum}
                connection.execute(sql.ADD_APPLIED, applied | {"applied_ms": time.time_ns() // 1_000_000})
        return steps

    def problems(self) -> Iterator[str]:
        with self._reading() as connection:
            for (said,) in connection.execute("pragma integrity_check"):
                if said != "ok":
                    yield f"{self.where}: {said}"

    def backup(self, target: Path, progress: Callable[[int, int], None]) -> None:
        with self._reading() as connection, contextlib.closing(sqlite3.connect(target)) as copy:
            connection.backup(
                copy, pages=BACKUP_PAGES, progress=lambda _, remaining, total: progress(total - remaining, total)
            )
            copy.execute("pragma journal_mode = wal")

    def close(self) -> None:
        # Readers first: the last connection to go folds the log into the file, and a reader may not.
        while not self._readers.empty():
            self._readers.get_nowait().close()
        with self._lock:
            if self._writer is not None:
                with contextlib.suppress(sqlite3.Error):
                    self._writer.execute("pragma optimize")
                self._writer.close()
                self._writer = None

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """The one writing connection, in a transaction that holds the write lock from its start."""
        with self._lock, self._named():
            if self._writer is None:
                self._writer = self._connect()
            connection = self._writer
            connection.execute("begin immediate")
            try:
                yield connection
                connection.execute("commit")
            finally:
                if connection.in_transaction:
                    with contextlib.suppress(sqlite3.Error):
                        connection.execute("rollback")

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._named():
            try:
                connection = self._readers.get_nowait()
            except queue.Empty:
                connection = self._connect(read_only=True)
            try:
                yield connection
            finally:
                self._readers.put(connection)

    def _connect(self, *, read_only: bool = False) -> sqlite3.Connection:
        if not read_only:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Created by us rather than by SQLite: what people ask is nobody else's to read.
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        address = f"file:{quote(str(self.path))}?mode={'ro' if read_only else 'rw'}"
        connection = sqlite3.connect(address, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        if not read_only:
            for statement in _OPEN:
                connection.execute(statement)
        return connection

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """SQLite's errors under our names."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise StoreUnavailable(f"{self.where}: {error}{_advice(error)}") from error
        except (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.ProgrammingError, OverflowError) as error:
            raise Unwritable(f"{self.where}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise StoreDamaged(f"{self.where}: {error}: restore a backup (turnout db verify says more)") from error


def _applied(connection: sqlite3.Connection) -> list[Applied]:
    try:
        return [Applied(*row) for row in connection.execute(sql.APPLIED)]
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return []
        raise


def _advice(error: sqlite3.OperationalError) -> str:
    said = str(error)
    if "locked" in said or "busy" in said:
        return ": another program holds it; it is tried again"
    if "full" in said:
        return ": free some space; rows wait in the spool until there is"
    if "readonly" in said or "unable to open" in said:
        return ": check that it exists and that you may write there"
    return ""
