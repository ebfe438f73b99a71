"""Twins: two cards that say the same. They are linked, so that one claim has one card that is found.

Invariant: what contradicts, or asks another kind of question, is never a twin, however alike it reads.
"""

from __future__ import annotations

from typing import Final

from .card import Card, asks_alike
from .polarity import contradicts
from .reading import read

# Cosine of claims that say the same in nearly the same words. Of Snopes' 10,381 claims 15 pairs that are not the same
# words reach it, of which a third say something else: those differ in a name or a number, which the guard sees.
ALIKE: Final = 0.9
# Words that two such claims share at least, of all that either has.
SHARED: Final = 0.6


def is_twin(one: Card, other: Card, similarity: float | None) -> bool:
    """Whether two cards say the same; `similarity` is the cosine of their claims, if there is one."""
    if not asks_alike(one.claim_type_category, other.claim_type_category):
        return False
    mine, theirs = read(one.claim_text), read(other.claim_text)
    if mine.line == theirs.line and mine.line:
        return True
    shared = len(mine.keys & theirs.keys) / (len(mine.keys | theirs.keys) or 1)
    near = similarity is not None and similarity >= ALIKE and shared >= SHARED
    return near and contradicts(one.claim_text, other.claim_text) is None
