"""PostgreSQL, for more than one machine: any number of workers share it, each through a small pool."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg.types.string import TextLoader
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from turnout.core.errors import StoreUnavailable

from . import sql
from .backend import Record, Unwritable, Values, grouped
from .migrate import Applied, Migration, migrations, pending
from .row import Row

POOL = 10
# An operator's question that takes longer than this is cut off; the journal's writes are far shorter.
STATEMENT_MS = 30_000
CONNECT_S = 5.0
# Serialises migrations of several workers that start at once: any number that is ours alone.
MIGRATION_LOCK = 7_276_101


class Postgres:
    name = "postgres"

    def __init__(self, url: str) -> None:
        self.where = without_password(url)
        self._pool = ConnectionPool(
            url,
            min_size=0,
            max_size=POOL,
            timeout=CONNECT_S,
            open=False,
            configure=_configure,
            check=ConnectionPool.check_connection,
            kwargs={"options": f"-c statement_timeout={STATEMENT_MS}", "application_name": "turnout"},
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

    def pending(self) -> list[Migration]:
        with self._connected() as connection:
            return pending(migrations(self.name), _applied(connection), self.where)

    def migrate(self) -> list[Migration]:
        with self._connected() as connection:
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

    def problems(self) -> Iterable[str]:
        """PostgreSQL checks its own pages; what is ours to check is that the tables can be read."""
        self.read(sql.COUNTS, {})
        return ()

    def backup(self, target: Path, progress: Callable[[int, int], None]) -> None:
        raise NotImplementedError

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
        except (psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError) as error:
            raise Unwritable(f"{self.where}: {_first_line(error)}") from error
        except (psycopg.Error, PoolTimeout, PoolClosed) as error:
            said = f"{self.where}: {_first_line(error)}: rows wait in the spool until it answers"
            raise StoreUnavailable(said) from error


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
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = f":{parts.port}" if parts.port else ""
    user = f"{parts.username}@" if parts.username else ""
    return urlunsplit((parts.scheme, f"{user}{host}{port}", parts.path, "", ""))


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__
