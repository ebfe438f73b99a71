"""The polarity guard: whether a question contradicts the claim of a card. Text alone; similarity has no say.

Same topic, same type, same structure is not yet the same claim: a negated predicate, swapped roles, another number,
date or name in the same place refuse an exact match. Silence on either side does not: "Did the flood happen?" matches
the card that says more.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

ContradictionKind = Literal["negation", "opposite", "roles", "number", "name", "other"]


class Contradiction(Struct, frozen=True):
    """What a question and a card do not agree about."""

    kind: ContradictionKind
    said: str
    """In the question."""
    held: str
    """In the card's claim."""

    def __str__(self) -> str:
        return f"{self.kind}: the question says {self.said!r}, the card {self.held!r}"


def contradicts(asked: str, claim: str, *, lang: str = "en") -> Contradiction | None:
    """What keeps a question, or a claim, from being the claim of a card; None if nothing does."""
    return None
