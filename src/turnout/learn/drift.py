"""Has the traffic changed since the champion learnt from it?

Two windows of the log are compared: the one the champion comes from and the recent one. A measure has drifted when the
difference is both beyond chance (a test, corrected for how many there are) and large enough to matter (a limit on its
size): in much traffic everything is beyond chance, in little everything looks large. One and the same model judges both
windows, so that a difference is the traffic's and not the model's.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from scipy import special

from turnout.core.errors import LearnError
from turnout.core.query import Query
from turnout.core.router import Router
from turnout.core.verdict import Verdict
from turnout.store import Label, Records, TimeSpan
from turnout.store.store import StoreReader
from turnout.text.fold import fold

from .contest import ServingLayer
from .registry import trained_ms

# The chance of calling drift where there is none, over all measures together.
ALPHA = 0.01
# Population stability index: below 0.1 is taken for stable, 0.25 for a different population (credit scoring's usage).
PSI_LIMIT = 0.1
# The largest distance between two distributions, in shares of the questions.
KS_LIMIT = 0.1
# A share that moved by less than five points needs no training.
SHARE_LIMIT = 0.05
# A question stands for something unknown when the champion knows it less well than all but this share of before.
UNKNOWN_SHARE = 0.05
# Fewer questions than this tell nothing about a distribution.
LEAST = 50
# Questions of either window that are looked at: enough to see one point, few enough to judge again in seconds.
MOST = 5_000
# A share is not taken for less than this: of what was never seen a logarithm has no end.
NEVER = 1e-4
# What is recent by default, where no model says when it learnt: a month.
RECENT_MS = 30 * 24 * 3_600_000
_WORD = re.compile(r"\w+")


class TrafficRow(NamedTuple):
    """A decision of the log, as far as drift looks at it."""

    text: str | None
    route: str
    by: str
    confidence: float
    corrected: bool | None = None
    """Whether a person said it was wrong; None where nobody said anything."""


class ChampionAnswer(NamedTuple):
    """What the champion makes of a text."""

    confidence: float
    knownness: float | None = None
    """How well it knows questions of the kind; the higher the better."""


class Measure(Struct, frozen=True):
    """One way of looking at both windows."""

    name: str
    statistic: str
    """What `effect` is."""
    effect: float | None
    limit: float
    p: float | None
    """Corrected for the number of measures; None where nothing could be tested."""
    said: str
    """What was found, in words."""
    before: Mapping[str, float] = {}
    recent: Mapping[str, float] = {}
    drifted: bool = False

    @property
    def is_large(self) -> bool:
        return self.effect is not None and self.effect >= self.limit


class Drift(Struct, frozen=True):
    before: int
    recent: int
    measures: tuple[Measure, ...]
    judged_by: str = ""
    """The digest of the model that judged both windows; empty: confidences are those of the log."""

    @property
    def drifted(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.measures if one.drifted)

    @property
    def enough(self) -> bool:
        return min(self.before, self.recent) >= LEAST


def window(records: Records, profile: str, span: TimeSpan, *, most: int = MOST) -> list[TrafficRow]:
    """Decisions of a span; of more than `most`, every n-th."""
    found = [_seen(label) for label in records.labels(span=span, profile=profile)]
    every = -(-len(found) // most)
    return found[:: max(every, 1)]


def _seen(label: Label) -> TrafficRow:
    corrected = None if label.human_by is None else label.human != label.route
    return TrafficRow(label.text if label.kept == "full" else None, label.route, label.by, label.confidence, corrected)


def compare(
    before: Sequence[TrafficRow],
    recent: Sequence[TrafficRow],
    *,
    judge: Callable[[str], ChampionAnswer] | None = None,
    judged_by: str = "",
    alpha: float = ALPHA,
) -> Drift:
    """Every measure of two windows. `judge` is the champion; without it, confidences are those of the log."""
    if min(len(before), len(recent)) < LEAST:
        return Drift(len(before), len(recent), (), judged_by)
    found = [
        _mix("route mix", [one.route for one in before], [one.route for one in recent]),
        _mix("layer shares", [one.by for one in before], [one.by for one in recent]),
        *_model(before, recent, judge),
        _words(before, recent),
        _corrections(before, recent),
    ]
    return Drift(len(before), len(recent), tuple(_correct(found, alpha)), judged_by)


def find_drift(store: StoreReader, profile: str, layer: str) -> tuple[str, ...]:
    """What has drifted since the newest model was trained, over all tenants, by what the log alone says."""
    since = trained_ms(profile, layer)
    before: list[TrafficRow] = []
    recent: list[TrafficRow] = []
    for tenant in store.tenants() if since else ():
        before += window(store.records(tenant), profile, TimeSpan(0, since))
        recent += window(store.records(tenant), profile, TimeSpan(since))
    return compare(before, recent).drifted


def measure_drift(
    serving: ServingLayer, store: StoreReader, *, tenant: str = "", since_ms: int | None = None, against_ms: int = 0
) -> tuple[Drift, int]:
    """What was logged since the newest model was trained, or since `since_ms`, against what was logged before that; and
    since when that is."""
    router, name, digest = serving
    own = router.profile.name
    if since_ms is None:
        since_ms = trained_ms(own, name) or time.time_ns() // 1_000_000 - RECENT_MS
    if against_ms >= since_ms:
        raise LearnError("--against is not before --since: there is nothing between them to compare with")
    records = store.records(tenant)
    before = window(records, own, TimeSpan(against_ms, since_ms))
    recent = window(records, own, TimeSpan(since_ms))
    judge = judge_of(router, name) if digest is not None else None
    return compare(before, recent, judge=judge, judged_by=digest or ""), since_ms


def judge_of(router: Router, layer: str) -> Callable[[str], ChampionAnswer] | None:
    """What the model in a layer's place makes of a text; None where none is there, or only a server could tell."""
    placed = next((placed for placed in router.profile.layers if placed.id == layer), None)
    if placed is None or placed.call is None or placed.cost == "network":
        return None
    call, read = placed.call, router.profile.read

    def judge(text: str) -> ChampionAnswer:
        said = call(read(Query(text)))
        if not isinstance(said, Verdict):
            return ChampionAnswer(0.0)
        # A student's evidence: text, best, second, knownness, nearness, and what the vector said.
        known = said.evidence[3] if len(said.evidence) > 3 else None
        return ChampionAnswer(said.confidence, float(known) if isinstance(known, float | int) else None)

    return judge


