"""Decisions of other days: rows as the journal writes them, with another time and what else a test wants different."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec.structs import replace

from turnout import Decision
from turnout.core.decision import first_id
from turnout.store import Store
from turnout.store.row import DecisionRow, contents, decode_row


def ms(said: str) -> int:
    """`2026-11-01T08:30`, here."""
    return int(datetime.fromisoformat(said).timestamp() * 1000)


def backdate(store: Store, decision: Decision, created_ms: int, **columns: Any) -> str:
    """Put a decision into the database as if it had been made then; its id."""
    # An id begins with its time.
    ids = [part.id for part in (decision, *decision.parts)] if "id" not in columns else []
    rows = []
    for content in contents(store.journal.encoder.decision(decision)):
        line = content or b""
        for ident in ids:
            line = line.replace(ident.encode(), _dated(ident, created_ms).encode())
        row = decode_row(line)
        changed = {"created_ms": created_ms, **columns}
        rows.append(replace(row, **changed) if isinstance(row, DecisionRow) else row)
    store.backend.write(rows)
    return str(columns.get("id", _dated(decision.id, created_ms)))


def _dated(ident: str, created_ms: int) -> str:
    return first_id(created_ms) + ident[10:]
