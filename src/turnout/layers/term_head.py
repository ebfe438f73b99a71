"""The word head of a student: a linear model over words, pairs of neighbouring words, and runs of letters in a word.

The weights are a table of signed bytes, added up in plain Python. What a word and its letters add to each label depends
on the word alone and is cached, and so are the words of a run of characters without a space. With few labels no library
is faster; with many, NumPy adds.

A character of a script written without spaces is a word, so that a pair corresponds to a word elsewhere. Fitting and
serving read texts with the same functions. Time is linear in the characters read, and only the beginning and the end of
a long text are read, because that is where people say what they want.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from itertools import chain, pairwise
from math import log1p, sqrt
from operator import mul
from struct import Struct as PackedNumbers
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar
from zlib import crc32

from msgspec import Meta, Struct

from turnout.text.match import UNSPACED

if TYPE_CHECKING:
    from .npz import Array

    Scores = list[float] | Array

# Longer strings are no words, and their letters would outweigh those of the others.
LONGEST_WORD = 24
# Shorter words have no runs of letters beside the word itself.
SHORTEST_WORD = 3
# The weight of a word or a pair if a run of letters counts 1. On cross-validated seed questions 3 is right more often
# than 1 (by a point) and no less often than 4.
WORD_COUNTS = 3
# Start values of crc32, so that a word and the same letters inside a longer one have different buckets.
_WORD, _LETTERS = 1, 3
# Stand for the start and the end of a text in pairs: "what" at the beginning is another term than "what" in the middle.
START, END = 0x2545F491, 0x4F6CDD1D
# A pair's bucket is computed from those of its words; a prime near 2^32 divided by the golden ratio spreads them.
SPREAD = 0x9E3779B1

_tokens = re.compile(rf"[^\W\d_{UNSPACED}]+|\d+|[{UNSPACED}]|[^\w\s]").findall
# The same for ASCII, in half the time.
_ascii_tokens = re.compile(r"[a-zA-Z]+|\d+|[^\w\s]").findall

Span = tuple[Annotated[int, Meta(ge=1, le=8)], Annotated[int, Meta(ge=1, le=8)]]


class Terms(Struct, frozen=True, forbid_unknown_fields=True):
    """How much of a folded text is read, and the number of buckets for its terms."""

    buckets: Annotated[int, Meta(ge=2, le=1 << 22)] = 1 << 20
    """A power of two."""
    letters: Span = (3, 5)
    """The shortest and the longest runs of letters within a word and the spaces around it."""
    head: Annotated[int, Meta(ge=1, le=65_536)] = 1500
    """How many characters are read from the beginning of a longer text."""
    tail: Annotated[int, Meta(ge=0, le=65_536)] = 500
    """How many are read from its end."""

    def __post_init__(self) -> None:
        if self.buckets & (self.buckets - 1):
            raise ValueError(f"buckets is {self.buckets}: it must be a power of two")
        if self.letters[0] > self.letters[1]:
            raise ValueError(f"letters is {self.letters[0]} to {self.letters[1]}: it must be from low to high")

    def cut(self, folded: str) -> str:
        """The part of a text that is read."""
        if len(folded) <= self.head + self.tail:
            return folded
        return f"{folded[: self.head]}\n{folded[-self.tail :] if self.tail else ''}"

    def of_word(self, word: str) -> tuple[int, list[int]]:
        """A word's bucket, and the buckets of the letters inside it."""
        mask, (low, high) = self.buckets - 1, self.letters
        own = crc32(word.encode("utf-8", "replace"), _WORD) & mask
        if len(word) < SHORTEST_WORD:
            return own, []
        padded = f" {word[:LONGEST_WORD]} "
        runs = [padded[at : at + size] for size in range(low, high + 1) for at in range(len(padded) - size + 1)]
        return own, [crc32(run.encode("utf-8", "replace"), _LETTERS) & mask for run in runs]

    def before(self, bucket: int) -> int:
        """The number that gives a pair's bucket if added to its second word's; `bucket` is that of the first word."""
        return bucket * SPREAD % self.buckets

    def of_pair(self, one: int, other: int) -> int:
        """The bucket of a pair of words, from theirs."""
        return (self.before(one) + other) % self.buckets

    def of_pairs(self, buckets: Sequence[int], before: Sequence[int], width: int = 1) -> set[int]:
        """The buckets of all pairs of neighbours, including the ends of the text, from the words' buckets and their
        `before` numbers. If these are offsets of rows of this width, so is the result."""
        size = self.buckets * width
        neighbours = zip((START * SPREAD * width % size, *before), (*buckets, END * width % size), strict=True)
        return {(one + other) % size for one, other in neighbours}


