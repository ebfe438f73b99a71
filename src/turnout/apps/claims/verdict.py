"""The verdict of the router agent, and the guards that it must pass.

An exact match stands only if the card exists, asks the same kind of question, is as near as the gate requires and says
the same; contextual needs cards that exist. Otherwise the question is a new claim, with the reason. The guards check a
model's verdict as strictly as the local decision checks its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from turnout.apps.converse import json_object
from turnout.core.verdict import Reason

from .card import Card, ClaimType, asks_alike, read_type
from .kind import type_of
from .library import ClaimCandidate, ClaimLibrary
from .local import ClaimChoice, ClaimMode, decide_locally, find_doubt
from .match import compare
from .wording import bare, contradiction

# The most cards a synthesis rests on: as many as a reader compares.
MOST_CARDS = 6
# Characters kept of the agent's reasoning.
REASONING = 600

VERDICT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "mode": {"type": "string", "enum": list(get_args(ClaimMode))},
        "card_ids": {"type": "array", "items": {"type": "string"}},
        "claim_type": {"type": "string", "enum": [one.value for one in ClaimType]},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "reasoning": {"type": "string"},
    },
    "required": ["mode", "card_ids", "claim_type", "confidence", "reasoning"],
    "additionalProperties": False,
}


class AgentVerdict(Struct, frozen=True):
    """What the agent answers."""

    mode: ClaimMode
    confidence: Annotated[float, Meta(ge=0.0, le=1.0)]
    reasoning: str
    card_ids: tuple[str, ...] = ()
    claim_type: str = ""


DEMO_ALONE = Reason("guard.demo", "the card was made by the demonstration model, and a real one is here: a new claim")
_verdict = msgspec.json.Decoder(AgentVerdict)


def read_verdict(text: str) -> AgentVerdict:
    """The verdict in a reply; raises an error of `UNREADABLE` for anything else."""
    return _verdict.decode(json_object(text))


def without_demo(choice: ClaimChoice, library: ClaimLibrary, takes_demo: bool) -> ClaimChoice:
    """The choice without cards that may not be shown; a new claim if none of its cards is left. Blocking."""
    cards = tuple(ident for ident in choice.cards if find_card(ident, library, takes_demo))
    if choice.cards and not cards:
        return replace(choice, mode="novel_claim", cards=(), reasons=(*choice.reasons, DEMO_ALONE))
    return replace(choice, cards=cards)


def guard(
    verdict: AgentVerdict,
    question: str,
    library: ClaimLibrary,
    shown: Sequence[str],
    *,
    is_alternative: bool = False,
    takes_demo: bool = True,
) -> ClaimChoice:
    """The choice that the agent's verdict allows. `is_alternative`: the question proposes another explanation of what
    was said. `takes_demo`: cards of the demonstration model may be shown. Blocking."""
    reasoning = " ".join(verdict.reasoning.split())[:REASONING]
    first = Reason("agent.answer", reasoning or f"the agent says {verdict.mode}, without a reason")
    kind = read_type(verdict.claim_type) or type_of(question)[0]
    found = tuple(library.search(question))
    choice = ClaimChoice("novel_claim", verdict.confidence, (first,), (), kind, found)
    if verdict.mode == "novel_claim":
        return choice
    named = dict.fromkeys(verdict.card_ids[: 2 * MOST_CARDS])
    known = [card for ident in named if (card := find_card(ident, library, takes_demo))]
    if not known and any(find_card(ident, library, takes_demo=True) for ident in named):
        return replace(choice, reasons=(first, DEMO_ALONE))
    if verdict.mode == "contextual":
        known = known or [card for ident in shown if (card := find_card(ident, library, takes_demo))]
        if known:
            cards = tuple(card.id for card in known[:MOST_CARDS])
            return replace(choice, mode="contextual", cards=cards)
        why = Reason("guard.no_card", "contextual needs a card that exists, and none of those named does: a new claim")
        return replace(choice, reasons=(first, why))
    why_not = _why_not_exact(question, known, kind, found, library)
    if is_alternative:
        why_not = Reason("guard.alternative", "another explanation of what was said is a claim of its own: a new claim")
    if why_not is not None:
        return replace(choice, reasons=(first, why_not))
    return replace(choice, mode="exact_match", cards=(known[0].id,))


def _why_not_exact(
    question: str,
    known: Sequence[Card],
    kind: ClaimType,
    found: Sequence[ClaimCandidate],
    library: ClaimLibrary,
) -> Reason | None:
    """Why the first of the `known` cards does not answer the question; None if it does."""
    if not known:
        return Reason("guard.no_card", "the card that the agent names does not exist: a new claim")
    card = known[0]
    if not asks_alike(card.claim_type_category, kind):
        text = f"the card asks a {card.claim_type_category} question, this one is {kind}: a new claim"
        return Reason("guard.type", text)
    # A question that repeats a wording of the card means it, whatever the gate says.
    locally = decide_locally(question, library)
    if locally.mode == "exact_match" and card.id in locally.cards:
        return None
    question = bare(question)
    candidate = next((one for one in found if one.card.id == card.id), None)
    if candidate is None:
        return Reason("guard.similarity", f"the search does not find the card {card.id} for this question: a new claim")
    features = compare(question, [candidate, *(one for one in found if one is not candidate)])
    gate = library.gate(features.similarity is not None)
    if not gate.admits(features):
        near, needs = gate.score(features), gate.threshold
        text = f"the card is {near:.2f} near, and an exact match needs {needs:.2f}: a new claim"
        return Reason("guard.similarity", text)
    against = contradiction(question, card)
    if against is not None:
        return Reason(f"guard.polarity.{against.kind}", f"the card says something else ({against}): a new claim")
    if doubt := find_doubt(question, card):
        return Reason("guard.doubt", f"the card may say something else: {doubt}: a new claim")
    return None


def find_card(ident: str, library: ClaimLibrary, takes_demo: bool) -> Card | None:
    """The card if it may be shown; of twins, the first."""
    card = library.get(ident)
    if card is not None and card.twin_of:
        card = library.get(card.twin_of)
    return card if card is not None and card.visible and (takes_demo or not card.demo) else None
