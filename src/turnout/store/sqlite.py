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

# How long a writer waits for another process's lock before it says so.
BUSY_S = 2.0
# How long a start may spend on looking for damage; whatever takes longer is `turnout db verify`'s business.
CHECK_S = 2.0
# Steps of SQLite's between two looks at the clock: some tens of microseconds.
CHECK_STEPS = 10_000
# Pages copied at a time by a backup; between two of them writers get their turn.
BACKUP_PAGES = 1024
# After these the next attempt needs a new connection: one that was opened for reading only stays so for good.
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
    # What retention takes away is overwritten, not only unlinked.
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
        """Which file the writer writes to; None before the first write."""
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
            # Asked after the commit: it is worth nothing in a file that can no longer be opened.
            if _identity(self.path) != self._written:
                self._drop_writer()
                raise StoreUnavailable(f"{self.where}: it was removed or replaced while in use; what was written waits")

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[Transaction]:
        """A reader that sees the database as it is now until it is done.

        Without it a backup starts again at every write, and beside a busy writer never ends.
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
        """Raises StoreDamaged if a short look finds damage. A large database is looked at in part."""
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
        # Readers first: the last connection to go folds the log into the file, and a reader may not.
        while not self._readers.empty():
            self._readers.get_nowait()[0].close()
        with self._lock:
            if self._writer is not None:
                with contextlib.suppress(sqlite3.Error):
                    self._writer.execute("pragma optimize")
                self._writer.close()
                self._writer = None

    def _reader(self) -> tuple[sqlite3.Connection, Identity | None]:
        """A connection to the file that stands there now."""
        file = _identity(self.path)
        while not self._readers.empty():
            with contextlib.suppress(queue.Empty):
                connection, of = self._readers.get_nowait()
                if of == file:
                    return connection, file
                connection.close()
        return self._connect("ro"), file

    def _roll_back(self) -> None:
        """A process that died while it made the database has left a journal, which no reader can roll back."""
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
            # Not made anew: an empty database in the place of one that is moved, or not mounted, would hide it.
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
        """Done by us rather than by SQLite: what people ask must not be readable by other users."""
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
        """SQLite's errors under our names."""
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
    """Run a pragma. SQLite does not wait where another process changes the journal's mode at the same moment: we do."""
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
    """Let a database be one file that is readable anywhere: write-ahead logging needs a folder to write in."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma journal_mode = delete")


def _identity(path: Path) -> Identity | None:
    """Which file a name leads to; None if to none that we may see."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _advice(error: sqlite3.OperationalError) -> str:
    said = str(error)
    if "locked" in said or "busy" in said:
        return ": another program holds it; it is tried again"
    if "full" in said:
        return ": free some space"
    if "readonly" in said or "unable to open" in said:
        return ": check that it exists and that you may write there"
    return ""
