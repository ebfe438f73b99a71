"""`turnout stats`: what the decision log says of its traffic.

The picture on top is the one that tells whether routing gets cheaper: a row for each stretch of time, who decided what
share of it, and the share a model had to be asked for. Signs and numbers say what colours say.
"""

from __future__ import annotations

import contextlib
from datetime import datetime, timedelta
from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter

from turnout.config.champion import is_name, shelves
from turnout.core.errors import ConfigError, NoLogYet
from turnout.learn.registry import ChampionChange, read_history
from turnout.store import Records, Stats, TimeSpan
from turnout.store.keys import KeyUse
from turnout.store.store import StoreReader

from ..draw.screen import console, glyphs_for, width_of, write_json
from ..option import JsonOption, OperatorOptions, SpanOptions
from ..stored import left_out, nothing_there

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
WEEK_MS = 7 * DAY_MS
STRETCHES = {"hour": HOUR_MS, "day": DAY_MS, "week": WEEK_MS}
# 1970 began on a Thursday; weeks begin on a Monday.
MONDAY_MS = 3 * DAY_MS
# Without --by: hours for two days, days for two months, then weeks.
HOURLY_MS, DAILY_MS = 2 * DAY_MS, 60 * DAY_MS

Stretch = Literal["hour", "day", "week"]


class Backlog(msgspec.Struct, frozen=True):
    """What the log has not taken in."""

    spool_bytes: int
    """Rows that wait in a spool: of a process that runs, or of one that ended while the database was away."""
    rejected: int
    """Rows no database takes, set aside."""
    folder: str


def stats(
    *,
    by: Annotated[
        Literal["hour", "day", "week", "key"] | None,
        Parameter(name="--by", help="One row an hour, day or week, by default as it fits; `key`: who spent what."),
    ] = None,
    which: SpanOptions = SpanOptions(),
    json: JsonOption = False,
    where: OperatorOptions = OperatorOptions(),
) -> int:
    span, profile, key = which.span(), which.profile, where.key
    try:
        with where.open() as store:
            records = where.records(store)
            if by == "key":
                used = store.keys.use(span=span, profile=profile, tenant=where.tenant or None, key=key)
                return _by_key(used, nothing_there(store, records, where) if not used else "", json=json)
            stretch = by or fitting(records, span, profile)
            shift = shift_of(stretch)
            bucket = STRETCHES[stretch]
            found = records.stats(span=span, profile=profile, key=key, bucket_ms=bucket, shift_ms=shift)
            waiting = waiting_in(store)
            empty = "" if found.decisions else nothing_there(store, records, where)
            without = left_out(store, records, key)
    except NoLogYet as nothing:
        if json:
            raise
        print(nothing)
        return 0
    if json:
        write_json(form(found, stretch, waiting))
    elif empty:
        print(empty)
    else:
        from ..draw.traffic import report

        screen = console()
        picture = report(found, stretch, waiting, glyphs_for(screen), width_of(screen), changes_of(found))
        screen.print(picture, width=width_of(screen))
        if without:
            screen.print(without, style="dim")
    return 0


def _by_key(used: list[KeyUse], empty: str, *, json: bool) -> int:
    """Who spent what, over all tenants."""
    if json:
        write_json({"by": "key", "keys": used})
    elif empty:
        print(empty)
    else:
        from ..draw.traffic import by_key

        screen = console()
        screen.print(by_key(used), width=width_of(screen))
    return 0


def fitting(records: Records, span: TimeSpan, profile: str | None) -> Stretch:
    """A stretch of time that makes neither one row of everything nor hundreds."""
    first = next(records.decisions(span=span, profile=profile, oldest_first=True), None)
    age = datetime.now().timestamp() * 1000 - first.created_ms if first is not None else 0
    return "hour" if age <= HOURLY_MS else "day" if age <= DAILY_MS else "week"


def shift_of(stretch: Stretch) -> int:
    """How much earlier than in UTC a day begins here, and a week on a Monday."""
    offset = datetime.now().astimezone().utcoffset() or timedelta()
    return int(offset.total_seconds() * 1000) + (MONDAY_MS if stretch == "week" else 0)


def waiting_in(store: StoreReader) -> Backlog:
    folder = store.folder
    sizes = [path.stat().st_size for path in folder.glob("*.spool") if path.exists()]
    rejected = folder / "rejected.jsonl"
    lines = rejected.read_bytes().count(b"\n") if rejected.exists() else 0
    return Backlog(sum(sizes), lines, str(folder))


def changes_of(found: Stats) -> list[ChampionChange]:
    """Promotions and rollbacks of the students of these profiles, oldest first."""
    changes: list[ChampionChange] = []
    for profile in found.profiles:
        shelf = shelves() / profile
        if is_name(profile) and shelf.is_dir():
            for layer in sorted(folder.name for folder in shelf.iterdir() if is_name(folder.name)):
                # A champion nobody can read is no reason to show no statistics.
                with contextlib.suppress(ConfigError):
                    changes += read_history(profile, layer)
    return sorted(changes, key=lambda change: change.at)


def form(found: Stats, stretch: Stretch, waiting: Backlog) -> dict[str, object]:
    return {
        "by": stretch,
        **msgspec.structs.asdict(found),
        "saved_usd": found.saved_usd,
        "waiting": waiting,
        "changes": changes_of(found),
    }
