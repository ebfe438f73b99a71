"""What `turnout stats` shows besides the store's numbers: suitable time buckets, the backlog, changes of champions."""

from __future__ import annotations

import contextlib
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from turnout.config.champion import layers_with_models
from turnout.config.name import current_name
from turnout.core.errors import ConfigError
from turnout.learn.registry import ChampionChange, read_history
from turnout.store import Records, Stats, TimeSpan
from turnout.store.store import StoreReader

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
Stretch = Literal["hour", "day", "week"]
STRETCHES: dict[Stretch, int] = {"hour": HOUR_MS, "day": DAY_MS, "week": 7 * DAY_MS}
# 1970 began on a Thursday, weeks begin on a Monday.
MONDAY_MS = 3 * DAY_MS
# By default, hours for two days, days for two months, then weeks.
HOURLY_MS, DAILY_MS = 2 * DAY_MS, 60 * DAY_MS


class Backlog(msgspec.Struct, frozen=True):
    """What is not in the database yet."""

    spool_bytes: int
    """Bytes in spool files, of running processes or of ones that ended while the database was unreachable."""
    rejected: int
    """Rows that the database rejected."""
    folder: str


def fitting(records: Records, span: TimeSpan, profile: str | None) -> Stretch:
    """A bucket size that gives neither a single row nor hundreds."""
    first = next(records.decisions(span=span, profile=profile, oldest_first=True), None)
    age = datetime.now().timestamp() * 1000 - first.created_ms if first is not None else 0
    return "hour" if age <= HOURLY_MS else "day" if age <= DAILY_MS else "week"


def shift_of(stretch: Stretch) -> int:
    """How much earlier than in UTC a day begins here; for weeks, shifted to begin on a Monday."""
    offset = datetime.now().astimezone().utcoffset() or timedelta()
    return int(offset.total_seconds() * 1000) + (MONDAY_MS if stretch == "week" else 0)


def backlog_of(store: StoreReader) -> Backlog:
    sizes = [path.stat().st_size for path in store.folder.glob("*.spool") if path.exists()]
    rejected = store.folder / "rejected.jsonl"
    lines = rejected.read_bytes().count(b"\n") if rejected.exists() else 0
    return Backlog(sum(sizes), lines, str(store.folder))


def changes_of(found: Stats) -> list[ChampionChange]:
    """Promotions and rollbacks of the students of these profiles, oldest first."""
    changes: list[ChampionChange] = []
    for profile in dict.fromkeys(map(current_name, found.profiles)):
        for layer in layers_with_models(profile):
            # Statistics are shown even if a champion cannot be read.
            with contextlib.suppress(ConfigError):
                changes += read_history(profile, layer)
    return sorted(changes, key=lambda change: change.at)
