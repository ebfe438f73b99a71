"""Hashed n-grams of words and of the characters inside them: a text as a sparse vector.

Training and serving use the same function, so a weight learned for a bucket is the weight that is used. Character
n-grams are taken from each word with a space on either side, so they depend on the word alone and can be cached. Time
is linear in the characters read, which are limited.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Mapping
from math import log, sqrt
from typing import Annotated
from zlib import crc32

from msgspec import Meta, Struct

# Longer strings are not words, and their n-grams would outnumber those of the others.
LONGEST_WORD = 32
# A few thousand words make up most text of a language; the n-grams of 8,192 words take about 6 MB.
KEPT_WORDS = 8192

Span = tuple[Annotated[int, Meta(ge=1)], Annotated[int, Meta(ge=1)]]

_words = re.compile(r"\w+|[^\w\s]").findall


class Ngrams(Struct, frozen=True, forbid_unknown_fields=True):
    """Which n-grams of a folded text are counted, and the number of buckets."""

    buckets: Annotated[int, Meta(ge=2, le=1 << 20)] = 1 << 16
    """A power of two."""
    words: Span = (1, 2)
    """The shortest and the longest n-gram of words."""
    chars: Span = (2, 5)
    """The shortest and the longest n-gram of characters, in a word with a space on either side."""
    characters: Annotated[int, Meta(ge=1, le=65_536)] = 512
    """How many characters of the folded text are read."""

    def __post_init__(self) -> None:
        if self.buckets & (self.buckets - 1):
            raise ValueError(f"buckets is {self.buckets}: it must be a power of two")
        for name, (low, high) in (("words", self.words), ("chars", self.chars)):
            if low > high or high > 8:
                raise ValueError(f"{name} is {low} to {high}: it must be from low to high, 8 at most")

    def of(self, folded: str) -> tuple[list[int], list[float]]:
        """The buckets of a text, each once, and their values: 1 + log of the count, scaled to a vector of length 1."""
        found = _words(folded[: self.characters])
        if not found:
            return [], []
        mask, (low, high), chars = self.buckets - 1, self.words, self.chars
        buckets: list[int] = []
        for word in found:
            buckets += _inside(word[:LONGEST_WORD], chars, mask)
        for size in range(low, high + 1):
            buckets += _runs(found, size, mask)
        counts = Counter(buckets)
        if len(counts) == len(buckets):
            length = 1.0 / sqrt(len(counts))
            return list(counts), [length] * len(counts)
        values = [1.0 if count == 1 else 1.0 + log(count) for count in counts.values()]
        length = 1.0 / sqrt(sum(value * value for value in values))
        return list(counts), [value * length for value in values]

    def share_out(self, folded: str, effects: Mapping[int, float]) -> list[tuple[str, float]]:
        """The effect of each bucket divided among the words whose n-grams are in it; each word once."""
        found = _words(folded[: self.characters])
        mask, (low, high), chars = self.buckets - 1, self.words, self.chars
        grams: list[tuple[int, tuple[str, ...]]] = []
        for word in found:
            grams += [(bucket, (word,)) for bucket in _inside(word[:LONGEST_WORD], chars, mask)]
        for size in range(low, high + 1):
            runs = enumerate(_runs(found, size, mask))
            grams += [(bucket, tuple(found[start : start + size])) for start, bucket in runs]
        counts = Counter(bucket for bucket, _ in grams)
        shared = dict.fromkeys(found, 0.0)
        for bucket, words in grams:
            part = effects.get(bucket, 0.0) / counts[bucket] / len(words)
            for word in words:
                shared[word] += part
        return list(shared.items())


# The start value of crc32 for runs of words, so that a word and the same letters inside a longer one differ.
_AMONG_WORDS = 0x77


def _runs(words: list[str], size: int, mask: int) -> list[int]:
    runs = words if size == 1 else map(" ".join, zip(*(words[start:] for start in range(size)), strict=False))
    return [crc32(run.encode("utf-8", "replace"), _AMONG_WORDS) & mask for run in runs]


@functools.lru_cache(maxsize=KEPT_WORDS)
def _inside(word: str, chars: Span, mask: int) -> tuple[int, ...]:
    """The buckets of the character n-grams of one word."""
    padded, (low, high) = f" {word} ", chars
    starts = [(start, size) for size in range(low, high + 1) for start in range(len(padded) - size + 1)]
    parts = [padded[start : start + size] for start, size in starts] or [padded]
    return tuple(crc32(part.encode("utf-8", "replace")) & mask for part in parts)
