"""Copies a whole store: into a backup, out of one, from one kind of database to the other.

A copy reads one snapshot and is written in one transaction: it is complete or it does not exist. A backup is always a
SQLite file, also of PostgreSQL, so there is one format to keep, to move and to inspect.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from turnout.core.errors import StoreDamaged, StoreError

from . import sql
from .backend import Backend, Record, Transaction, Value
from .sqlite import Sqlite

# Rows read and written at a time: some megabytes.
PAGE = 500

Progress = Callable[[int, int], None]


class Table(NamedTuple):
    name: str
    page: str
    """The statement that reads the rows above a key."""
    add: str
    key: tuple[int, ...] = (0,)
    """The columns of the primary key, passed to `page` under the names in `above`."""
    above: tuple[str, ...] = ("above",)
    json: tuple[int, ...] = ()
    """Columns that hold JSON."""
    boolean: tuple[int, ...] = ()
    """Columns that SQLite returns as 0 and 1."""
    counted: bool = True
    """Whether `sql.COUNTS` counts it."""


# In this order every row comes after the rows it refers to.
TABLES = (
    Table("store_settings", sql.ALL_SETTINGS, sql.SET_SETTING, counted=False),
    Table("profiles", sql.ALL_PROFILES, sql.ADD_PROFILE, json=(2, 4)),
    Table("decisions", sql.ALL_DECISIONS, sql.ADD_DECISION, json=(7, 17, 18)),
    Table("outcomes", sql.ALL_OUTCOMES, sql.ADD_OUTCOME, json=(15, 16), boolean=(11,)),
    Table("feedback", sql.ALL_FEEDBACK, sql.COPY_FEEDBACK),
    Table(
        "breaches",
        sql.ALL_BREACHES,
        sql.ADD_BREACH,
        key=(0, 3, 4, 7),
        above=("above", "above_rule", "above_fact", "above_phase"),
        json=(5,),
    ),
    Table("replies", sql.ALL_REPLIES, sql.ADD_REPLY),
    Table("keys", sql.ALL_KEYS, sql.ADD_KEY, boolean=(7,), counted=False),
    Table("spending", sql.ALL_SPENDING, sql.ADD_SPENDING, counted=False),
    Table("cache_entries", sql.ALL_CACHED, sql.KEEP_CACHED, counted=False),
    Table("study_sessions", sql.ALL_STUDY_SESSIONS, sql.ADD_SESSION, counted=False),
    Table("study_turns", sql.ALL_STUDY_TURNS, sql.ADD_TURN, counted=False),
    Table("claim_cards", sql.ALL_CARDS, sql.KEEP_CARD, json=(8,), boolean=(5, 6), counted=False),
)


# Not copied: these are counted from the other tables, and counted again where a copy is served.
COUNTED = ("counted_hours", "traffic_hours", "latency_hours", "spent_hours", "key_hours")


def pages(source: Transaction, table: Table, most: int = PAGE) -> Iterator[list[Record]]:
    """All rows of a table in pages, in the order of its key."""
    above: dict[str, Value] = dict.fromkeys(table.above, "")
    while page := source.read(table.page, {**above, "most": most}):
        yield page
        above = {name: page[-1][column] for name, column in zip(table.above, table.key, strict=True)}


def copy(source: Backend, target: Backend, progress: Progress = lambda *_: None) -> int:
    """Copy every row of a store into an empty one; returns how many."""
    with source.snapshot() as old, target.transaction() as new:
        counts = old.read(sql.COUNTS, {})[0]
        present = new.read(sql.COUNTS, {})[0]
        if any(present):
            raise StoreError(
                f"{target.where} is not empty, it holds {present[0]:,} decisions: "
                "a backup is only put into an empty store; name another with --db"
            )
        done, total = 0, sum(counts)
        for table in TABLES:
            for page in pages(old, table):
                if new.many(table.add, [_plain(row, table) for row in page]) != len(page):
                    raise StoreDamaged(
                        f"{target.where}: another program wrote to it meanwhile, so nothing was copied: "
                        "stop every program that uses it, empty it and try again"
                    )
                done += len(page) if table.counted else 0
                progress(done, total)
        if done != total:
            raise StoreDamaged(
                f"{source.where} has {total:,} rows, of which {done:,} could be read, so nothing was copied: "
                "turnout db verify says more"
            )
    return total


def _plain(row: Record, table: Table) -> Record:
    """A row that both databases accept: booleans as such, and no NUL in a text, which PostgreSQL refuses."""
    fields = [value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value for value in row]
    for column in table.boolean:
        fields[column] = None if row[column] is None else bool(row[column])
    return tuple(fields)


def backup(source: Backend, target: Path, progress: Progress = lambda *_: None) -> None:
    """Copy a store, while it is in use, into a new file that no other user may read."""
    if os.path.lexists(target):
        raise StoreError(_taken(target))
    if not target.parent.is_dir():
        raise StoreError(f"{target}: there is no folder {target.parent}: make it first")
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        source.backup(part, progress)
        _place(part, target)
    finally:
        for ending in ("", "-wal", "-shm", "-journal"):
            with contextlib.suppress(FileNotFoundError):
                part.with_name(part.name + ending).unlink()


def _taken(target: Path) -> str:
    return f"{target} is there already, and a backup never replaces a file: name another, or remove it"


def _place(part: Path, target: Path) -> None:
    """Sync a finished file and give it its name. A link, unlike a rename, never replaces a file."""
    with part.open("rb") as file:
        os.fsync(file.fileno())
    try:
        os.link(part, target)
    except FileExistsError:
        raise StoreError(_taken(target)) from None
    except OSError:  # a file system without links
        part.rename(target)


def restore(file: Path, target: Backend, progress: Progress = lambda *_: None) -> int:
    """Copy a backup into an empty store of either kind; returns how many rows it had."""
    with contextlib.ExitStack() as opened:
        source = Sqlite(file)
        opened.callback(source.close)
        if not file.is_file():
            raise StoreError(f"{file}: no such file: name one that turnout db backup has written")
        try:
            missing = source.pending()
        except StoreDamaged as error:
            raise StoreError(f"this cannot be restored: {error}") from error
        if any(step.number == 1 for step in missing):
            raise StoreError(f"{file} is not a backup of a Turnout store: it has none of its tables")
        if missing:
            # An older backup is migrated in a copy: the backup itself is not changed.
            folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
            source.backup(folder / "copy.db", lambda *_: None)
            source = Sqlite(folder / "copy.db")
            opened.callback(source.close)
            source.migrate()
        target.migrate()
        return copy(source, target, progress)
