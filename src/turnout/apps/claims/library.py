"""The library: claim cards in the store, found by the hybrid index, with twins linked.

A card is written to the store first, then to the index; opening the library finishes what a killed process left undone.
Many processes may share one library. Blocking: an application awaits it in a thread.

Invariant: a search never finds hidden cards, and of cards that make the same claim it finds only the first.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from turnout.core.errors import TurnoutError
from turnout.search import Filters, Index, open_index
from turnout.store.cards import CardRow, CardRows

from .card import ESSENTIAL, WHOLE, Card, ClaimType, ClaimVerdict, asks_alike, missing
from .card_document import ALL, QUESTION, card_of, document_ids, documents_of
from .gate import GUARD, TEXT_ALONE, ClaimGate, shipped_gate
from .twin import is_twin
from .wording import language_of

if TYPE_CHECKING:
    from turnout.runtime.runtime import Runtime

# Cards indexed at a time.
BATCH = 100
# Candidates that the index proposes, to choose from. On Snopes' claims 20, 30 and 50 find the same cards.
PROPOSED = 20
# How much longer the list gets if the questions of a few cards fill it: a starter card has fifteen.
LONGER = 5
# Cosine of two single words that mean the same. With MiniLM "veggies" and "vegetables" have 0.80, "kids" and "children"
# 0.90; "fruit" and "vegetable" 0.62, "bananas" and "tomatoes" 0.53.
SAME_WORD = 0.65
# Cards that a new card is compared with.
COMPARED = 5
# The setting that holds a gate, before the name of its embedder.
GATE = "claims.gate."
# Addresses and handles say nothing about a claim, but would count as rare words.
_ADDRESS = re.compile(r"https?://\S+|www\.\S+|pic\.twitter\.com/\S+|[@#](?=\w)")

_decoder = msgspec.json.Decoder(Card)


class CardRefused(TurnoutError):
    """A card that is incomplete."""


class ClaimCandidate(Struct, frozen=True):
    """A card that a question may mean."""

    card: Card
    similarity: float | None
    """Cosine of the question and the claim, -1 to 1; None without an embedder, or in a language it does not know."""
    score: float
    """What candidates are ordered by. Scores of different searches do not compare."""
    coverage: float = 0.0
    """The share of the question that the claim has, 0 to 1; rare words count for more."""


class ClaimLibrary:
    """Stores and finds cards. Thread-safe."""

    def __init__(self, rows: CardRows, index: Index, tenant: str | None = None) -> None:
        """`tenant` sees its own cards and those for all tenants; None is the operator, who sees every card."""
        self.rows = rows
        self.index = index
        self.tenant = tenant

    def of(self, tenant: str) -> ClaimLibrary:
        """The library as a tenant sees it."""
        return ClaimLibrary(self.rows, self.index, tenant)

    def _may_see(self, card: Card) -> bool:
        """Only the operator sees hidden cards."""
        return self.tenant is None or (card.visible and card.tenant in ("", self.tenant))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the index; the store stays open."""
        self.index.close()

    # --- cards

    def get(self, ident: str) -> Card | None:
        body = self.rows.get(ident)
        card = None if body is None else _decoder.decode(body)
        return card if card is not None and self._may_see(card) else None

    def list(
        self, *, claim_type: ClaimType | None = None, verdict: ClaimVerdict | None = None, hidden: bool = False
    ) -> Iterator[Card]:
        """The cards in order of their ids, with `hidden` also the hidden ones."""
        for body in self.rows.list(claim_type=claim_type, verdict=verdict, hidden=hidden):
            card = _decoder.decode(body)
            if self._may_see(card):
                yield card

    def count(self) -> int:
        return self.rows.count()

    def put(self, card: Card, *, imported: bool = False) -> Card:
        """Store a card, linked to an older one that makes the same claim; raises CardRefused with the fields it lacks.
        A card of the same id is replaced. An `imported` card may lack more: others publish less."""
        return self.put_all([card], imported=imported)[0]

    def put_all(self, cards: Iterable[Card], *, imported: bool = False) -> Sequence[Card]:
        """Store cards in this order; if one is refused, none is stored."""
        cards = [replace(card, created_at=card.created_at or datetime.now(UTC)) for card in cards]
        if imported:
            cards = [self._as_imported(card) for card in cards]
        for card in cards:
            if lacks := missing(card, ESSENTIAL if imported else WHOLE):
                raise CardRefused(f"the card {card.id or card.claim_text[:80]!r} lacks {', '.join(lacks)}")
            if QUESTION in card.id:
                raise CardRefused(f"the card {card.id!r}: an id has no control characters, choose another")
        self._write(cards)
        return [self._link(card) for card in cards]

    def _as_imported(self, card: Card) -> Card:
        """The card with the publisher's verifications marked as imported; a card hidden here stays hidden."""
        before = self.get(card.id)
        known = before.sources if before is not None else ()
        sources = tuple(one if one in known else one.as_imported() for one in card.sources)
        return replace(card, sources=sources, visible=card.visible and (before is None or before.visible))

    def set_visible(self, ident: str, visible: bool) -> bool:
        """Show or hide a card; returns whether there is one."""
        card = self.get(ident)
        if card is None:
            return False
        self.keep(replace(card, visible=visible))
        return True

    def delete(self, ident: str) -> bool:
        """Delete a card; returns whether there was one."""
        card = self.get(ident)
        if card is None:
            return False
        self.rows.delete(ident)
        self.index.delete(document_ids(card))
        return True

    def keep(self, card: Card) -> Card:
        """Replace a stored card, without checking or linking it."""
        self._write([card])
        return card

    def _write(self, cards: Sequence[Card]) -> None:
        stale = {ident for card in cards if (old := self.get(card.id)) for ident in document_ids(old)}
        self.rows.put([_row(card) for card in cards])
        self._index(cards, stale)

    def _link(self, card: Card) -> Card:
        """The card linked to the oldest one that makes the same claim."""
        # The nearest documents are its own questions.
        limit = COMPARED + sum(map(len, card.questions.values()))
        near: Iterable[tuple[str, float | None]] = self.index.nearest(card.claim_text, limit=limit)
        if not near:
            near = [(hit.id, None) for hit in self.index.search(card.claim_text, limit=limit).hits]
        others = ((other, cosine) for ident, cosine in near if ident != card.id and (other := self.get(ident)))
        twin = next((other for other, cosine in others if is_twin(card, other, cosine)), None)
        first = twin is None or (card.created_at, card.id) < (twin.created_at, twin.id)
        linked = "" if twin is None or first else twin.twin_of or twin.id
        return card if linked == card.twin_of else self.keep(replace(card, twin_of=linked))

    # --- finding

    def search(
        self, query: str, *, limit: int = 5, claim_type: ClaimType | None = None, floor: bool = True
    ) -> Sequence[ClaimCandidate]:
        """The cards a question may mean, the best first; with `floor`, without those below the gate's floor. A type
        includes those that ask alike."""
        alike = [one.value for one in ClaimType if claim_type and asks_alike(one, claim_type)]
        owners = {"owner": [ALL, self.tenant]} if self.tenant is not None else {}
        filters = Filters({**owners, **({"type": alike} if alike else {})})
        asked = _ADDRESS.sub(" ", query)
        lang = language_of(asked)
        proposed = max(PROPOSED, limit * 2)
        hits = self.index.search(asked, lang=lang, filters=filters, limit=proposed).hits
        if len(hits) == proposed and len({card_of(hit.id) for hit in hits}) < limit:
            # The wordings of a few cards fill the list: a longer one has room for others.
            hits = self.index.search(asked, lang=lang, filters=filters, limit=LONGER * proposed).hits
        by_meaning = {hit.id: vote.score for hit in hits for vote in hit.votes if vote.by == "vectors"}
        # Half by meaning, half by words. A hit that the vectors did not propose is at most as near as their last one.
        least = min(by_meaning.values(), default=0.0)
        scores: dict[str, float] = {}
        covered: dict[str, float] = {}
        cosines: dict[str, float] = {}
        # A card is as near as the nearest of its wordings.
        for hit in sorted(hits, key=lambda hit: (-(by_meaning.get(hit.id, least) + hit.coverage), -hit.score)):
            ident = card_of(hit.id)
            scores.setdefault(ident, (by_meaning.get(hit.id, least) + hit.coverage) / 2)
            covered[ident] = max(covered.get(ident, 0.0), hit.coverage)
            if hit.id in by_meaning:
                cosines[ident] = max(cosines.get(ident, -1.0), by_meaning[hit.id])
        found = []
        for ident, score in scores.items():
            card = self.get(ident)
            # A card of the demonstration model answers nothing.
            if card is None or not card.visible or card.demo or self._is_told_by_another(card):
                continue
            found.append(ClaimCandidate(card, cosines.get(ident), score, covered[ident]))
            if len(found) == limit:
                break
        if not floor:
            return self._compare(asked, found) if cosines else found
        gate = self.gate(bool(cosines))
        if cosines and least < gate.floor and gate.embedder != TEXT_ALONE:
            # Cards that the vectors did not propose are below the floor too, and need not be embedded.
            found = [one for one in found if one.similarity is not None]
        return [one for one in (self._compare(asked, found) if cosines else found) if is_near(one, gate)]

    def _compare(self, asked: str, found: Sequence[ClaimCandidate]) -> Sequence[ClaimCandidate]:
        """The candidates, with the cosine of those found by words alone."""
        embedder, lacking = self.index.embedder, [one for one in found if one.similarity is None]
        if embedder is None or not lacking:
            return found
        question, *claims = embedder.embed([asked, *(one.card.claim_text for one in lacking)])
        cosines = {one.card.id: float(claim @ question) for one, claim in zip(lacking, claims, strict=True)}
        return [replace(one, similarity=cosines.get(one.card.id, one.similarity)) for one in found]

    def alike(self, word: str, others: Sequence[str]) -> str:
        """The word among others that means the same, by the embedder; empty if there is none."""
        embedder = self.index.embedder
        if embedder is None or not others:
            return ""
        vector, *rest = embedder.embed([word, *others])
        cosine, best = max((float(one @ vector), other) for one, other in zip(rest, others, strict=True))
        return best if cosine >= SAME_WORD else ""

    def _is_told_by_another(self, card: Card) -> bool:
        """Whether a visible card makes the same claim."""
        other = self.get(card.twin_of) if card.twin_of else None
        return other is not None and other.visible

    # --- the gate

    def gate(self, by_meaning: bool = True) -> ClaimGate:
        """The gate of the embedder in use: one fitted here with the current guard, else the one that ships, else that
        of words alone, which is also used without an embedder."""
        embedder = self.index.embedder
        for name in (embedder.name, TEXT_ALONE) if by_meaning and embedder is not None else (TEXT_ALONE,):
            kept = self.rows.setting(GATE + name)
            own = msgspec.json.decode(kept, type=ClaimGate) if kept else None
            if gate := own if own is not None and own.guard == GUARD else shipped_gate(name):
                return gate
        raise TurnoutError("the gate of words alone does not ship with this installation: install Turnout again")

    def keep_gate(self, gate: ClaimGate) -> None:
        """Use this gate from now on, in every process that shares the store."""
        self.rows.keep(GATE + gate.embedder, msgspec.json.encode(gate).decode())

    # --- the index

    def _index(self, cards: Sequence[Card], stale: Iterable[str] = ()) -> None:
        documents = {document.id: document for card in cards if card.visible for document in documents_of(card)}
        self.index.upsert(documents.values())
        self.index.delete({*stale, *(card.id for card in cards)} - documents.keys())
        self.rows.set_indexed([(card.id, _encode(card)) for card in cards])

    def catch_up(self) -> int:
        """Index the cards that another process left unindexed; returns how many."""
        visible = self.rows.visible()
        indexed: dict[str, set[str]] = {}
        for ident in self.index.ids():
            indexed.setdefault(card_of(ident), set()).add(ident)
        self.index.delete(ident for card in indexed.keys() - visible.keys() for ident in indexed[card])
        behind = [ident for ident, done in visible.items() if not done or ident not in indexed.get(ident, ())]
        for at in range(0, len(behind), BATCH):
            batch = behind[at : at + BATCH]
            stale = [ident for card in batch for ident in indexed.get(card, ())]
            self._index([card for ident in batch if (card := self.get(ident))], stale)
        self.index.fill_vectors()
        return len(behind)


