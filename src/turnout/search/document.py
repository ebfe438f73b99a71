"""The values that go into a search index and come out of it: documents, filters, hits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

from msgspec import Struct, json

Attributes = Mapping[str, str | Sequence[str]]
"""What filters match: a name with one value or several."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class IndexDocument(Struct, frozen=True, omit_defaults=True):
    """A card, a page, a note, a file. It replaces any document with the same id."""

    id: str
    text: str
    title: str = ""
    lang: str = ""
    """The code of its language, such as `en`; guessed if empty."""
    attributes: Attributes = {}
    updated_at: datetime | None = None

    def hash(self) -> str:
        """Covers everything but the time: touching a file does not change its document."""
        content = (self.id, self.title, self.text, self.lang, spread(self.attributes))
        return hashlib.sha256(json.encode(content, order="sorted")).hexdigest()


class Filters(Struct, frozen=True):
    """Which documents are searched. All conditions must hold."""

    attributes: Attributes = {}
    """For each name, the document must have one of the values."""
    langs: Sequence[str] = ()
    """One of these languages; any if empty."""
    since: datetime | None = None
    """Updated then or later."""
    until: datetime | None = None
    """Updated before then."""

    def values(self) -> dict[str, str | int | None]:
        """The parameters of the filter clause."""
        return {
            "attributes": to_json(spread(self.attributes)),
            "langs": to_json(list(self.langs)) if self.langs else None,
            "since": to_ms(self.since),
            "until": to_ms(self.until),
        }


class Vote(Struct, frozen=True):
    """Which list found a document, and how."""

    by: Literal["text", "vectors"]
    rank: int
    """1 is the first."""
    score: float
    """On the list's own scale."""


class Hit(Struct, frozen=True, omit_defaults=True):
    """A matching document with its best passage."""

    id: str
    title: str
    lang: str
    text: str
    """The passage."""
    start: int
    """The passage's offset in the document's text."""
    score: float
    """What the hits are ordered by. Scores of two searches cannot be compared."""
    coverage: float
    """How much of the question's words the passage contains, 0 to 1; rare words count for more."""
    votes: tuple[Vote, ...]
    attributes: Mapping[str, Sequence[str]] = {}
    updated_at: datetime | None = None


Voting = Literal["voted", "no embedder", "no vectors", "other language"]


class Results(Struct, frozen=True):
    """The hits, best first, and how the question was read."""

    hits: tuple[Hit, ...]
    lang: str
    """The language the question was read in; empty if unknown."""
    words: tuple[str, ...]
    """The words that were searched for."""
    vectors: Voting
    """Whether the vectors had a vote, or why not."""
    unknown: float = 0.0
    """How much of the question's words no passage contains, 0 to 1; rare words count for more."""
    passages: int = 0
    """How many the index has."""


class Changes(Struct, frozen=True):
    """What an update did, in documents."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    deleted: int = 0


def spread(attributes: Attributes) -> dict[str, list[str]]:
    """Every attribute as a sorted list of values."""
    return {name: sorted({one} if isinstance(one, str) else set(one)) for name, one in sorted(attributes.items())}


def to_json(value: object) -> str:
    return json.encode(value).decode()


def to_ms(at: datetime | None) -> int | None:
    """Milliseconds since 1970; a time without a zone is UTC."""
    if at is None:
        return None
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(milliseconds=1)


def from_ms(ms: int | None) -> datetime | None:
    return None if ms is None else _EPOCH + timedelta(milliseconds=ms)
