"""Claim cards as the store has them: a body that is JSON, and the columns that lists ask about. What a card is, the
application that makes them knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from . import sql
from .backend import Backend, Value

# Cards read at a time when all of them are.
PAGE = 500


class CardRow(Struct, frozen=True):
    """A card's columns, in their order."""

    id: str
    claim_text: str
    claim_type: str
    verdict: str
    twin_of: str
    visible: bool
    indexed: bool
    """Whether the search index has it as it is."""
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
        """The bodies, by id from `above` on, a page at a time."""
        asked: dict[str, Value] = {"claim_type": claim_type, "verdict": verdict, "hidden": hidden, "most": PAGE}
        while page := self._backend.read(sql.CARDS, {**asked, "above": above}):
            yield from (body for _, body in page)
            above = page[-1][0]

    def count(self) -> int:
        return int(self._backend.read(sql.COUNT_CARDS, {})[0][0])

    def put(self, rows: Sequence[CardRow]) -> None:
        """Keep cards, all of them or none; one of the same id is replaced."""
        columns = CardRow.__struct_fields__
        with self._backend.transaction() as changes:
            changes.many(sql.KEEP_CARD, [tuple(getattr(row, name) for name in columns) for row in rows])

    def delete(self, ident: str) -> None:
        self._backend.change(sql.DELETE_CARD, {"id": ident})

    def visible(self) -> dict[str, bool]:
        """The ids of the cards that may be found, and whether the index has each as it is."""
        return {ident: bool(indexed) for ident, indexed in self._backend.read(sql.VISIBLE_CARDS, {})}

    def set_indexed(self, cards: Sequence[tuple[str, str]]) -> None:
        """Say that the index has these cards, by id and body, as far as they are still these."""
        with self._backend.transaction() as changes:
            changes.many(sql.CARD_INDEXED, [(True, ident, body) for ident, body in cards])

    def setting(self, name: str) -> str | None:
        """What was kept under a name."""
        found = self._backend.read(sql.SETTING, {"name": name})
        return found[0][0] if found else None

    def keep(self, name: str, setting: str) -> None:
        with self._backend.transaction() as changes:
            changes.many(sql.SET_SETTING, [(name, setting)])
