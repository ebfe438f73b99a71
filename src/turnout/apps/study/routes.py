"""The HTTP routes of the application."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta, Struct

from turnout.apps.app import Answer, Call, Route, answer
from turnout.apps.request import invalid, read_body, stream_events, wants_events
from turnout.core.aside import aside
from turnout.core.errors import Refused
from turnout.models.wire.format import short_message

from .ask import SESSION, NotAnswered, StudyQuestion
from .image import MOST_BYTES, PageImage
from .multipart import read_form
from .savings import total

if TYPE_CHECKING:
    from .app import StudyApp

# The largest image in base64, which writes three bytes as four characters.
IMAGE_CHARACTERS = (MOST_BYTES + 2) // 3 * 4
BAD_GATEWAY = 502
Name = Annotated[str, Meta(max_length=200)]


class StudyBody(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A reader's question. In a form, the image is a file."""

    question: str = ""
    session: Name = SESSION
    image: str | None = None
    """The page in base64, or as a data URL."""
    stream: bool = False
    """An event for each finished sentence."""
    look: bool = False
    """Ask the previous question again, with the page."""
    route: Name | None = None


_body = msgspec.json.Decoder(StudyBody)
_TRUE = (b"1", b"true", b"yes", b"on")


class StudyRoutes:
    """The routes of one application."""

    def __init__(self, app: StudyApp) -> None:
        self.app = app
        self.routes = (
            Route("POST", "/v1/study/ask", "ask", self.ask, StudyBody, asks=True),
            Route("POST", "/v1/study/sessions/{id}/end", "ask", self.end),
            Route("GET", "/v1/study/memory", "ask", self.memory),
            Route("DELETE", "/v1/study/memory/{id}", "ask", self.forget),
            Route("GET", "/v1/study/savings", "decisions:read", self.savings),
        )

    async def ask(self, call: Call) -> Answer:
        """Answer a reader's question with the context that it needs; `stream` tells each sentence when it is done."""
        asked, stream = await read_question(call)
        events = self.app.ask(asked, call.caller)
        if wants_events(call, stream):
            return await stream_events(events)
        *_, last = [event async for event in events]
        if isinstance(last, NotAnswered):
            kind = "upstream_error" if last.status == BAD_GATEWAY else "insufficient_quota"
            raise Refused(last.status, kind, last.reason)
        return answer(last)

    async def end(self, call: Call) -> Answer:
        """End a session: it is summarised and remembered, and the next question begins a new one. `ended` is null if
        there was none of that name."""
        return answer({"ended": await self.app.end(call.params["id"], call.caller)})

    async def memory(self, call: Call) -> Answer:
        """What is remembered: the sessions that have ended, each with its summary."""
        return answer({"sessions": await self.app.remembered(call.caller)})

    async def forget(self, call: Call) -> Answer:
        """Forget a session by its id or its name, or `all`: its turns, its summary and what is found of them."""
        count = await asyncio.to_thread(self.app.sessions.forget, call.caller.tenant, call.params["id"])
        return answer({"forgotten": count})

    async def savings(self, call: Call) -> Answer:
        """What was not sent over all answers, in tokens and at the models' prices, and how often that was regretted."""
        records = call.store.records(call.caller.tenant)
        return answer(await asyncio.to_thread(lambda: total(records.searches("study"))))


async def read_question(call: Call) -> tuple[StudyQuestion, bool]:
    """The question of a request, sent as JSON or as a form, and whether to stream the answer."""
    kind = call.headers.get("content-type", "")
    page: PageImage | None = None
    if kind.partition(";")[0].strip().casefold() == "multipart/form-data":
        parts = await aside(len(call.body), read_form, kind, call.body)
        if raw := parts.pop("image", b""):
            page = lambda: raw  # noqa: E731
        body = _form(parts)
    else:
        body = await read_body(call, _body)
        if body.image:
            page = _decoding(body.image)
    return StudyQuestion(body.question, page, body.session, body.look, body.route), body.stream


def _form(parts: dict[str, bytes]) -> StudyBody:
    flags = {"stream", "look"}
    fields = {
        name: value.strip().lower() in _TRUE if name in flags else value.decode("utf-8", "replace")
        for name, value in parts.items()
    }
    try:
        return msgspec.convert(fields, StudyBody)
    except msgspec.ValidationError as error:
        raise invalid(short_message(error)) from None


def _decoding(image: str) -> PageImage:
    """Decodes the image when it is read, not before."""

    def read() -> bytes:
        text = image.partition(",")[2] if image.startswith("data:") else image
        if len(text) > IMAGE_CHARACTERS:
            long = f"the image is longer than {MOST_BYTES:,} bytes: send a smaller one"
            raise Refused(413, "invalid_request_error", long)
        try:
            return b64decode(text, validate=True)
        except ValueError:
            raise invalid("image: it is not base64") from None

    return read
