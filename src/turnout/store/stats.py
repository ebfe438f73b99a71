"""Statistics of a log: which layers decide, how that changes over time, how fast, and at what cost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from turnout.config.name import old_names
from turnout.core.decision import first_id
from turnout.core.registry import kinds

from . import sql
from .backend import Record, Value
from .hours import ASKED_A_MODEL

# The year 10000: a span without an end.
FOREVER_MS = 253_402_300_800_000
# More than the time from a decision's id to its row, which is hardly a second.
SLOWEST_MS = 3_600_000
PERCENTILES = (50, 90, 99)
# Decisions that are read at a time to see which models were asked.
ASKED_PAGE = 500


class TimeSpan(Struct, frozen=True):
    """From when, until when; milliseconds since 1970."""

    since_ms: int = 0
    until_ms: int = FOREVER_MS

    def values(self) -> dict[str, int | str]:
        """The span as statements take it. `first` is an id before the span's first decision: ids begin with their
        time, so an index finds the beginning."""
        return {"since_ms": self.since_ms, "until_ms": self.until_ms, "first": first_id(self.since_ms - SLOWEST_MS)}


ALWAYS = TimeSpan()


def names_of(profile: Value) -> dict[str, Value]:
    """A profile as a filter: its name, and the names its decisions were logged under before."""
    was, was_too, *_ = (*(old_names(profile) if isinstance(profile, str) else ()), None, None)
    return {"profile": profile, "profile_was": was, "profile_was_too": was_too}


class Bucket(Struct, frozen=True):
    """One stretch of time."""

    start_ms: int
    decisions: int
    layers: Mapping[str, int]
    """Decisions by the layer that made them."""
    model_share: float
    """The share of decisions made by a model."""


class Spent(Struct, frozen=True):
    """The cost of answers by slot and model. A sum of unknown values is None, not zero."""

    slot: str | None
    model: str | None
    ended: str
    answers: int
    attempts: int | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    classifier_usd: float | None
    compared: int
    """Answers whose cost and baseline are both known."""
    baseline_usd: float | None
    compared_usd: float | None
    """The cost of those answers, including the cost of deciding."""
    fallbacks: int
    priced: int
    """Answers whose cost is known."""


class Stats(Struct, frozen=True):
    decisions: int
    layers: Mapping[str, int]
    routes: Mapping[str, int]
    profiles: Mapping[str, int]
    outcomes: Mapping[str, int]
    """By the two letters."""
    model_share: float
    buckets: tuple[Bucket, ...]
    latency_us: Mapping[str, float]
    """`p50`, `p90`, `p99`, `max`."""
    spent: tuple[Spent, ...]
    letters: Mapping[str, str] = {}
    """The first letter of each layer's outcomes, the most frequent if there are several."""
    asked: Mapping[str, int] = {}
    """How often each model was asked for a decision; the name is empty where the log does not have it."""

    @property
    def saved_usd(self) -> float | None:
        """Savings over always using the most expensive slot, net of the cost of deciding; None without a baseline."""
        known = [one for one in self.spent if one.baseline_usd is not None]
        return sum((one.baseline_usd or 0) - (one.compared_usd or 0) for one in known) if known else None


def gather(
    read: Callable[..., list[Record]], span: TimeSpan, only: Mapping[str, str | None], bucket_ms: int, shift_ms: int = 0
) -> Stats:
    rows = read(sql.TRAFFIC, **span.values(), **only, bucket_ms=bucket_ms, shift_ms=shift_ms)
    letters: Counter[tuple[str, str]] = Counter()
    for *_, by, outcome, _, count in rows:
        letters[by, outcome[0]] += count
    latency: dict[str, float] = {}
    if total := letters.total():
        places = {f"p{percent}": -(-total * percent // 100) - 1 for percent in PERCENTILES} | {"max": total - 1}
        for name, place in places.items():
            found = read(sql.LATENCY_AT, **span.values(), **only, place=place)
            latency |= {name: found[0][0]} if found else {}
    spent = tuple(Spent(*row) for row in read(sql.SPENT, **span.values(), **only))
    return replace(
        summarize(rows, bucket_ms, shift_ms, latency, spent),
        letters={layer: letter for (layer, letter), _ in reversed(letters.most_common())},
        asked=_ranked(Counter(_models_asked(read, {**span.values(), **only}))),
    )


def summarize(
    rows: Iterable[Record], bucket_ms: int, shift_ms: int, latency: Mapping[str, float], spent: tuple[Spent, ...]
) -> Stats:
    """Statistics from counts. A row has a bucket, a profile, a layer, an outcome, a route and a count of decisions."""
    layers, routes, profiles, outcomes = (Counter[str]() for _ in range(4))
    buckets: defaultdict[int, Counter[str]] = defaultdict(Counter)
    models: Counter[int] = Counter()
    for number, name, by, outcome, route, count in rows:
        for counter, key in ((layers, by), (routes, route), (profiles, name), (outcomes, outcome)):
            counter[key] += count
        buckets[number][by] += count
        models[number] += count * (outcome[0] in ASKED_A_MODEL)
    total = layers.total()
    return Stats(
        total,
        _ranked(layers),
        _ranked(routes),
        _ranked(profiles),
        _ranked(outcomes),
        models.total() / total if total else 0.0,
        tuple(
            Bucket(number * bucket_ms - shift_ms, seen.total(), _ranked(seen), models[number] / seen.total())
            for number, seen in sorted(buckets.items())
        ),
        latency,
        spent,
    )


class _Step(Struct):
    layer: str
    kind: str
    ended: str
    model: str = ""


class _RecordedRow(Struct):
    """The part of a decision's JSON form that shows which models were asked."""

    by: str = ""
    outcome: str = ""
    trace: tuple[_Step, ...] = ()
    parts: tuple[_RecordedRow, ...] = ()

    def calls(self) -> Iterator[str]:
        """The model of each call, empty if it did not answer or the row is of an earlier version. An answer from the
        cache is not a call."""
        for step in self.trace:
            kind = kinds().get(step.kind)
            if kind is None or kind.cost != "network" or step.ended in ("passed", "skipped", "breaker"):
                continue
            if step.layer != self.by or self.outcome[:1] != "C":
                yield step.model
        for part in self.parts:
            yield from part.calls()


_recorded = msgspec.json.Decoder(_RecordedRow)


def _models_asked(read: Callable[..., list[Record]], wanted: Mapping[str, object]) -> Iterator[str]:
    above = ""
    while page := read(sql.ASKED, **wanted, above=above, most=ASKED_PAGE):
        for _, body in page:
            yield from _recorded.decode(body).calls()
        above = page[-1][0]


def _ranked(counter: Counter[str]) -> dict[str, int]:
    return dict(counter.most_common())
