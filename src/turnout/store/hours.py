"""Traffic counted by the hour, so that a month of it is read quickly.

An hour is counted from the log once it is over, and again if a row of it came late: the writer of a late row marks the
hour in the same transaction. Hours that are not counted are read from the log, so the sum is always complete. A row
belongs to the hour in its id.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from turnout.core.decision import first_id, id_ms

from . import sql
from .backend import HOUR_MS, Backend, Record, Value, hour_of

# Within this time a writer that began before the hour was over has committed, or it marks its rows as late.
SETTLED_MS = 300_000
# The longest span of a page, and an hour more.
KEPT_MS = 31 * 24 * HOUR_MS + HOUR_MS
# Ten to a decade: a percentile interpolated between two of them is off by a twentieth at most.
STEPS = (1.0, 1.25, 1.6, 2.0, 2.5, 3.15, 4.0, 5.0, 6.3, 8.0)
EDGES = (0, *sorted({round(step * 10**power) for power in range(8) for step in STEPS}))
FORGET = (sql.FORGET_TRAFFIC, sql.FORGET_LATENCY, sql.FORGET_SPENT, sql.FORGET_KEYS)
# Marks an outcome whose question was asked again with the context that had been withheld.
AGAIN = '%"again":true%'
# No key has this name.
ALL_KEYS = "*"
# The outcome's first letter for layers that ask a model.
ASKED_A_MODEL = ("L", "A")
KeySums = dict[Record, list[float | None]]
"""By key and profile: decisions, decisions by models, fallbacks, answers and their cost."""
NO_FILTER: dict[str, Value] = dict.fromkeys(("profile", "profile_was", "profile_was_too", "key_id"))


class HourRange(NamedTuple):
    """A span of time, its end excluded, and whether all of it is counted."""

    from_ms: int
    to_ms: int
    counted: bool

    def values(self) -> dict[str, Value]:
        times: dict[str, Value] = {"from_ms": self.from_ms, "to_ms": self.to_ms}
        return times if self.counted else {"first": first_id(self.from_ms), "last": first_id(self.to_ms)}


def ranges(counted: Iterable[int], from_ms: int, to_ms: int) -> list[HourRange]:
    """A span of time as ranges of consecutive counted hours and the gaps between them."""
    found: list[HourRange] = []
    at = from_ms
    for hour in sorted(hour for hour in counted if from_ms <= hour and hour + HOUR_MS <= to_ms):
        start = hour
        if hour > at:
            found.append(HourRange(at, hour, False))
        elif found:
            start = found.pop().from_ms
        at = hour + HOUR_MS
        found.append(HourRange(start, at, True))
    if at < to_ms:
        found.append(HourRange(at, to_ms, False))
    return found


def percentiles(taken: Counter[tuple[int, int]], percents: Sequence[int]) -> dict[str, float]:
    """The time that each percentage took at most, interpolated from counts between two times."""
    total, found = taken.total(), {}
    for percent in percents:
        place, before = total * percent / 100, 0
        for (low, high), count in sorted(taken.items()):
            if before + count >= place:
                found[f"p{percent}"] = low + (high - low) * (place - before) / count
                break
            before += count
    return found


def edges_of(us: int) -> tuple[int, int]:
    """The two edges a time is between."""
    place = min(bisect_right(EDGES, us), len(EDGES) - 1)
    return EDGES[place - 1], EDGES[place]


def digits_of(us: int) -> tuple[int, int]:
    """The interval that a time rounded down to two digits stands for."""
    return us, us + 10 ** max(len(str(us)) - 2, 0)


def add_sums(found: dict[Record, list[float | None]], kind: Record, sums: Sequence[float | None]) -> None:
    """Add to the sums of a kind. A sum of unknown values stays None."""
    old = found.get(kind) or [None] * len(sums)
    found[kind] = [b if a is None else a if b is None else a + b for a, b in zip(old, sums, strict=True)]


def add_decisions(keys: KeySums, whose: Record, outcome: str, count: int) -> None:
    by_model, fell_back = outcome[0] in ASKED_A_MODEL, outcome[0] == "F"
    add_sums(keys, whose, (count, count * by_model, count * fell_back, 0, None))


def add_answers(keys: KeySums, whose: Record, answers: int, cost_usd: float | None) -> None:
    add_sums(keys, whose, (0, 0, 0, answers, cost_usd))


def count_hour(backend: Backend, now_ms: int | None = None) -> bool:
    """Count the newest hour that is over and not counted; returns whether there was one."""
    now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    since, until = hour_of(now - KEPT_MS), hour_of(now - SETTLED_MS)
    first = backend.read(sql.FIRST_FROM, {"first": first_id(since)})[0][0]
    if first is None:
        return False
    known = {hour: (late, done) for hour, late, done in backend.read(sql.COUNTED_HOURS, {"from_ms": 0, "to_ms": until})}
    begin = max(since, hour_of(id_ms(first)))
    for hour in range(until - HOUR_MS, begin - 1, -HOUR_MS):
        late, done = known.get(hour, (0, -1))
        if late != done:
            _count(backend, hour, late)
            return True
    if any(hour < begin for hour in known):
        forget_hours(backend, begin)
    return False


def _count(backend: Backend, hour: int, late: int) -> None:
    between = HourRange(hour, hour + HOUR_MS, False).values() | NO_FILTER
    # Read before the transaction, which would hold up the one writer; rows that come meanwhile mark the hour as late.
    traffic: Counter[Record] = Counter()
    keys: KeySums = {}
    for tenant, _, key, profile, hashed, by, outcome, route, count in backend.read(
        sql.ALL_TENANTS[sql.LOG_TRAFFIC], between | {"shift_ms": 0, "bucket_ms": HOUR_MS}
    ):
        add_decisions(keys, (tenant, key, profile), outcome, count)
        for whose in (key, ALL_KEYS):
            traffic[tenant, whose, profile, hashed, by, outcome, route] += count
    latency: Counter[Record] = Counter()
    for tenant, key, profile, us, count in backend.read(sql.ALL_TENANTS[sql.LOG_LATENCY], between):
        for whose in (key, ALL_KEYS):
            latency[tenant, whose, profile, edges_of(us)[0]] += count
    spent: dict[Record, list[float | None]] = {}
    for row in backend.read(sql.ALL_TENANTS[sql.LOG_SPENT], between | {"again": AGAIN}):
        tenant, key, profile, answers, cost = *row[:3], row[7], row[11]
        add_answers(keys, (tenant, key, profile), answers, cost)
        for whose in (key, ALL_KEYS):
            add_sums(spent, (tenant, whose, *row[2:7]), row[7:])
    with backend.transaction() as together:
        if not together.change(sql.COUNT_HOUR, {"hour_ms": hour, "late": late}):
            return
        for statement in FORGET:
            together.change(statement, {"from_ms": hour, "to_ms": hour + HOUR_MS})
        for statement, found in (
            (sql.ADD_TRAFFIC_HOUR, [(hour, *kind, count) for kind, count in traffic.items()]),
            (sql.ADD_LATENCY_HOUR, [(hour, *kind, count) for kind, count in latency.items()]),
            (sql.ADD_SPENT_HOUR, [(hour, *kind, *sums) for kind, sums in spent.items()]),
            (sql.ADD_KEY_HOUR, [(hour, *kind, *sums) for kind, sums in keys.items()]),
        ):
            if found:
                together.many(statement, found)


def forget_hours(backend: Backend, before_ms: int) -> None:
    """Delete the counts of hours that began before."""
    span: dict[str, Value] = {"from_ms": 0, "to_ms": before_ms}
    with backend.transaction() as together:
        for statement in FORGET:
            together.change(statement, span)
        together.change(sql.FORGET_HOURS, span)
