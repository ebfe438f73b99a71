"""The answer to a question, as a value and as text."""

from __future__ import annotations

from msgspec import Struct

from turnout.apps.event import Event
from turnout.core.decision import Decision

from .card import Card
from .local import ClaimMode
from .pipeline import AuditFailed
from .synthesis import Synthesis


class AuditStarted(Struct, frozen=True):
    """A new audit was started; its events are those of the session."""

    pipeline_id: str
    session_id: str


class ClaimAnswer(Event, frozen=True, tag="claim_answer"):
    mode: ClaimMode
    response: Card | Synthesis | AuditStarted
    reasoning: str
    """Never empty."""
    decision_id: str
    session_id: str

    @property
    def result(self) -> str:
        """The answer as text, for a chat."""
        return tell_answer(self.response)


class AuditEnded(Event, frozen=True, tag="audit_ended"):
    """The end of an audit that a question started."""

    response: Card | AuditFailed

    @property
    def result(self) -> str:
        """The result as text, for a chat."""
        return tell_audited(self.response)


def reasoning(decision: Decision) -> str:
    """The reasons in one line, as in the log's view `router_decisions`."""
    return "; ".join(reason.text or reason.code for reason in decision.reasons)


def tell_answer(response: Card | Synthesis | AuditStarted) -> str:
    if isinstance(response, Card):
        return tell_card(response)
    if isinstance(response, AuditStarted):
        return f"A new audit has begun: {response.pipeline_id}"
    cards = "\n".join(
        f"[{one.number}] {one.claim_text} ({one.verdict}, card {one.id})" for one in response.source_cards
    )
    label = "Synthesized from audited cards, not audited itself." if cards else ""
    return "\n\n".join(part for part in (response.synthesized_response, cards, label) if part)


def tell_card(card: Card) -> str:
    sources = "\n".join(f"- {one.citation}" for one in card.sources)
    head = f"{card.claim_text}\nVerdict: {card.verdict} ({card.confidence_level} confidence)"
    demo = "Made by the demonstration model: it shows how an audit goes, and says nothing of the claim."
    parts = (demo if card.demo else "", head, card.short_answer, f"Sources:\n{sources}" if sources else "")
    return "\n\n".join(part for part in parts if part)


def tell_audited(result: Card | AuditFailed) -> str:
    """The result of an audit as text."""
    if isinstance(result, Card):
        return tell_card(result)
    return f"The audit ended without a card: {result.agent}: {result.reason}"
