"""The type of a claim or a question, by its words alone.

Each type has typical words; unambiguous ones count more. Without words of another type, a claim is about what happened
or happens.

Invariant: a text always has a type, returned with how sure that is.
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

# The weight of an unambiguous word; others weigh 1.
SURE: Final = 4
# Every text starts with this weight for the two factual types; words of another type must outweigh it.
FACTUAL: Final = 1.0

GUESSED: Final = "claim_type_told_by_words"
"""The key in `extra` of a card whose type was guessed."""

_WORDS: Final = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")


@cache
def _weights() -> dict[str, dict[ClaimType, int]]:
    """What each word weighs for each type."""
    weights: dict[str, dict[ClaimType, int]] = {}
    for kind, words in read_table("en", "claims")["type"].items():
        for word in words.split():
            plain = word.removeprefix("!")
            weights.setdefault(plain, {})[ClaimType(kind)] = SURE if plain != word else 1
    return weights


def weigh_types(text: str) -> dict[ClaimType, float]:
    """The weight of a text's words for each type."""
    total = dict.fromkeys(ClaimType, 0.0)
    total[ClaimType.HISTORICAL] = total[ClaimType.SCIENTIFIC] = FACTUAL
    for word in dict.fromkeys(_WORDS.findall(strip_accents(fold(text).text))):
        for kind, weight in _weights().get(word, {}).items():
            total[kind] += weight
    return total


def type_of(question: str) -> tuple[ClaimType, float]:
    """The type of a question or a claim, and how sure that is, 0 to 1: the lead over the best type that asks
    differently, relative to the weight of both."""
    weights = weigh_types(question)
    best = max(ClaimType, key=lambda kind: weights[kind])
    rest = max(weights[kind] for kind in ClaimType if not asks_alike(kind, best))
    return best, (weights[best] - rest) / (weights[best] + rest) if weights[best] else 0.0


def retype(card: Card, *, every: bool = False) -> Card | None:
    """The card with the type of its words, if its type was guessed and differs; with `every`, also if it was stated.
    Words cannot tell types apart that ask alike, so such a type stays."""
    if not every and not card.extra.get(GUESSED):
        return None
    kind, sure = type_of(card.claim_text)
    if not sure or asks_alike(kind, card.claim_type_category):
        return None
    return replace(card, claim_type_category=kind, extra={**card.extra, GUESSED: True})
