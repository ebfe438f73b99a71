"""Ranks the user's sources for a question: by their descriptions, and by feedback on past questions.

The score of a source is the mean of its results on past questions, weighted by their similarity to this one; without
past questions, it is the similarity of its description. So feedback takes effect at once, and nothing is trained.

Two layers use it. Feedback on nearly the same question comes before all other layers. Descriptions come last, if no
other layer decided, and choose only sources that the profile does not name: it knows its own better.
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

# Past questions that are compared, the newest ones: a thousand take a millisecond by meaning, and a few by words.
MOST_PAST = 1_000
# Similarity from which on a past question is a paraphrase: MiniLM's are above it, and questions on one topic below.
SAME = 0.8
# A source that was right less than half the time is not preferred.
LEAST_SCORE = 0.5
# Seconds after which feedback counts at the latest.
FRESH_S = 30.0
# Characters quoted in a reason.
QUOTED = 60


class PastChoice(Struct, frozen=True):
    """A past question, and how well sources answered it."""

    text: str
    good: Mapping[str, float]
    """From 0 to 1, by source; sources that were not judged are missing."""


class ScoredSource(NamedTuple):
    name: str
    score: float


class SourceRanking:
    """Ranks sources by how likely they are to have the answer."""

    def __init__(
        self, described: Mapping[str, str], past: Sequence[PastChoice] = (), embedder: Embeds | None = None
    ) -> None:
        self.past = past
        self._names = tuple(described)
        self.likeness: Likeness = compare_with([*described.values(), *(one.text for one in past)], embedder)
        judged = {name: [one.good[name] for one in past if name in one.good] for name in self._names}
        self._mean = {name: sum(good) / len(good) for name, good in judged.items() if good}

    def compare(self, question: str) -> tuple[Mapping[str, float], Sequence[float]]:
        """Its similarity to each description, and to each past question."""
        similar = self.likeness.to(question)
        return dict(zip(self._names, similar, strict=False)), similar[len(self._names) :]

    def rank(self, question: str) -> list[ScoredSource]:
        """All sources, best first."""
        fits, alike = self.compare(question)
        weights = [one**self.likeness.power for one in alike]
        return sorted((self._score(name, fits, weights) for name in self._names), key=lambda one: -one.score)

    def _score(self, name: str, fits: Mapping[str, float], weights: Sequence[float]) -> ScoredSource:
        if name not in self._mean:
            return ScoredSource(name, fits[name])
        judged = [(weight, one.good[name]) for weight, one in zip(weights, self.past, strict=True) if name in one.good]
        prior = self.likeness.prior
        total = prior * self._mean[name] + sum(weight * good for weight, good in judged)
        return ScoredSource(name, total / (prior + sum(weight for weight, _ in judged)))


def past_choices(rows: Iterable[JudgedQuestion], names: Sequence[str]) -> list[PastChoice]:
    """Feedback as values for sources: those named as right have 1, and the others 0. If the feedback only says that the
    choice was wrong, other sources are not judged."""
    choices = []
    for row in rows:
        right = set(row.right.split(JOIN)) if row.right is not None else set()
        judged = names if right else [name for name in names if name in row.route.split(JOIN)]
        choices.append(PastChoice(row.text, {name: float(name in right) for name in judged}))
    return choices


def _verdict(ranked: Sequence[ScoredSource], reason: Reason) -> Verdict:
    """The first source, with the scores of all."""
    first, *others = ranked
    margin = first.score - (others[0].score if others else 0.0)
    return Verdict((first.name,), first.score, margin, {one.name: one.score for one in ranked}, (reason,))


ReadPast = Callable[[str], Sequence[JudgedQuestion]]
"""Reads the feedback on a tenant's questions, newest first; may block."""


class PastChoices(Layer):
    """Feedback on nearly the same question."""

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
        ranked = ranking.rank(reading.words)
        first = ranked[0]
        if first.score < LEAST_SCORE:
            return None
        quoted = ranking.past[nearest].text[:QUOTED]
        return _verdict(ranked, Reason(f"past.{first.name}", f"{first.name} was right for {quoted!r}"))


class DescriptionMatch(Layer):
    """The source whose description fits best, if only the settings name it."""

    def __init__(self, described: Mapping[str, str], own: Sequence[str], embedder: Embeds | None) -> None:
        self._own = own
        self._described = described
        self._embedder = embedder
        self._ranking: SourceRanking | None = None

    def __call__(self, reading: Reading) -> Verdict | None:
        if self._ranking is None:
            self._ranking = SourceRanking(self._described, (), self._embedder)
        ranked = self._ranking.rank(reading.words)
        first = ranked[0]
        if first.score < self._ranking.likeness.telling or first.name not in self._own:
            return None
        why = f"what is said of {first.name} fits best: {self._described[first.name][:QUOTED]!r}"
        return _verdict(ranked, Reason(f"described.{first.name}", why))
