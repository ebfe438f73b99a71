"""The cards shown in a session, which a question such as "Which is more likely?" refers to.

They are cached here, and any process finds them in the log. Without a session, the client's earlier questions show
them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import islice

from turnout.core.errors import StoreError
from turnout.core.query import Turn
from turnout.store import Store

from .library import ClaimLibrary
from .local import decide_locally

# Cards remembered of a session: two for each turn that the router agent reads.
REMEMBERED = 10
# Sessions cached here; others are read from the log.
SESSIONS = 10_000
# Questions looked up of a session, and of a client without one.
LOOKED_UP, GUESSED = 5, 3


class ShownCards:
    """The cards shown in all sessions of a process."""

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._shown: OrderedDict[tuple[str, str], tuple[str, ...]] = OrderedDict()

    def add(self, tenant: str, session: str, cards: Iterable[str]) -> None:
        """Note the cards a session was just shown."""
        key, new = (tenant, session), tuple(cards)
        before = [card for card in self._shown.pop(key, ()) if card not in new]
        self._shown[key] = (*before, *new)[-REMEMBERED:]
        while len(self._shown) > SESSIONS:
            self._shown.popitem(last=False)

    def find(self, tenant: str, session: str, turns: Sequence[Turn], library: ClaimLibrary) -> tuple[str, ...]:
        """The cards of a session, the last one last. Blocking."""
        known = self._shown.get((tenant, session)) or self._logged(tenant, session)
        if known:
            return known
        asked = [turn.text for turn in turns if turn.role == "user" and turn.text.strip()]
        found = (decide_locally(text, library) for text in asked[-GUESSED:])
        return tuple(dict.fromkeys(card for one in found if one.mode == "exact_match" for card in one.cards))

    def _logged(self, tenant: str, session: str) -> tuple[str, ...]:
        if self._store is None:
            return ()
        records = self._store.records(tenant)
        found: list[str] = []
        try:
            for one in islice(records.decisions(session=session), LOOKED_UP):
                outcome = records.outcome(one.id)
                cards = outcome.extra.get("claim_cards_referenced") if outcome is not None else None
                # A log that keeps no texts has none.
                found[:0] = [card for card in cards or () if isinstance(card, str)]
        except StoreError:
            return ()
        return tuple(dict.fromkeys(found))[-REMEMBERED:]
