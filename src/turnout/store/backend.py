"""What a database does for the store, and the errors it may end with. SQLite and PostgreSQL add how they connect.

Every statement runs in a transaction: a reading one sees one moment, a writing one happens as a whole or not at all.
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
    """A row the database refuses for what it says: waiting will not help."""


class Transaction:
    """A connection inside a transaction. Both databases' libraries have the interface that Python asks of them all;
    `spelled` is how a constant of `sql` reads in this one's."""

    def __init__(self, connection: Any, spelled: Callable[[str], str | bytes] = str) -> None:
        self.connection = connection
        self.spelled = spelled

    def read(self, statement: str, values: Values) -> list[Record]:
        rows: list[Record] = self.connection.execute(self.spelled(statement), values).fetchall()
        return rows

    def change(self, statement: str, values: Values) -> int:
        """Run one statement; how many rows it touched."""
        return int(self.connection.execute(self.spelled(statement), values).rowcount)

    def many(self, statement: str, rows: Sequence[Values] | Sequence[Record]) -> int:
        """Run one statement for each row; how many rows it touched."""
        with closing(self.connection.cursor()) as cursor:
            cursor.executemany(self.spelled(statement), rows)
            return int(cursor.rowcount)


class Backend(ABC):
    """One database. Thread-safe. Every method may raise StoreUnavailable; `write` also Unwritable."""

    name: ClassVar[str]
    steps: ClassVar[str] = LOG
    """The package that holds the steps of its schema."""
    where: str
    """How messages call it: a path, or an address without its password."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Transaction]:
        """Statements that change nothing."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Transaction]:
        """Changes that happen together or not at all."""

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[Transaction]:
        """Reads of one moment, whatever is written meanwhile and however long they take."""

    @abstractmethod
    def applied(self, transaction: Transaction) -> list[AppliedMigration]:
        """The migrations that were applied; none where there is no schema yet."""

    @abstractmethod
    def check(self) -> None:
        """A short look before the first write after an unclean end; raises StoreDamaged."""

    @abstractmethod
    def problems(self) -> Iterable[str]:
        """What is wrong with the database itself, in sentences."""

    @abstractmethod
    def measured(self) -> Mapping[str, Value]:
        """`size_bytes`, `version`, and what only this kind of database has."""

    @abstractmethod
    def backup(self, target: Path, progress: Callable[[int, int], None]) -> None:
        """Copy everything, while it is in use, into an empty SQLite file."""

    @abstractmethod
    def close(self) -> None: ...

    def write(self, rows: Sequence[Row]) -> int:
        """Add rows in one durable transaction; how many were there already, profiles aside."""
        repeated = 0
        with self.transaction() as changes:
            by_kind: dict[type, list[Record]] = {}
            for row in rows:
                by_kind.setdefault(type(row), []).append(record(row))
            for kind, statement in ADD:
                if records := by_kind.get(kind):
                    added = changes.many(statement, records)
                    repeated += len(records) - added if kind is not ProfileRow else 0
            for hour in late_hours(rows):
                changes.change(sql.LATE_HOUR, {"hour_ms": hour})
        return repeated

    def read(self, statement: str, values: Values) -> list[Record]:
        with self.reading() as reads:
            return reads.read(statement, values)

    def change(self, statement: str, values: Values) -> int:
        """Run one statement in a transaction of its own; how many rows it touched."""
        with self.transaction() as changes:
            return changes.change(statement, values)

    def pending(self) -> list[Migration]:
        """The steps its schema still needs; raises SchemaTooNew or StoreDamaged."""
        with self.reading() as reads:
            return pending(migrations(self.name, self.steps), self.applied(reads), self.where)

    def migrate(self) -> list[Migration]:
        """Take the pending steps; which they were."""
        with self.migrating() as changes:
            # Asked again inside the transaction: another process may have been quicker.
            changes.change(sql.SCHEMA_TABLE, {})
            steps = pending(migrations(self.name, self.steps), self.applied(changes), self.where)
            for step in steps:
                for statement in step.statements:
                    changes.connection.execute(statement)
                applied = AppliedMigration(step.number, step.name, step.checksum)._asdict()
                changes.change(sql.ADD_APPLIED, applied | {"applied_ms": time.time_ns() // 1_000_000})
        return steps

    def migrating(self) -> AbstractContextManager[Transaction]:
        """A transaction that no other process migrates beside."""
        return self.transaction()


def record(row: Row) -> Record:
    """A row's fields as a database takes them: JSON as text."""
    values = list(astuple(row))
    for column in _JSON[type(row)]:
        raw = values[column]
        values[column] = None if len(raw) == 4 and bytes(raw) == b"null" else str(raw, "utf-8")
    return tuple(values)


def hour_of(ms: int) -> int:
    """When the hour began."""
    return ms // HOUR_MS * HOUR_MS


@lru_cache(maxsize=1)
def _begin_of_hour(hour: int) -> str:
    """What no id of that hour or a later one is below; worked out once an hour."""
    return first_id(hour * HOUR_MS)


def late_hours(rows: Iterable[Row]) -> list[int]:
    """The hours of these rows that are over, in order: two writers mark them in the same one."""
    # Ids begin with their time and are compared as they are: hardly any is late.
    now = _begin_of_hour(time.time_ns() // 1_000_000 // HOUR_MS)
    idents = (
        row.id if isinstance(row, DecisionRow) else row.decision_id
        for row in rows
        if isinstance(row, DecisionRow | OutcomeRow)
    )
    return sorted({hour_of(id_ms(ident)) for ident in idents if ident < now})
