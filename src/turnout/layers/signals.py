"""`signals.v1`: weighted signals, evaluated in one of two ways.

A signal counts distinct phrases or measures the text, and its levels turn that number into a score. *Bands* add up the
weighted scores and choose the band of the sum (tiers). A *ranking* computes a score for each route from named sums and
chooses the highest (study).

A verdict depends only on the phrases found and the level of each measure. Few of these combinations occur in practice,
so each is judged once and cached. The evidence is the phrases and the measures, and explanations are rendered from it,
so they always match the decision.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from turnout.core.layer import Layer
from turnout.core.query import Reading
from turnout.core.registry import Supplies, kind
from turnout.core.verdict import Reason, Verdict
from turnout.text.match import OrderedPhrases, Pattern, Phrase, Regex, Substring, WholePhrase
from turnout.text.tokens import UNITS_PER_TOKEN

from .signals_config import Bands, Override, Ranking, Signal, SignalsConfig, Term

# Combinations cached per layer, a few hundred bytes each. Traffic that never repeats one only pays for the look-up.
KEPT = 4096

# The quantity behind each measure, and its units per count: tokens and characters both come from the length.
MEASURES: dict[str, tuple[str, int]] = {
    "tokens": ("units", UNITS_PER_TOKEN),
    "characters": ("units", 1),
    "questions": ("questions", 1),
}

Hits = tuple[int, ...]
Standing = tuple[int, int, frozenset[str]]
"""The index of the length among the numbers where a level changes, the same for question marks, and the muted codes."""
Counts = dict[int, int]


class Rung(Struct, frozen=True):
    """One level of one signal: what it adds to a sum, and its reason."""

    points: float
    reason: Reason
    show: int


Ladder = tuple[list[int], list[Rung | None]]
"""A signal's levels: `rungs[bisect_right(starts, number)]` is the level of a number, if any."""
Levels = tuple[Counts, list[tuple[int, Rung]]]
"""The count of each signal, and the levels of those that have one, in their order."""
Description = tuple[list[Reason], list[tuple[int, int]]]
"""The reasons, and those in which `{n}` stands for the number of a measured signal."""


