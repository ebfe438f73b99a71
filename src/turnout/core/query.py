"""What a caller asks, and what the layers read of it.

A `Query` is the caller's own statement and is kept as given. A `Reading` is derived from it once, before the first
layer: the user's own words, folded, scanned for every phrase of the profile in one pass. Layers judge readings, so no
layer scans text twice and none sees another view of it than its neighbours.
"""

from __future__ import annotations

from msgspec import Struct

MAX_CHARACTERS = 16 * 1024 * 1024
"""The longest text a decision is promised for: the gateway's own limit for one string, 16 Mi characters."""


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
    """A route the caller asks for by name; honoured through the policy and still logged."""
    ceiling: str | None = None
    """The most expensive route this caller may have, in a profile whose routes are ordered."""
    session: str | None = None
    tenant: str | None = None
    intents: tuple[str, ...] = ()
    """Earlier intents of the session, oldest first, for a question that points to one of them."""


class Reading(Struct, frozen=True, gc=False):
    """A query as the layers read it."""

    query: Query
    words: str
    """The user's own words: wrappers and packed context removed, otherwise untouched."""
    folded: str
    """The words normalised for matching."""
    units: int
    """Length of the words in UTF-16 units, invisible characters not counted."""
    hits: tuple[int, ...] = ()
    """Ids of the profile's patterns found in the folded words, ascending."""
    notes: tuple[str, ...] = ()
    """Codes of what was done to get here, such as `extract.packed` or `scan.window`."""
    muted: frozenset[str] = frozenset()
    """Signals a counterfactual asks to leave out."""

    @property
    def blank(self) -> bool:
        """Nothing was asked: no words, and none were taken away either."""
        return not self.folded and not self.notes
