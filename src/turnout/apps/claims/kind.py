"""Which kind of question a claim answers, told from its words alone.

Each type has words that tell it; those that tell it for sure count more. Where nothing tells another, a claim is about
what happened or happens.

Invariant: a text always has a type; how sure that is, is said with it, for a caller that needs to be sure.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from msgspec.structs import replace

from turnout.search.vocabulary import strip_accents
from turnout.text.fold import fold
from turnout.text.words import read_table

from .card import Card, ClaimType, asks_alike

# What a word counts that tells a type for sure; any other counts one.
SURE: Final = 4
# What every text has of the two types that ask whether something happens: so much must be told of another.
FACTUAL: Final = 1.0

GUESSED: Final = "claim_type_told_by_words"
"""What `extra` says of a card whose type was guessed."""

_WORDS: Final = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")


@cache
def _told() -> dict[str, dict[ClaimType, int]]:
    found: dict[str, dict[ClaimType, int]] = {}
    for kind, words in read_table("en", "claims")["type"].items():
        for word in words.split():
            plain = word.removeprefix("!")
            found.setdefault(plain, {})[ClaimType(kind)] = SURE if plain != word else 1
    return found


def weigh_types(text: str) -> dict[ClaimType, float]:
    """How much speaks for each type."""
    told = dict.fromkeys(ClaimType, 0.0)
    told[ClaimType.HISTORICAL] = told[ClaimType.SCIENTIFIC] = FACTUAL
    for word in dict.fromkeys(_WORDS.findall(strip_accents(fold(text).text))):
        for kind, weight in _told().get(word, {}).items():
            told[kind] += weight
    return told


def type_of(question: str) -> tuple[ClaimType, float]:
    """The type of a question or a claim, and how sure that is (0 to 1): what speaks for it and not for the next that
    asks otherwise, of all that speaks for either."""
    told = weigh_types(question)
    best = max(ClaimType, key=lambda kind: told[kind])
    factual = (ClaimType.HISTORICAL, ClaimType.SCIENTIFIC)
    rest = max(told[kind] for kind in ClaimType if kind != best and not (kind in factual and best in factual))
    return best, (told[best] - rest) / (told[best] + rest) if told[best] else 0.0


def retype(card: Card, *, every: bool = False) -> Card | None:
    """The card with the type its words tell, if it was guessed and is another; with `every`, also if it was stated. Two
    types that ask alike are not told apart by words, so the one that is there stays."""
    if not every and not card.extra.get(GUESSED):
        return None
    kind, sure = type_of(card.claim_text)
    if not sure or asks_alike(kind, card.claim_type_category):
        return None
    return replace(card, claim_type_category=kind, extra={**card.extra, GUESSED: True})
