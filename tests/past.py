"""Decisions of other days: rows as the journal writes them, with another time and what else a test wants different."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec.structs import replace

from turnout import Decision
from turnout.store import Store
from turnout.store.row import DecisionRow, decode_row
from turnout.store.spool import contents


def ms(said: str) -> int:
    """`2026-11-01T08:30`, here."""
    return int(datetime.fromisoformat(said).timestamp() * 1000)


def backdate(store: Store, decision: Decision, created_ms: int, **columns: Any) -> str:
    """Put a decision into the database as if it had been made then; its id."""
    rows = [decode_row(content) for content in contents(store.journal.encoder.decision(decision)) if content]
    changed = {"created_ms": created_ms, **columns}
    rows = [replace(row, **changed) if isinstance(row, DecisionRow) else row for row in rows]
    store.backend.write(rows)
    return decision.id
