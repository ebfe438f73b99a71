"""Deletes old rows and texts, in steps of at most a thousand rows.

Every step is one transaction, so the one writer never waits long, and an interruption leaves no row without the rows it
belongs to. Ids begin with their time and a part's id is lower than its question's, so deleting in the order of ids
orphans nothing. Profiles stay: they hold no user data, and a process that has written one does not write it again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from msgspec import DecodeError, json

from turnout.core.decision import first_id, id_ms
from turnout.core.errors import StoreError

from . import sql
from .backend import Backend, Value
from .hours import forget_hours
from .redact import redact_body, redact_extra

DAY_MS = 86_400_000
# How often a process with an open store deletes old rows.
EVERY_S = 3600.0

log = logging.getLogger("turnout.store")


class PruneCounts(NamedTuple):
    deleted: int = 0
    """Deleted decisions, including parts."""
    emptied: int = 0
    """Decisions whose text was deleted."""
    replies: int = 0
    """Answers that were deleted or lost their text."""
    sessions: int = 0
    """Deleted study sessions."""

    def plus(self, other: PruneCounts) -> PruneCounts:
        return PruneCounts(*map(sum, zip(self, other, strict=True)))


def prune(
    backend: Backend,
    *,
    keep_days: int,
    text_days: int,
    now_ms: int | None = None,
    progress: Callable[[PruneCounts], None] = lambda _: None,
) -> PruneCounts:
    """Delete decisions and study sessions older than `keep_days`, and texts of decisions older than `text_days`; with 0
    they are kept."""
    total = PruneCounts()
    for step in steps(backend, keep_days=keep_days, text_days=text_days, now_ms=now_ms):
        total = total.plus(step)
        progress(total)
    return total


def steps(backend: Backend, *, keep_days: int, text_days: int, now_ms: int | None = None) -> Iterator[PruneCounts]:
    """As `prune`, step by step, for callers with other work in between."""
    now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    if keep_days:
        yield from _delete(backend, first_id(now - keep_days * DAY_MS))
        yield from _forget(backend, now - keep_days * DAY_MS)
    if text_days:
        yield from _empty(backend, first_id(now - text_days * DAY_MS))


def _delete(backend: Backend, before: str) -> Iterator[PruneCounts]:
    while True:
        edge = backend.read(sql.EDGE, {"before": before})
        values = [{"before": edge[0][0] if edge else before}]
        with backend.transaction() as together:
            for statement in (sql.DELETE_OUTCOMES, sql.DELETE_FEEDBACK, sql.DELETE_BREACHES):
                together.many(statement, values)
            gone = together.many(sql.DELETE_DECISIONS, values)
        yield PruneCounts(deleted=gone)
        if not edge:
            break
    # The hour in which it ends is counted again.
    forget_hours(backend, id_ms(before))
    while gone := backend.change(sql.DELETE_REPLIES, {"before": before}):
        yield PruneCounts(replies=gone)


def _forget(backend: Backend, before_ms: int) -> Iterator[PruneCounts]:
    """Delete study sessions without a question since; the index of memories follows the rows."""
    values: dict[str, Value] = {"before": first_id(before_ms), "before_ms": before_ms}
    while rows := backend.read(sql.OLD_SESSIONS, values):
        chosen: list[dict[str, Value]] = [{"tenant": tenant, "id": ident} for tenant, ident in rows]
        with backend.transaction() as together:
            together.many(sql.FORGET_TURNS, chosen)
            gone = together.many(sql.FORGET_SESSION, chosen)
        yield PruneCounts(sessions=gone)


def _empty(backend: Backend, before: str) -> Iterator[PruneCounts]:
    # Read outside the transaction: decisions change only here, and the writer need not wait for the redaction.
    above = ""
    while rows := backend.read(sql.TEXT_BEFORE, {"above": above, "before": before}):
        above = rows[-1][0]
        between = {"first": rows[0][0], "last": above}
        bodies = [{"id": ident, "body": _without_text(body)} for ident, body in rows]
        extras = [
            {"id": ident, "extra": _without_strings(extra)} for ident, extra in backend.read(sql.EXTRA_BETWEEN, between)
        ]
        with backend.transaction() as together:
            if extras:
                together.many(sql.FORGET_EXTRA, extras)
            together.many(sql.FORGET_TEXT, bodies)
        yield PruneCounts(emptied=len(rows))
    backend.change(sql.FORGET_NOTES, {"before": before})
    while gone := backend.change(sql.FORGET_REPLIES, {"before": before}):
        yield PruneCounts(replies=gone)


def _without_text(body: str) -> str:
    try:
        return redact_body(body.encode(), "off").decode()
    except (DecodeError, KeyError, TypeError):  # damaged: its texts cannot be told from the rest
        return "{}"


def _without_strings(extra: str) -> str:
    try:
        return json.encode(redact_extra(json.decode(extra), "off")).decode()
    except DecodeError:
        return "{}"


class Retention:
    """Retention as the journal's chore: hourly, one step at a time, while there is nothing to write."""

    def __init__(self, backend: Backend, keep_days: int, text_days: int) -> None:
        self._backend = backend
        self._days = {"keep_days": keep_days, "text_days": text_days}
        self._steps: Iterator[PruneCounts] = iter(())
        self._due = 0.0

    def __call__(self) -> bool:
        """Take a step if one is due; returns whether another may follow now."""
        now = time.monotonic()
        if now >= self._due:
            self._due = now + EVERY_S
            self._steps = steps(self._backend, **self._days)
        try:
            return next(self._steps, None) is not None
        except StoreError as error:
            log.warning("retention stopped: %s (it is tried again in an hour)", error)
            self._steps = iter(())
            return False
