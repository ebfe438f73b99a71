"""Claim cards in the store: a JSON body and the columns that lists filter by. The application that makes the cards
defines the body."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import astuple

from . import sql
from .backend import Backend, Value

# Cards read at a time.
PAGE = 500


class CardRow(Struct, frozen=True):
    """A card's columns, in the table's order."""

    id: str
    claim_text: str
    claim_type: str
    verdict: str
    twin_of: str
    visible: bool
    indexed: bool
    """Whether the search index has this version of it."""
    created_ms: int
    body: str


class CardRows:
    """The cards of one database."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def get(self, ident: str) -> str | None:
        """The body of a card."""
        found = self._backend.read(sql.CARD, {"id": ident})
        return found[0][0] if found else None

    def list(
        self, *, claim_type: str | None = None, verdict: str | None = None, hidden: bool = False, above: str = ""
    ) -> Iterator[str]:
        """The bodies of cards with an id above `above`, in order, read a page at a time."""
        values: dict[str, Value] = {"claim_type": claim_type, "verdict": verdict, "hidden": hidden, "most": PAGE}
        while page := self._backend.read(sql.CARDS, {**values, "above": above}):
            yield from (body for _, body in page)
            above = page[-1][0]

    def count(self) -> int:
        return int(self._backend.read(sql.COUNT_CARDS, {})[0][0])

    def put(self, rows: Sequence[CardRow]) -> None:
        """Add or replace cards, all of them or none."""
        with self._backend.transaction() as changes:
            changes.many(sql.KEEP_CARD, [astuple(row) for row in rows])

    def delete(self, ident: str) -> None:
        self._backend.change(sql.DELETE_CARD, {"id": ident})

    def visible(self) -> dict[str, bool]:
        """The ids of visible cards, and whether the index has the current version of each."""
        return {ident: bool(indexed) for ident, indexed in self._backend.read(sql.VISIBLE_CARDS, {})}

    def set_indexed(self, cards: Sequence[tuple[str, str]]) -> None:
        """Mark cards, given by id and body, as indexed; one whose body has changed stays unmarked."""
        with self._backend.transaction() as changes:
            changes.many(sql.CARD_INDEXED, [(True, ident, body) for ident, body in cards])

    def setting(self, name: str) -> str | None:
        """The setting kept under a name."""
        found = self._backend.read(sql.SETTING, {"name": name})
        return found[0][0] if found else None

    def keep(self, name: str, setting: str) -> None:
        with self._backend.transaction() as changes:
            changes.many(sql.SET_SETTING, [(name, setting)])
