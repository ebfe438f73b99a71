"""The word lists that statements are read with, by language: synonyms, opposites, negations, numbers.

The lists are data (`citation.toml`). A word is compared by its key: without accents and ending, and replaced by the
first of its synonyms; one of two opposites is the other negated.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Final

from turnout.text.fold import fold
from turnout.text.words import Words, read_table

LANGUAGES: Final = ("en", "es", "de", "fr")
# How a word occurs, as bits: asserted, negated, or in reach of a verb like "refuse".
SO, NOT_SO, DENIED = 1, 2, 4
# Letters of a word that are compared: those after them more often distinguish forms of a word than words.
STEM: Final = 6
# Letters that remain at least when an ending is cut off.
SHORTEST_STEM: Final = 3
# Characters that a language is guessed from.
GUESSED_FROM: Final = 4000


class Vocabulary(Words):
    """The lists of a language: those of `citation.toml` by their names there, and those made from them here."""

    def __init__(self, lang: str) -> None:
        super().__init__(lang, "citation")
        table = read_table(lang, "citation")
        self.plain = frozenset(strip_accents(word) for word in Words(lang, "followup").plain) - set(table["number"])
        self.suffixes = tuple(sorted(table["suffix"].split(), key=len, reverse=True))
        groups = [group.split() for group in reversed(table["same"])]
        self.same = {stem(word, self.suffixes): group[0] for group in groups for word in group}
        self.opposite: dict[str, tuple[str, int]] = {}
        for pair in table["opposite"]:
            for side, sign in zip(pair.split("/"), (SO, NOT_SO), strict=True):
                self.opposite.update(dict.fromkeys(side.split(), (f"={pair.split()[0]}", sign)))
        self.breaks: frozenset[str] = getattr(self, "break")
        self.reach: tuple[int, int] = tuple(table["reach"])
        self.hedge = {word: kind for kind in ("about", "over", "under") for word in table[kind].split()}
        self.compared = {**dict.fromkeys(self.more, "over"), **dict.fromkeys(self.less, "under")}
        """The hedge that a word before `than` gives a number: over, under."""
        self.month = months()
        self.number: Mapping[str, float] = table["number"]
        self.scale: Mapping[str, float] = table["scale"]
        self.joint: str = table["joint"]
        """The word that joins hundreds to the rest: "two hundred and fifty"."""


@cache
def lists(lang: str) -> Vocabulary:
    return Vocabulary(lang)


@cache
def months() -> dict[str, int]:
    """Of all languages, since a date alone does not tell its language."""
    tables = [read_table(lang, "citation")["month"] for lang in LANGUAGES]
    return {word: at for table in tables for at, names in enumerate(table, 1) for word in names.split()}


@cache
def units() -> dict[str, str]:
    return {word: unit for unit, words in read_table("unit", "citation").items() for word in words.split()}


def guess_language(text: str, otherwise: str = "en") -> str:
    """The language with most function words in the text; `otherwise` if that is among several."""
    words = [strip_accents(word) for word in re.findall(r"[^\W\d_]+", fold(text[:GUESSED_FROM]).text)]
    small = {lang: sum(word in lists(lang).plain or word in lists(lang).light for word in words) for lang in LANGUAGES}
    return max(LANGUAGES, key=lambda lang: (small[lang], lang == otherwise))


def strip_accents(word: str) -> str:
    if word.isascii():
        return word
    return "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c)).replace("ß", "ss")


def stem(word: str, suffixes: tuple[str, ...]) -> str:
    for suffix in suffixes:
        if word.endswith(suffix) and len(word) - len(suffix) >= SHORTEST_STEM:
            word = word[: -len(suffix)]
            break
    if len(word) > SHORTEST_STEM and word[-1] == word[-2]:
        word = word[:-1]
    return word[:STEM]


@lru_cache(maxsize=16_384)
def key_of(word: str, lang: str) -> tuple[str, int]:
    """The key of a word, and whether it is SO or NOT_SO if nothing negates it."""
    known = lists(lang)
    if found := known.opposite.get(word):
        return found
    key = stem(word, known.suffixes)
    return known.same.get(key, key), SO
