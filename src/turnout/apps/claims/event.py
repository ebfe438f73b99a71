"""The events of a session, from the analysis of a question to its card, as values that the store keeps.

The store numbers the events of a session, so that a gap shows. After an event that `ends_question` nothing follows
until the next question.
"""

from __future__ import annotations

from typing import Any

import msgspec

from turnout.apps.event import Event


class ChatEvent(Event, frozen=True, kw_only=True, omit_defaults=True):
    """An event of a session. The store sets its number and time; both are 0 before that."""

    sequence: int = 0
    """From 1, per session."""
    at_ms: int = 0
    """When it was stored, milliseconds since 1970."""


class ContextAnalysisStarted(ChatEvent, frozen=True, tag="context_analysis_started"):
    pass


class RoutingStarted(ChatEvent, frozen=True, tag="routing_started"):
    question: str = ""
    """Reworded so that it stands alone."""


class RouterFallback(ChatEvent, frozen=True, tag="router_fallback"):
    reason: str


class RoutingCompleted(ChatEvent, frozen=True, tag="routing_completed"):
    mode: str
    response_time_ms: float


class ContextualResponseStarted(ChatEvent, frozen=True, tag="contextual_response_started"):
    pass


class ContextualResponseCompleted(ChatEvent, frozen=True, tag="contextual_response_completed"):
    source_cards: tuple[str, ...] = ()


class PipelineStarted(ChatEvent, frozen=True, tag="pipeline_started"):
    pipeline_id: str
    claim_text: str
    agents: tuple[str, ...] = ()
    """All that will run, in order."""


class AgentStarted(ChatEvent, frozen=True, tag="agent_started"):
    pipeline_id: str
    agent: str


class AgentCompleted(ChatEvent, frozen=True, tag="agent_completed"):
    pipeline_id: str
    agent: str
    elapsed_ms: float
    model: str = ""
    said: str = ""
    """Its result in one line."""


class PipelineCompleted(ChatEvent, frozen=True, tag="pipeline_completed"):
    pipeline_id: str
    claim_card_id: str
    elapsed_ms: float


class PipelineFailed(ChatEvent, frozen=True, tag="pipeline_failed"):
    pipeline_id: str
    agent: str
    reason: str


class ClaimCardReady(ChatEvent, frozen=True, tag="claim_card_ready"):
    pipeline_id: str
    claim_card_id: str


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


def ends_question(event: ChatEvent) -> bool:
    """Whether the question is answered, or never will be."""
    if isinstance(event, RoutingCompleted):
        return event.mode == "exact_match"
    return isinstance(event, ContextualResponseCompleted | PipelineFailed | ClaimCardReady)


def write_event(event: ChatEvent) -> bytes:
    """The event as JSON, for the store and for a WebSocket."""
    return msgspec.json.encode(event)


def read_event(body: bytes | str, sequence: int, at_ms: int) -> ChatEvent:
    """A stored event with its number."""
    tree: dict[str, Any] = msgspec.json.decode(body)
    event: ChatEvent = msgspec.convert(tree | {"sequence": sequence, "at_ms": at_ms}, AnyChatEvent)
    return event
