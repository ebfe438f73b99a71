"""PostgreSQL, for more than one machine: any number of workers share it, each through a small pool."""

from __future__ import annotations

import contextlib
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.string import TextLoader
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from turnout.core.conceal import HIDDEN
from turnout.core.errors import StoreUnavailable

from . import sql
from .backend import Record, Transaction, Unwritable, Value, Values, grouped
from .copy import copy
from .migrate import Applied, Migration, migrations, pending
from .row import Row
from .sqlite import Sqlite, make_single

POOL = 10
# An operator's question that takes longer than this is cut off; the journal's writes are far shorter.
STATEMENT_MS = 30_000
CONNECT_S = 5.0
# What a URL may say otherwise. A server that is cut off without a word is given up after some 20 s, not after hours.
CONNECTION = {
    "application_name": "turnout",
    "connect_timeout": str(int(CONNECT_S)),
    "keepalives_idle": "10",
    "keepalives_interval": "3",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
# Serialises migrations of several workers that start at once: any number that is ours alone.
MIGRATION_LOCK = 7_276_101


class Postgres:
    name = "postgres"

    def __init__(self, url: str) -> None:
        self.where = without_password(url)
        _quiet()
        said = _options(url)
        self._password = str(said.get("password") or "")
        self._made: type[_Connection] = type("_Made", (_Connection,), {})
        self._pool = ConnectionPool(
            url,
            connection_class=self._made,
            min_size=0,
            max_size=POOL,
            timeout=CONNECT_S,
            # As short: a pool that waits longer and longer between attempts finds a server late that is up again.
            reconnect_timeout=CONNECT_S,
            open=False,
            configure=_configure,
            check=ConnectionPool.check_connection,
            kwargs={"options": f"-c statement_timeout={STATEMENT_MS} {said.get('options', '')}".strip()}
            | {name: value for name, value in CONNECTION.items() if name not in said},
        )
        self._opened = False

    def write(self, rows: Sequence[Row]) -> int:
        repeated = 0
        with self._connected() as connection, connection.cursor() as cursor:
            for statement, records in grouped(rows):
                cursor.executemany(spelled(statement), records)
                repeated += len(records) - cursor.rowcount if statement is not sql.ADD_PROFILE else 0
        return repeated

    def read(self, statement: str, values: Values) -> list[Record]:
        with self._connected() as connection:
            return connection.execute(spelled(statement), values).fetchall()

    def change(self, statement: str, values: Values) -> int:
        with self._connected() as connection:
            return connection.execute(spelled(statement), values).rowcount

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[Transaction]:
        with self._connected() as connection:
            connection.execute("set transaction isolation level repeatable read, read only")
            # For checks and copies of everything, which take as long as they take.
            connection.execute("set local statement_timeout = 0")
            yield _Statements(connection)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with self._connected() as connection:
            yield _Statements(connection)

    def pending(self) -> list[Migration]:
        with self._connected() as connection:
            return pending(migrations(self.name), _applied(connection), self.where)

    def migrate(self) -> list[Migration]:
        with self._connected() as connection:
            # A step may build an index over millions of rows.
            connection.execute("set local statement_timeout = 0")
            connection.execute("select pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
            connection.execute(spelled(sql.SCHEMA_TABLE))
            steps = pending(migrations(self.name), _applied(connection), self.where)
            for step in steps:
                for statement in step.statements:
                    connection.execute(statement.encode())
                applied = {"number": step.number, "name": step.name, "checksum": step.checksum}
                connection.execute(spelled(sql.ADD_APPLIED), applied | {"applied_ms": time.time_ns() // 1_000_000})
        self._add_vectors()
        return steps

    def _add_vectors(self) -> None:
        """Ready for search later. Not every server has the extension, and the log does without it."""
        with contextlib.suppress(StoreUnavailable, Unwritable), self._connected() as connection:
            connection.execute("create extension if not exists vector")

    def check(self) -> None:
        """Nothing to do: a server recovers from its own log, and ours is not the end that it may not have survived."""

    def problems(self) -> Iterable[str]:
        """PostgreSQL checks its own pages; what is ours to check is that the tables can be read."""
        with self.snapshot() as moment:
            moment.read(sql.COUNTS, {})
        return ()

    def measured(self) -> Mapping[str, Value]:
        size, version, vector = self.read(sql.POSTGRES_FACTS, {})[0]
        return {"size_bytes": size, "version": version, "vector": vector}

    def backup(self, target: Path, progress: Callable[[int, int], None]) -> None:
        """A consistent copy, table by table: no program of PostgreSQL's is needed to make one or to read it."""
        file = Sqlite(target)
        with contextlib.closing(file):
            file.migrate()
            copy(self, file, progress)
        make_single(target)

    def close(self) -> None:
        if self._opened:
            self._pool.close()

    @contextlib.contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection in a transaction of its own; PostgreSQL's errors under our names."""
        try:
            if not self._opened:
                self._pool.open()
                self._opened = True
            with self._pool.connection() as connection:
                yield connection
        except (psycopg.Error, PoolTimeout, PoolClosed) as error:
            if _is_about_a_row(error):
                raise Unwritable(f"{self.where}: {self._said(error)}") from error
            # The pool says how long it has tried; the connection it could not make says why.
            why = self._made.failed if isinstance(error, PoolTimeout) and self._made.failed else error
            raise StoreUnavailable(f"{self.where}: {self._said(why)}") from error

    def _said(self, error: BaseException) -> str:
        said = _first_line(error)
        return said.replace(self._password, HIDDEN) if self._password else said


class _Connection(psycopg.Connection[Any]):
    """Remembers why the last one could not be made."""

    failed: psycopg.Error | None = None

    @classmethod
    def connect(cls, *args: Any, **kwargs: Any) -> Self:
        try:
            made = super().connect(*args, **kwargs)
        except psycopg.Error as error:
            cls.failed = error
            raise
        cls.failed = None
        return made


def _quiet() -> None:
    """The pool tells the log of every attempt; what an outage is, the journal says, once."""
    pool = logging.getLogger("psycopg.pool")
    if pool.level == logging.NOTSET:
        pool.setLevel(logging.ERROR)


class _Statements:
    """A connection inside a transaction, as others may use it."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def read(self, statement: str, values: Values) -> list[Record]:
        return self._connection.execute(spelled(statement), values).fetchall()

    def many(self, statement: str, rows: Sequence[Values] | Sequence[Record]) -> int:
        with self._connection.cursor() as cursor:
            cursor.executemany(spelled(statement), rows)
            return cursor.rowcount


def _configure(connection: psycopg.Connection[Any]) -> None:
    # JSON columns are handed on as they were written; whoever needs the inside decodes it once.
    connection.adapters.register_loader("json", TextLoader)


def _applied(connection: psycopg.Connection[Any]) -> list[Applied]:
    found = connection.execute("select to_regclass('schema_version')").fetchone()
    if found is None or found[0] is None:
        return []
    return [Applied(*row) for row in connection.execute(spelled(sql.APPLIED))]


@lru_cache(maxsize=256)
def spelled(statement: str) -> bytes:
    """A constant of `sql` with its placeholders as psycopg writes them."""
    return re.sub(r":([a-z_]+)", r"%(\1)s", statement).replace("?", "%s").encode()


def without_password(url: str) -> str:
    """The URL as it may be shown, also one whose password has signs in it that should have been escaped."""
    head, _, query = url.partition("?")
    if "@" in query and "@" not in head:
        return f"{head.partition('://')[0]}://…"
    options = [(key, value) for key, value in parse_qsl(query) if "password" not in key]
    shown = re.sub(r"(://[^:/@]*):.*@", r"\1@", head, count=1, flags=re.DOTALL)
    return f"{shown}?{urlencode(options, safe='/')}" if options else shown


def _options(url: str) -> Mapping[str, Any]:
    """What a URL says, as PostgreSQL's library reads it; a ValueError without a word of the URL where it does not.

    A password with an unescaped sign in it is read as a part of the host, and then named in every error.
    """
    head, _, query = url.partition("?")
    if "@" in query or head.count("@") > 1 or "@" in head.partition("://")[2].partition("/")[2]:
        raise ValueError("in a password, @ : / ? # and % are written %40 %3A %2F %3F %23 and %25")
    said: Mapping[str, Any] | None = None
    # What PostgreSQL's library says quotes the part it does not understand, and must not be carried along.
    with contextlib.suppress(psycopg.Error):
        said = conninfo_to_dict(url)
    if said is None:
        raise ValueError("a sign in it is not escaped, or an option is not known")
    if not re.fullmatch(r"[0-9,]*", str(said.get("port") or "")):
        raise ValueError("its port is no number")
    return said


def identity(url: str) -> str:
    """Where the database is, and as whom: the same however else it is connected to."""
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    where = sorted(option for option in parse_qsl(parts.query) if option[0] in _PLACES)
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}{at}{hosts}", query=urlencode(where)))


_PLACES = ("dbname", "host", "hostaddr", "port", "service", "user")


def _is_about_a_row(error: BaseException) -> bool:
    """Whether the database refuses what a row says. A missing table or right is no row's fault: somebody mends it."""
    if isinstance(error, psycopg.DataError | psycopg.IntegrityError):
        return True
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    # Class 54: too long for an index, too deep for a parser. Without a state it is psycopg that cannot send the value.
    return state.startswith("54") if state else isinstance(error, psycopg.ProgrammingError)


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__
