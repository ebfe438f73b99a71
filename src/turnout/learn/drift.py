"""Whether the traffic has changed since the champion was trained, and whether it is time to train again.

Two windows of the log are compared: before the training and since. A measure has drifted if the difference is both
significant (a test, corrected for the number of tests) and large enough to matter: with much traffic every difference
is significant, with little traffic every difference looks large. The same model judges both windows, so that a
difference comes from the traffic and not from the model.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from turnout.config.learning import LearnSettings
from turnout.core.errors import LearnError
from turnout.core.router import Router
from turnout.store import Label, Records, TimeSpan
from turnout.store.row import now_ms
from turnout.store.store import StoreReader
from turnout.text.fold import fold

from .contest import ServingLayer, asker
from .registry import trained_ms

# The chance of reporting drift where there is none, over all measures together.
ALPHA = 0.01
# Population stability index: in credit scoring, below 0.1 counts as stable and above 0.25 as a different population.
PSI_LIMIT = 0.1
# The largest distance between two distributions that is tolerated, as a share of the questions.
KS_LIMIT = 0.1
# A share that changes by less than five points needs no training.
SHARE_LIMIT = 0.05
# A question is unknown if the champion knows it less well than all but this share of the earlier questions.
UNKNOWN_SHARE = 0.05
# Fewer questions than this say nothing about a distribution.
LEAST = 50
# Questions per window: enough to see a change of one point, few enough to judge again in seconds.
MOST = 5_000
# The least share assumed for what was never seen, so that its logarithm is finite.
NEVER = 1e-4
# The recent window if no model was trained: a month.
RECENT_MS = 30 * 24 * 3_600_000
# Rows read to decide whether training is due. It must stay quick, and with this many rows it is due anyway.
MOST_ROWS = 500_000
_WORD = re.compile(r"\w+")


class TrafficRow(NamedTuple):
    """The parts of a logged decision that drift is measured on."""

    text: str | None
    route: str
    by: str
    confidence: float
    corrected: bool | None = None
    """As `is_corrected` says."""


class ChampionAnswer(NamedTuple):
    """The champion's answer to a text."""

    confidence: float
    knownness: float | None = None
    """How similar the text is to the training rows; higher is more similar."""


class Measure(Struct, frozen=True):
    """One comparison of the two windows."""

    name: str
    statistic: str
    """The name of the statistic in `effect`."""
    effect: float | None
    limit: float
    p: float | None
    """Corrected for the number of measures; None if nothing could be tested."""
    said: str
    """The result in words."""
    before: Mapping[str, float] = {}
    recent: Mapping[str, float] = {}
    drifted: bool = False


class Drift(Struct, frozen=True):
    before: int
    recent: int
    measures: tuple[Measure, ...]
    judged_by: str = ""
    """The digest of the model that judged both windows; empty if confidences come from the log."""

    @property
    def drifted(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.measures if one.drifted)

    @property
    def enough(self) -> bool:
        return min(self.before, self.recent) >= LEAST


