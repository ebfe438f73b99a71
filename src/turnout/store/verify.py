"""Checks a store: its file, its schema, every row, and the references between tables.

Checks only, never repairs. A part that cannot be read does not prevent the checks of the others, unless the database
does not answer at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from msgspec import DecodeError, json

from turnout.core.errors import StoreError, StoreUnavailable

from . import sql
from .backend import Backend, Record
from .copy import TABLES, Progress, Table, pages
from .journal import REJECTED
from .migrate import migrations
from .spool import spool_size

# Faults of one kind that are listed; a broken disk has thousands.
LISTED = 10

COUNTED = ("decisions", "parts", "outcomes", "feedback", "breaches", "replies", "profiles")
"""The columns of `sql.COUNTS`."""

STRAYS = (
    "parts without the question they are parts of",
    "outcomes without a decision",
    "pieces of feedback without a decision",
    "broken rules without a decision",
    "decisions whose profile is missing",
)
"""The columns of `sql.STRAYS`."""


class StoreCheck(NamedTuple):
    state: Literal["ok", "note", "wrong"]
    subject: str
    text: str
    advice: str = ""


def examine(backend: Backend, folder: Path, progress: Progress = lambda *_: None) -> Iterator[StoreCheck]:
    """The result of every check; `folder` is the spool's."""
    try:
        steps = backend.pending()
    except StoreUnavailable as error:
        # Each further check would wait as long for the same error.
        yield StoreCheck("wrong", "schema", _short(error))
        yield from _spool(folder)
        return
    except StoreError as error:
        yield StoreCheck("wrong", "schema", _short(error))
    else:
        if any(step.number == 1 for step in steps):
            yield StoreCheck("wrong", "schema", "it has no tables of Turnout's", "turnout db migrate makes them")
            return
        if steps:
            names = ", ".join(f"{step.number} {step.name}" for step in steps)
            yield StoreCheck("note", "schema", f"these steps are still to be taken: {names}", "turnout db migrate")
        else:
            yield StoreCheck("ok", "schema", "every step was taken, from the text this version has")
    yield from _pages(backend)
    yield from _rows(backend, progress)
    yield from _between(backend)
    yield from _spool(folder)


def _pages(backend: Backend) -> Iterator[StoreCheck]:
    try:
        found = list(islice(backend.problems(), LISTED + 1))
    except StoreError as error:
        found = [f"pages cannot be checked: {_short(error)}"]
    for problem in found[:LISTED]:
        yield StoreCheck("wrong", "pages", problem, "restore a backup")
    if len(found) > LISTED:
        yield StoreCheck("wrong", "pages", "and more like these")
    if not found:
        yield StoreCheck("ok", "pages", "the database finds no fault in itself")


def _rows(backend: Backend, progress: Progress) -> Iterator[StoreCheck]:
    """Read every row and decode its JSON."""
    read, sound = 0, True
    for table in TABLES:
        broken: list[str] = []
        more = 0
        try:
            with backend.snapshot() as moment:
                for page in pages(moment, table):
                    faults = [fault for row in page for fault in _faults(row, table)]
                    more += len(faults)
                    broken += faults[: LISTED - len(broken)]
                    read += len(page)
                    progress(read, 0)
        except StoreError as error:
            more += 1
            broken.append(f"{table.name} cannot be read to its end: {_short(error)}")
        for fault in broken:
            yield StoreCheck("wrong", "rows", fault, "restore a backup")
        if more > len(broken):
            yield StoreCheck("wrong", "rows", f"{table.name}: {more - len(broken):,} more like these")
        sound = sound and not more
    if sound:
        yield StoreCheck("ok", "rows", f"{read:,} rows in {len(TABLES)} tables, all readable")


def _faults(row: Record, table: Table) -> Iterator[str]:
    for column in table.json:
        if row[column] is not None:
            try:
                json.decode(row[column])
            except (DecodeError, TypeError, UnicodeError):
                yield f"{table.name}: {str(row[0])[:40]!r} has a field that is no JSON"


def _between(backend: Backend) -> Iterator[StoreCheck]:
    try:
        with backend.snapshot() as moment:
            counts = moment.read(sql.STRAYS, {})[0]
    except StoreError as error:
        yield StoreCheck("wrong", "tables", f"they cannot be checked: {_short(error)}")
        return
    for count, what in zip(counts, STRAYS, strict=True):
        if count:
            yield StoreCheck("wrong", "tables", f"{count:,} {what}", "see whether rows wait in a spool or were refused")
    if not any(counts):
        yield StoreCheck("ok", "tables", "every part, outcome, breach and piece of feedback has its decision")


def _spool(folder: Path) -> Iterator[StoreCheck]:
    held, left = spool_size(folder)
    if left:
        text = f"{left:,} bytes were left by a process that is gone"
        yield StoreCheck("note", "spool", text, "the next program that opens the store takes them over")
    elif held:
        yield StoreCheck("ok", "spool", f"at most {held:,} bytes of running processes wait")
    else:
        yield StoreCheck("ok", "spool", "nothing waits")
    refused = rejected(folder)
    if refused:
        file = folder / REJECTED
        yield StoreCheck("wrong", "spool", f"{refused:,} rows were refused", f"look at {file}, then remove it")


def rejected(folder: Path) -> int:
    """How many refused rows are in the file beside the spool."""
    try:
        with (folder / REJECTED).open("rb") as file:
            return sum(1 for _ in file)
    except FileNotFoundError:
        return 0


def describe(backend: Backend, folder: Path) -> dict[str, Any]:
    """Where a store is, what it holds, and what waits in its spool."""
    pending = backend.pending()
    applied = backend.read(sql.APPLIED, {}) if len(pending) < len(migrations(backend.name)) else []
    known = bool(applied)
    counts: Record = ()
    if known:
        with backend.snapshot() as moment:
            counts = moment.read(sql.COUNTS, {})[0]
    held, left = spool_size(folder)
    return {
        "where": backend.where,
        "kind": backend.name,
        **backend.measured(),
        "schema": applied[-1][0] if known else 0,
        "pending": [step.number for step in pending],
        "rows": dict(zip(COUNTED, counts, strict=True)) if known else {},
        "spool": {"folder": str(folder), "held_bytes": held, "left_bytes": left, "rejected_rows": rejected(folder)},
    }


def _short(error: StoreError) -> str:
    """An error's message, shortened: it may quote a long row that cannot be decoded."""
    message = str(error)
    return message if len(message) <= 200 else message[:200] + "…"
