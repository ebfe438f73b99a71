"""PostgreSQL, for more than one machine: any number of workers share it, each through a small pool."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg.adapt import Dumper
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.string import TextLoader
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from turnout.core.conceal import HIDDEN
from turnout.core.errors import StoreUnavailable

from . import sql
from .backend import Backend, Transaction, Unwritable, Value
from .copy import copy
from .migrate import AppliedMigration, Migration
from .sqlite import Sqlite, make_single

POOL = 10
# A query of an operator that takes longer is cancelled; the journal's writes are far shorter.
STATEMENT_MS = 30_000
CONNECT_S = 5.0
# Defaults that a URL may override. An unreachable server is given up after some 20 s, not after hours.
CONNECTION = {
    "application_name": "turnout",
    "connect_timeout": str(int(CONNECT_S)),
    "keepalives_idle": "10",
    "keepalives_interval": "3",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
# Serialises the migrations of workers that start at once: any number of our own.
MIGRATION_LOCK = 7_276_101


# `create schema` takes no parameters: the name is passed as a setting of the transaction.
NAME_SCHEMA = """
select set_config('turnout.schema', :name, true)
"""
CREATE_SCHEMA = """
do $$ begin execute format('create schema %I', current_setting('turnout.schema')); end $$
"""


class Postgres(Backend):
    name = "postgres"

    def __init__(self, url: str, schema: str = "") -> None:
        """`schema`: searched for tables before `public`; by default the URL or the server says where they are."""
        self.where = without_password(url)
        _quiet()
        options = _options(url)
        path = f"-c search_path={schema},public" if schema else ""
        self._password = str(options.get("password") or "")
        self._connections: type[PooledConnection] = type("Connections", (PooledConnection,), {})
        self._pool = ConnectionPool(
            url,
            connection_class=self._connections,
            min_size=0,
            max_size=POOL,
            timeout=CONNECT_S,
            # Short, because a pool waits longer after each attempt and would notice late that a server is back.
            reconnect_timeout=CONNECT_S,
            open=False,
            configure=_configure,
            check=ConnectionPool.check_connection,
            kwargs={"options": f"-c statement_timeout={STATEMENT_MS} {options.get('options', '')} {path}".strip()}
            | {name: value for name, value in CONNECTION.items() if name not in options},
        )
        self._opened = False

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """A connection in its own transaction; raises PostgreSQL's errors as the store's."""
        try:
            if not self._opened:
                self._pool.open()
                self._opened = True
            with self._pool.connection() as connection:
                yield Transaction(connection, spelled)
        except (psycopg.Error, PoolTimeout, PoolClosed) as error:
            if _is_about_a_row(error):
                raise Unwritable(f"{self.where}: {self._describe(error)}") from error
            # The pool's error says how long it tried, the failed connection's error why.
            failed = self._connections.failed
            why = failed if isinstance(error, PoolTimeout) and failed else error
            raise StoreUnavailable(f"{self.where}: {self._describe(why)}") from error

    reading = transaction

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[Transaction]:
        with self.transaction() as reads:
            reads.connection.execute("set transaction isolation level repeatable read, read only")
            # Checks and copies of everything may take long.
            reads.connection.execute("set local statement_timeout = 0")
            yield reads

    def applied(self, transaction: Transaction) -> list[AppliedMigration]:
        # In the first schema of the search path alone: the second may have one, too.
        exists = transaction.read("select to_regclass(quote_ident(current_schema()) || '.schema_version')", {})[0][0]
        return [AppliedMigration(*row) for row in transaction.read(sql.APPLIED, {})] if exists else []

    def migrate(self) -> list[Migration]:
        steps = super().migrate()
        self._add_vectors()
        return steps

    @contextlib.contextmanager
    def migrating(self) -> Iterator[Transaction]:
        with self.transaction() as changes:
            # A step may build an index over millions of rows.
            changes.connection.execute("set local statement_timeout = 0")
            changes.connection.execute("select pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
            yield changes

    def _add_vectors(self) -> None:
        """Install the extension for search. Not every server has it, and the log works without it."""
        with contextlib.suppress(StoreUnavailable, Unwritable), self.transaction() as changes:
            changes.connection.execute("create extension if not exists vector")

    def check(self) -> None:
        """Nothing to do: a server recovers from its own log, whatever ended our process."""

    def problems(self) -> Iterable[str]:
        """PostgreSQL checks its own pages; this checks that the tables can be read."""
        with self.snapshot() as moment:
            moment.read(sql.COUNTS, {})
        return ()

    def measured(self) -> Mapping[str, Value]:
        size, version, vector = self.read(sql.POSTGRES_FACTS, {})[0]
        return {"size_bytes": size, "version": version, "vector": vector}

    def backup(self, target: Path, progress: Callable[[int, int], None]) -> None:
        """A consistent copy, table by table, which needs no PostgreSQL program to make or to read."""
        file = Sqlite(target)
        with contextlib.closing(file):
            file.migrate()
            copy(self, file, progress)
        make_single(target)

    def close(self) -> None:
        if self._opened:
            self._pool.close()

    def _describe(self, error: BaseException) -> str:
        text = str(error).strip().split("\n")[0] or type(error).__name__
        return text.replace(self._password, HIDDEN) if self._password else text


class PostgresSchema(Postgres):
    """Tables in a schema of their own, which is created on first use."""

    def __init__(self, url: str, schema: str) -> None:
        self.schema = schema
        super().__init__(url, schema)

    def pending(self) -> list[Migration]:
        with self.migrating() as changes:
            if not changes.read("select to_regnamespace(:name)", {"name": self.schema})[0][0]:
                changes.read(NAME_SCHEMA, {"name": self.schema})
                changes.connection.execute(CREATE_SCHEMA)
        return super().pending()


class PooledConnection(psycopg.Connection[Any]):
    """Remembers why the last connection failed."""

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
    """The pool logs every attempt to connect; the journal logs an outage once."""
    pool = logging.getLogger("psycopg.pool")
    if pool.level == logging.NOTSET:
        pool.setLevel(logging.ERROR)


class TextDumper(Dumper):
    """Sends bytes as text, whose type the server takes from the column."""

    def dump(self, obj: Any) -> bytes:
        data: bytes = obj
        return data


def _configure(connection: psycopg.Connection[Any]) -> None:
    # JSON columns are returned as text and decoded where they are needed.
    connection.adapters.register_loader("json", TextLoader)
    connection.adapters.register_dumper(bytes, TextDumper)


@lru_cache(maxsize=256)
def spelled(statement: str) -> bytes:
    """A constant of `sql` with its placeholders as psycopg writes them. Bytes are sent as text already."""
    plain = statement.replace("cast(? as text)", "?")
    return re.sub(r":([a-z_]+)", r"%(\1)s", plain).replace("?", "%s").encode()


def without_password(url: str) -> str:
    """The URL without its password, also if the password has characters that should have been escaped."""
    head, _, query = url.partition("?")
    if "@" in query and "@" not in head:
        return f"{head.partition('://')[0]}://…"
    options = [(key, value) for key, value in parse_qsl(query) if "password" not in key]
    shown = re.sub(r"(://[^:/@]*):.*@", r"\1@", head, count=1, flags=re.DOTALL)
    return f"{shown}?{urlencode(options, safe='/')}" if options else shown


def _options(url: str) -> Mapping[str, Any]:
    """A URL's options as PostgreSQL's library reads them; raises a ValueError that does not quote the URL.

    A password with an unescaped character would be read as a part of the host, and shown in every error.
    """
    head, _, query = url.partition("?")
    if "@" in query or head.count("@") > 1 or "@" in head.partition("://")[2].partition("/")[2]:
        raise ValueError("in a password, @ : / ? # and % are written %40 %3A %2F %3F %23 and %25")
    options: Mapping[str, Any] | None = None
    # The library's error quotes the part it does not understand, and must not be chained.
    with contextlib.suppress(psycopg.Error):
        options = conninfo_to_dict(url)
    if options is None:
        raise ValueError("a sign in it is not escaped, or an option is not known")
    if not re.fullmatch(r"[0-9,]*", str(options.get("port") or "")):
        raise ValueError("its port is not a number")
    return options


def identity(url: str) -> str:
    """The database's address and user, without the other options of the connection."""
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    where = sorted(option for option in parse_qsl(parts.query) if option[0] in _PLACES)
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}{at}{hosts}", query=urlencode(where)))


_PLACES = ("dbname", "host", "hostaddr", "port", "service", "user")


def _is_about_a_row(error: BaseException) -> bool:
    """Whether the database refuses a row's content. A missing table or permission is not the row's fault."""
    if isinstance(error, psycopg.DataError | psycopg.IntegrityError):
        return True
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    # Class 54: too long for an index, too deep for a parser. Without a state, psycopg could not send the value.
    return state.startswith("54") if state else isinstance(error, psycopg.ProgrammingError)
