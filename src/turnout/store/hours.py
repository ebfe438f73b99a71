"""Traffic counted hour by hour, so that a month of it is read in a moment.

An hour is counted once it is over, from the log, and again if a row of it came late: the writer of such a row says so
in the same transaction. What is not counted yet is read from the log itself: both together are always all of it. Rows
belong to the hour their id begins with.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from turnout.core.decision import first_id, id_ms

from . import sql
from .backend import HOUR_MS, Backend, Record, Value, hour_of

# A writer that began before the hour was over has committed by then, or says that its rows are late.
SETTLED_MS = 300_000
# What a page looks back, and an hour more.
KEPT_MS = 31 * 24 * HOUR_MS + HOUR_MS
# Ten to a decade, as resistors come: a percentile between two of them is a twentieth off at most.
STEPS = (1.0, 1.25, 1.6, 2.0, 2.5, 3.15, 4.0, 5.0, 6.3, 8.0)
EDGES = (0, *sorted({round(step * 10**power) for power in range(8) for step in STEPS}))
FORGET = (sql.FORGET_TRAFFIC, sql.FORGET_LATENCY, sql.FORGET_SPENT, sql.FORGET_KEYS)
# How the row of an answer says that it was asked for again with what had been withheld.
AGAIN = '%"again":true%'
# No key is called so.
ALL_KEYS = "*"
# Letters of deciders that ask a model.
ASKED_A_MODEL = ("L", "A")
KeySums = dict[Record, list[float | None]]
"""Decisions, those by models, fallbacks, answers and their cost; of each key and profile."""
NO_FILTER: dict[str, Value] = dict.fromkeys(("profile", "profile_was", "profile_was_too", "key_id"))


class HourRange(NamedTuple):
    """Some time, from the beginning of a millisecond to that of another; whether all of it was counted."""

    from_ms: int
    to_ms: int
    counted: bool

    def values(self) -> dict[str, Value]:
        times: dict[str, Value] = {"from_ms": self.from_ms, "to_ms": self.to_ms}
        return times if self.counted else {"first": first_id(self.from_ms), "last": first_id(self.to_ms)}


def cut(counted: Iterable[int], from_ms: int, to_ms: int) -> Iterator[HourRange]:
    """A span of time in ranges that were counted, as long as they come, and what is between them."""
    at = from_ms
    for hour in sorted(hour for hour in counted if from_ms <= hour and hour + HOUR_MS <= to_ms):
        if hour > at:
            yield HourRange(at, hour, False)
        at = hour + HOUR_MS
        yield HourRange(hour, at, True)
    if at < to_ms:
        yield HourRange(at, to_ms, False)


def ranges(counted: Iterable[int], from_ms: int, to_ms: int) -> list[HourRange]:
    """The same with neighbours that are alike put together."""
    found: list[HourRange] = []
    for one in cut(counted, from_ms, to_ms):
        if found and found[-1].counted and one.counted:
            found[-1] = HourRange(found[-1].from_ms, one.to_ms, True)
        else:
            found.append(one)
    return found


def percentiles(taken: Counter[tuple[int, int]], percents: Sequence[int]) -> dict[str, float]:
    """How long so many percent took at most, of counts between two times each."""
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
    """The two edges it is between."""
    place = min(bisect_right(EDGES, us), len(EDGES) - 1)
    return EDGES[place - 1], EDGES[place]


def digits_of(us: int) -> tuple[int, int]:
    """What two digits stand for."""
    return us, us + 10 ** max(len(str(us)) - 2, 0)


def add_sums(found: dict[Record, list[float | None]], kind: Record, sums: Sequence[float | None]) -> None:
    """A sum of nothing known stays unknown."""
    old = found.get(kind) or [None] * len(sums)
    found[kind] = [b if a is None else a if b is None else a + b for a, b in zip(old, sums, strict=True)]


def add_decisions(keys: KeySums, whose: Record, outcome: str, count: int) -> None:
    by_model, fell_back = outcome[0] in ASKED_A_MODEL, outcome[0] == "F"
    add_sums(keys, whose, (count, count * by_model, count * fell_back, 0, None))


def add_answers(keys: KeySums, whose: Record, answers: int, cost_usd: float | None) -> None:
    add_sums(keys, whose, (0, 0, 0, answers, cost_usd))


def count_hour(backend: Backend, now_ms: int | None = None) -> bool:
    """Count the newest hour that is over and not counted, if there is one; whether there was."""
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
    # Read before the transaction: the one writer does not wait for it, and what comes meanwhile says that it is late.
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
    """What was counted of hours that began before."""
    gone: dict[str, Value] = {"from_ms": 0, "to_ms": before_ms}
    with backend.transaction() as together:
        for statement in FORGET:
            together.change(statement, gone)
        together.change(sql.FORGET_HOURS, gone)
