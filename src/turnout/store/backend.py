"""What a database must do for the store, and the errors it may end with. SQLite and PostgreSQL each have one file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from msgspec import Raw
from msgspec.structs import astuple

from turnout.core.errors import StoreError

from . import sql
from .migrate import Migration
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


class Unwritable(StoreError):
    """A row the database refuses for what it says: waiting will not help."""


class Transaction(Protocol):
    """Statements that belong together."""

    def read(self, statement: str, values: Values) -> list[Record]: ...

    def many(self, statement: str, rows: Sequence[Values] | Sequence[Record]) -> int:
        """Run one statement for each row; how many rows it touched."""


class Backend(Protocol):
    """One database. Thread-safe. Every method may raise StoreUnavailable; `write` also Unwritable."""

    name: str
    where: str
    """How messages call it: a path, or an address without its password."""

    def write(self, rows: Sequence[Row]) -> int:
        """Add rows in one durable transaction; how many were there already, profiles aside."""

    def read(self, statement: str, values: Values) -> list[Record]: ...

    def change(self, statement: str, values: Values) -> int:
        """Run one statement in a transaction of its own; how many rows it touched."""

    def snapshot(self) -> AbstractContextManager[Transaction]:
        """Reads of one moment, whatever is written meanwhile."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Changes that happen together or not at all."""

    def pending(self) -> list[Migration]:
        """The steps its schema still needs; raises SchemaTooNew or StoreDamaged."""

    def migrate(self) -> list[Migration]:
        """Take the pending steps; which they were."""

    def check(self) -> None:
        """A short look before the first write after an unclean end; raises StoreDamaged."""

    def problems(self) -> Iterable[str]:
        """What is wrong with the database itself, in sentences."""

    def measured(self) -> Mapping[str, Value]:
        """`size_bytes`, `version`, and what only this kind of database has."""

    def backup(self, target: Path, progress: Callable[[int, int], None]) -> None:
        """Copy everything, while it is in use, into an empty SQLite file."""

    def close(self) -> None: ...


def grouped(rows: Sequence[Row]) -> Iterable[tuple[str, list[Record]]]:
    """Rows as parameters, each kind with its statement."""
    kinds: dict[type[Row], list[Record]] = {kind: [] for kind, _ in ADD}
    for row in rows:
        kinds[type(row)].append(record(row))
    for kind, statement in ADD:
        if records := kinds[kind]:
            yield statement, records


def record(row: Row) -> Record:
    """A row's fields as a database takes them: JSON as text."""
    fields = astuple(row)
    if type(row) is DecisionRow:
        return (*fields[:-3], _json(row.asked), _json(row.body), row.key_id)
    if type(row) is OutcomeRow:
        return (*fields[:-3], _json(row.sources), _json(row.extra), row.created_ms)
    if type(row) is ProfileRow:
        return (row.hash, row.name, _json(row.resolved), row.created_ms, _json(row.patterns))
    return fields


def _json(raw: Raw) -> str | None:
    return None if len(raw) == 4 and bytes(raw) == b"null" else str(raw, "utf-8")
