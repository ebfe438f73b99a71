"""How much texts are alike, from 0 to 1: by their meaning where a sentence embedder is installed, else by their words.

Either way of comparing says how its likenesses are read: `power` sharpens them before they weigh anything, and from
`telling` on a description that is the likest is the one that is meant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log, sqrt
from typing import Any, ClassVar, Protocol

from turnout.core.embed import Embeds

from .terms import stems, stop_words, words_of


class Likeness(Protocol):
    """Compares a text with some that are known."""

    power: ClassVar[int]
    prior: ClassVar[float]
    """What the average of all past questions weighs beside those that are alike."""
    telling: ClassVar[float]

    def to(self, text: str) -> Sequence[float]:
        """How much a text is like each of the known ones."""
        ...


class AlikeByMeaning:
    # Power and prior: on FeB4RAG, the best of 30 pairs by leaving one request out, in 4 of 5 folds' training parts.
    # From 0.4 on 91 % of the likest of 8 descriptions are right on every other question of MetaTool.
    power: ClassVar = 4
    prior: ClassVar = 0.003
    telling: ClassVar = 0.4

    def __init__(self, texts: Sequence[str], embedder: Embeds) -> None:
        self._embedder = embedder
        self._known: Any = embedder.embed(list(texts)) if texts else None

    def to(self, text: str) -> Sequence[float]:
        if self._known is None:
            return []
        found: list[float] = (self._known @ self._embedder.embed([text])[0]).tolist()
        return [max(0.0, one) for one in found]


class AlikeByWords:
    # As above; the best pair in 5 of 5 folds, and 91 % of the likest descriptions from 0.2 on.
    power: ClassVar = 2
    prior: ClassVar = 0.03
    telling: ClassVar = 0.2

    def __init__(self, texts: Sequence[str]) -> None:
        known = [_content(text) for text in texts]
        self._in = Counter(word for words in known for word in words)
        self._count = len(known)
        self._known = [self._weigh(words) for words in known]

    def to(self, text: str) -> Sequence[float]:
        weighed = self._weigh(_content(text))
        return [sum(weight * other.get(word, 0.0) for word, weight in weighed.items()) for other in self._known]

    def _weigh(self, words: frozenset[str]) -> dict[str, float]:
        """A vector of length 1: what few texts say counts more."""
        weights = {word: log(1 + self._count / (self._in[word] + 0.5)) for word in words}
        length = sqrt(sum(weight * weight for weight in weights.values())) or 1.0
        return {word: weight / length for word, weight in weights.items()}


def _content(text: str) -> frozenset[str]:
    words = words_of(text)
    small = max(stop_words().values(), key=lambda stop: sum(word in stop for word in words))
    return frozenset(stems(word for word in words if word not in small))


def compare_with(texts: Sequence[str], embedder: Embeds | None) -> Likeness:
    return AlikeByWords(texts) if embedder is None else AlikeByMeaning(texts, embedder)