def _correct(found: Sequence[Measure], alpha: float) -> list[Measure]:
    """Holm's correction: the smallest p-value counts for all of them, the next for all but one, and so on."""
    tested = sorted((one for one in found if one.p is not None), key=lambda one: one.p or 0.0)
    corrected: dict[str, float] = {}
    largest = 0.0
    for place, one in enumerate(tested):
        largest = max(largest, min(1.0, (one.p or 0.0) * (len(tested) - place)))
        corrected[one.name] = largest
    return [
        replace(one, p=p, drifted=p is not None and p <= alpha and one.is_large)
        for one in found
        for p in (corrected.get(one.name),)
    ]


def _mix(name: str, before: Sequence[str], recent: Sequence[str]) -> Measure:
    """Shares of a few kinds: a chi-square test, and the population stability index for the size."""
    old, new = Counter(before), Counter(recent)
    kinds = sorted(old.keys() | new.keys())
    shares = [{kind: counts[kind] / counts.total() for kind in kinds} for counts in (old, new)]
    size = psi(shares[0].values(), shares[1].values())
    p = chi_square([old[kind] for kind in kinds], [new[kind] for kind in kinds])
    most = max(kinds, key=lambda kind: abs(shares[0][kind] - shares[1][kind]))
    said = f"{most} {shares[0][most]:.1%} before, {shares[1][most]:.1%} now"
    return Measure(name, "PSI", size, PSI_LIMIT, p, said, shares[0], shares[1])


def psi(before: Iterable[float], recent: Iterable[float]) -> float:
    """The population stability index of two lists of shares."""
    pairs = [(max(old, NEVER), max(new, NEVER)) for old, new in zip(before, recent, strict=True)]
    return sum((new - old) * math.log(new / old) for old, new in pairs)


def _model(
    before: Sequence[TrafficRow], recent: Sequence[TrafficRow], judge: Callable[[str], ChampionAnswer] | None
) -> list[Measure]:
    """How sure the champion is, and how much of what is asked it does not know."""
    if judge is None:
        return [_spread("confidence", [one.confidence for one in before], [one.confidence for one in recent])]
    old, new = ([judge(one.text) for one in side if one.text is not None] for side in (before, recent))
    found = [_spread("confidence", [one.confidence for one in old], [one.confidence for one in new])]
    known = [[one.knownness for one in side if one.knownness is not None] for side in (old, new)]
    if min(map(len, known)) < LEAST:
        return found
    cut = sorted(known[0])[int(len(known[0]) * UNKNOWN_SHARE)]
    flags = [[value < cut for value in side] for side in known]
    return [*found, _share("unknown questions", flags[0], flags[1], "questions the champion hardly knows")]


