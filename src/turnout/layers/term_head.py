"""The head of a student that reads terms: a table of weights in signed bytes, added up in plain Python.

What a word adds to each label, by itself and by the letters inside it, depends on the word alone and is kept while the
word is in use; so is what a pair adds. With few labels no library is faster than that; with many, NumPy adds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from operator import mul
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from turnout.text.terms import (
    KNOWN_BITS,
    SHAPE_NUMBERS,
    WORD_COUNTS,
    Terms,
    hash_pair,
    measure_shape,
    pair_up,
    tokenize,
)

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]
    Scores = list[float] | Array

# With no more labels than this, what NumPy takes to be called is longer than the arithmetic.
FEW = 8
# A byte that adds nothing: half of them stand for less, half for more.
ZERO = 128
# Most of a language's running text is a few thousand words and some ten thousand pairs: 15 MB at most.
KEPT = 1 << 15


NO_SHAPE = (0.0,) * SHAPE_NUMBERS

K = TypeVar("K")
V = TypeVar("V")


class Memo(dict[K, V]):
    """What was worked out for each key, until there is too much of it."""

    def __init__(self, work_out: Callable[[K], V]) -> None:
        self._work_out = work_out

    def __missing__(self, key: K) -> V:
        if len(self) >= KEPT:
            self.clear()
        self[key] = found = self._work_out(key)
        return found


class Heard(NamedTuple):
    """What a head makes of a text."""

    scores: Scores
    """For each label; a list where labels are few."""
    known: float
    """The share of its words and pairs that were learnt."""


class TermHead:
    """Weights in memory. Any number of threads may use it: what is kept is the same whoever works it out."""

    def __init__(
        self,
        terms: Terms,
        labels: int,
        step: float,
        table: bytes,
        known: bytes,
        shape: Sequence[float],
        bias: Sequence[float],
    ) -> None:
        """`step` is what one step of a byte is worth; `shape` has the weights of each number of the shape in turn."""
        self.terms = terms
        self.few = labels <= FEW
        self._labels = labels
        self._step = step
        self._table = table
        self._known = known
        self._shape = [tuple(shape[label::labels]) for label in range(labels)]
        self._bias = list(bias)
        self._words = Memo(self._weigh_word)
        self._pairs = Memo(self._weigh_pair)

    def cut(self, folded: str) -> str:
        """What is read of a text."""
        return self.terms.cut(folded)

    def hear(self, text: str) -> Heard:
        """What is made of a text that was cut to what is read."""
        tokens = tokenize(text)
        if not tokens:
            return Heard(self._score([0.0] * self._labels, 0.0, NO_SHAPE), 0.0)
        words = set(tokens)
        kept, pairs = self._words, self._pairs
        added = [kept[word] for word in words]
        added += [pairs[pair] for pair in pair_up(tokens)]
        known, *sums = map(sum, zip(*added, strict=True)) if self.few else self._sum(added)
        shape = measure_shape(text, tokens, len(words))
        return Heard(self._score(sums, self._step / sqrt(len(words)), shape), known / len(added))

    def _score(self, sums: Sequence[float], worth: float, shape: tuple[float, ...]) -> Scores:
        """What the terms add up to, in steps of this worth, what is usual, and what the shape adds."""
        rows = zip(sums, self._bias, self._shape, strict=True)
        found = [sum(map(mul, shape, row), one * worth + bias) for one, bias, row in rows]
        if self.few:
            return found
        import numpy as np

        return np.array(found, np.float32)

    def _sum(self, added: list[Any]) -> list[float]:
        import numpy as np

        found: list[float] = np.sum(added, axis=0).tolist()
        return found

    def _weigh_word(self, word: str) -> Any:
        own, letters = self.terms.of_word(word)
        return self._add(own, letters)

    def _weigh_pair(self, pair: tuple[str, str]) -> Any:
        return self._add(hash_pair(pair), [])

    def _add(self, own: int, letters: list[int]) -> Any:
        """1 for what was learnt, and what it adds to each label, in steps."""
        width, table = self._labels, self._table
        bucket = own & self.terms.buckets - 1
        bit = own & KNOWN_BITS - 1
        known = self._known[bit >> 3] >> (bit & 7) & 1
        if self.few and not letters:
            row = table[bucket * width : (bucket + 1) * width]
            return (known, *[(one - ZERO) * WORD_COUNTS for one in row])
        buckets = [bucket] * WORD_COUNTS + letters
        joined = b"".join([table[bucket * width : (bucket + 1) * width] for bucket in buckets])
        none = ZERO * len(buckets)
        if self.few:
            return (known, *[sum(joined[label::width]) - none for label in range(width)])
        import numpy as np

        added = np.frombuffer(joined, np.uint8).reshape(-1, width).sum(axis=0, dtype=np.int32) - none
        return np.concatenate([[known], added])

    def pushes(self, text: str, best: int, second: int) -> list[tuple[str, float]]:
        """How much each word, by itself, by its letters and by its neighbours, speaks for one label against another."""
        tokens = tokenize(text)
        words = dict.fromkeys(tokens, 0.0)
        worth = self._step / sqrt(len(words) or 1)
        for word in words:
            added = self._words[word]
            words[word] += float(added[best + 1] - added[second + 1]) * worth
        for pair in pair_up(tokens) if tokens else ():
            added = self._pairs[pair]
            push = float(added[best + 1] - added[second + 1]) * worth
            shared = [word for word in pair if word in words]
            for word in shared:
                words[word] += push / len(shared)
        return list(words.items())

    def lean(self, text: str, best: int, second: int) -> float:
        """How much speaks for one label against another whatever the words are: what is usual, and the text's shape."""
        tokens = tokenize(text)
        shape = measure_shape(text, tokens, len(set(tokens))) if tokens else NO_SHAPE
        found = self._score([0.0] * self._labels, 0.0, shape)
        return float(found[best] - found[second])
