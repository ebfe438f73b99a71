"""Which of a user's own sources answers a question: by what is said of each, and by which were right before.

A source's score is the mean of how well it did with past questions, each counted as much as it is like this one; one
that has no past is as good as its description fits. So the first labels change something, and nothing is trained.

Two layers use it. What people said of a question that is nearly this one comes before all else. Descriptions come last,
where no other layer knew, and name only sources that the profile does not: those it names, it knows better.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from turnout.core.embed import Embeds
from turnout.core.layer import Layer
from turnout.core.query import Reading
from turnout.core.verdict import Reason, Verdict
from turnout.learn.dataset import JOIN
from turnout.store.records import JudgedQuestion

from .alike import Likeness, compare_with

# Past questions that are compared with, the newest: a thousand are a millisecond by meaning, and a few by words.
MOST_PAST = 1_000
# From here on a past question is this one in other words: MiniLM's paraphrases lie above it, mere topics below.
SAME = 0.8
# A source that was right less than every other time is not preferred.
LEAST_SCORE = 0.5
# Feedback counts after so many seconds at the latest.
FRESH_S = 30.0
# Of a past question in a reason.
QUOTED = 60


class PastChoice(Struct, frozen=True):
    """A question, and how well sources answered it."""

    text: str
    good: Mapping[str, float]
    """From 0 to 1; a source that is not here was not judged."""


class ScoredSource(NamedTuple):
    name: str
    score: float


class SourceRanking:
    """Sources by how likely they are to have an answer."""

    def __init__(
        self, described: Mapping[str, str], past: Sequence[PastChoice] = (), embedder: Embeds | None = None
    ) -> None:
        self.past = past
        self._names = tuple(described)
        self.likeness: Likeness = compare_with([*described.values(), *(one.text for one in past)], embedder)
        self._mean = {name: _mean(one.good[name] for one in past if name in one.good) for name in self._names}

    def compare(self, question: str) -> tuple[Mapping[str, float], Sequence[float]]:
        """How much it is like each description, and like each past question."""
        found = self.likeness.to(question)
        return dict(zip(self._names, found, strict=False)), found[len(self._names) :]

    def rank(self, question: str) -> list[ScoredSource]:
        """All sources, the best first."""
        fits, alike = self.compare(question)
        weights = [one**self.likeness.power for one in alike]
        return sorted((self._score(name, fits, weights) for name in self._names), key=lambda one: -one.score)

    def _score(self, name: str, fits: Mapping[str, float], weights: Sequence[float]) -> ScoredSource:
        mean = self._mean[name]
        if mean is None:
            return ScoredSource(name, fits[name])
        judged = [(weight, one.good[name]) for weight, one in zip(weights, self.past, strict=True) if name in one.good]
        prior = self.likeness.prior
        total = prior * mean + sum(weight * good for weight, good in judged)
        return ScoredSource(name, total / (prior + sum(weight for weight, _ in judged)))


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return sum(found) / len(found) if found else None


def past_choices(rows: Iterable[JudgedQuestion], names: Sequence[str]) -> list[PastChoice]:
    """What people said, of sources: those that should have been asked were right, and the others were not. Where all
    that was said is that it was wrong, nothing is known of the others."""
    found = []
    for row in rows:
        right = set(row.right.split(JOIN)) if row.right is not None else set()
        judged = names if right else [name for name in names if name in row.route.split(JOIN)]
        found.append(PastChoice(row.text, {name: float(name in right) for name in judged}))
    return found


ReadPast = Callable[[str], Sequence[JudgedQuestion]]
"""What people said of a tenant's questions, the newest first; it may take its time."""


class PastChoices(Layer):
    """What people said of nearly the same question."""

    def __init__(self, described: Mapping[str, str], read: ReadPast, embedder: Embeds | None) -> None:
        self._described = described
        self._read = read
        self._embedder = embedder
        self._known: dict[str, tuple[float, SourceRanking]] = {}

    async def __call__(self, reading: Reading) -> Verdict | None:
        tenant = reading.query.tenant or ""
        until, ranking = self._known.get(tenant, (0.0, None))
        if ranking is None or time.monotonic() > until:
            ranking = await asyncio.to_thread(self._learn, tenant)
            self._known[tenant] = time.monotonic() + FRESH_S, ranking
        return await asyncio.to_thread(self._judge, reading, ranking) if ranking.past else None

    def _learn(self, tenant: str) -> SourceRanking:
        rows = self._read(tenant)[:MOST_PAST]
        return SourceRanking(self._described, past_choices(rows, tuple(self._described)), self._embedder)

    def _judge(self, reading: Reading, ranking: SourceRanking) -> Verdict | None:
        _, alike = ranking.compare(reading.words)
        nearest = max(range(len(alike)), key=alike.__getitem__)
        if alike[nearest] < SAME:
            return None
        first, *others = ranking.rank(reading.words)
        if first.score < LEAST_SCORE:
            return None
        said = ranking.past[nearest].text[:QUOTED]
        reasons = (Reason(f"past.{first.name}", f"{first.name} was right for {said!r}"),)
        margin = first.score - (others[0].score if others else 0.0)
        scores = {one.name: one.score for one in (first, *others)}
        return Verdict((first.name,), first.score, margin, scores, reasons)


class Described(Layer):
    """The source whose description fits best, if it is one of those that only the settings name."""

    def __init__(self, described: Mapping[str, str], own: Sequence[str], embedder: Embeds | None) -> None:
        self._own = own
        self._described = described
        self._embedder = embedder
        self._ranking: SourceRanking | None = None

    def __call__(self, reading: Reading) -> Verdict | None:
        if self._ranking is None:
            self._ranking = SourceRanking(self._described, (), self._embedder)
        (first, *others), least = self._ranking.rank(reading.words), self._ranking.likeness.telling
        if first.score < least or first.name not in self._own:
            return None
        said = f"what is said of {first.name} fits best: {self._described[first.name][:QUOTED]!r}"
        margin = first.score - (others[0].score if others else 0.0)
        scores = {one.name: one.score for one in (first, *others)}
        return Verdict((first.name,), first.score, margin, scores, (Reason(f"described.{first.name}", said),))