def _spread(name: str, before: Sequence[float], recent: Sequence[float]) -> Measure:
    """Two distributions: the test of Kolmogorov and Smirnov, whose statistic is the size."""
    if min(len(before), len(recent)) < LEAST:
        return Measure(name, "KS", None, KS_LIMIT, None, "too few questions with their text")
    size, p = kolmogorov_smirnov(before, recent)
    middle = [sorted(side)[len(side) // 2] for side in (before, recent)]
    said = f"median {middle[0]:.2f} before, {middle[1]:.2f} now"
    sides = [{"median": one, "mean": sum(side) / len(side)} for one, side in zip(middle, (before, recent), strict=True)]
    return Measure(name, "KS", size, KS_LIMIT, p, said, sides[0], sides[1])


def _words(before: Sequence[TrafficRow], recent: Sequence[TrafficRow]) -> Measure:
    """Questions with a word nobody used before. How many there are of those anyway is told by the window before
    itself: every second question of it, against the words of the others."""
    old = [_used(one.text) for one in before if one.text is not None]
    new = [_used(one.text) for one in recent if one.text is not None]
    if min(len(old) // 2, len(new)) < LEAST:
        return Measure("unseen words", "share", None, SHARE_LIMIT, None, "too few questions with their text")
    used: frozenset[str] = frozenset().union(*old[::2])
    flags = [[not words <= used for words in side] for side in (old[1::2], new)]
    return _share("unseen words", flags[0], flags[1], "questions with a word not used before")


def _used(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(fold(text).text))


def _corrections(before: Sequence[TrafficRow], recent: Sequence[TrafficRow]) -> Measure:
    old, new = ([one.corrected for one in side if one.corrected is not None] for side in (before, recent))
    return _share("corrections", old, new, "of the decisions people looked at were wrong")


def _share(name: str, before: Sequence[bool], recent: Sequence[bool], what: str) -> Measure:
    """A yes or no: Fisher's exact test. Only more of it is drift: all of these are bad news when they rise."""
    if not before or not recent:
        return Measure(name, "share", None, SHARE_LIMIT, None, "nothing to compare")
    p = fisher(sum(recent), len(recent), sum(before), len(before))
    old, new = sum(before) / len(before), sum(recent) / len(recent)
    said = f"{old:.1%} before, {new:.1%} now: {what}"
    return Measure(name, "rise", new - old, SHARE_LIMIT, p, said, {"share": old}, {"share": new})


# --- tests


def chi_square(before: Sequence[int], recent: Sequence[int]) -> float:
    """How likely two lists of counts are so far apart by chance: Pearson's test of homogeneity."""
    found = np.array([before, recent], np.float64)
    found = found[:, found.sum(axis=0) > 0]
    if found.shape[1] < 2 or not found.sum(axis=1).all():
        return 1.0
    expected = np.outer(found.sum(axis=1), found.sum(axis=0)) / found.sum()
    return float(special.chdtrc(found.shape[1] - 1, ((found - expected) ** 2 / expected).sum()))


def kolmogorov_smirnov(before: Sequence[float], recent: Sequence[float]) -> tuple[float, float]:
    """The largest distance between two distributions, and how likely it is by chance (asymptotically)."""
    values = np.concatenate([before, recent])
    shares = [np.searchsorted(np.sort(side), values, side="right") / len(side) for side in (before, recent)]
    largest = float(np.abs(shares[0] - shares[1]).max())
    size = len(before) * len(recent) / (len(before) + len(recent))
    return largest, float(special.kolmogorov(largest * math.sqrt(size)))


def fisher(recent: int, of_recent: int, before: int, of_before: int) -> float:
    """How likely at least so many of the recent ones are, if the share is the same: Fisher's exact test."""
    hits, total = recent + before, of_recent + of_before

    def ways(count: int, out_of: int) -> float:
        return math.lgamma(out_of + 1) - math.lgamma(count + 1) - math.lgamma(out_of - count + 1)

    chance = sum(
        math.exp(ways(k, of_recent) + ways(hits - k, of_before) - ways(hits, total))
        for k in range(max(recent, hits - of_before), min(hits, of_recent) + 1)
    )
    return min(1.0, chance)
