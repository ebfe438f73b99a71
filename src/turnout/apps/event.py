"""What happens while an application acts, as values: HTTP, the terminal and the console only show them."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import msgspec
from msgspec import Struct


class Event(Struct, frozen=True, tag_field="event"):
    """Something that happened."""


class Token(Event, frozen=True, tag="token"):
    text: str


class Done(Event, frozen=True, tag="done"):
    text: str = ""


class Failed(Event, frozen=True, tag="failed"):
    reason: str


async def write_events(events: AsyncGenerator[Event, None]) -> AsyncGenerator[bytes, None]:
    """Events as a stream of server-sent ones."""
    try:
        async for event in events:
            yield b"event: %b\ndata: %b\n\n" % (str(event.__struct_config__.tag).encode(), msgspec.json.encode(event))
    finally:
        await events.aclose()
