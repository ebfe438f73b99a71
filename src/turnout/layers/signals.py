"""`signals.v1`: weighted signals, read in one of two ways.

A signal counts distinct phrases found, or measures the text, and its levels turn that number into a score. *Bands* add
the weighted scores up and see in which band the sum falls (tiers). A *ranking* computes a score for each route from named
sums and lets the highest win (study). Evidence is the hits and the measures, nothing else: everything shown to a person
is recomputed from them on demand, so what is explained is what was decided.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple

from turnout.core.query import Reading
from turnout.core.registry import Supplies, kind
from turnout.core.verdict import Reason, Verdict
from turnout.text.match import Ordered, Pattern, Phrase, Regex, Substring, Whole
from turnout.text.tokens import UNITS_PER_TOKEN

from .signals_config import Bands, Level, Override, Ranking, Signal, SignalsConfig, Test

MEASURES: dict[str, Callable[[Reading], int]] = {
    "tokens": lambda reading: reading.units // UNITS_PER_TOKEN,
    "characters": lambda reading: reading.units,
    "questions": lambda reading: reading.folded.count("?"),
}

Fired = dict[int, int]
"""Signal index to the number it stands at: phrases found, or the measure."""


class Rung(NamedTuple):
    """One level of one signal, ready for use: what it adds to a sum and how it reads."""

    points: float
    code: str
    label: str
    counts: bool
    """The label names the number itself."""
    show: int


class Signals:
    """What both readings share: which signals fired, and saying so."""

    def __init__(self, config: SignalsConfig, supplies: Supplies) -> None:
        self.signals = config.signals
        self.owner: dict[int, int] = {}
        self.shown: dict[int, str] = {}
        self.rungs: list[Callable[[int], Rung | None]] = []
        for index, signal in enumerate(config.signals):
            for pattern, shown in _patterns(signal, config.match):
                hit = supplies.phrases.add(pattern, f"signals.{signal.id}")
                self.owner[hit] = index
                self.shown[hit] = shown
            self.rungs.append(_ladder(signal))
        measured = [(index, signal) for index, signal in enumerate(config.signals) if signal.measure is not None]
        self.measured_at = tuple(index for index, _ in measured)
        self.measured = [(f"signals.{signal.id}", MEASURES[signal.measure or ""]) for _, signal in measured]
        self.neutral = frozenset(index for index, signal in enumerate(config.signals) if signal.neutral)

    def measure(self, reading: Reading) -> tuple[int, ...]:
        """The value of each measured signal, -1 for one that is muted."""
        if reading.muted:
            muted = reading.muted
            return tuple([-1 if code in muted else value(reading) for code, value in self.measured])
        return tuple([value(reading) for _, value in self.measured])

    def fired(self, hits: tuple[int, ...], measures: tuple[int, ...]) -> Fired:
        """The number of each signal that has one; whether it reaches a level is the ladder's business."""
        owner = self.owner
        fired: Fired = {}
        for hit in hits:
            if hit in owner:
                index = owner[hit]
                fired[index] = fired[index] + 1 if index in fired else 1
        for index, value in zip(self.measured_at, measures, strict=True):
            if value >= 0:
                fired[index] = value
        return fired

    def explain(self, verdict: Verdict) -> tuple[Reason, ...]:
        """The signals that stand at a level, in their order, each with the phrases it found."""
        hits: tuple[int, ...] = verdict.evidence[0]  # type: ignore[assignment]
        measures: tuple[int, ...] = verdict.evidence[1]  # type: ignore[assignment]
        found: dict[int, list[str]] = {}
        for hit in hits:
            if hit in self.owner:
                found.setdefault(self.owner[hit], []).append(self.shown[hit])
        reasons = []
        silent = True
        fired = self.fired(hits, measures)
        for index in sorted(fired):
            rung = self.rungs[index](fired[index])
            if rung is None:
                continue
            if index not in self.neutral:
                silent = False
            text = rung.label
            if rung.counts:
                text = text.replace("{n}", str(fired[index]))
            elif rung.show and (words := ", ".join([word for word in found[index] if word][: rung.show])):
                text = f"{text} ({words})"
            reasons.append(Reason(rung.code, text))
        if silent:
            reasons.append(_NO_SIGNAL)
        return tuple(reasons)