def is_near(one: ClaimCandidate, gate: ClaimGate) -> bool:
    """Whether a candidate reaches the gate's floor."""
    return (one.coverage if gate.embedder == TEXT_ALONE else one.similarity or 0.0) >= gate.floor


def open_library(runtime: Runtime) -> ClaimLibrary:
    """The library of a runtime's store, with the embedder in use; an empty library gets the cards that ship with
    Turnout. Blocking."""
    from turnout.models.remote import choose_embedder

    store = runtime.store
    if store is None:
        raise TurnoutError("claims need a store: start with one, or name one with --db")
    embedder = choose_embedder(runtime.models.slots, runtime.models.client)
    file = Path(store.backend.where)
    # PostgreSQL holds both; SQLite has one writer for each file, and the log is written all the time.
    where = str(file.with_name(f"{file.stem}-claims.db")) if store.backend.name == "sqlite" else store.url
    library = ClaimLibrary(store.cards, open_index(where, "claims", embedder=embedder))
    library.catch_up()
    if not library.count():
        from .exchange import starter_cards

        library.put_all(starter_cards())
    return library


def _row(card: Card) -> CardRow:
    created = card.created_at.timestamp() if card.created_at else time.time()
    return CardRow(
        id=card.id,
        claim_text=card.claim_text,
        claim_type=card.claim_type_category,
        verdict=card.verdict,
        twin_of=card.twin_of,
        visible=card.visible,
        indexed=False,
        created_ms=int(created * 1000),
        body=_encode(card),
    )


def _encode(card: Card) -> str:
    return msgspec.json.encode(card).decode()
