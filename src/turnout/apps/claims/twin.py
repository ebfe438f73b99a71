"""Twins: two cards that make the same claim. They are linked, so that a search finds one card for a claim.

Invariant: a card that contradicts another, or is of another type, is never its twin, however alike they read.
"""

from __future__ import annotations

from typing import Final

from .card import Card, asks_alike
from .polarity import contradicts
from .reading import read

# Cosine of the same claim in nearly the same words. Of Snopes' 10,381 claims 15 pairs in different words reach it; a
# third of these are different claims, but differ in a name or a number, which the guard sees.
ALIKE: Final = 0.9
# The share of all their words that two such claims have in common.
SHARED: Final = 0.6


def is_twin(one: Card, other: Card, similarity: float | None) -> bool:
    """Whether two cards make the same claim; `similarity` is the cosine of their claims, if known."""
    if not asks_alike(one.claim_type_category, other.claim_type_category):
        return False
    mine, theirs = read(one.claim_text), read(other.claim_text)
    if mine.line == theirs.line and mine.line:
        return True
    shared = len(mine.keys & theirs.keys) / (len(mine.keys | theirs.keys) or 1)
    near = similarity is not None and similarity >= ALIKE and shared >= SHARED
    return near and contradicts(one.claim_text, other.claim_text) is None