def tokenize(text: str) -> list[str]:
    """Words, numbers, punctuation, and the characters of scripts written without spaces, in their order."""
    return _ascii_tokens(text) if text.isascii() else _tokens(text)


# --- the shape of a text

# How many numbers `measure_shape` returns.
SHAPE_NUMBERS = 10

_DIGITS = b"0123456789"
_SIGNS = bytes(code for code in range(33, 127) if not chr(code).isalnum())
_BUT_DIGITS = bytes(set(range(256)) - set(_DIGITS))
_BUT_SIGNS = bytes(set(range(256)) - set(_SIGNS))


def measure_shape(text: str, count: int, words: int) -> tuple[float, ...]:
    """The length of a text and what it is made of. `count` is its number of words, `words` that of different ones."""
    encoded = text.encode("utf-8", "replace")
    size = len(text)
    signs = len(encoded.translate(None, _BUT_SIGNS))
    length = log1p(count)
    # Divided so that all vary about as much; the largest count (2,000 characters) gives 8 at most.
    return (
        log1p(size) / 3,
        length / 3,
        length * length / 15,
        size / count / 4,
        words / count,
        log1p(text.count("\n")) / 2,
        log1p(text.count("?")),
        log1p(len(encoded.translate(None, _BUT_DIGITS))) / 2,
        log1p(signs) / 2,
        signs / size * 3,
    )


# --- the head

# With at most this many labels, the overhead of NumPy is larger than the arithmetic.
FEW = 8
# The byte that stands for a weight of 0.
ZERO = 128
# Words that are cached, and as many runs: 20 MB at most. Most running text consists of a few thousand words.
KEPT = 1 << 15

NO_SHAPE = (0.0,) * SHAPE_NUMBERS

V = TypeVar("V")


class Memo(dict[str, V]):
    """A cache of a function of words. It is cleared when it is full; long strings are not cached."""

    def __init__(self, compute: Callable[[str], V]) -> None:
        self._compute = compute

    def __missing__(self, word: str) -> V:
        value = self._compute(word)
        if len(word) <= LONGEST_WORD:
            if len(self) >= KEPT:
                self.clear()
            self[word] = value
        return value


class WordResult(Struct, frozen=True, gc=False):
    """The result of a word head for a text."""

    text: str
    """The part of the text that was read."""
    scores: Scores
    """The score of each label; a list if there are few labels."""
    known: float
    """The share of its words and pairs that were learnt."""
    words: float = 0.0
    """The share of its words alone."""


class WeighedWord(NamedTuple):
    """A word with its weights."""

    word: str
    row: int
    """The offset of its row in the table."""
    before: int
    """The `before` number of its offset, see `Terms.before`."""
    adds: Any
    """1 if the word was learnt, what it adds to each label in steps, and how many times `ZERO` is in each of these:
    packed into one number, or an array if there are many labels."""


