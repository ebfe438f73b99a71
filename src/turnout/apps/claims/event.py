"""What happens to a question of a session, from the context it is read in to the card, as values that are kept.

Each has a number in its session, given when it is stored: a list with no gap is whole. `ends` says that nothing follows
until the next question.
"""

from __future__ import annotations

from typing import Any

import msgspec

from turnout.apps.event import Event


class ChatEvent(Event, frozen=True, kw_only=True, omit_defaults=True):
    """An event of a session. Numbers and times are the store's: 0 before it is stored."""

    sequence: int = 0
    """From 1, per session."""
    at_ms: int = 0
    """When it was stored, milliseconds since 1970."""

    @property
    def ends(self) -> bool:
        """Whether the question is answered, or will not be."""
        return False


class ContextAnalysisStarted(ChatEvent, frozen=True, tag="context_analysis_started"):
    pass


class RoutingStarted(ChatEvent, frozen=True, tag="routing_started"):
    question: str = ""
    """As it stands alone."""


class RouterFallback(ChatEvent, frozen=True, tag="router_fallback"):
    reason: str


class RoutingCompleted(ChatEvent, frozen=True, tag="routing_completed"):
    mode: str
    response_time_ms: float

    @property
    def ends(self) -> bool:
        return self.mode == "exact_match"


class ContextualResponseStarted(ChatEvent, frozen=True, tag="contextual_response_started"):
    pass


class ContextualResponseCompleted(ChatEvent, frozen=True, tag="contextual_response_completed"):
    source_cards: tuple[str, ...] = ()

    @property
    def ends(self) -> bool:
        return True


class PipelineStarted(ChatEvent, frozen=True, tag="pipeline_started"):
    pipeline_id: str
    claim_text: str
    agents: tuple[str, ...] = ()
    """All that will run, in their order."""


class AgentStarted(ChatEvent, frozen=True, tag="agent_started"):
    pipeline_id: str
    agent: str


class AgentCompleted(ChatEvent, frozen=True, tag="agent_completed"):
    pipeline_id: str
    agent: str
    elapsed_ms: float
    model: str = ""
    said: str = ""
    """In one line, what it came to."""


class PipelineCompleted(ChatEvent, frozen=True, tag="pipeline_completed"):
    pipeline_id: str
    claim_card_id: str
    elapsed_ms: float


class PipelineFailed(ChatEvent, frozen=True, tag="pipeline_failed"):
    pipeline_id: str
    agent: str
    reason: str

    @property
    def ends(self) -> bool:
        return True


class ClaimCardReady(ChatEvent, frozen=True, tag="claim_card_ready"):
    pipeline_id: str
    claim_card_id: str

    @property
    def ends(self) -> bool:
        return True


AnyChatEvent = (
    ContextAnalysisStarted
    | RoutingStarted
    | RouterFallback
    | RoutingCompleted
    | ContextualResponseStarted
    | ContextualResponseCompleted
    | PipelineStarted
    | AgentStarted
    | AgentCompleted
    | PipelineCompleted
    | PipelineFailed
    | ClaimCardReady
)


def write_event(event: ChatEvent) -> bytes:
    """As JSON: what the store keeps, and what a WebSocket sends."""
    return msgspec.json.encode(event)


def read_event(body: bytes | str, sequence: int, at_ms: int) -> ChatEvent:
    """What was stored, with its number."""
    tree: dict[str, Any] = msgspec.json.decode(body)
    event: ChatEvent = msgspec.convert(tree | {"sequence": sequence, "at_ms": at_ms}, AnyChatEvent)
    return event
