"""Whether passages support a sentence: a few of their lines contain its words and numbers, and do not contradict it.

Three checks, in this order. Coverage: a few lines, chosen greedily, contain enough of the sentence's words, weighted by
how much each tells; these lines are shown as the reason. Numbers: each is in one of them. Polarity: they deny nothing
that the sentence asserts, nor assert what it denies.

Invariant: lines of a passage that share nothing with the sentence change nothing, wherever they are; so a longer
passage supports no less. Time is linear in the length of both.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from enum import StrEnum
from math import sqrt
from typing import Final

from msgspec import Struct

from turnout.text.fold import fold

from .number import Number, agree, bounds
from .statement import Statement, read_statement, split_sentences
from .vocabulary import DENIED, NOT_SO, SO, guess_language, key_of, lists, strip_accents

# The numbers below were set on the train and test splits of WiCE, so that its dev split measures them. Of train there
# were 321 statements, less the words that annotators found no support for; each beside its page, other pages, and other
# parts of its page.
#
# The share of a sentence that must be covered, and how much more of a short one, whose few words are found together by
# chance: 0.63 of four words and numbers, 0.46 of sixteen.
ENOUGH: Final = 0.3
SHORT: Final = 0.65
# The weight of what the best line covers alone; what all chosen lines cover together has the rest. A statement gathered
# from several places is seldom made in any of them.
ALONE: Final = 0.2
# Lines that together support a sentence. Eight keep no more of what is supported on the test split, and remove 82 % of
# the changed numbers instead of 87 %.
MOST_LINES: Final = 4
# A number counts in a line that has more than the first share of the sentence's words, or next to a line that has at
# least the second: a page is full of numbers about other things.
WITH_NUMBER: Final = 0.1
BESIDE_NUMBER: Final = 0.4
# Weights of words: a name tells most, a word like "several" little.
NAME, WORD, LIGHT, NUMBER = 1.5, 1.0, 0.4, 1.0
# Characters of a passage that are read; a section of an answer has 1,500, and most pages fewer than this.
LONGEST_PASSAGE: Final = 131_072
# Characters of a sentence that are checked; no real sentence is longer.
LONGEST_SENTENCE: Final = 4_096

_WORDS: Final = re.compile(r"[^\W\d_]+")


class Why(StrEnum):
    """Why a sentence is not supported."""

    NO_SECTION = "no_section"
    """No section has that number."""
    NOTHING_STATED = "nothing_stated"
    """It contains no word or number that could be found."""
    WORDS = "words"
    """The passages contain too little of it."""
    NUMBER = "number"
    """One of its numbers is missing, or is about something else."""
    POLARITY = "polarity"
    """The passages deny what it asserts, or assert what it denies."""
    TOO_LONG = "too_long"
    """It is past the part of an answer that is checked."""


class PassagePlace(Struct, frozen=True, order=True):
    """A stretch of a passage."""

    passage: int
    """Which of the given passages, from 0."""
    start: int
    end: int


class Supported(Struct, frozen=True, tag="supported"):
    """The passages support the sentence."""

    score: float
    """How much of it, 0 to 1."""
    where: tuple[PassagePlace, ...]
    """The lines that do, in order."""


class Unsupported(Struct, frozen=True, tag="unsupported"):
    """The passages do not support the sentence."""

    why: Why
    said: str
    """The reason as a sentence that names the word or the number."""
    score: float = 0.0


class _Line(Struct, frozen=True):
    """A sentence of a passage."""

    start: int
    end: int
    states: Statement


class ReadPassage(Struct, frozen=True):
    """A passage prepared for checking any number of sentences."""

    lines: tuple[_Line, ...]
    with_word: dict[str, list[int]]
    """The lines that contain a word."""
    numbers: list[tuple[float, int, Number]]
    """Every number with its line; by value."""


class Claim(Struct, frozen=True):
    """A sentence prepared for checking."""

    states: Statement
    words: tuple[str, ...]
    numbers: tuple[Number, ...]
    weights: tuple[float, ...]
    """Of the words, then of the numbers."""


# A line, by passage and place in it; and the words and numbers of a claim that each line contains, as a bit mask.
_Spot = tuple[int, int]
_Found = dict[_Spot, int]


def check(sentence: str, passages: Sequence[str], lang: str = "") -> Supported | Unsupported:
    """Whether the passages together support the sentence. Its language is guessed if it is not given."""
    lang = lang or guess_language(sentence, guess_language("\n".join(passages[:1])))
    return weigh(read_claim(sentence, lang), [read_passage(text, lang) for text in passages])


def read_passage(text: str, otherwise: str = "en") -> ReadPassage:
    """Prepare a passage, read in its own language, or in `otherwise` if that cannot be told."""
    lang = guess_language(text, otherwise)
    lines: list[_Line] = []
    with_word: dict[str, list[int]] = {}
    numbers: list[tuple[float, int, Number]] = []
    start = 0
    for sentence in split_sentences(text[:LONGEST_PASSAGE]):
        states = read_statement(sentence, lang)
        for word in states.words:
            with_word.setdefault(word, []).append(len(lines))
        numbers += [(number.value, len(lines), number) for number in set(states.numbers)]
        lines.append(_Line(start, start + len(sentence.rstrip()), states))
        start += len(sentence)
    return ReadPassage(tuple(lines), with_word, sorted(numbers, key=lambda entry: entry[:2]))


def read_claim(sentence: str, lang: str = "") -> Claim:
    sentence = sentence[:LONGEST_SENTENCE]
    lang = lang or guess_language(sentence)
    states = read_statement(sentence, lang)
    words, numbers = tuple(states.words), tuple(dict.fromkeys(states.numbers))
    names, light = _find_names(sentence, lang), lists(lang).light
    weights = [LIGHT if states.spelled[word] in light else NAME if word in names else WORD for word in words]
    return Claim(states, words, numbers, (*weights, *[NUMBER] * len(numbers)))


def _find_names(sentence: str, lang: str) -> set[str]:
    """The keys of capitalised words, except the first word."""
    capital = [word for word in _WORDS.findall(sentence)[1:] if word[0].isupper()]
    return {key_of(strip_accents(fold(word).text), lang)[0] for word in capital}


def weigh(claim: Claim, passages: Sequence[ReadPassage]) -> Supported | Unsupported:
    """Whether the passages together support the claim."""
    total = sum(claim.weights)
    if not total:
        return Unsupported(Why.NOTHING_STATED, "It states nothing that could be looked up.")
    found = _drop_stray_numbers(claim, passages, _find(claim, passages))
    chosen, covered = _choose(claim, found)
    alone = _worth(claim, found[chosen[0]]) if chosen else 0.0
    score = min(1.0, (ALONE * alone + (1 - ALONE) * _worth(claim, covered)) / total)
    enough = ENOUGH + SHORT / sqrt(len(claim.weights))
    missing = [number for bit, number in enumerate(claim.numbers, len(claim.words)) if not covered >> bit & 1]
    # With the missing numbers it would be enough, so they are the reason.
    if missing and score + NUMBER * len(missing) / total >= enough:
        return Unsupported(Why.NUMBER, f'"{missing[0].spelled}" is not said there of this.', score)
    if missing or score < enough:
        return Unsupported(Why.WORDS, f"Only {score:.0%} of what it says is there.", score)
    if word := _find_contradiction(claim, passages, found, chosen):
        return Unsupported(Why.POLARITY, f'What is there says otherwise of "{word}".', score)
    places = (
        PassagePlace(at, passages[at].lines[line].start, passages[at].lines[line].end) for at, line in sorted(chosen)
    )
    return Supported(score, tuple(places))


def _find(claim: Claim, passages: Sequence[ReadPassage]) -> _Found:
    """Every line that contains something of the claim, in order."""
    found: _Found = defaultdict(int)
    for at, passage in enumerate(passages):
        for bit, word in enumerate(claim.words):
            for line in passage.with_word.get(word, ()):
                found[at, line] |= 1 << bit
        for bit, number in enumerate(claim.numbers, len(claim.words)):
            low, high = bounds(number)
            first = bisect_left(passage.numbers, low, key=lambda entry: entry[0])
            last = bisect_right(passage.numbers, high, key=lambda entry: entry[0])
            for _, line, other in passage.numbers[first:last]:
                if agree(number, other):
                    found[at, line] |= 1 << bit
    return dict(sorted(found.items()))


def _drop_stray_numbers(claim: Claim, passages: Sequence[ReadPassage], found: _Found) -> _Found:
    """Drops numbers that are about something else. A dateline is about all lines; lines without anything of the claim
    are skipped, so that they change nothing."""
    of_words = (1 << len(claim.words)) - 1
    telling = sum(1 << bit for bit in range(len(claim.words)) if claim.weights[bit] >= WORD)
    if not telling:
        return found
    shares = {spot: _worth(claim, mask & telling) / _worth(claim, telling) for spot, mask in found.items()}
    spots = list(found)
    kept: _Found = {}
    for at, spot in enumerate(spots):
        passage, line = spot
        beside = max(shares[other] for other in spots[max(0, at - 1) : at + 2] if other[0] == passage)
        counts = (
            shares[spot] > WITH_NUMBER or beside >= BESIDE_NUMBER or passages[passage].lines[line].states.is_dateline
        )
        kept[spot] = found[spot] if counts else found[spot] & of_words
    return kept


def _choose(claim: Claim, found: _Found) -> tuple[list[_Spot], int]:
    """The lines that cover most of the claim, each chosen for what the others lack; and the mask of what they cover."""
    chosen: list[_Spot] = []
    covered = 0
    for _ in range(MOST_LINES):
        gains = {spot: _worth(claim, mask & ~covered) for spot, mask in found.items()}
        best = max(gains, key=gains.__getitem__, default=None)
        if best is None or not gains[best]:
            break
        chosen.append(best)
        covered |= found[best]
    return chosen, covered


def _worth(claim: Claim, mask: int) -> float:
    total = 0.0
    while mask:
        low = mask & -mask
        total += claim.weights[low.bit_length() - 1]
        mask ^= low
    return total


def _find_contradiction(claim: Claim, passages: Sequence[ReadPassage], found: _Found, chosen: Sequence[_Spot]) -> str:
    """A word that only one side denies, as it is spelled in the claim; empty if there is none."""
    states = claim.states
    lines = {spot: passages[spot[0]].lines[spot[1]].states for spot in chosen}
    for scope in states.negated:
        # The passage may also deny it by an opposite, or by a verb like "refuse".
        denied = any(_denies(line, word, states) for line in lines.values() for word in scope)
        if not denied and (scope or not any(line.negated for line in lines.values())):
            return states.spelled[min(scope)] if scope else "not"
    for word in claim.words:
        held = states.words[word] & (SO | NOT_SO)
        for spot, line in lines.items():
            stated = line.words.get(word, 0) & (SO | NOT_SO)
            if not stated or stated & held or not (word[0] == "=" or word in line.heads):
                continue
            if not _is_held(word, held, spot, claim, passages, found):
                return states.spelled[word]
    return ""


def _denies(line: Statement, word: str, states: Statement) -> bool:
    wanted = states.words[word] if word[0] == "=" else NOT_SO
    return bool(line.words.get(word, 0) & (wanted | DENIED))


def _is_held(
    word: str, held: int, against: _Spot, claim: Claim, passages: Sequence[ReadPassage], found: _Found
) -> bool:
    """Whether another line agrees with the claim on the word, and covers at least as much of it as the line against."""
    least = _worth(claim, found[against])
    for at, passage in enumerate(passages):
        for line in passage.with_word.get(word, ()):
            if passage.lines[line].states.words[word] & held and _worth(claim, found[at, line]) >= least:
                return True
    return False
