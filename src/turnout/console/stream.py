"""What an application does, on a page while it happens: each event becomes parts of the page, rendered and escaped.

A part says where it goes and how: into the place of what is there, behind it, or as plain text behind it. The page's
script does that and knows nothing of any application.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Any, Literal

import msgspec
from msgspec import Struct

from turnout.apps.app import Answer
from turnout.apps.event import Event, EventBody
from turnout.core.errors import Refused

from .page import SECURITY, templates


class PagePart(Struct, frozen=True):
    """A piece of a page that takes its place."""

    into: str
    """The id of an element."""
    html: str
    how: Literal["replace", "append", "text"] = "append"


Renders = Callable[[Event], Iterable[PagePart]]
"""What an event changes on the page."""


def part(into: str, template: str, how: Literal["replace", "append"] = "append", **values: Any) -> PagePart:
    return PagePart(into, templates().get_template(template).render(values), how)


def stream(events: AsyncGenerator[Event, None], render: Renders, *first: PagePart) -> Answer:
    """An answer that shows events as they come, after what is known already."""
    headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store"), *SECURITY]
    return Answer(200, headers, EventBody(_pieces(events, render, first), events))


async def _pieces(
    events: AsyncGenerator[Event, None], render: Renders, first: Iterable[PagePart]
) -> AsyncGenerator[bytes, None]:
    for piece in first:
        yield _sse(piece)
    try:
        async for event in events:
            for piece in render(event):
                yield _sse(piece)
    except Refused as refused:
        yield _sse(part("told-here", "error_part.html", "replace", said=str(refused), signs_in=False))
    finally:
        await events.aclose()


def _sse(piece: PagePart) -> bytes:
    return b"event: part\ndata: " + msgspec.json.encode(piece) + b"\n\n"
