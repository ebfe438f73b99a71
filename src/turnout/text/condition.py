"""A leading condition: "if the door is open, close it and check the news" as what is asked first, and what is left.

The whole text begins with an opener; the condition runs to the first comma, the consequence from there to the first
conjunction behind which something else is asked (`split` says what), the remainder to the end. Invariant: the three are
stretches of the text in this order, condition and consequence are never blank, and a text that merely opens like a
condition ("should I …", "if possible, …", no comma) has none. Only the first `WINDOW` characters can hold a condition.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from msgspec import Struct

from .fold import fold
from .split import MARKS, WINDOW, Hits, bare, find_words, sentence_starts, split_off
from .words import Words, match_phrase

LISTS: Final = Words("condition", "en", "es")
# Words of the longest opener, "en caso de que".
_LONGEST: Final = 4

# A comma between digits belongs to the number.
_comma: Final = re.compile(r"(?<![0-9])[,，]|[,，](?![0-9])").search
_word: Final = re.compile(r"\w+").search
_then: Final = re.compile(r"(?:then|entonces)\b[\s,]*", re.IGNORECASE).match


class Conditional(Struct, frozen=True):
    """The pieces as the user wrote them, without opener and conjunctions."""

    condition: str
    consequence: str
    remainder: str = ""
    """What else is asked; blank if nothing is."""


def read_condition(text: str, hits: Hits | None = None) -> Conditional | None:
    """The pieces of a text that opens with a condition; `hits` tells trigger phrases, as for `split`."""
    whole = text.strip()
    comma = _comma(whole, 0, WINDOW)
    if comma is None:
        return None
    front = whole[: comma.start()]
    condition = _condition(front, whole[:WINDOW])
    rest = whole[comma.end() :].lstrip(MARKS)
    if then := _then(rest):
        rest = rest[then.end() :].lstrip(MARKS)
    first = _word(rest)
    # "Should cats drink milk, or is it bad for them" offers a choice.
    if not condition or first is None or fold(first[0]).text in ("or", "o"):
        return None
    consequence, remainder = split_off(rest, hits)
    return Conditional(condition, consequence, remainder)


def _condition(front: str, text: str) -> str:
    """What stands between the opener and the comma; blank if that is no condition."""
    found = list(islice(find_words(front), _LONGEST + 1))
    words = [bare(word[0]) for word in found]
    length = match_phrase(words, LISTS.openers)
    if not length or len(words) == length:
        return ""
    # "Should I bring a coat" is the question itself.
    if words[0] == "should" and words[1].partition("'")[0] in LISTS.askers:
        return ""
    # "Si" alone may be silicon, a name or the system of units.
    if words[0] == "si" and LISTS.beside_si.isdisjoint(bare(word[0]) for word in find_words(text)):
        return ""
    condition = front[found[length - 1].end() :].strip(MARKS)
    if not _word(condition) or " ".join(fold(condition).text.split()) in LISTS.courtesies:
        return ""
    # "If it rains? Well, …": the comma is another sentence's.
    return "" if any(start < len(front) for start in sentence_starts(front)) else condition