class Signals(Layer):
    """The common part of both ways: which signals fired, and their reasons."""

    def __init__(self, config: SignalsConfig, supplies: Supplies) -> None:
        self.signals = config.signals
        self.codes = [f"signals.{signal.id}" for signal in config.signals]
        self.owner: dict[int, int] = {}
        self.shown: dict[int, str] = {}
        for index, signal in enumerate(config.signals):
            for pattern, shown in _patterns(signal, config.match):
                hit = supplies.phrases.add(pattern, self.codes[index])
                self.owner[hit] = index
                self.shown[hit] = shown
        self.ladders = [_ladder(signal) for signal in config.signals]
        self.measured = {
            index: MEASURES[signal.measure] for index, signal in enumerate(config.signals) if signal.measure
        }
        self.unit_marks = self._marks("units")
        self.question_marks = self._marks("questions")
        self.neutral = frozenset(index for index, signal in enumerate(config.signals) if signal.neutral)
        self.silent_confidence = config.no_signal_confidence
        # The length is rounded to the finest unit that a reason shows, so that fewer verdicts differ.
        scales = [scale for index, (of, scale) in self.measured.items() if of == "units" and self._shows_number(index)]
        self.grain: int = min(scales, default=UNITS_PER_TOKEN)
        self.verdict = functools.lru_cache(maxsize=KEPT)(self.find_verdict)
        self.stood = functools.lru_cache(maxsize=KEPT)(self.stand)
        self.judged = functools.lru_cache(maxsize=KEPT)(self.judge)
        self.described = functools.lru_cache(maxsize=KEPT)(self.describe)

    def _shows_number(self, index: int) -> bool:
        return any(rung is not None and "{n}" in rung.reason.text for rung in self.ladders[index][1])

    def _marks(self, quantity: str) -> list[int]:
        """The numbers of a quantity at which a signal's level changes."""
        measured = [(index, scale) for index, (of, scale) in self.measured.items() if of == quantity]
        return sorted({start * scale for index, scale in measured for start in self.ladders[index][0]})

    def __call__(self, reading: Reading) -> Verdict:
        units = reading.units
        questions = reading.folded.count("?") if self.question_marks else 0
        standing = (bisect_right(self.unit_marks, units), bisect_right(self.question_marks, questions), reading.muted)
        return self.verdict(reading.hits, standing, units // self.grain, questions)

    def find_verdict(self, hits: Hits, standing: Standing, grains: int, questions: int) -> Verdict:
        return replace(self.judged(hits, standing), evidence=(hits, standing, grains, questions))

    def judge(self, hits: Hits, standing: Standing) -> Verdict:
        """The verdict without its evidence, which also depends on the text."""
        raise NotImplementedError

    def explain(self, verdict: Verdict) -> tuple[Reason, ...]:
        """The signals with a level, in their order, each with the phrases it found or its number."""
        hits, standing, grains, questions = verdict.evidence
        reasons, counted = self.described(hits, standing)
        filled = list(reasons)
        for at, index in counted:
            quantity, scale = self.measured[index]
            number = (grains * self.grain if quantity == "units" else questions) // scale  # type: ignore[operator]
            filled[at] = Reason(filled[at].code, filled[at].text.replace("{n}", str(number)))
        return tuple(filled)

    def describe(self, hits: Hits, standing: Standing) -> Description:
        counts, rungs = self.stood(hits, standing)
        words: dict[int, list[str]] = {index: [] for index in counts}
        for hit in hits:
            if hit in self.owner and self.shown[hit]:
                words[self.owner[hit]].append(self.shown[hit])
        reasons, counted = self.preface(counts, standing)
        silent = True
        for index, rung in rungs:
            reason = rung.reason
            if self.signals[index].hidden:
                continue
            if "{n}" in reason.text and index in self.measured:
                counted.append((len(reasons), index))
            elif "{n}" in reason.text:
                reason = Reason(reason.code, reason.text.replace("{n}", str(counts[index])))
            elif words[index] and rung.show:
                reason = Reason(reason.code, f"{reason.text} ({', '.join(words[index][: rung.show])})")
            reasons.append(reason)
            if silent and index not in self.neutral:
                silent = False
        if silent:
            reasons.append(_NO_SIGNAL)
        return reasons, counted

    def preface(self, counts: Counts, standing: Standing) -> Description:
        """The reasons before those of the signals."""
        return [], []

    def stand(self, hits: Hits, standing: Standing) -> Levels:
        counts = self.counts(hits, standing)
        found = []
        for index in sorted(counts):
            starts, rungs = self.ladders[index]
            rung = rungs[bisect_right(starts, counts[index])]
            if rung is not None:
                found.append((index, rung))
        return counts, found

    def counts(self, hits: Hits, standing: Standing) -> Counts:
        """Each signal's number: the phrases found, or the start of the measure's level."""
        owner = self.owner
        counts: Counts = {}
        for hit in hits:
            if hit in owner:
                index = owner[hit]
                counts[index] = counts[index] + 1 if index in counts else 1
        units_at, questions_at, muted = standing
        for index, (quantity, scale) in self.measured.items():
            if not muted or self.codes[index] not in muted:
                marks, at = (self.unit_marks, units_at) if quantity == "units" else (self.question_marks, questions_at)
                counts[index] = marks[at - 1] // scale if at else 0
        return counts


_NO_SIGNAL = Reason("signals.no_signal", "no_signal: nothing in the text speaks for a route")


class BandSignals(Signals):
    """Chooses the band of the weighted sum of all signals."""

    def __init__(self, config: SignalsConfig, supplies: Supplies, bands: Bands) -> None:
        super().__init__(config, supplies)
        self.bands = bands
        index = {signal.id: i for i, signal in enumerate(config.signals)}
        self.overrides = [_Override(override, index) for override in config.overrides]

    def judge(self, hits: Hits, standing: Standing) -> Verdict:
        counts, rungs = self.stood(hits, standing)
        score = 0.0
        adds: dict[str, float] = {}
        silent = True
        # The order of the signals matters for rounding at an edge.
        for index, rung in rungs:
            score += rung.points
            if rung.points:
                adds[rung.reason.code] = rung.points
            if silent and index not in self.neutral:
                silent = False
        edges = self.bands.edges
        distance = min([abs(score - edge) for edge in edges])
        scores = {"score": score}
        override = self.override(counts, standing)
        if override is not None:
            raised = self.sigmoid(score) if override.config.at_least else 0.0
            confidence = max(override.config.confidence, raised)
            return Verdict((override.config.route,), confidence, distance, scores, adds=adds, decisive=True)
        confidence = self.sigmoid(distance)
        if silent and self.silent_confidence is not None:
            confidence = min(confidence, self.silent_confidence)
        return Verdict((self.bands.routes[bisect_right(edges, score)],), confidence, distance, scores, adds=adds)

    def sigmoid(self, x: float) -> float:
        # exp overflows from 710 on; the result is 0 long before that.
        return 1.0 / (1.0 + math.exp(min(-self.bands.steepness * x, 700.0)))

    def preface(self, counts: Counts, standing: Standing) -> Description:
        override = self.override(counts, standing)
        if override is None:
            return [], []
        first = override.all[0][0][0]
        if first in self.measured:
            return [override.reason], [(0, first)]
        text = override.reason.text.replace("{n}", str(override.total(counts)))
        return [Reason(override.reason.code, text)], []

    def override(self, counts: Counts, standing: Standing) -> _Override | None:
        """The first override whose tests hold."""
        muted = standing[2]
        for override in self.overrides:
            if override.holds(counts) and override.reason.code not in muted:
                return override
        return None


class _Override:
    """An override whose tests name signals by index."""

    def __init__(self, config: Override, index: dict[str, int]) -> None:
        self.config = config
        self.reason = Reason(f"override.{config.id}", config.text)
        self.all = [(tuple(index[name] for name in test.sum), test.at_least) for test in config.all]
        self.any = [(tuple(index[name] for name in test.sum), test.at_least) for test in config.any]

    def holds(self, counts: Counts) -> bool:
        for places, wanted in self.all:
            if sum([counts[place] for place in places if place in counts]) < wanted:
                return False
        if not self.any:
            return True
        return any(sum([counts[place] for place in places if place in counts]) >= wanted for places, wanted in self.any)

    def total(self, counts: Counts) -> int:
        """The count of the first test."""
        return sum(counts.get(place, 0) for place in self.all[0][0])


class RankSignals(Signals):
    """Chooses the route with the highest score, computed from named sums of boolean signals."""

    def __init__(self, config: SignalsConfig, supplies: Supplies, ranking: Ranking) -> None:
        super().__init__(config, supplies)
        self.ranking = ranking

    def judge(self, hits: Hits, standing: Standing) -> Verdict:
        ranking = self.ranking
        rungs = self.stood(hits, standing)[1]
        on = {self.signals[index].id for index, _ in rungs}
        scores = self.score(on, ranking.routes)
        # Python's sort is stable, so a tie goes to the route listed first.
        ranked = sorted(scores, key=scores.__getitem__, reverse=True)
        top, second = scores[ranked[0]], scores[ranked[1]]
        if second <= 0.0:
            confidence = ranking.ceiling if top > 0.0 else ranking.nothing
        else:
            # The tiny term keeps the division defined; it is part of the formula.
            confidence = min(ranking.ceiling, max(0.0, 0.5 + (top - second) / (top + second + 1e-6)))
        for floor in ranking.floors:
            if floor.route == ranked[0] and on.issuperset(floor.when):
                confidence = max(confidence, floor.confidence)
        if self.silent_confidence is not None and all(index in self.neutral for index, _ in rungs):
            confidence = min(confidence, self.silent_confidence)
        # A signal adds as much as its route's score would drop without it, rounded to keep the log short.
        winner = {ranked[0]: ranking.routes[ranked[0]]}
        others = {signal: self.score(on - {signal}, winner)[ranked[0]] for signal in sorted(on)}
        adds = {f"signals.{signal}": round(top - less, 9) for signal, less in others.items() if less != top}
        return Verdict((ranked[0],), confidence, top - second, scores, adds=adds)

    def score(self, on: set[str], routes: Mapping[str, tuple[Term, ...]]) -> dict[str, float]:
        """The scores of some routes with these signals."""
        ranking = self.ranking
        sums = {
            name: sum((weight for signal, weight in weights.items() if signal in on), ranking.base.get(name, 0.0))
            for name, weights in ranking.sums.items()
        }
        return {route: max(0.0, sum(term.value(on, sums) for term in terms)) for route, terms in routes.items()}


def _patterns(signal: Signal, match: str) -> Iterator[tuple[Pattern, str]]:
    """The patterns of a signal, and how each is shown."""
    for word in signal.words:
        forms = tuple(word.split("|"))
        yield (Substring(forms[0]) if match == "substring" else Phrase(forms)), forms[0]
    for first, then in signal.ordered:
        yield OrderedPhrases(first, then), f"{first} … {then}"
    if signal.whole:
        yield WholePhrase(signal.whole), signal.whole_label
    for source in signal.patterns:
        yield Regex(source), ""


def _ladder(signal: Signal) -> Ladder:
    """A signal's levels, ordered by the numbers where the level changes; if two hold, the later one counts."""
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
            rungs.append(Rung(level.score * (signal.weight or 0.0), reason, level.show))
    return starts, rungs


@kind("signals.v1", cost="free", who="S")
def signals(config: SignalsConfig, supplies: Supplies) -> Signals:
    if config.bands is not None:
        return BandSignals(config, supplies, config.bands)
    if config.ranking is not None:
        return RankSignals(config, supplies, config.ranking)
    raise ValueError("signals.v1 needs bands or a ranking")
