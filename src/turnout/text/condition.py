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

from .clause import listed
from .fold import fold
from .split import MARKS, WINDOW, Hits, bare, find_words, sentence_starts, split_off

# The longer before those they begin with.
OPENERS: Final = (
    ("in", "case", "of"),
    ("in", "case"),
    ("if",),
    ("should",),
    ("en", "caso", "de", "que"),
    ("en", "caso", "de"),
    ("si",),
)
# "Should I bring a coat" is the question itself.
ASKERS: Final = listed("i we")
# What people say out of courtesy, or about something said before: nothing to find out.
COURTESIES: Final = frozenset(
    {
        *("so", "not", "any", "anything", "possible", "need be", "necessary", "applicable", "you please", "only"),
        *("you can", "you could", "you would", "you may", "you will", "you want", "you like", "you wish", "you know"),
        *(
            "you don't mind",
            "you dont mind",
            "you do not mind",
            "you wouldn't mind",
            "you have time",
            "you have a moment",
        ),
        *("i may", "i may ask", "i could", "i might", "that's ok", "that's okay", "that is ok", "it's ok", "it's okay"),
        *("you missed it", "you were wondering", "you're wondering", "you forgot", "you didn't know"),
        *("no", "es posible", "puedes", "puede", "quieres", "no te importa", "no es molestia", "claro", "por favor"),
    }
)
# "Si" alone may be silicon, a name or the system of units; one of these beside it makes it Spanish.
SPANISH: Final = listed(
    """el los las un una del que mis tus sus está están estan hay es hace va en por para mañana hoy llueve llover
    lloverá nieva nevar puerta luz luces tiempo clima noticias abierta abierto cerrada cerrado apaga enciende cierra
    abre avísame avisame dime busca pon revisa comprueba muéstrame muestrame cancela cuál qué cómo dónde cuándo alguien
    algo"""
)

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
    found = list(islice(find_words(front), max(map(len, OPENERS)) + 1))
    words = tuple(bare(word[0]) for word in found)
    opener = next((opener for opener in OPENERS if words[: len(opener)] == opener), ())
    if not opener or len(words) == len(opener):
        return ""
    if opener == ("should",) and words[1].partition("'")[0] in ASKERS:
        return ""
    if opener == ("si",) and not any(bare(word[0]) in SPANISH for word in find_words(text)):
        return ""
    condition = front[found[len(opener) - 1].end() :].strip(MARKS)
    if not _word(condition) or " ".join(fold(condition).text.split()) in COURTESIES:
        return ""
    # "If it rains? Well, …": the comma is another sentence's.
    return "" if any(start < len(front) for start in sentence_starts(front)) else condition
