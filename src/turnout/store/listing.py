"""Which statement lists decisions soonest, whatever the filters; every filter is the database's to apply.

What most decisions are is found among the newest; what few are, by the kinds there are. Text is compared row by row, so
many rows at a time, and a page says how far it has looked: no page takes longer because a log is larger.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from . import sql
from .backend import Record, Value

# Above every ULID, however a database sorts text, and below.
LAST, FIRST = "Z" * 27, ""
# Rows that a page of text is looked for in: some 25 ms on one core (benchmarks/console.py).
TEXT_ROWS = 10_000
# For each row that is wanted, so many are looked at before it counts as rare: 2,000 for a page of 50.
WALKED_FOR_EACH = 40
MOST_WALKED = 10_000


class PageRecords(NamedTuple):
    found: list[Record]
    below: str
    """Where the next page begins; empty if there is none."""


def text_pattern(contains: str) -> str:
    """What `like` finds at least all of: databases differ in how they lower letters that are not ASCII."""
    folded = re.sub(r"([!%_])", r"!\1", contains.casefold())
    # "ß" folds to "ss", and so do ligatures: any number of letters may stand for those that are not ASCII.
    return f"%{re.sub(r'ss|[^ -~]+', '%', folded)}%"


def read_page(read: Callable[..., list[Record]], values: dict[str, Value], most: int) -> PageRecords:
    """The newest rows below a given id, at most so many."""
    if values["session"] is not None:
        return _whole(read(sql.DECISIONS_IN_SESSION, **values, most=most), most)
    if values["verdict"] is not None:
        return _whole(read(sql.DECISIONS_JUDGED, **values, most=most), most)
    if values["needle"] is not None:
        return _within(read, values, most, TEXT_ROWS)
    if all(values[each] is None for each in ("profile", "decided_by", "key_id", "routed", "outcome")):
        return _whole(read(sql.DECISIONS_DOWN, **values, most=most), most)
    near = _within(read, values, most, min(most * WALKED_FOR_EACH, MOST_WALKED))
    if len(near.found) == most or not near.below:
        return near
    return _whole(read(sql.DECISIONS_OF_KIND, **values, most=most, last=LAST), most)


def _whole(found: list[Record], most: int) -> PageRecords:
    return PageRecords(found, found[-1][0] if found and len(found) == most else "")


def _within(read: Callable[..., list[Record]], values: dict[str, Value], most: int, rows: int) -> PageRecords:
    """The page, looked for among so many rows."""
    edge = read(sql.ID_BELOW, below=values["below"], most=rows)
    above = str(values["above"])
    last = str(edge[0][0]) if edge else ""
    if last <= above:
        return _whole(read(sql.DECISIONS_DOWN, **values, most=most), most)
    found = read(sql.DECISIONS_DOWN, **{**values, "above": last}, most=most)
    # The row at the edge itself was not looked at.
    return PageRecords(found, found[-1][0] if len(found) == most else f"{last} ")
