"""`signals.v1`: weighted signals, read in one of two ways.

A signal counts distinct phrases found, or measures the text, and its levels turn that number into a score. *Bands* add
the weighted scores up and see in which band the sum falls (tiers). A *ranking* computes a score for each route from named
sums and lets the highest win (study).

A verdict is a function of which phrases were found and at which level each measure stands, and few of those combinations
occur in practice: each is judged once and kept, in a bounded cache. The evidence is the phrases and the measures; all that
is shown to a person is rendered from them, so what is explained is what was decided.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple

from msgspec import Struct

from turnout.core.query import Reading
from turnout.core.registry import Supplies, kind
from turnout.core.verdict import Reason, Verdict
from turnout.text.match import Ordered, Pattern, Phrase, Regex, Substring, Whole
from turnout.text.tokens import UNITS_PER_TOKEN

from .signals_config import Bands, Override, Ranking, Signal, SignalsConfig

# Combinations kept per layer. Each is a few hundred bytes; traffic that never repeats one only pays for the look-up.
KEPT = 4096

MEASURES: dict[str, Callable[[Reading], int]] = {
    "tokens": lambda reading: reading.units // UNITS_PER_TOKEN,
    "characters": lambda reading: reading.units,
    "questions": lambda reading: reading.folded.count("?"),
}

Hits = tuple[int, ...]
Standing = tuple[int, ...]
"""For each measured signal, the position of the level it stands at on its ladder."""


class Rung(Struct, frozen=True):
    """One level of one signal: from which number it holds, what it adds to a sum, how it reads."""

    start: int
    points: float
    reason: Reason
    show: int


class Ladder(NamedTuple):
    """A signal's levels: `rungs[bisect_right(starts, number)]` is the one a number stands at, if any."""

    starts: list[int]
    rungs: list[Rung | None]


class Judged(NamedTuple):
    """A verdict without what differs from text to text."""

    routes: tuple[str, ...]
    confidence: float
    margin: float
    scores: dict[str, float]
    decisive: bool = False


class Signals:
    """What both readings share: which signals fired, and saying so."""

    def __init__(self, config: SignalsConfig, supplies: Supplies) -> None:
        self.signals = config.signals
        self.owner: dict[int, int] = {}
        self.shown: dict[int, str] = {}
        for index, signal in enumerate(config.signals):
            for pattern, shown in _patterns(signal, config.match):
                hit = supplies.phrases.add(pattern, f"signals.{signal.id}")
                self.owner[hit] = index
                self.shown[hit] = shown
        self.ladders = [_ladder(signal) for signal in config.signals]
        self.measured = [index for index, signal in enumerate(config.signals) if signal.measure is not None]
        self.gauges = [
            (MEASURES[signal.measure], self.ladders[index].starts)
            for index, signal in enumerate(config.signals)
            if signal.measure is not None
        ]
        self.gauge_codes = [f"signals.{config.signals[index].id}" for index in self.measured]
        self.neutral = frozenset(index for index, signal in enumerate(config.signals) if signal.neutral)
        self.judged = functools.lru_cache(maxsize=KEPT)(self.judge)
        self.described = functools.lru_cache(maxsize=KEPT)(self.describe)

    def __call__(self, reading: Reading) -> Verdict:
        numbers = []
        levels = []
        for value, starts in self.gauges:
            number = value(reading)
            numbers.append(number)
            levels.append(bisect_right(starts, number))
        if reading.muted:
            levels = [-1 if code in reading.muted else at for at, code in zip(levels, self.gauge_codes, strict=True)]
        hits = reading.hits
        standing = tuple(levels)
        routes, confidence, margin, scores, decisive = self.judged(hits, standing)
        return Verdict(routes, confidence, margin, scores, (), (hits, standing, tuple(numbers)), decisive)

    def judge(self, hits: Hits, standing: Standing) -> Judged:
        raise NotImplementedError

    def explain(self, verdict: Verdict) -> tuple[Reason, ...]:
        """The signals that stand at a level, in their order, each with the phrases it found or its number."""
        hits, standing, numbers = verdict.evidence
        reasons, counted = self.described(hits, standing)
        if not counted:
            return reasons
        filled = list(reasons)
        for at, which in counted:
            code, text = filled[at].code, filled[at].text
            filled[at] = Reason(code, text.replace("{n}", str(numbers[which])))  # type: ignore[index]
        return tuple(filled)

    def describe(self, hits: Hits, standing: Standing) -> tuple[tuple[Reason, ...], tuple[tuple[int, int], ...]]:
        """The reasons, and in which of them `{n}` stands for which measured number."""
        reasons = self.preface(hits, standing)
        counted = [(at, 0) for at, reason in enumerate(reasons) if "{n}" in reason.text]
        silent = True
        for index, rung in self.standing_rungs(hits, standing):
            silent = silent and index in self.neutral
            words = [self.shown[hit] for hit in hits if self.owner.get(hit) == index and self.shown[hit]][: rung.show]
            if "{n}" in rung.reason.text:
                counted.append((len(reasons), self.measured.index(index)))
            reasons.append(
                Reason(rung.reason.code, f"{rung.reason.text} ({', '.join(words)})") if words else rung.reason
            )
        if silent:
            reasons.append(Reason("signals.no_signal", "no_signal: nothing in the text speaks for a route"))
        return tuple(reasons), tuple(counted)

    def preface(self, hits: Hits, standing: Standing) -> list[Reason]:
        """Reasons that come before the signals'."""
        return []

    def counts(self, hits: Hits, standing: Standing) -> dict[int, int]:
        """Each signal's number, in the order of the signals: phrases found, or where the level of a measure starts."""
        counts: dict[int, int] = {}
        for hit in hits:
            if (index := self.owner.get(hit)) is not None:
                counts[index] = counts.get(index, 0) + 1
        for index, position in zip(self.measured, standing, strict=True):
            if position >= 0:
                counts[index] = self.ladders[index].starts[position - 1] if position else 0
        return dict(sorted(counts.items()))

    def standing_rungs(self, hits: Hits, standing: Standing) -> Iterator[tuple[int, Rung]]:
        """The signals that stand at a level, in their order."""
        for index, number in self.counts(hits, standing).items():
            starts, rungs = self.ladders[index]
            rung = rungs[bisect_right(starts, number)]
            if rung is not None:
                yield index, rung


