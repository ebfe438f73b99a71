"""A contradiction between a question and a card, and whether a text has a word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

from .reading import ClaimReading, Word, same_key

ContradictionKind = Literal["negation", "opposite", "roles", "number", "name"]
# The least letters of an abbreviation that is the beginning of the word: "Fed".
SHORT: Final = 3


class Contradiction(Struct, frozen=True):
    """The difference that makes a question and a card different claims."""

    kind: ContradictionKind
    said: str
    """In the question."""
    held: str
    """In the card's claim."""

    def __str__(self) -> str:
        return f"{self.kind}: the question says {self.said!r}, the card {self.held!r}"


def stands(word: Word, reading: ClaimReading) -> bool:
    """Whether a text has a word, also in another form or as an abbreviation."""
    keys = [other.key for other in reading.words]
    if any(same_key(word.key, key) for key in keys):
        return True
    # One of them may be the initials of the other.
    if any(is_short_for((word.key,), keys[at : at + len(word.key)]) for at in range(len(keys))):
        return True
    return any(word.key[0] == other.key[0] and other.raw.isupper() and word.name for other in reading.words)


def is_short_for(said: Sequence[str], held: Sequence[str]) -> bool:
    """Whether one word is the initials of the other words, or the beginning of the first: EU, Fed."""
    if len(said) != 1 or not held:
        return False
    return said[0] == "".join(key[0] for key in held) or (len(said[0]) >= SHORT and held[0].startswith(said[0]))
