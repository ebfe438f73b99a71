"""A question or a claim as the guard reads it: its words in order, with names, denials and numbers marked.

No grammar is parsed and no model is asked. Time is linear in the length; text longer than any question is cut off.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Final

from msgspec import Struct

from turnout.search.analysis import stem
from turnout.search.number import Number
from turnout.search.statement import read_statement
from turnout.search.vocabulary import NOT_SO, SO, key_of, lists, strip_accents
from turnout.text.fold import fold
from turnout.text.words import Words, read_table

# Characters that are read; a question has at most 2,000.
LONGEST: Final = 4000
# The share of capitalized words in a title, where a capital does not show a name.
TITLED: Final = 0.9
# A title has at least this many words.
TITLED_WORDS: Final = 4
# A word of at least this many letters counts as another that begins with it: "Europe", "Europeans".
SHARED: Final = 4

NOT: Final = "\N{NOT SIGN}"
UNTRUE: Final = "untrue"

# The author and date after a pasted text: "— Name (@name) May 2, 2017".
SIGNATURE: Final = re.compile(r"\s*[—–-]{1,2}\s[^—\n]{1,80}\(@\w{1,30}\).{0,40}\s*\Z", re.DOTALL)
_ABBREVIATION: Final = re.compile(r"\b(?:[A-Za-z]\.){2,}")
_ADDRESS: Final = re.compile(r"https?://\S+|www\.\S+|pic\.twitter\.com/\S+|[@#](?=\w)")
# A tag at the end that only asks for confirmation: ", right?", "Is that true?".
_TAG: Final = re.compile(
    r"(?:[,.;!?]|\s-)\s*(?:(?:is|was|isn't|wasn't) (?:that|this|it|he|she)"
    r"(?: (?:right|true|correct|so|legit|the case))?|right|correct|true|or not)\s*[?.!]*\s*\Z",
    re.IGNORECASE,
)
_TOKEN: Final = re.compile(r"(?P<word>[^\W\d_]+(?:['’][^\W\d_]+)*)|(?P<number>\d[\d.,]*)|(?P<end>[.!?;:]+(?=\s|$)|,)")


class Word(Struct, frozen=True):
    """A content word of a claim."""

    key: str
    """What it is compared by."""
    raw: str
    at: int
    """Its position among all words."""
    name: bool
    """It is capitalized."""
    first: bool
    """It begins a sentence, so that its capital does not show a name."""
    denied: bool
    sign: int
    """Which of two opposites it is; a denial makes it the other."""
    beside: bool
    """It says where, when or of whom, not who did what to whom."""
    behind: str
    """The preposition before it, if any."""


class ClaimReading(Struct, frozen=True):
    words: tuple[Word, ...]
    numbers: tuple[Number, ...]
    denials: tuple[str, ...]
    """The words that deny the claim itself, not only a subordinate clause."""
    line: tuple[str, ...]
    """The content in order: words by their keys, numbers as written, NOT for a denial."""
    marked: frozenset[str]
    """The names, numbers and denials of the line, and the words that begin a sentence."""
    by_at: tuple[int, ...]
    """The positions of each `by` of a passive."""
    titled: bool
    asks: bool

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(word.key for word in self.words)


@cache
def known() -> Words:
    return Words("en", "claims")


@cache
def _groups() -> dict[str, str]:
    """Further synonyms: the first stem of its group for each stem."""
    first = {}
    for group in read_table("en", "claims")["same"]:
        stems = [stem(word, "en") for word in group.split()]
        first.update(dict.fromkeys(stems, stems[0]))
    return first


@lru_cache(maxsize=16_384)
def _key(word: str) -> tuple[str, int]:
    """What a word is compared by, and which of two opposites it is. Synonyms of the citation check count here too."""
    stemmed = stem(word, "en")
    if opposite := _opposites().get(stemmed):
        return opposite
    key, sign = key_of(word, "en")
    return (key if key[0] == "=" or key in _heads() else _groups().get(stemmed, stemmed)), sign


@cache
def _opposites() -> dict[str, tuple[str, int]]:
    """Opposites by their stems, so that "banned" counts as "ban"; short words are too ambiguous."""
    found = {stem(word, "en"): opposite for word, opposite in lists("en").opposite.items() if len(word) >= SHARED}
    for pair in read_table("en", "claims")["opposite"]:
        for side, sign in zip(pair.split("/"), (SO, NOT_SO), strict=True):
            found.update({stem(word, "en"): (f"={pair.split()[0]}", sign) for word in side.split()})
    return found


@cache
def _heads() -> frozenset[str]:
    return frozenset(lists("en").same.values())


def same_key(one: str, other: str) -> bool:
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    return len(short) >= SHARED and long.startswith(short)


@lru_cache(maxsize=4096)
def read(text: str) -> ClaimReading:
    """The reading of an English text. In other languages only numbers and names are recognized."""
    return _Reader(text[:LONGEST]).read()


class _Reader:
    def __init__(self, text: str) -> None:
        text = _ADDRESS.sub(" ", SIGNATURE.sub("", text)).replace("’", "'").replace("‘", "'")
        text = _ABBREVIATION.sub(lambda found: found[0].replace(".", ""), text)
        self.text = _TAG.sub("?", text)
        self.low: list[str] = []
        self.raw: list[str] = []
        self.first: list[bool] = []
        self.clause: list[int] = []
        self.asks = self.text.rstrip(" \"')”").endswith("?")
        self._tokenize()
        joined = " ".join(self.low).replace(" n't", "n't")
        self.is_untrue = joined.startswith(tuple(known().untrue))
        self.quiet = self._quiet(joined)

    def _tokenize(self) -> None:
        clause, begins = 0, True
        subordinate = known().subordinate
        for found in _TOKEN.finditer(self.text):
            if found.lastgroup == "end":
                clause += 1
                begins = begins or found[0] != ","
                continue
            low = strip_accents(fold(found[0]).text)
            low = low.removesuffix("'s").removesuffix("'")
            if low in subordinate:
                clause += 1
            for piece in (low.removesuffix("n't"), "n't") if low.endswith("n't") else (low,):
                if not piece:
                    continue
                self.low.append(piece)
                self.raw.append(found[0])
                self.first.append(begins)
                self.clause.append(clause)
            begins = False

    def read(self) -> ClaimReading:
        titled = self._is_titled()
        denied, denials = self._denials()
        words: list[Word] = []
        line: list[str] = [NOT] if UNTRUE in denials else []
        marked = {NOT}
        for at, low in enumerate(self.low):
            if low[0].isdigit():
                line.append(low.replace(",", "").rstrip("."))
                marked.add(line[-1])
            elif low in known().negation and at not in self.quiet:
                line.append(NOT)
            if low in known().small or low in known().negation or len(low) < 2 or low[0].isdigit():
                continue
            key, sign = _key(low)
            name = self.raw[at][0].isupper() and not titled and not self.first[at]
            if at in denied:
                sign = SO + NOT_SO - sign
            before = self._preposition(at)
            words.append(
                Word(key, self.raw[at], at, name, self.first[at], at in denied, sign, before in known().beside, before)
            )
            line.append(key)
            if name or self.first[at]:
                marked.add(key)
        numbers = read_statement(self.text, "en").numbers
        by_at = tuple(at for at, low in enumerate(self.low) if low in known().by and self._is_passive(at))
        return ClaimReading(
            tuple(words), numbers, tuple(denials), tuple(line), frozenset(marked), by_at, titled, self.asks
        )

    def _is_titled(self) -> bool:
        long = [
            raw for raw, low in zip(self.raw, self.low, strict=True) if low not in known().small and raw[0].isalpha()
        ]
        # A statement may consist of names.
        share = TITLED if self.asks else 1.0
        return len(long) >= TITLED_WORDS and sum(raw[0].isupper() for raw in long) >= share * len(long)

    def _preposition(self, at: int) -> str:
        """The preposition before a word, or before the name it is part of; articles are skipped."""
        while at and (self.low[at - 1] in known().article or self.raw[at - 1][0].isupper()):
            at -= 1
        if at > 1 and self.low[at - 1] not in known().small and self.low[at - 2] in known().preposition:
            at -= 1
        before = self.low[at - 1] if at else ""
        return before if before in known().beside or before in known().preposition else ""

    def _is_passive(self, by: int) -> bool:
        """Whether a form of "be" and a word with the ending of a participle stand before a "by"."""
        before = self.low[max(0, by - 8) : by]
        ends = any(
            low.endswith(("ed", "en", "wn", "ne", "ght", "ung", "rn", "pt", "lt", "ept", "old")) for low in before
        )
        return ends and (any(low in known().be for low in before) or self.asks)

    def _denials(self) -> tuple[set[int], list[str]]:
        """The positions of denied words, each the first after a negation; and the denials of the claim itself."""
        denied: set[int] = set()
        denials = [UNTRUE] if self.is_untrue else []
        known_words, skipped = known(), lists("en").no_negation
        is_main = True
        for at, low in enumerate(self.low):
            is_main = is_main and not (at and self.low[at - 1] in known_words.subordinate)
            if low not in known_words.negation or at in self.quiet:
                continue
            after = self.low[at + 1] if at + 1 < len(self.low) else ""
            if f"{low} {after}" in skipped or (low == "no" and after[:1].isdigit()):
                continue
            behind = range(at + 1, min(len(self.low), at + 6))
            head = next((place for place in behind if self.low[place] not in known_words.small), None)
            if head is not None:
                denied.add(head)
            if is_main:
                denials.append(low)
        return denied, denials

    def _quiet(self, joined: str) -> set[int]:
        """The positions of negations that deny nothing: "Didn't it …?", "Is it not true that …?", ", isn't it?"."""
        quiet: set[int] = set()
        if self.is_untrue:
            quiet.update(range(6))
        if joined.startswith(tuple(known().untrue_not)):
            quiet.update(range(5))
        for at, low in enumerate(self.low):
            begins = at <= 1 or self.clause[at - 1] != self.clause[max(0, at - 2)]
            if low == "n't" and self.asks and begins and f"{self.low[at - 1]}n't" in known().asks:
                quiet.add(at)
        if len(self.low) > 1 and self.low[-1] == "not" and self.low[-2] == "or":
            quiet.add(len(self.low) - 1)
        return quiet
