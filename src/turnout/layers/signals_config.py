"""The configuration of `signals.v1`, and its checks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct

from turnout.core.policy import Name

from .check import unknown

Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Measure = Literal["tokens", "characters", "questions"]


class Level(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The score of a signal from a number on, or up to one."""

    score: float
    at_least: float | None = None
    at_most: float | None = None
    label: str = ""
    """The text of the reason; `{n}` stands for the number."""
    show: int = 3
    """How many of the found phrases are named."""

    def holds(self, number: float) -> bool:
        return (self.at_least is None or number >= self.at_least) and (self.at_most is None or number <= self.at_most)


class Signal(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    id: Name
    label: str = ""
    weight: float | None = None
    words: tuple[str, ...] = ()
    """Phrases; `function|functions` is one phrase with its forms, shown and counted as the first form."""
    ordered: tuple[tuple[str, str], ...] = ()
    whole: tuple[str, ...] = ()
    whole_label: str = ""
    patterns: tuple[str, ...] = ()
    measure: Measure | None = None
    levels: Annotated[tuple[Level, ...], Meta(min_length=1)] = (Level(score=1.0, at_least=1),)
    hidden: bool = False
    """Only used by overrides; not shown as a reason."""
    neutral: bool = False
    """Does not count as a signal by itself: with nothing else, the question has no signal."""


class Bands(Struct, frozen=True, forbid_unknown_fields=True):
    """`routes[i]` begins at `edges[i-1]`, inclusive. Confidence is a sigmoid of the distance to the nearest edge."""

    edges: Annotated[tuple[float, ...], Meta(min_length=1)]
    routes: tuple[str, ...]
    # The usual value is 12; beyond the limit the sigmoid is a step.
    steepness: Annotated[float, Meta(gt=0.0, le=1000.0)]


class Test(Struct, frozen=True, forbid_unknown_fields=True):
    """A minimum for the sum of some signals' counts. A measure must have a level that starts at this number."""

    sum: tuple[str, ...]
    at_least: int


class Override(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Decides whatever the sum of the signals is, and passes every gate. The first match decides."""

    id: Name
    route: str
    confidence: Share
    all: tuple[Test, ...]
    any: tuple[Test, ...] = ()
    at_least: bool = False
    """The confidence is a minimum: the sigmoid of the score may raise it."""
    text: str = ""
    """The text of the reason; `{n}` stands for the count of the first test."""


class Term(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One summand of a route's score: `add`, times a named sum (or its excess `above` a level), under conditions."""

    add: float
    of: str | None = None
    above: float | None = None
    when: tuple[str, ...] = ()
    """Signals that must all have fired."""
    when_sum: Mapping[str, float] = {}
    """Sums that must reach these levels."""

    def value(self, on: set[str], sums: Mapping[str, float]) -> float:
        if not on.issuperset(self.when) or any(sums[name] < level for name, level in self.when_sum.items()):
            return 0.0
        if self.of is None:
            return self.add
        if self.above is None:
            return self.add * sums[self.of]
        return self.add * (sums[self.of] - self.above) if sums[self.of] >= self.above else 0.0


class Floor(Struct, frozen=True, forbid_unknown_fields=True):
    """The least confidence if the route wins and the signals have fired."""

    route: str
    when: tuple[str, ...]
    confidence: Share


class Ranking(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    sums: Mapping[str, Mapping[str, float]]
    routes: Mapping[str, tuple[Term, ...]]
    base: Mapping[str, float] = {}
    """The start value of each sum."""
    ceiling: Share = 0.99
    nothing: Share = 0.34
    floors: tuple[Floor, ...] = ()


class SignalsConfig(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    signals: tuple[Signal, ...]
    match: Literal["word", "substring"] = "word"
    bands: Bands | None = None
    ranking: Ranking | None = None
    overrides: tuple[Override, ...] = ()
    no_signal_confidence: Share | None = None
    """The highest confidence if no signal has fired."""

    def faults(self, routes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        names = [signal.id for signal in self.signals]
        for i, signal in enumerate(self.signals):
            if signal.id in names[:i]:
                yield f"signals[{i}].id", f"{signal.id!r} is used twice"
            counted = bool(signal.words or signal.ordered or signal.whole or signal.patterns)
            if counted == (signal.measure is not None):
                yield f"signals[{i}]", "needs either phrases (words, ordered, whole, patterns) or a measure"
            yield from _twice(f"signals[{i}].words", signal.words)
            for j, level in enumerate(signal.levels):
                if level.at_least is None and level.at_most is None:
                    yield f"signals[{i}].levels[{j}]", "needs at_least or at_most"
        if (self.bands is None) == (self.ranking is None):
            yield "", "needs exactly one of bands and ranking"
        if self.bands is not None:
            yield from self._band_faults(self.bands, routes)
        if self.ranking is not None:
            yield from self._rank_faults(self.ranking, routes, set(names))
        for i, override in enumerate(self.overrides):
            yield from unknown(f"overrides[{i}].route", (override.route,), routes)
            if not override.all:
                yield f"overrides[{i}].all", "is empty: the override would match every question"
            for part, tests in (("all", override.all), ("any", override.any)):
                for j, test in enumerate(tests):
                    yield from self._test_faults(f"overrides[{i}].{part}[{j}]", test, names)

    def _test_faults(self, where: str, test: Test, names: list[str]) -> Iterator[tuple[str, str]]:
        yield from unknown(f"{where}.sum", test.sum, names, "is not a signal")
        for signal in self.signals:
            if signal.id not in test.sum or signal.measure is None:
                continue
            if len(test.sum) > 1:
                yield f"{where}.sum", f"{signal.id!r} is a measure: it cannot be added to other signals"
            elif not any(level.at_least == test.at_least for level in signal.levels):
                yield f"{where}.at_least", f"no level of {signal.id!r} starts at {test.at_least}: add one"

    def _band_faults(self, bands: Bands, routes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        if len(bands.edges) + 1 != len(bands.routes):
            yield "bands", f"{len(bands.routes)} routes need {len(bands.routes) - 1} edges, found {len(bands.edges)}"
        if any(low >= high for low, high in zip(bands.edges, bands.edges[1:], strict=False)):
            yield "bands.edges", f"{list(bands.edges)} must rise: a band is unreachable otherwise"
        yield from unknown("bands.routes", bands.routes, routes)
        missing = [i for i, signal in enumerate(self.signals) if signal.weight is None]
        for i in missing:
            yield f"signals[{i}].weight", "is missing: every banded signal needs a weight"
        total = math.fsum(signal.weight or 0.0 for signal in self.signals)
        # Weights have two or three decimals; a difference beyond rounding is a mistake.
        if not missing and abs(total - 1.0) > 1e-6:
            yield "signals", f"the weights add up to {total:.4g}, not to 1"

    def _rank_faults(self, ranking: Ranking, routes: tuple[str, ...], names: set[str]) -> Iterator[tuple[str, str]]:
        if len(ranking.routes) < 2:
            yield "ranking.routes", "needs at least two routes to rank"
        for name, weights in ranking.sums.items():
            yield from unknown(f"ranking.sums.{name}", weights, names, "is not a signal")
        yield from unknown("ranking.base", ranking.base, ranking.sums, "is not a sum")
        for route, terms in ranking.routes.items():
            yield from unknown(f"ranking.routes.{route}", (route,), routes)
            for j, term in enumerate(terms):
                where = f"ranking.routes.{route}[{j}]"
                yield from unknown(f"{where}.when", term.when, names, "is not a signal")
                yield from unknown(f"{where}.when_sum", term.when_sum, ranking.sums, "is not a sum")
                if term.of is not None:
                    yield from unknown(f"{where}.of", (term.of,), ranking.sums, "is not a sum")
        for j, floor in enumerate(ranking.floors):
            yield from unknown(f"ranking.floors[{j}].route", (floor.route,), ranking.routes, "is not a ranked route")
            yield from unknown(f"ranking.floors[{j}].when", floor.when, names, "is not a signal")

    def produces(self) -> set[str]:
        """The routes this layer can choose."""
        chosen = set(self.bands.routes) if self.bands is not None else set()
        chosen |= set(self.ranking.routes) if self.ranking is not None else set()
        return chosen | {override.route for override in self.overrides}


def _twice(where: str, words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for i, word in enumerate(words):
        for form in word.split("|"):
            if form in seen:
                yield f"{where}[{i}]", f"{form!r} is listed twice"
            if not form.strip():
                yield f"{where}[{i}]", "an empty phrase"
            seen.add(form)