_NO_SIGNAL = Reason("signals.no_signal", "no_signal: nothing in the text speaks for a route")


class BandSignals(Signals):
    """The weighted sum of all signals falls into a band."""

    def __init__(self, config: SignalsConfig, supplies: Supplies, bands: Bands) -> None:
        super().__init__(config, supplies)
        self.edges = bands.edges
        self.steepness = bands.steepness
        self.silent_confidence = config.no_signal_confidence
        self.choices = tuple((route,) for route in bands.routes)
        index = {signal.id: i for i, signal in enumerate(config.signals)}
        self.overrides = [_Override(override, index) for override in config.overrides]

    def __call__(self, reading: Reading) -> Verdict:
        hits = reading.hits
        measures = self.measure(reading)
        fired = self.fired(hits, measures)
        score, silent = self.score(fired)
        distance = self.distance(score)
        for number, override in enumerate(self.overrides):
            if len(hits) >= override.least_hits and override.holds(fired, reading):
                confidence = override.config.confidence
                if override.config.at_least:
                    confidence = max(confidence, self.sigmoid(score))
                evidence = (hits, measures, number, override.count(fired, reading))
                return Verdict(override.routes, confidence, distance, {"score": score}, (), evidence, True)
        confidence = self.sigmoid(distance)
        if silent and self.silent_confidence is not None:
            confidence = min(confidence, self.silent_confidence)
        route = self.choices[bisect_right(self.edges, score)]
        return Verdict(route, confidence, distance, {"score": score}, (), (hits, measures))

    def score(self, fired: Fired) -> tuple[float, bool]:
        """The weighted sum, in the order of the signals since that decides ties at an edge; and whether none spoke."""
        score = 0.0
        silent = True
        rungs = self.rungs
        for index in sorted(fired):
            rung = rungs[index](fired[index])
            if rung is not None:
                score += rung.points
                if silent and index not in self.neutral:
                    silent = False
        return score, silent

    def distance(self, score: float) -> float:
        """How far the score is from the nearest edge."""
        edges = self.edges
        above = bisect_right(edges, score)
        if above == 0:
            return edges[0] - score
        below = score - edges[above - 1]
        return below if above == len(edges) else min(below, edges[above] - score)

    def sigmoid(self, x: float) -> float:
        return 1.0 / (1.0 + math.exp(-self.steepness * x))

    def explain(self, verdict: Verdict) -> tuple[Reason, ...]:
        reasons = super().explain(verdict)
        if len(verdict.evidence) == 2:
            return reasons
        _, _, number, count = verdict.evidence
        override = self.overrides[number]  # type: ignore[call-overload]
        return (Reason(override.code, override.config.text.replace("{n}", str(count))), *reasons)


class RankSignals(Signals):
    """Each route has a score computed from named sums of boolean signals; the highest wins."""

    def __init__(self, config: SignalsConfig, supplies: Supplies, ranking: Ranking) -> None:
        super().__init__(config, supplies)
        self.ranking = ranking
        # A ranking sees each signal as on or off, so few combinations exist and each is worth computing once.
        self.rank = functools.lru_cache(maxsize=4096)(self._rank)

    def __call__(self, reading: Reading) -> Verdict:
        hits = reading.hits
        measures = self.measure(reading)
        fired = self.fired(hits, measures)
        on = frozenset([index for index in fired if self.rungs[index](fired[index]) is not None])
        routes, confidence, margin, scores = self.rank(on)
        return Verdict(routes, confidence, margin, scores, (), (hits, measures))

    def _rank(self, fired: frozenset[int]) -> tuple[tuple[str, ...], float, float, dict[str, float]]:
        ranking = self.ranking
        on = {self.signals[index].id for index in fired}
        sums = {
            name: sum((weight for signal, weight in weights.items() if signal in on), ranking.base.get(name, 0.0))
            for name, weights in ranking.sums.items()
        }
        # Python's sort is stable, so a tie goes to the route listed first.
        scores = {route: max(0.0, sum(term.value(on, sums) for term in terms)) for route, terms in ranking.routes.items()}
        ranked = sorted(scores, key=scores.__getitem__, reverse=True)
        top, second = scores[ranked[0]], scores[ranked[1]]
        if second <= 0.0:
            confidence = ranking.ceiling if top > 0.0 else ranking.nothing
        else:
            # The tiny term keeps the division defined; it is the formula's own.
            share = (top - second) / (top + second + 1e-6)
            confidence = min(ranking.ceiling, max(0.0, 0.5 + share))
        for floor in ranking.floors:
            if floor.route == ranked[0] and on.issuperset(floor.when):
                confidence = max(confidence, floor.confidence)
        return (ranked[0],), confidence, top - second, scores