class TermHead:
    """The weights of terms. Any number of threads may use it, because cached values do not depend on the thread."""

    def __init__(
        self,
        terms: Terms,
        labels: int,
        step: float,
        table: bytes,
        shape: Sequence[float],
        bias: Sequence[float],
    ) -> None:
        """`step` is the value of one step of a byte. `table` has a row for each bucket: 1 if a word or pair in it was
        learnt, and what its terms add to each label. `shape` has the weights of each number of the shape in turn."""
        self.terms = terms
        self.few = labels <= FEW
        self._labels = labels
        self._width = labels + 1
        self._step = step
        self._table = table
        self._shape = [tuple(shape[label::labels]) for label in range(labels)]
        self._bias = list(bias)
        # Packs several numbers into one, four bytes each, so that one addition adds them all. A window of 131,072
        # characters adds up to at most a tenth of what four bytes hold.
        self._packed = PackedNumbers(f"<{self._width + 1}I")
        self._words = Memo(self._weigh)
        self._runs = Memo(self._weigh_run)

    def hear(self, folded: str, characters: int | None = None) -> WordResult:
        """Score a text, or this many characters of it."""
        text = self.terms.cut(folded if characters is None else folded[:characters])
        read = self._read(text)
        if not read:
            return WordResult(text, self._score([0.0] * self._labels, 0.0, NO_SHAPE), 0.0)
        tokens, rows, before, adds = zip(*read, strict=True)
        words = dict(zip(tokens, adds, strict=True))
        pairs = self.terms.of_pairs(rows, before, self._width)
        known, *own, none = self._unpack(sum(words.values()))
        learnt, *paired = self._add(pairs)
        count, empty = len(words), ZERO * (none + WORD_COUNTS * len(pairs))
        added = [one + WORD_COUNTS * other - empty for one, other in zip(own, paired, strict=True)]
        scores = self._score(added, self._step / sqrt(count), measure_shape(text, len(tokens), count))
        return WordResult(text, scores, (known + learnt) / (count + len(pairs)), known / count)

    def _read(self, text: str) -> list[WeighedWord]:
        """The words of a text, in their order. No word spans a space."""
        return list(chain.from_iterable(map(self._runs.__getitem__, text.split())))

    def _score(self, sums: Sequence[float], worth: float, shape: tuple[float, ...]) -> Scores:
        """The scores: the sums of the terms in steps of this worth, the bias, and the weights of the shape."""
        rows = zip(sums, self._bias, self._shape, strict=True)
        found = [sum(map(mul, shape, row), one * worth + bias) for one, bias, row in rows]
        if self.few:
            return found
        import numpy as np

        return np.array(found, np.float32)

    def _weigh_run(self, run: str) -> tuple[WeighedWord, ...]:
        return tuple([self._words[word] for word in tokenize(run)])

    def _weigh(self, word: str) -> WeighedWord:
        width = self._width
        bucket, letters = self.terms.of_word(word)
        own, inside = self._add([bucket * width]), self._add([one * width for one in letters])
        adds = [WORD_COUNTS * one + more for one, more in zip(own, inside, strict=True)]
        packed = self._pack([own[0], *adds[1:], WORD_COUNTS + len(letters)])
        return WeighedWord(word, bucket * width, self.terms.before(bucket) * width, packed)

    def _pack(self, numbers: list[int]) -> Any:
        if self.few:
            return int.from_bytes(self._packed.pack(*numbers), "little")
        import numpy as np

        return np.array(numbers)

    def _unpack(self, packed: Any) -> Sequence[int]:
        if self.few:
            return self._packed.unpack(packed.to_bytes(self._packed.size, "little"))
        numbers: list[int] = packed.tolist()
        return numbers

    def _add(self, rows: Collection[int]) -> list[int]:
        """How many of the rows at these offsets were learnt, and what they add to each label in steps, each row `ZERO`
        too much."""
        width, table = self._width, self._table
        joined = b"".join([table[at : at + width] for at in rows])
        if self.few:
            return [sum(joined[at::width]) for at in range(width)]
        import numpy as np

        added: list[int] = np.frombuffer(joined, np.uint8).reshape(-1, width).sum(axis=0, dtype=np.int64).tolist()
        return added

    def pushes(self, text: str, best: int, second: int) -> list[tuple[str, float]]:
        """How much each word, by itself, by its letters and by its neighbours, speaks for one label against another."""
        read = self._read(text)
        adds = {one.word: self._unpack(one.adds) for one in read}
        worth = self._step / sqrt(len(adds) or 1)
        words = {word: float(added[best + 1] - added[second + 1]) * worth for word, added in adds.items()}
        for bucket, pair in self._pairs(read).items():
            added = self._add([bucket * self._width])
            for word in pair:
                words[word] += float(added[best + 1] - added[second + 1]) * WORD_COUNTS * worth / len(pair)
        return list(words.items())

    def _pairs(self, read: list[WeighedWord]) -> dict[int, tuple[str, ...]]:
        """The words of each pair's bucket; a pair at an end of the text has one word."""
        if not read:
            return {}
        of_pair, width = self.terms.of_pair, self._width
        tokens, buckets = [one.word for one in read], [one.row // width for one in read]
        found: dict[int, tuple[str, ...]] = {
            of_pair(START, buckets[0]): (tokens[0],),
            of_pair(buckets[-1], END): (tokens[-1],),
        }
        neighbours = zip(pairwise(buckets), pairwise(tokens), strict=True)
        return found | {of_pair(one, other): pair for (one, other), pair in neighbours}

    def lean(self, text: str, best: int, second: int) -> float:
        """How much the bias and the text's shape speak for one label against another."""
        tokens = tokenize(text)
        shape = measure_shape(text, len(tokens), len(set(tokens))) if tokens else NO_SHAPE
        found = self._score([0.0] * self._labels, 0.0, shape)
        return float(found[best] - found[second])
