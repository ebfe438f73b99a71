"""What the routes of all applications do alike: read a body as JSON, and answer with a stream of events."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TypeVar

import msgspec

from turnout.core.aside import aside
from turnout.core.errors import Refused
from turnout.models.wire.format import UNREADABLE, short_message

from .app import Answer, Call, StreamBody
from .event import Event, write_events

T = TypeVar("T")


async def read_body(call: Call, decoder: msgspec.json.Decoder[T]) -> T:
    """The body of a request; Refused if it is not JSON of the decoder's type."""
    try:
        return await aside(len(call.body), decoder.decode, call.body)
    except UNREADABLE as error:
        raise invalid(short_message(error)) from None


def invalid(message: str) -> Refused:
    """The refusal of a request whose content is wrong."""
    return Refused(422, "invalid_request_error", message)


def wants_events(call: Call, stream: bool) -> bool:
    """Whether the client asks for events, in its body or by its `accept` header."""
    return stream or "text/event-stream" in call.headers.get("accept", "")


async def stream_events(events: AsyncGenerator[Event, None], decision: str = "") -> Answer:
    """Events as they happen. What is refused before the first one still gets a status of its own."""
    headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
    if decision:
        headers.append((b"x-turnout-decision", decision.encode()))
    return Answer(200, headers, StreamBody(write_events(events, await anext(events)), events.aclose))
