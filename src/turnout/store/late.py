"""Rows that come late: the writer of one of an hour that is over says so, and the hour is counted again."""

from __future__ import annotations

import time
from collections.abc import Iterable

from turnout.core.ident import first_id, id_ms

from .row import DecisionRow, OutcomeRow, Row

HOUR_MS = 3_600_000


def hour_of(ms: int) -> int:
    """When the hour began."""
    return ms // HOUR_MS * HOUR_MS


def late_hours(rows: Iterable[Row]) -> list[int]:
    """The hours of these rows that are over, in order: two writers mark them in the same one."""
    # Ids begin with their time and are compared as they are: hardly any is late.
    now = first_id(hour_of(time.time_ns() // 1_000_000))
    idents = (
        row.id if isinstance(row, DecisionRow) else row.decision_id
        for row in rows
        if isinstance(row, DecisionRow | OutcomeRow)
    )
    return sorted({hour_of(id_ms(ident)) for ident in idents if ident < now})
