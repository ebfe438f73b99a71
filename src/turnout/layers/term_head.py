"""The head of a student that reads terms: a table of weights in signed bytes, added up in plain Python.

What a word adds to each label, by itself and by the letters inside it, depends on the word alone and is kept while the
word is in use. With few labels no library is faster than that; with many, NumPy adds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from math import sqrt
from operator import mul
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from turnout.text.terms import END, SHAPE_NUMBERS, START, WORD_COUNTS, Terms, measure_shape, tokenize

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]
    Scores = list[float] | Array

# With no more labels than this, what NumPy takes to be called is longer than the arithmetic.
FEW = 8
# A byte that adds nothing: half of them stand for less, half for more.
ZERO = 128
# Most of a language's running text is a few thousand words; so many of them take 10 MB at most.
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
    words: float = 0.0
    """The share of its words alone."""


class WeighedWord(NamedTuple):
    """What is known of a word."""

    hash: int
    known: int
    """1 if it was learnt."""
    adds: Any
    """What it adds to each label, in steps: a list, or an array where labels are many."""


class TermHead:
    """Weights in memory. Any number of threads may use it: what is kept is the same whichever thread computes it."""

    def __init__(
        self,
        terms: Terms,
        labels: int,
        step: float,
        table: bytes,
        shape: Sequence[float],
        bias: Sequence[float],
    ) -> None:
        """`step` is what one step of a byte is worth. `table` has a row for each bucket: 1 if a word or pair of it was
        learnt, and what its terms add to each label. `shape` has the weights of each number of the shape in turn."""
        self.terms = terms
        self.few = labels <= FEW
        self._labels = labels
        self._width = labels + 1
        self._step = step
        self._table = table
        self._shape = [tuple(shape[label::labels]) for label in range(labels)]
        self._bias = list(bias)
        self._words = Memo(self._weigh)

    def cut(self, folded: str) -> str:
        """What is read of a text."""
        return self.terms.cut(folded)

    def hear(self, text: str) -> Heard:
        """What is made of a text that was cut to what is read."""
        tokens = tokenize(text)
        if not tokens:
            return Heard(self._score([0.0] * self._labels, 0.0, NO_SHAPE), 0.0)
        kept, words = self._words, set(tokens)
        read = [kept[word] for word in words]
        pairs = self.terms.of_pairs([kept[token].hash for token in tokens])
        learnt, paired = self._add(pairs)
        if self.few:
            sums = [sum(one) for one in zip(*[word.adds for word in read], strict=True)]
            added = [one + WORD_COUNTS * other for one, other in zip(sums, paired, strict=True)]
        else:
            added = (sum(word.adds for word in read) + WORD_COUNTS * paired).tolist()
        scores = self._score(added, self._step / sqrt(len(words)), measure_shape(text, tokens, len(words)))
        known = sum([word.known for word in read])
        return Heard(scores, (known + learnt) / (len(words) + len(pairs)), known / len(words))

    def _score(self, sums: Sequence[float], worth: float, shape: tuple[float, ...]) -> Scores:
        """What the terms add up to, in steps of this worth, what is usual, and what the shape adds."""
        rows = zip(sums, self._bias, self._shape, strict=True)
        found = [sum(map(mul, shape, row), one * worth + bias) for one, bias, row in rows]
        if self.few:
            return found
        import numpy as np

        return np.array(found, np.float32)

    def _weigh(self, word: str) -> WeighedWord:
        own, letters = self.terms.of_word(word)
        known, added = self._add([own & self.terms.buckets - 1])
        _, inside = self._add(letters)
        if self.few:
            return WeighedWord(own, known, [WORD_COUNTS * one + more for one, more in zip(added, inside, strict=True)])
        return WeighedWord(own, known, WORD_COUNTS * added + inside)

    def _add(self, buckets: Collection[int]) -> tuple[int, Any]:
        """How many of these buckets were learnt, and what they add to each label, in steps."""
        width, table = self._width, self._table
        joined = b"".join([table[bucket * width : (bucket + 1) * width] for bucket in buckets])
        none = ZERO * len(buckets)
        learnt = sum(joined[::width])
        if self.few:
            return learnt, [sum(joined[label::width]) - none for label in range(1, width)]
        import numpy as np

        return learnt, np.frombuffer(joined, np.uint8).reshape(-1, width)[:, 1:].sum(axis=0, dtype=np.int64) - none

    def pushes(self, text: str, best: int, second: int) -> list[tuple[str, float]]:
        """How much each word, by itself, by its letters and by its neighbours, speaks for one label against another."""
        tokens = tokenize(text)
        words = dict.fromkeys(tokens, 0.0)
        worth = self._step / sqrt(len(words) or 1)
        for word in words:
            added = self._words[word].adds
            words[word] += float(added[best] - added[second]) * worth
        for bucket, pair in self._pairs(tokens).items():
            added = self._add([bucket])[1]
            for word in pair:
                words[word] += float(added[best] - added[second]) * WORD_COUNTS * worth / len(pair)
        return list(words.items())

    def _pairs(self, tokens: list[str]) -> dict[int, tuple[str, ...]]:
        """The words of each bucket that a pair of neighbours falls into; at the ends of a text there is one."""
        if not tokens:
            return {}
        hashes, of_pair = [self._words[token].hash for token in tokens], self.terms.of_pair
        found: dict[int, tuple[str, ...]] = {
            of_pair(START, hashes[0]): (tokens[0],),
            of_pair(hashes[-1], END): (tokens[-1],),
        }
        neighbours = zip(pairwise(hashes), pairwise(tokens), strict=True)
        return found | {of_pair(one, other): pair for (one, other), pair in neighbours}

    def lean(self, text: str, best: int, second: int) -> float:
        """How much speaks for one label against another whatever the words are: what is usual, and the text's shape."""
        tokens = tokenize(text)
        shape = measure_shape(text, tokens, len(set(tokens))) if tokens else NO_SHAPE
        found = self._score([0.0] * self._labels, 0.0, shape)
        return float(found[best] - found[second])
