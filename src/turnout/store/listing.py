"""Chooses the fastest statement to list decisions for a set of filters; the database applies all of them.

Frequent kinds of decisions are found among the newest rows, rare ones by kind. Text is compared row by row, a limited
number of rows for each page, and the page says where it ended: no page takes longer because a log is larger.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from . import sql
from .backend import Record, Value

# Above every ULID in any database's order, and below.
LAST, FIRST = "Z" * 27, ""
# Rows searched for the text of one page: some 25 ms on one core (benchmarks/console.py).
TEXT_ROWS = 10_000
# Rows looked at for each row of a page before the filters count as rare: 2,000 for a page of 50.
WALKED_FOR_EACH = 40
MOST_WALKED = 10_000


class PageRecords(NamedTuple):
    found: list[Record]
    below: str
    """Where the next page begins; empty if there is none."""


def text_pattern(contains: str) -> str:
    """A pattern for `like` that finds all matches and perhaps more: databases differ in lowering non-ASCII letters."""
    folded = re.sub(r"([!%_])", r"!\1", contains.casefold())
    # "ß" and ligatures fold to several letters: any number of letters may stand for a non-ASCII one.
    return f"%{re.sub(r'ss|[^ -~]+', '%', folded)}%"


def read_page(read: Callable[..., list[Record]], values: dict[str, Value], most: int) -> PageRecords:
    """The newest rows below a given id, at most `most` of them."""
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
    """The page, searched in a limited number of rows."""
    edge = read(sql.ID_BELOW, below=values["below"], most=rows)
    above = str(values["above"])
    last = str(edge[0][0]) if edge else ""
    if last <= above:
        return _whole(read(sql.DECISIONS_DOWN, **values, most=most), most)
    found = read(sql.DECISIONS_DOWN, **{**values, "above": last}, most=most)
    # The row at the edge itself was not searched.
    return PageRecords(found, found[-1][0] if len(found) == most else f"{last} ")