class BandSignals(Signals):
    """The weighted sum of all signals falls into a band."""

    def __init__(self, config: SignalsConfig, supplies: Supplies, bands: Bands) -> None:
        super().__init__(config, supplies)
        self.bands = bands
        self.overrides = config.overrides
        self.silent_confidence = config.no_signal_confidence
        self.index = {signal.id: i for i, signal in enumerate(config.signals)}

    def judge(self, hits: Hits, standing: Standing) -> Judged:
        score = 0.0
        silent = True
        # In the order of the signals: it decides ties at an edge.
        for index, rung in self.standing_rungs(hits, standing):
            score += rung.points
            silent = silent and index in self.neutral
        edges = self.bands.edges
        distance = min(abs(score - edge) for edge in edges)
        scores = {"score": score}
        override = self.override(hits, standing)
        if override is not None:
            lifted = self.sigmoid(score) if override.at_least else 0.0
            return Judged((override.route,), max(override.confidence, lifted), distance, scores, decisive=True)
        confidence = self.sigmoid(distance)
        if silent and self.silent_confidence is not None:
            confidence = min(confidence, self.silent_confidence)
        return Judged((self.bands.routes[bisect_right(edges, score)],), confidence, distance, scores)

    def sigmoid(self, x: float) -> float:
        return 1.0 / (1.0 + math.exp(-self.bands.steepness * x))

    def override(self, hits: Hits, standing: Standing) -> Override | None:
        """The first override whose tests hold."""
        counts = self.counts(hits, standing)
        totals = {signal.id: counts.get(index, 0) for index, signal in enumerate(self.signals)}
        return next((override for override in self.overrides if override.holds(totals)), None)

    def preface(self, hits: Hits, standing: Standing) -> list[Reason]:
        override = self.override(hits, standing)
        if override is None:
            return []
        names = override.all[0].sum
        text = override.text
        # A measure's own number differs from text to text and is filled in by `explain`; counts are known here.
        if all(self.signals[self.index[name]].measure is None for name in names):
            counts = self.counts(hits, standing)
            text = text.replace("{n}", str(sum(counts.get(self.index[name], 0) for name in names)))
        return [Reason(f"override.{override.id}", text)]


class RankSignals(Signals):
    """Each route has a score computed from named sums of boolean signals; the highest wins."""

    def __init__(self, config: SignalsConfig, supplies: Supplies, ranking: Ranking) -> None:
        super().__init__(config, supplies)
        self.ranking = ranking

    def judge(self, hits: Hits, standing: Standing) -> Judged:
        ranking = self.ranking
        on = {self.signals[index].id for index, _ in self.standing_rungs(hits, standing)}
        sums = {
            name: sum((weight for signal, weight in weights.items() if signal in on), ranking.base.get(name, 0.0))
            for name, weights in ranking.sums.items()
        }
        scores = {route: max(0.0, sum(term.value(on, sums) for term in terms)) for route, terms in ranking.routes.items()}
        # Python's sort is stable, so a tie goes to the route listed first.
        ranked = sorted(scores, key=scores.__getitem__, reverse=True)
        top, second = scores[ranked[0]], scores[ranked[1]]
        if second <= 0.0:
            confidence = ranking.ceiling if top > 0.0 else ranking.nothing
        else:
            # The tiny term keeps the division defined; it is the formula's own.
            confidence = min(ranking.ceiling, max(0.0, 0.5 + (top - second) / (top + second + 1e-6)))
        for floor in ranking.floors:
            if floor.route == ranked[0] and on.issuperset(floor.when):
                confidence = max(confidence, floor.confidence)
        return Judged((ranked[0],), confidence, top - second, scores)


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


def _ladder(signal: Signal) -> Ladder:
    """A signal's levels by the numbers where the level changes; where two hold, the later one counts."""
    changes = {math.ceil(level.at_least) for level in signal.levels if level.at_least is not None}
    changes |= {math.floor(level.at_most) + 1 for level in signal.levels if level.at_most is not None}
    starts = sorted(changes)
    rungs: list[Rung | None] = []
    for number in (starts[0] - 1, *starts):
        level = next((level for level in reversed(signal.levels) if level.holds(number)), None)
        if level is None:
            rungs.append(None)
        else:
            reason = Reason(f"signals.{signal.id}", level.label or signal.label or signal.id)
            rungs.append(Rung(number, level.score * (signal.weight or 0.0), reason, level.show))
    return Ladder(starts, rungs)


@kind("signals.v1", cost="free", who="S")
def signals(config: SignalsConfig, supplies: Supplies) -> Signals:
    if config.bands is not None:
        return BandSignals(config, supplies, config.bands)
    assert config.ranking is not None  # the config check allows exactly one of the two
    return RankSignals(config, supplies, config.ranking)
