"""How long rows are kept. Done in steps of a thousand rows, so that the one writer is never held for long."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from . import sql
from .backend import Backend
from .redact import redact_body

DAY_MS = 86_400_000


class Pruned(NamedTuple):
    deleted: int
    """Decisions that are gone, with what belonged to them."""
    emptied: int
    """Decisions that have lost their text."""


def prune(
    backend: Backend,
    *,
    keep_days: int,
    text_days: int,
    now_ms: int | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Pruned:
    """Delete decisions older than `keep_days` and texts older than `text_days`; 0 keeps them for good."""
    now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    deleted = _delete(backend, now - keep_days * DAY_MS, progress) if keep_days else 0
    emptied = _empty(backend, now - text_days * DAY_MS, progress) if text_days else 0
    return Pruned(deleted, emptied)


def _delete(backend: Backend, before_ms: int, progress: Callable[[int], None]) -> int:
    values = {"before_ms": before_ms}
    deleted = 0
    while True:
        # Decisions last: each statement finds its rows through them.
        for statement in (sql.DELETE_OUTCOMES, sql.DELETE_FEEDBACK, sql.DELETE_BREACHES):
            backend.change(statement, values)
        gone = backend.change(sql.DELETE_DECISIONS, values)
        deleted += gone
        progress(gone)
        if not gone:
            break
    while backend.change(sql.DELETE_REPLIES, values):
        pass
    return deleted


def _empty(backend: Backend, before_ms: int, progress: Callable[[int], None]) -> int:
    emptied = 0
    while rows := backend.read(sql.TEXT_BEFORE, {"before_ms": before_ms}):
        for ident, body in rows:
            backend.change(sql.FORGET_TEXT, {"id": ident, "body": redact_body(body.encode(), "off").decode()})
        emptied += len(rows)
        progress(len(rows))
    while backend.change(sql.FORGET_REPLIES, {"before_ms": before_ms}):
        pass
    return emptied