def window(records: Records, profile: str, span: TimeSpan, *, most: int = MOST) -> list[TrafficRow]:
    """The decisions of a span; every n-th if there are more than `most`."""
    rows = [
        TrafficRow(one.text if one.kept == "full" else None, one.route, one.by, one.confidence, is_corrected(one))
        for one in records.labels(span=span, profile=profile)
    ]
    every = -(-len(rows) // most)
    return rows[:: max(every, 1)]


def is_corrected(label: Label) -> bool | None:
    """Whether a person labelled the decision as wrong; None if no person labelled it."""
    return None if label.human_by is None else label.human != label.route


def compare(
    before: Sequence[TrafficRow],
    recent: Sequence[TrafficRow],
    *,
    judge: Callable[[str], ChampionAnswer] | None = None,
    judged_by: str = "",
    alpha: float = ALPHA,
) -> Drift:
    """Compare two windows by every measure. `judge` asks the champion; without it, confidences come from the log."""
    if min(len(before), len(recent)) < LEAST:
        return Drift(len(before), len(recent), (), judged_by)
    measures = [
        _mix("route mix", [one.route for one in before], [one.route for one in recent]),
        _mix("layer shares", [one.by for one in before], [one.by for one in recent]),
        *_model(before, recent, judge),
        _words(before, recent),
        _share(
            "corrections",
            "of the decisions people looked at were wrong",
            *([one.corrected for one in side if one.corrected is not None] for side in (before, recent)),
        ),
    ]
    return Drift(len(before), len(recent), tuple(_correct(measures, alpha)), judged_by)


def find_drift(store: StoreReader, profile: str, layer: str) -> tuple[str, ...]:
    """The measures that have drifted since the newest model was trained, over all tenants, by the log alone."""
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
    """Compare the log since the newest model was trained, or since `since_ms`, with the log before that. Also returns
    that time."""
    router, layer, digest = serving
    profile = router.profile.name
    if since_ms is None:
        since_ms = trained_ms(profile, layer) or now_ms() - RECENT_MS
    if against_ms >= since_ms:
        raise LearnError("--against is not before --since: there is nothing between them to compare with")
    records = store.records(tenant)
    before = window(records, profile, TimeSpan(against_ms, since_ms))
    recent = window(records, profile, TimeSpan(since_ms))
    judge = judge_of(router, layer) if digest is not None else None
    return compare(before, recent, judge=judge, judged_by=digest or ""), since_ms


def judge_of(router: Router, layer: str) -> Callable[[str], ChampionAnswer] | None:
    """A function that asks the model of a layer about a text; None if that takes a server."""
    if any(placed.id == layer and placed.cost == "network" for placed in router.profile.layers):
        return None
    ask = asker(router, layer)

    def judge(text: str) -> ChampionAnswer:
        verdict = ask(text)
        if verdict is None:
            return ChampionAnswer(0.0)
        # The fourth item of a student's evidence is its knownness.
        known = verdict.evidence[3] if len(verdict.evidence) > 3 else None
        return ChampionAnswer(verdict.confidence, float(known) if isinstance(known, float | int) else None)

    return judge


def _correct(measures: Sequence[Measure], alpha: float) -> Iterator[Measure]:
    """Holm's correction: the smallest p-value is multiplied by their number, the next by one less, and so on."""
    tested = sorted(one.p for one in measures if one.p is not None)
    steps = accumulate((min(1.0, p * (len(tested) - place)) for place, p in enumerate(tested)), max)
    corrected = dict(zip(tested, steps, strict=True))
    for one in measures:
        p = corrected[one.p] if one.p is not None else None
        is_large = one.effect is not None and one.effect >= one.limit
        yield replace(one, p=p, drifted=is_large and p is not None and p <= alpha)


def _mix(name: str, before: Sequence[str], recent: Sequence[str]) -> Measure:
    """Compare shares of a few kinds: Pearson's chi-square test, with the population stability index as the size."""
    from scipy.stats import chi2_contingency

    old, new = Counter(before), Counter(recent)
    kinds = sorted(old.keys() | new.keys())
    shares = [{kind: counts[kind] / counts.total() for kind in kinds} for counts in (old, new)]
    size = psi(shares[0].values(), shares[1].values())
    p = chi2_contingency([[side[kind] for kind in kinds] for side in (old, new)], correction=False).pvalue
    most = max(kinds, key=lambda kind: abs(shares[0][kind] - shares[1][kind]))
    words = f"{most} {shares[0][most]:.1%} before, {shares[1][most]:.1%} now"
    return Measure(name, "PSI", size, PSI_LIMIT, float(p), words, shares[0], shares[1])


def psi(before: Iterable[float], recent: Iterable[float]) -> float:
    """The population stability index of two lists of shares."""
    pairs = [(max(old, NEVER), max(new, NEVER)) for old, new in zip(before, recent, strict=True)]
    return sum((new - old) * math.log(new / old) for old, new in pairs)


def _model(
    before: Sequence[TrafficRow], recent: Sequence[TrafficRow], judge: Callable[[str], ChampionAnswer] | None
) -> list[Measure]:
    """How sure the champion is, and how many questions are unknown to it."""
    if judge is None:
        return [_spread("confidence", [one.confidence for one in before], [one.confidence for one in recent])]
    judged = [[judge(one.text) for one in side if one.text is not None] for side in (before, recent)]
    measures = [_spread("confidence", *([one.confidence for one in side] for side in judged))]
    known = [[one.knownness for one in side if one.knownness is not None] for side in judged]
    if min(map(len, known)) >= LEAST:
        cut = sorted(known[0])[int(len(known[0]) * UNKNOWN_SHARE)]
        flags = ([value < cut for value in side] for side in known)
        measures.append(_share("unknown questions", "questions the champion hardly knows", *flags))
    return measures


def _spread(name: str, before: Sequence[float], recent: Sequence[float]) -> Measure:
    """Compare two distributions: the Kolmogorov-Smirnov test, whose statistic is the size."""
    if min(len(before), len(recent)) < LEAST:
        return Measure(name, "KS", None, KS_LIMIT, None, "too few questions with their text")
    from scipy.stats import ks_2samp

    test = ks_2samp(before, recent, method="asymp")
    old, new = ({"median": sorted(side)[len(side) // 2], "mean": sum(side) / len(side)} for side in (before, recent))
    words = f"median {old['median']:.2f} before, {new['median']:.2f} now"
    return Measure(name, "KS", float(test.statistic), KS_LIMIT, float(test.pvalue), words, old, new)


def _words(before: Sequence[TrafficRow], recent: Sequence[TrafficRow]) -> Measure:
    """Compare how many questions have a word not used before. The usual rate is measured within the earlier window:
    every second question against the words of the others."""
    old, new = (
        [frozenset(_WORD.findall(fold(one.text).text)) for one in side if one.text is not None]
        for side in (before, recent)
    )
    if min(len(old) // 2, len(new)) < LEAST:
        return Measure("unseen words", "share", None, SHARE_LIMIT, None, "too few questions with their text")
    used: frozenset[str] = frozenset().union(*old[::2])
    flags = [[not words <= used for words in side] for side in (old[1::2], new)]
    return _share("unseen words", "questions with a word not used before", *flags)


def _share(name: str, what: str, before: Sequence[bool], recent: Sequence[bool]) -> Measure:
    """Compare two shares: Fisher's exact test, one-sided, because only a rise of these is bad."""
    if not before or not recent:
        return Measure(name, "share", None, SHARE_LIMIT, None, "nothing to compare")
    from scipy.stats import fisher_exact

    counts = [[sum(side), len(side) - sum(side)] for side in (recent, before)]
    p = float(fisher_exact(counts, alternative="greater").pvalue)
    old, new = sum(before) / len(before), sum(recent) / len(recent)
    words = f"{old:.1%} before, {new:.1%} now: {what}"
    return Measure(name, "rise", new - old, SHARE_LIMIT, p, words, {"share": old}, {"share": new})


# --- when to train again


class TrainingDue(Struct, frozen=True):
    """Whether training is due, and why."""

    due: bool
    why: tuple[str, ...]
    """Every reason for training; if there is none, what is missing."""
    sessions: int
    sessions_needed: int
    corrections: int
    corrections_needed: int
    unread: int
    """Rows that cannot be learnt from because their text was not kept."""
    since_ms: int
    """When the newest model was trained; 0 if there is none."""
    drifted: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.due

    def __str__(self) -> str:
        return "; ".join(self.why)


def is_due(store: StoreReader, profile: str, settings: LearnSettings, *, layer: str = "student") -> TrainingDue:
    """Whether training is due: enough new conversations, enough corrections, or changed traffic.

    Counting starts when the newest model was trained, so that a model that was not promoted does not cause training
    again and again. Only rows with their whole text count, since nothing can be learnt from the others.
    """
    since = trained_ms(profile, layer)
    sessions: set[tuple[str, str]] = set()
    corrections = unread = rows = 0
    for tenant in store.tenants():
        for label in store.records(tenant).labels(span=TimeSpan(since), profile=profile):
            rows += 1
            if rows > MOST_ROWS:
                break
            if label.text is None or label.kept != "full":
                unread += 1
                continue
            # A question without a session counts as a conversation of its own.
            sessions.add((tenant, label.session or label.id))
            corrections += is_corrected(label) or False
    why = []
    if len(sessions) >= settings.retrain_sessions:
        why.append(f"{len(sessions):,} new sessions, {settings.retrain_sessions:,} make a training due")
    if settings.retrain_corrections and corrections >= settings.retrain_corrections:
        why.append(f"{corrections:,} corrections by people, {settings.retrain_corrections:,} make a training due")
    moved = find_drift(store, profile, layer) if not why else ()
    if moved:
        why.append(f"the traffic has changed: {', '.join(moved)}")
    due, needed = bool(why), (settings.retrain_sessions, settings.retrain_corrections)
    if not due:
        why.append(f"{len(sessions):,} of {needed[0]:,} new sessions, {corrections:,} of {needed[1]:,} corrections")
        if unread:
            why.append(f'{unread:,} rows were logged without their text: text = "full" in [store] keeps it')
    return TrainingDue(due, tuple(why), len(sessions), needed[0], corrections, needed[1], unread, since, moved)
