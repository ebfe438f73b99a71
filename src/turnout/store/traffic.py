"""The traffic of a span by layer, route, profile and key, from counted hours and from the log for the rest."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from . import sql
from .backend import HOUR_MS, Record, Value
from .hours import (
    AGAIN,
    HourRange,
    KeySums,
    add_answers,
    add_decisions,
    add_sums,
    digits_of,
    edges_of,
    percentiles,
    ranges,
)
from .stats import PERCENTILES, Spent, Stats, TimeSpan, summarize

Read = Callable[..., list[Record]]


class KeyTraffic(Struct, frozen=True):
    """The traffic of one key; an empty id stands for requests without a key."""

    key_id: str
    profiles: tuple[str, ...]
    decisions: int
    by_models: int
    fallbacks: int
    answers: int
    cost_usd: float | None


class Traffic(Struct, frozen=True):
    """A span of traffic."""

    stats: Stats
    routes: Mapping[str, Mapping[str, int]]
    """Of each profile."""
    keys: tuple[KeyTraffic, ...]
    """The busiest first."""
    checked: Mapping[tuple[str, str], tuple[int, int]]
    """Decisions and outcomes, by profile and hash."""
    right: int
    wrong: int
    """Decisions by their latest feedback."""
    answered: Mapping[str, int]
    """Answers, by profile."""
    regretted: Mapping[str, int]
    """Answers that were asked for again with the context that had been withheld, by profile."""


class TrafficSum:
    """Sums over counted hours and over rows of the log."""

    def __init__(self) -> None:
        self.decisions: Counter[Record] = Counter()
        """By bucket, profile, hash, layer, outcome and route."""
        self.spent: dict[Record, list[float | None]] = {}
        """By profile, hash, slot, model and how it ended."""
        self.keys: KeySums = {}
        """By key and profile."""
        self.taken: Counter[tuple[int, int]] = Counter()

    def add_hours(self, read: Read, when: HourRange, only: Mapping[str, Value], buckets: Mapping[str, Value]) -> None:
        """Add counted hours."""
        for *kind, count in read(sql.HOURS_TRAFFIC, **when.values(), **only, **buckets):
            self.decisions[tuple(kind)] += count
        for row in read(sql.HOURS_SPENT, **when.values(), **only):
            add_sums(self.spent, row[:5], row[5:])
        for row in read(sql.HOURS_KEYS, **when.values(), **only):
            add_sums(self.keys, row[:2], row[2:])
        for us, count in read(sql.HOURS_LATENCY, **when.values(), **only):
            self.taken[edges_of(us)] += count

    def add_log(self, read: Read, when: HourRange, only: Mapping[str, Value], buckets: Mapping[str, Value]) -> None:
        """Add rows of the log."""
        for _, bucket, key, *kind, count in read(sql.LOG_TRAFFIC, **when.values(), **only, **buckets):
            self.decisions[(bucket, *kind)] += count
            add_decisions(self.keys, (key, kind[0]), kind[3], count)
        for _, key, *row in read(sql.LOG_SPENT, **when.values(), **only, again=AGAIN):
            add_sums(self.spent, tuple(row[:5]), row[5:])
            add_answers(self.keys, (key, row[0]), row[5], row[9])
        for *_, us, count in read(sql.LOG_LATENCY, **when.values(), **only):
            self.taken[digits_of(us)] += count

    def routes(self) -> dict[str, dict[str, int]]:
        found: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for kind, count in self.decisions.items():
            found[kind[1]][kind[5]] += count
        busiest = sorted(found.items(), key=lambda item: -item[1].total())
        return {profile: dict(counts.most_common()) for profile, counts in busiest}

    def answers(self, at: int) -> dict[str, int]:
        """One of the sums in `spent`, by profile."""
        found: Counter[str] = Counter()
        for kind, sums in self.spent.items():
            found[kind[0]] += int(sums[at] or 0)
        return {profile: count for profile, count in found.items() if count}

    def checked(self) -> dict[tuple[str, str], tuple[int, int]]:
        answers: Counter[Record] = Counter()
        for kind, sums in self.spent.items():
            answers[kind[:2]] += int(sums[0] or 0)
        decided: Counter[tuple[str, str]] = Counter()
        for kind, count in self.decisions.items():
            decided[kind[1], kind[2]] += count
        return {whose: (count, answers[whose]) for whose, count in decided.items()}

    def spending(self) -> Iterator[Spent]:
        """Over all profiles."""
        found: dict[Record, list[float | None]] = {}
        for kind, sums in self.spent.items():
            add_sums(found, kind[2:], sums[:11])
        for kind, sums in sorted(found.items(), key=lambda item: tuple(part or "" for part in item[0])):
            yield Spent(*kind, *sums)

    def by_key(self) -> Iterator[KeyTraffic]:
        found: dict[Record, list[float | None]] = {}
        profiles: defaultdict[str, list[str]] = defaultdict(list)
        for (key, profile), sums in self.keys.items():
            add_sums(found, (key,), sums)
            profiles[key].append(profile)
        for (key,), sums in sorted(found.items(), key=lambda item: (-(item[1][0] or 0), item[0])):
            yield KeyTraffic(key, tuple(sorted(profiles[key])), *sums)  # type: ignore[arg-type]

    def stats(self, bucket_ms: int, shift_ms: int) -> Stats:
        rows = ((bucket, profile, *kind, count) for (bucket, profile, _, *kind), count in self.decisions.items())
        latency = percentiles(self.taken, PERCENTILES)
        return summarize(rows, bucket_ms, shift_ms, latency, tuple(self.spending()))


def read_traffic(
    read: Read, span: TimeSpan, now_ms: int, only: Mapping[str, str | None], bucket_ms: int, shift_ms: int
) -> Traffic:
    """The traffic of a span that ends now."""
    # Another machine's clock may be ahead.
    since, until = span.since_ms, now_ms + HOUR_MS
    hours = read(sql.COUNTED_HOURS, from_ms=since, to_ms=until)
    found = TrafficSum()
    for when in ranges((hour for hour, late, counted in hours if late == counted), since, until):
        add = found.add_hours if when.counted else found.add_log
        add(read, when, only, {"bucket_ms": bucket_ms, "shift_ms": shift_ms})
    feedback: dict[str, int] = dict(read(sql.VERDICTS, **HourRange(since, until, False).values(), **only))
    return Traffic(
        found.stats(bucket_ms, shift_ms),
        found.routes(),
        tuple(found.by_key()),
        found.checked(),
        feedback.get("right", 0),
        feedback.get("wrong", 0),
        found.answers(0),
        found.answers(11),
    )
