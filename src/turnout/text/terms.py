"""A text as its terms: words, pairs of neighbouring words, and the runs of letters inside a word.

A linear model over such terms needs no more than a table of weights, and what a word adds (by itself and by the letters
inside it) depends on the word alone: it is worked out once, for as long as the word stays in use. A character of a
script written without spaces is a word of its own, so that a pair is what a word is elsewhere. Fitting and serving read
a text by these functions, so that a weight learnt for a bucket is the weight that is used. Time is linear in the
characters read, and those are capped: of a long text the beginning and the end are read, where people say what they
want.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from math import log1p
from typing import Annotated
from zlib import crc32

from msgspec import Meta, Struct

from .match import UNSPACED

# Words are short; what is longer is no word, and its letters would crowd out those of the others.
LONGEST_WORD = 24
# Runs of letters in shorter words are hardly more than the word itself.
SHORTEST_WORD = 3
# What a word or a pair counts for where a run of letters counts 1. On cross-validated seed questions 3 is right more
# often than 1 (by a point) and no less often than 4.
WORD_COUNTS = 3
# crc32 starts from these: a word and the same letters inside a longer one fall into different buckets.
_WORD, _LETTERS = 1, 3
# Stand before the first word and behind the last: "what" at the beginning is another term than "what" in the middle.
START, END = 0x2545F491, 0x4F6CDD1D
# A pair's hash is made of its words', which are at hand: a prime near the golden ratio of 2^32 spreads them.
SPREAD = 0x9E3779B1

_tokens = re.compile(rf"[^\W\d_{UNSPACED}]+|\d+|[{UNSPACED}]|[^\w\s]").findall
# The same for ASCII, in half the time.
_ascii_tokens = re.compile(r"[a-zA-Z]+|\d+|[^\w\s]").findall

Span = tuple[Annotated[int, Meta(ge=1, le=8)], Annotated[int, Meta(ge=1, le=8)]]


class Terms(Struct, frozen=True, forbid_unknown_fields=True):
    """How much of a folded text is read, and into how many buckets its terms fall."""

    buckets: Annotated[int, Meta(ge=2, le=1 << 22)] = 1 << 20
    """A power of two."""
    letters: Span = (3, 5)
    """Runs of letters within a word and the spaces around it, from how long to how long."""
    head: Annotated[int, Meta(ge=1, le=65_536)] = 1500
    """How many characters are read from the beginning of a longer text."""
    tail: Annotated[int, Meta(ge=0, le=65_536)] = 500
    """And how many from its end."""

    def __post_init__(self) -> None:
        if self.buckets & (self.buckets - 1):
            raise ValueError(f"buckets is {self.buckets}: it must be a power of two")
        if self.letters[0] > self.letters[1]:
            raise ValueError(f"letters is {self.letters[0]} to {self.letters[1]}: it must be from low to high")

    def cut(self, folded: str) -> str:
        """What is read of a text."""
        if len(folded) <= self.head + self.tail:
            return folded
        return f"{folded[: self.head]}\n{folded[-self.tail :] if self.tail else ''}"

    def of_word(self, word: str) -> tuple[int, list[int]]:
        """A word's hash, whose last bits are its bucket, and the buckets of the letters inside it."""
        mask, (low, high) = self.buckets - 1, self.letters
        own = crc32(word.encode("utf-8", "replace"), _WORD)
        if len(word) < SHORTEST_WORD:
            return own, []
        padded = f" {word[:LONGEST_WORD]} "
        runs = [padded[at : at + size] for size in range(low, high + 1) for at in range(len(padded) - size + 1)]
        return own, [crc32(run.encode("utf-8", "replace"), _LETTERS) & mask for run in runs]

    def of_pair(self, one: int, other: int) -> int:
        """The bucket of two neighbours, by their hashes."""
        return one * SPREAD + other & self.buckets - 1

    def of_pairs(self, hashes: Sequence[int]) -> set[int]:
        """The bucket of each pair of neighbours, the ends of the text among them, by the hashes of all its words."""
        mask = self.buckets - 1
        found = {self.of_pair(START, hashes[0]), self.of_pair(hashes[-1], END)}
        found.update([one * SPREAD + other & mask for one, other in pairwise(hashes)])
        return found


def tokenize(text: str) -> list[str]:
    """Words, numbers, signs, and the characters of scripts written without spaces, in their order."""
    return _ascii_tokens(text) if text.isascii() else _tokens(text)


# --- the shape of a text

# How many numbers `measure_shape` gives.
SHAPE_NUMBERS = 10

_DIGITS = b"0123456789"
_SIGNS = bytes(code for code in range(33, 127) if not chr(code).isalnum())
_BUT_DIGITS = bytes(set(range(256)) - set(_DIGITS))
_BUT_SIGNS = bytes(set(range(256)) - set(_SIGNS))


def measure_shape(text: str, tokens: list[str], words: int) -> tuple[float, ...]:
    """How long a text is and what it is made of, whatever it says; it has so many different words."""
    encoded = text.encode("utf-8", "replace")
    size, count = len(text), len(tokens)
    signs = len(encoded.translate(None, _BUT_SIGNS))
    length = log1p(count)
    # Divided so that all of them vary about as much; the largest count there is (2,000 characters) gives 8 at most.
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
