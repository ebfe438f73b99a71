"""What goes into a search index and what comes out: documents, filters, hits. Values alone; where they are kept is not
their affair."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec
from msgspec import Struct

Attributes = Mapping[str, str | Sequence[str]]
"""What filters ask about: a name with a value, or with several."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class IndexDocument(Struct, frozen=True, omit_defaults=True):
    """A card, a page, a note, a file. A document of the same id takes its place."""

    id: str
    text: str
    title: str = ""
    lang: str = ""
    """The code of its language, `en`; guessed where it is not given."""
    attributes: Attributes = {}
    updated_at: datetime | None = None

    def hash(self) -> str:
        """Over all that is written down, but for the time: a file that was touched is not one that was changed."""
        said = (self.id, self.title, self.text, self.lang, spread(self.attributes))
        return hashlib.sha256(msgspec.json.encode(said, order="sorted")).hexdigest()


class Filters(Struct, frozen=True):
    """Which documents are asked for. All that is said must hold."""

    attributes: Attributes = {}
    """For each name, a document must have one of the values."""
    langs: Sequence[str] = ()
    """One of these languages; without any, whichever."""
    since: datetime | None = None
    """Updated then or later."""
    until: datetime | None = None
    """Updated before then."""

    def values(self) -> dict[str, str | int | None]:
        """As the databases take them."""
        return {
            "attributes": msgspec.json.encode(spread(self.attributes)).decode(),
            "langs": msgspec.json.encode(list(self.langs)).decode() if self.langs else None,
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
    """A document that was found, with the passage that fits best."""

    id: str
    title: str
    lang: str
    text: str
    """The passage."""
    start: int
    """Where in the document's text the passage begins; it ends `len(text)` characters on."""
    score: float
    """What the hits are ordered by. Scores of two searches do not compare."""
    coverage: float
    """How much of what was asked for stands in the passage, 0 to 1; rare words count for more."""
    votes: tuple[Vote, ...]
    attributes: Mapping[str, Sequence[str]] = {}
    updated_at: datetime | None = None


Voting = Literal["voted", "no embedder", "no vectors", "other language"]


class Results(Struct, frozen=True):
    """The hits, the best first, and how the question was read."""

    hits: tuple[Hit, ...]
    lang: str
    """The language it was taken to be in; empty where unknown."""
    words: tuple[str, ...]
    """What was looked for."""
    vectors: Voting
    """Whether the vectors had a vote, or why not."""
    unknown: float = 0.0
    """How much of what was asked for stands in no passage at all, 0 to 1; rare words count for more."""
    passages: int = 0
    """How many there are in all."""


class Changes(Struct, frozen=True):
    """What an update did, in documents."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    deleted: int = 0


def spread(attributes: Attributes) -> dict[str, list[str]]:
    """Every attribute as a list of values, in one order."""
    return {name: sorted({said} if isinstance(said, str) else set(said)) for name, said in sorted(attributes.items())}


def to_ms(at: datetime | None) -> int | None:
    """Milliseconds since 1970; a time without a zone is UTC."""
    if at is None:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).__sub__(_EPOCH) // timedelta(milliseconds=1)


def from_ms(ms: int | None) -> datetime | None:
    return None if ms is None else _EPOCH + timedelta(milliseconds=ms)
