"""What a caller asks, and what the layers read of it.

A `Query` is kept as the caller gave it. A `Reading` is derived from it once, before the first layer: the user's own
words, folded, scanned for every phrase of the profile in one pass. Layers judge readings, so the text is scanned once
and every layer sees the same view of it.
"""

from __future__ import annotations

from msgspec import Struct

MAX_CHARACTERS = 16 * 1024 * 1024
"""The longest text that is routed: the gateway's own limit for one string, 16 Mi characters."""


class Turn(Struct, frozen=True, gc=False):
    """One message of a conversation."""

    role: str
    text: str


class Query(Struct, frozen=True, omit_defaults=True, gc=False):
    """What the caller asks. Either `text`, or `turns` whose last user message is the question."""

    text: str = ""
    turns: tuple[Turn, ...] = ()
    attachments: tuple[str, ...] = ()
    declared: str | None = None
    """A route the caller asks for by name."""
    ceiling: str | None = None
    """The most expensive route this caller may have, in a profile whose routes are ordered."""
    session: str | None = None
    tenant: str | None = None
    intents: tuple[str, ...] = ()
    """Earlier intents of the session, oldest first, for a question that refers to one of them."""


class Reading(Struct, frozen=True, gc=False):
    """A query as the layers read it."""

    query: Query
    words: str
    """The user's own words, without wrappers and packed context, otherwise unchanged."""
    folded: str
    """The words, normalised for matching."""
    units: int
    """Length of the words in UTF-16 units, without invisible characters."""
    hits: tuple[int, ...] = ()
    """Ids of the profile's patterns found in the folded words, ascending."""
    notes: tuple[str, ...] = ()
    """Codes of the steps that changed the text, such as `extract.packed` or `scan.window`."""
    muted: frozenset[str] = frozenset()
    """Signals that a counterfactual leaves out."""

    @property
    def blank(self) -> bool:
        """Whether nothing was asked: there are no words, and none were removed."""
        return not self.folded and not self.notes
