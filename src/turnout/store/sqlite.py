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
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

from turnout.core.errors import StoreDamaged, StoreUnavailable

from . import sql
from .backend import Backend, Transaction, Unwritable, Value
from .migrate import AppliedMigration, Migration, migrations

# How long a writer waits for another process's lock before it raises.
BUSY_S = 2.0
# How long a start may look for damage; `turnout db verify` looks for as long as it takes.
CHECK_S = 2.0
# SQLite's steps between two looks at the clock: some tens of microseconds.
CHECK_STEPS = 10_000
# Pages that a backup copies before it lets writers continue.
BACKUP_PAGES = 1024
# After these errors the next attempt needs a new connection: one that became read-only stays so.
_RECONNECT = frozenset(
    (
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_PROTOCOL,
    )
)
_OPEN = (
    "pragma journal_mode = wal",
    "pragma synchronous = full",
    "pragma foreign_keys = on",
    "pragma temp_store = memory",
    # What retention deletes is overwritten, not only unlinked.
    "pragma secure_delete = on",
)


Identity = tuple[int, int]


class Sqlite(Backend):
    name = "sqlite"

    def __init__(self, path: Path) -> None:
        # A program may change its folder after it has opened the store.
        self.path = path.absolute()
        self.where = str(path)
        self._lock = threading.Lock()
        self._writer: sqlite3.Connection | None = None
        self._written: Identity | None = None
        """The file the writer writes to; None before the first write."""
        self._readers: queue.LifoQueue[tuple[sqlite3.Connection, Identity | None]] = queue.LifoQueue()

    @contextlib.contextmanager
    def reading(self) -> Iterator[Transaction]:
        with self._named():
            connection, file = self._reader()
            try:
                yield Transaction(connection)
            finally:
                self._readers.put((connection, file))

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """The one writing connection, in a transaction that holds the write lock from its start."""
        with self._lock, self._named():
            if self._writer is None:
                self._writer = self._connect_writer()
            connection = self._writer
            try:
                connection.execute("begin immediate")
                with connection:
                    yield Transaction(connection)
            except sqlite3.DatabaseError as error:
                if getattr(error, "sqlite_errorcode", 0) & 0xFF in _RECONNECT:
                    self._drop_writer()
                raise
            # Checked after the commit, which is lost if its file was removed or replaced.
            if _identity(self.path) != self._written:
                self._drop_writer()
                raise StoreUnavailable(f"{self.where}: it was removed or replaced while in use; what was written waits")

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[Transaction]:
        """A reader that sees the database as it is now, until it ends.

        Without it a backup starts again at every write and never ends beside a busy writer.
        """
        with self.reading() as reads:
            reads.connection.execute("begin")
            try:
                reads.connection.execute("pragma schema_version").fetchone()
                yield reads
            finally:
                with contextlib.suppress(sqlite3.Error):
                    reads.connection.execute("rollback")

    def pending(self) -> list[Migration]:
        if not self.path.exists():
            return migrations(self.name, self.steps)
        self._roll_back()
        return super().pending()

    def applied(self, transaction: Transaction) -> list[AppliedMigration]:
        try:
            return [AppliedMigration(*row) for row in transaction.read(sql.APPLIED, {})]
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return []
            raise

    def problems(self) -> Iterator[str]:
        for (found,) in self.read("pragma integrity_check", {}):
            if found != "ok":
                yield f"{self.where}: {found}"

    def check(self) -> None:
        """Raises StoreDamaged if a short check finds damage. A large database is checked in part."""
        until = time.monotonic() + CHECK_S
        with self.reading() as reads:
            connection = reads.connection
            connection.set_progress_handler(lambda: time.monotonic() > until, CHECK_STEPS)
            try:
                found = connection.execute("pragma quick_check(1)").fetchone()[0]
            except sqlite3.OperationalError as error:
                if error.sqlite_errorname != "SQLITE_INTERRUPT":
                    raise
                return
            finally:
                connection.set_progress_handler(None, 0)
        if found != "ok":
            problem = " ".join(found.split())
            raise StoreDamaged(f"{self.where}: {problem}: restore a backup (turnout db verify says more)")

    def measured(self) -> Mapping[str, Value]:
        files = (self.path, self.path.with_name(self.path.name + "-wal"))
        return {
            "size_bytes": sum(file.stat().st_size for file in files if file.exists()),
            "version": sqlite3.sqlite_version,
        }

    def backup(self, target: Path, progress: Callable[[int, int], None]) -> None:
        with self.snapshot() as reads, contextlib.closing(sqlite3.connect(target)) as copy:
            reads.connection.backup(
                copy, pages=BACKUP_PAGES, progress=lambda _, remaining, total: progress(total - remaining, total)
            )
        make_single(target)

    def close(self) -> None:
        # Readers first: the last connection to close moves the log into the file, and a reader may not write.
        while not self._readers.empty():
            self._readers.get_nowait()[0].close()
        with self._lock:
            if self._writer is not None:
                with contextlib.suppress(sqlite3.Error):
                    self._writer.execute("pragma optimize")
                self._writer.close()
                self._writer = None

    def _reader(self) -> tuple[sqlite3.Connection, Identity | None]:
        """A connection to the file that is at the path now."""
        file = _identity(self.path)
        while not self._readers.empty():
            with contextlib.suppress(queue.Empty):
                connection, opened = self._readers.get_nowait()
                if opened == file:
                    return connection, file
                connection.close()
        return self._connect("ro"), file

    def _roll_back(self) -> None:
        """Roll back a journal, left by a process that died while it made the database; no reader can do that."""
        if self.path.with_name(self.path.name + "-journal").exists():
            with self._named(), contextlib.closing(self._connect("rw")) as connection:
                connection.execute("pragma schema_version").fetchone()

    def _drop_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _connect_writer(self) -> sqlite3.Connection:
        if self._written is None:
            self._create()
        elif not self.path.exists():
            # Not created again: an empty database would hide one that was moved or is not mounted.
            raise StoreUnavailable(f"{self.where}: it was removed while in use: put it back, or start the program anew")
        connection = self._connect("rw")
        try:
            for statement in _OPEN:
                _set(connection, statement)
        except sqlite3.Error:
            connection.close()
            raise
        self._written = _identity(self.path)
        return connection

    def _create(self) -> None:
        """Create the file, which SQLite would make readable for other users."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return
        except OSError as error:
            raise StoreUnavailable(f"{self.where}: {error.strerror}: check that you may write there") from error

    def _connect(self, mode: str) -> sqlite3.Connection:
        if self.path.is_dir():
            raise StoreUnavailable(f"{self.where} is a folder: name a file in it")
        address = f"file:{quote(str(self.path))}?mode={mode}"
        return sqlite3.connect(address, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Raises SQLite's errors as the store's."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise StoreUnavailable(f"{self.where}: {error}{_advice(error)}") from error
        except (
            sqlite3.IntegrityError,
            sqlite3.DataError,
            sqlite3.ProgrammingError,
            OverflowError,
            UnicodeError,
        ) as error:
            raise Unwritable(f"{self.where}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise StoreDamaged(f"{self.where}: {error}: restore a backup (turnout db verify says more)") from error


def _set(connection: sqlite3.Connection, statement: str) -> None:
    """Run a pragma. SQLite does not wait while another process changes the journal's mode, so this does."""
    until = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute(statement)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > until:
                raise
            time.sleep(0.002)
        else:
            return


def make_single(path: Path) -> None:
    """Make a database one file that can be read anywhere: write-ahead logging needs a writable folder."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma journal_mode = delete")


def _identity(path: Path) -> Identity | None:
    """The file at a path; None if there is none that we may see."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _advice(error: sqlite3.OperationalError) -> str:
    message = str(error)
    if "locked" in message or "busy" in message:
        return ": another program holds it; it is tried again"
    if "full" in message:
        return ": free some space"
    if "readonly" in message or "unable to open" in message:
        return ": check that it exists and that you may write there"
    return ""