def _patterns(signal: Signal, match: str) -> Iterator[tuple[Pattern, str]]:
    """What to look for, and how each is shown when found."""
    for word in signal.words:
        forms = tuple(word.split("|"))
        yield (Substring(forms[0]) if match == "substring" else Phrase(forms)), forms[0]
    for first, then in signal.ordered:
        yield Ordered(first, then), f"{first} … {then}"
    if signal.whole:
        yield Whole(signal.whole), signal.whole_label
    for source in signal.patterns:
        yield Regex(source), ""


def _level(levels: tuple[Level, ...], value: float) -> Level | None:
    """The last level the value reaches."""
    found = None
    for level in levels:
        if (level.at_least is None or value >= level.at_least) and (level.at_most is None or value <= level.at_most):
            found = level
    return found


def _ladder(signal: Signal) -> Callable[[int], Rung | None]:
    """From a signal's number to the level it stands at, by one search among the numbers where the level changes."""
    steps = {math.ceil(level.at_least) for level in signal.levels if level.at_least is not None}
    steps |= {math.floor(level.at_most) + 1 for level in signal.levels if level.at_most is not None}
    starts = sorted(steps)
    rungs = []
    for value in (starts[0] - 1, *starts):
        level = _level(signal.levels, value)
        label = (level.label if level is not None else "") or signal.label or signal.id
        rungs.append(
            None
            if level is None
            else Rung(level.score * (signal.weight or 0.0), f"signals.{signal.id}", label, "{n}" in label, level.show)
        )
    return lambda value: rungs[bisect_right(starts, value)]


class _Override:
    """An override, its tests compiled."""

    def __init__(self, config: Override, index: dict[str, int]) -> None:
        self.config = config
        self.code = f"override.{config.id}"
        self.routes = (config.route,)
        self.all = [(_number(test, index), test.at_least) for test in config.all]
        self.any = [(_number(test, index), test.at_least) for test in config.any]
        # Most texts have fewer hits than an override asks for: one comparison then spares the tests.
        self.least_hits = max((test.at_least for test in config.all if test.measure is None), default=0)
        self.count = self.all[0][0]

    def holds(self, fired: Fired, reading: Reading) -> bool:
        for number, wanted in self.all:
            if number(fired, reading) < wanted:
                return False
        if self.any and not any(number(fired, reading) >= wanted for number, wanted in self.any):
            return False
        return self.code not in reading.muted


def _number(test: Test, index: dict[str, int]) -> Callable[[Fired, Reading], int]:
    """What a test compares: a measure, or the distinct phrases of some signals together."""
    if test.measure is not None:
        value = MEASURES[test.measure]
        return lambda _fired, reading: value(reading)
    places = tuple(index[name] for name in test.sum)
    return lambda fired, _reading: sum([fired[place] for place in places if place in fired])


@kind("signals.v1", cost="free", who="S")
def signals(config: SignalsConfig, supplies: Supplies) -> Signals:
    if config.bands is not None:
        return BandSignals(config, supplies, config.bands)
    assert config.ranking is not None
    return RankSignals(config, supplies, config.ranking)
