"""What a database does for the store, and the errors it may raise. SQLite and PostgreSQL add how they connect.

Every statement runs in a transaction: a reading one sees one snapshot, a writing one is applied completely or not at
all.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Raw
from msgspec.structs import astuple, fields

from turnout.core.decision import first_id, id_ms
from turnout.core.errors import StoreError

from . import sql
from .migrate import LOG, AppliedMigration, Migration, migrations, pending
from .row import BreachRow, DecisionRow, OutcomeRow, ProfileRow, ReplyRow, Row, SpendRow

Value = str | int | float | bool | bytes | None
Values = Mapping[str, Value]
Record = tuple[Any, ...]

# Written in this order, in one transaction: a profile before the decisions that name it, decisions before the rest.
ADD: tuple[tuple[type[Row], str], ...] = (
    (ProfileRow, sql.ADD_PROFILE),
    (DecisionRow, sql.ADD_DECISION),
    (OutcomeRow, sql.ADD_OUTCOME),
    (BreachRow, sql.ADD_BREACH),
    (ReplyRow, sql.ADD_REPLY),
    (SpendRow, sql.ADD_SPENDING),
)

HOUR_MS = 3_600_000

_JSON = {kind: [at for at, field in enumerate(fields(kind)) if field.type is Raw] for kind, _ in ADD}
"""Which columns of a row hold JSON."""


class Unwritable(StoreError):
    """The database refuses a row because of its content: waiting will not help."""


class Transaction:
    """A connection inside a transaction. Both libraries have Python's database interface; `spelled` turns a constant of
    `sql` into the library's own notation."""

    def __init__(self, connection: Any, spelled: Callable[[str], str | bytes] = str) -> None:
        self.connection = connection
        self.spelled = spelled

    def read(self, statement: str, values: Values) -> list[Record]:
        rows: list[Record] = self.connection.execute(self.spelled(statement), values).fetchall()
        return rows

    def change(self, statement: str, values: Values) -> int:
        """Run one statement; returns how many rows it touched."""
        return int(self.connection.execute(self.spelled(statement), values).rowcount)

    def many(self, statement: str, rows: Sequence[Values] | Sequence[Record]) -> int:
        """Run one statement for each row; returns how many rows were touched."""
        with closing(self.connection.cursor()) as cursor:
            cursor.executemany(self.spelled(statement), rows)
            return int(cursor.rowcount)


class Backend(ABC):
    """One database. Thread-safe. Every method may raise StoreUnavailable; `write` also Unwritable."""

    name: ClassVar[str]
    steps: ClassVar[str] = LOG
    """The package that holds the steps of its schema."""
    where: str
    """Its name in messages: a path, or an address without its password."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Transaction]:
        """A transaction for statements that change nothing."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Transaction]:
        """A transaction for changes."""

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[Transaction]:
        """A transaction whose reads all see the same moment, however long they take."""

    @abstractmethod
    def applied(self, transaction: Transaction) -> list[AppliedMigration]:
        """The migrations that were applied; none if there is no schema yet."""

    @abstractmethod
    def check(self) -> None:
        """A short check before the first write after an unclean end; raises StoreDamaged."""

    @abstractmethod
    def problems(self) -> Iterable[str]:
        """The faults the database finds in itself, in sentences."""

    @abstractmethod
    def measured(self) -> Mapping[str, Value]:
        """`size_bytes`, `version`, and facts that only this kind of database has."""

    @abstractmethod
    def backup(self, target: Path, progress: Callable[[int, int], None]) -> None:
        """Copy the whole database, while it is in use, into an empty SQLite file."""

    @abstractmethod
    def close(self) -> None: ...

    def write(self, rows: Sequence[Row]) -> int:
        """Add rows in one durable transaction; returns how many were there already, not counting profiles."""
        repeated = 0
        by_kind: dict[type, list[Record]] = {}
        for row in rows:
            by_kind.setdefault(type(row), []).append(record(row))
        with self.transaction() as changes:
            for kind, statement in ADD:
                if records := by_kind.get(kind):
                    added = changes.many(statement, records)
                    repeated += len(records) - added if kind is not ProfileRow else 0
            for hour in late_hours(by_kind.get(DecisionRow, []) + by_kind.get(OutcomeRow, [])):
                changes.change(sql.LATE_HOUR, {"hour_ms": hour})
        return repeated

    def read(self, statement: str, values: Values) -> list[Record]:
        with self.reading() as reads:
            return reads.read(statement, values)

    def change(self, statement: str, values: Values) -> int:
        """Run one statement in its own transaction; returns how many rows it touched."""
        with self.transaction() as changes:
            return changes.change(statement, values)

    def pending(self) -> list[Migration]:
        """The steps the schema still needs; raises SchemaTooNew or StoreDamaged."""
        with self.reading() as reads:
            return pending(migrations(self.name, self.steps), self.applied(reads), self.where)

    def migrate(self) -> list[Migration]:
        """Apply the pending steps and return them."""
        with self.migrating() as changes:
            # Read again inside the transaction: another process may have been quicker.
            changes.change(sql.SCHEMA_TABLE, {})
            steps = pending(migrations(self.name, self.steps), self.applied(changes), self.where)
            for step in steps:
                for statement in step.statements:
                    changes.connection.execute(statement)
                applied = AppliedMigration(step.number, step.name, step.checksum)._asdict()
                changes.change(sql.ADD_APPLIED, applied | {"applied_ms": time.time_ns() // 1_000_000})
        return steps

    def migrating(self) -> AbstractContextManager[Transaction]:
        """A transaction during which no other process migrates."""
        return self.transaction()


def record(row: Row) -> Record:
    """A row's fields as statements take them, JSON as bytes."""
    values = list(astuple(row))
    for column in _JSON[type(row)]:
        form = bytes(values[column])
        values[column] = None if form == b"null" else form
    return tuple(values)


def hour_of(ms: int) -> int:
    """The beginning of the hour."""
    return ms // HOUR_MS * HOUR_MS


@lru_cache(maxsize=1)
def _begin_of_hour(hour: int) -> str:
    """The lowest possible id of that hour, calculated once an hour."""
    return first_id(hour * HOUR_MS)


def late_hours(records: Iterable[Record]) -> list[int]:
    """The hours of these decisions and outcomes that are over, sorted: all writers mark them in the same order."""
    # Their first column is the decision's id, which begins with its time; hardly any is late.
    now = _begin_of_hour(time.time_ns() // 1_000_000 // HOUR_MS)
    return sorted({hour_of(id_ms(row[0])) for row in records if row[0] < now})
