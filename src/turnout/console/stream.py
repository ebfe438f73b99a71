"""An application's events on a page while they happen: each event becomes parts of the page, rendered and escaped.

A part names an element and how it changes it: replace it, append to it, or append plain text. The page's script does
that and knows nothing about applications.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Any, Literal

import msgspec
from msgspec import Struct

from turnout.apps.app import Answer, StreamBody
from turnout.apps.event import Event, Failed
from turnout.core.errors import Refused

from .page import EVENT_STREAM, templates


class PagePart(Struct, frozen=True):
    """A change of one element of the page."""

    into: str
    """The id of an element."""
    html: str
    how: Literal["replace", "append", "text"] = "append"


Renders = Callable[[Event], Iterable[PagePart]]
"""The changes that an event makes to the page."""


def part(into: str, template: str, how: Literal["replace", "append"] = "append", **values: Any) -> PagePart:
    return PagePart(into, templates().get_template(template).render(values), how)


def stream(events: AsyncGenerator[Event, None], render: Renders, *first: PagePart) -> Answer:
    """An answer that shows `first`, then the events as they come."""
    return Answer(200, EVENT_STREAM, StreamBody(_pieces(events, render, first), events.aclose))


async def _pieces(
    events: AsyncGenerator[Event, None], render: Renders, first: Iterable[PagePart]
) -> AsyncGenerator[bytes, None]:
    for piece in first:
        yield _sse(piece)
    try:
        async for event in events:
            for piece in (_failed(event.reason),) if isinstance(event, Failed) else render(event):
                yield _sse(piece)
    except Refused as refused:
        yield _sse(_failed(str(refused)))
    finally:
        await events.aclose()


def _failed(reason: str) -> PagePart:
    return part("told-here", "error_part.html", "replace", said=reason, signs_in=False)


def _sse(piece: PagePart) -> bytes:
    return b"event: part\ndata: " + msgspec.json.encode(piece) + b"\n\n"
