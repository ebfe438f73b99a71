"""Hashed n-grams of words and of the characters inside them: a text as a short list of numbers.

Fitting and serving read a text by this one function, so that a weight learned for a bucket is the weight that is used.
Characters are taken word by word, a space on either side, so that a word's share depends on the word alone and is
worked out once for as long as the word stays in use. Time is linear in the characters read, and those are capped.
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

# Words are short; what is longer is no word, and its n-grams would crowd out those of the others.
LONGEST_WORD = 32
# Most of a language's running text is a few thousand words; 8,192 of them keep their n-grams in about 6 MB.
KEPT_WORDS = 8192

Span = tuple[Annotated[int, Meta(ge=1)], Annotated[int, Meta(ge=1)]]

_words = re.compile(r"\w+|[^\w\s]").findall


class Ngrams(Struct, frozen=True, forbid_unknown_fields=True):
    """Which n-grams of a folded text are counted, and into how many buckets they fall."""

    buckets: Annotated[int, Meta(ge=2, le=1 << 20)] = 1 << 16
    """A power of two."""
    words: Span = (1, 2)
    """Runs of words, from how many to how many."""
    chars: Span = (2, 5)
    """Runs of characters within a word and the spaces around it."""
    characters: Annotated[int, Meta(ge=1, le=65_536)] = 512
    """How much of the folded text is read."""

    def __post_init__(self) -> None:
        if self.buckets & (self.buckets - 1):
            raise ValueError(f"buckets is {self.buckets}: it must be a power of two")
        for name, (low, high) in (("words", self.words), ("chars", self.chars)):
            if low > high or high > 8:
                raise ValueError(f"{name} is {low} to {high}: it must be from low to high, 8 at most")

    def of(self, folded: str) -> tuple[list[int], list[float]]:
        """The buckets a text falls into, each once, and how much: 1 + log of how often, the whole of length 1."""
        found = _words(folded[: self.characters])
        if not found:
            return [], []
        mask, (low, high), chars = self.buckets - 1, self.words, self.chars
        fell: list[int] = []
        for word in found:
            fell += _inside(word[:LONGEST_WORD], chars, mask)
        for size in range(low, high + 1):
            fell += _runs(found, size, mask)
        counts = Counter(fell)
        if len(counts) == len(fell):
            length = 1.0 / sqrt(len(counts))
            return list(counts), [length] * len(counts)
        values = [1.0 if count == 1 else 1.0 + log(count) for count in counts.values()]
        length = 1.0 / sqrt(sum(value * value for value in values))
        return list(counts), [value * length for value in values]

    def share_out(self, folded: str, told: Mapping[int, float]) -> list[tuple[str, float]]:
        """What was told of each bucket, shared among the words whose n-grams fell into it; each word once."""
        found = _words(folded[: self.characters])
        mask, (low, high), chars = self.buckets - 1, self.words, self.chars
        fell: list[tuple[int, tuple[str, ...]]] = []
        for word in found:
            fell += [(bucket, (word,)) for bucket in _inside(word[:LONGEST_WORD], chars, mask)]
        for size in range(low, high + 1):
            runs = enumerate(_runs(found, size, mask))
            fell += [(bucket, tuple(found[start : start + size])) for start, bucket in runs]
        often = Counter(bucket for bucket, _ in fell)
        shared = dict.fromkeys(found, 0.0)
        for bucket, words in fell:
            part = told.get(bucket, 0.0) / often[bucket] / len(words)
            for word in words:
                shared[word] += part
        return list(shared.items())


# crc32 starts from it: a word and the same letters inside a longer one fall into different buckets.
_AMONG_WORDS = 0x77


def _runs(words: list[str], size: int, mask: int) -> list[int]:
    runs = words if size == 1 else map(" ".join, zip(*(words[start:] for start in range(size)), strict=False))
    return [crc32(run.encode("utf-8", "replace"), _AMONG_WORDS) & mask for run in runs]


@functools.lru_cache(maxsize=KEPT_WORDS)
def _inside(word: str, chars: Span, mask: int) -> tuple[int, ...]:
    """The buckets of the n-grams inside one word, or inside as much of it as is read."""
    padded, (low, high) = f" {word} ", chars
    starts = [(start, size) for size in range(low, high + 1) for start in range(len(padded) - size + 1)]
    parts = [padded[start : start + size] for start, size in starts] or [padded]
    return tuple(crc32(part.encode("utf-8", "replace")) & mask for part in parts)
