"""The events of an application that acts. HTTP, the terminal and the console only show them."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import msgspec
from msgspec import Struct

from turnout.core.decision import Decision


class Event(Struct, frozen=True, tag_field="event"):
    pass


class Decided(Event, frozen=True, tag="decided"):
    decision: str
    route: str
    layer: str
    outcome: str
    confidence: float

    @classmethod
    def by(cls, decision: Decision) -> Decided:
        return cls(decision.id, decision.route, decision.by, decision.outcome, decision.confidence)


class Token(Event, frozen=True, tag="token"):
    text: str


class PartStarted(Event, frozen=True, tag="part_started"):
    """A part of a question is sent to its sources."""

    part: int
    """Its number, from 0."""
    text: str
    role: str
    sources: tuple[str, ...]


class SourceAnswered(Event, frozen=True, tag="source_answered"):
    part: int
    source: str
    ms: float
    cached: bool


class SourceFailed(Event, frozen=True, tag="source_failed"):
    """A source found nothing, or failed."""

    part: int
    source: str
    ms: float
    why: str
    """`empty`, or why it failed."""
    said: str


class SourceSlow(Event, frozen=True, tag="source_slow"):
    """A source is no longer waited for."""

    part: int
    source: str
    ms: float


class FellBack(Event, frozen=True, tag="fell_back"):
    """Another source is asked instead of one that found nothing."""

    part: int
    source: str
    to: str


class Section(Event, frozen=True, tag="section"):
    """The text of one source."""

    part: int
    source: str
    text: str


class Citation(Event, frozen=True, tag="citation"):
    """The source behind a number in a written answer."""

    number: int
    source: str
    title: str = ""
    url: str = ""


class Done(Event, frozen=True, tag="done"):
    text: str = ""


class Failed(Event, frozen=True, tag="failed"):
    reason: str


async def write_events(events: AsyncGenerator[Event, None], first: Event | None = None) -> AsyncGenerator[bytes, None]:
    """Server-sent events. `first` was taken from `events` before."""
    try:
        if first is not None:
            yield _sse(first)
        async for event in events:
            yield _sse(event)
    finally:
        await events.aclose()


def _sse(event: Event) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (str(event.__struct_config__.tag).encode(), msgspec.json.encode(event))
