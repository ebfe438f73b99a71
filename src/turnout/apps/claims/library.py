"""The library: claim cards in the store, found by the one hybrid index, twins linked.

A card is written to the store first and to the index after it; what a killed process left undone is done when the
library is next opened. Many processes may share one library. Blocking: an application awaits it in a thread.

Invariant: what is hidden is never found, and of cards that say the same only the first is.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from turnout.core.errors import TurnoutError
from turnout.search import Document, Filters, Hit, Index, open_index
from turnout.store.cards import CardRow, CardRows

from .card import ESSENTIAL, WHOLE, Card, ClaimType, ClaimVerdict, asks_alike, missing
from .gate import ClaimGate

if TYPE_CHECKING:
    from turnout.runtime.runtime import Runtime

# Cards that are written in one transaction.
BATCH = 100
# Candidates that are looked at for each that is asked for: twins fall out.
SPARE = 2
ENGLISH = "en"

_decoder = msgspec.json.Decoder(Card)


class CardRefused(TurnoutError):
    """A card that is not whole."""


class ClaimCandidate(Struct, frozen=True):
    """A card that may be meant."""

    card: Card
    similarity: float | None
    """Cosine of the question and the claim, -1 to 1; None without an embedder, or in a language it does not know."""
    score: float
    """What candidates are ordered by. Scores of two searches do not compare."""
    coverage: float = 0.0
    """How much of what was asked stands in the claim, 0 to 1; rare words count for more."""


class ClaimLibrary:
    """Cards, kept and found. Thread-safe."""

    def __init__(self, rows: CardRows, index: Index, gate: ClaimGate | None = None) -> None:
        """`gate`: of the embedder that `index` has; by default the one the store keeps, or the one that ships."""
        self.rows = rows
        self.index = index
        self.gate = gate

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """The index is closed; the store is its owner's."""
        self.index.close()

    # --- cards

    def get(self, ident: str) -> Card | None:
        body = self.rows.get(ident)
        return None if body is None else _decoder.decode(body)

    def list(
        self, *, claim_type: ClaimType | None = None, verdict: ClaimVerdict | None = None, hidden: bool = False
    ) -> Iterator[Card]:
        """All cards, by id; those that are hidden only if they are asked for."""
        for body in self.rows.list(claim_type=claim_type, verdict=verdict, hidden=hidden):
            yield _decoder.decode(body)

    def count(self) -> int:
        return self.rows.count()

    def put(self, card: Card, *, imported: bool = False) -> Card:
        """Keep a card, linked to the one that says the same if there is one; raises CardRefused with what is missing.
        One of the same id is replaced. One that was `imported` need not be whole: others publish less."""
        return self.put_all([card], imported=imported)[0]

    def put_all(self, cards: Iterable[Card], *, imported: bool = False) -> Sequence[Card]:
        """Keep cards, in their order; the first that is refused ends it before any is kept."""
        cards = list(cards)
        for card in cards:
            if lacks := missing(card, ESSENTIAL if imported else WHOLE):
                raise CardRefused(f"the card {card.id or card.claim_text[:80]!r} lacks {', '.join(lacks)}")
        kept = [replace(card, created_at=card.created_at or datetime.now(UTC)) for card in cards]
        self.rows.put([_row(card) for card in kept])
        self._index(kept)
        return kept

    def hide(self, ident: str) -> bool:
        """Let a card no longer be found; whether there is one."""
        card = self.get(ident)
        if card is None:
            return False
        self.put(replace(card, visible=False), imported=True)
        return True

    # --- finding

    def search(
        self, query: str, *, limit: int = 5, claim_type: ClaimType | None = None, floor: bool = True
    ) -> Sequence[ClaimCandidate]:
        """The cards a question may mean, the best first; with `floor`, none that is about something else. A type
        stands for those that ask alike, too."""
        alike = [one.value for one in ClaimType if claim_type and asks_alike(one, claim_type)]
        filters = Filters({"type": alike}) if alike else None
        found = self.index.search(query, filters=filters, limit=limit * SPARE)
        return [one for hit in found.hits if (one := self._candidate(hit))][:limit]

    def _candidate(self, hit: Hit) -> ClaimCandidate | None:
        card = self.get(hit.id)
        if card is None or not card.visible or card.twin_of:
            return None
        cosine = next((vote.score for vote in hit.votes if vote.by == "vectors"), None)
        return ClaimCandidate(card, cosine, hit.score, hit.coverage)

    # --- the index

    def _index(self, cards: Sequence[Card]) -> None:
        self.index.upsert(_document(card) for card in cards if card.visible)
        self.index.delete(card.id for card in cards if not card.visible)
        for card in cards:
            self.rows.set_indexed(card.id, _encode(card))

    def catch_up(self) -> int:
        """Index what another process left undone; how many cards that were."""
        visible, there = self.rows.visible(), set(self.index.ids())
        self.index.delete(there - visible.keys())
        behind = [ident for ident, indexed in visible.items() if not indexed or ident not in there]
        for at in range(0, len(behind), BATCH):
            self._index([card for ident in behind[at : at + BATCH] if (card := self.get(ident))])
        self.index.fill_vectors()
        return len(behind)


def open_library(runtime: Runtime) -> ClaimLibrary:
    """The library of a runtime's store, with the embedder that is in use there. Blocking."""
    from turnout.models.remote import choose_embedder

    if runtime.store is None:
        raise TurnoutError("claims need a store: start with one, or name one with --db")
    embedder = choose_embedder(runtime.models.slots, runtime.models.client)
    backend = runtime.store.backend
    if backend.name == "sqlite":
        where = str(Path(backend.where).with_name(Path(backend.where).stem + "-claims.db"))
    else:
        where = runtime.store.url
    library = ClaimLibrary(runtime.store.cards, open_index(where, "claims", embedder=embedder))
    library.catch_up()
    return library


def _document(card: Card) -> Document:
    """A card is found by its claim: what its answer says is about more than that."""
    attributes = {"type": card.claim_type_category.value, "verdict": card.verdict.value}
    return Document(card.id, card.claim_text, lang=card.lang, attributes=attributes, updated_at=card.created_at)


def _row(card: Card) -> CardRow:
    created = card.created_at.timestamp() if card.created_at else time.time()
    return CardRow(
        card.id,
        card.claim_text,
        card.claim_type_category,
        card.verdict,
        card.twin_of,
        card.visible,
        False,
        int(created * 1000),
        _encode(card),
    )


def _encode(card: Card) -> str:
    return msgspec.json.encode(card).decode()
