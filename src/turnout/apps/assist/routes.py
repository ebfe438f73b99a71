"""The HTTP routes of the application, and its tools, which documentation clients know."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct

from turnout.apps.app import Answer, AppTool, Call, Route, answer
from turnout.apps.caller import Caller
from turnout.apps.event import Event, Failed
from turnout.apps.request import read_body, stream_events, wants_events
from turnout.core.errors import Refused
from turnout.core.query import Query, Turn
from turnout.models.wire.format import check_text

from .event import AskContext, AssistAnswer
from .library import Edition
from .retrieve import retrieve

if TYPE_CHECKING:
    from .app import AssistApp

Name = Annotated[str, Meta(max_length=200)]
# Passages that a documentation client gets for one question, and libraries that it gets for one name.
TOLD, LISTED = 5, 10


class AskBody(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A question to the assistant."""

    query: str
    session_id: Name
    query_type: Name | None = None
    """RETRIEVAL, CODE_GENERATION, CONVERSATIONAL or PLATFORM; without it, Turnout decides."""
    editor_content: str | None = None
    selected_text: str | None = None
    extra_context: Any = None
    """Data of the platform, text or JSON: usage, quota, billing."""
    user_info: Any = None
    library: Name | None = None
    version: Name | None = None
    """Without it, the version that the question names, else the newest."""
    stream: bool = False
    """Events as they happen, the last of them the answer."""


class ResolveBody(Struct, rename="camel"):
    """The name of a library whose documentation is wanted."""

    library_name: str
    query: str = ""


class QueryDocsBody(Struct, rename="camel"):
    """A question about a library."""

    library_id: str
    query: str


RESOLVE_SAYS = (
    "Find the id of a library in the documentation that was ingested here, by its name. Call it before `query-docs`, "
    "unless the id is known already. An id ends with a version; without one, the newest is meant."
)
QUERY_SAYS = (
    "Passages of a library's documentation that answer a question, each with its file, its heading and its span."
)

_body = msgspec.json.Decoder(AskBody)


class AssistRoutes:
    """The routes and tools of one application."""

    def __init__(self, app: AssistApp) -> None:
        self.app = app
        self.routes = (
            Route("POST", "/v1/assist/ask", "ask", self.ask, AskBody, asks=True),
            Route("GET", "/v1/assist/libraries", "ask", self.list_libraries),
        )
        self.tools = (
            AppTool("resolve-library-id", RESOLVE_SAYS, ResolveBody, self.resolve),
            AppTool("query-docs", QUERY_SAYS, QueryDocsBody, self.query_docs),
        )

    async def ask(self, call: Call) -> Answer:
        """Ask the assistant: documentation, code, the conversation itself, or the user's account."""
        body = await read_body(call, _body)
        query, context = _query(body, call.caller), _context(body)
        decision = await self.app.decide(query, call.caller, context)
        events = self.app.act(decision, query, call.caller, context)
        if wants_events(call, body.stream):
            return await stream_events(_with_refusal(events), decision.id)
        return answer(await last_of(events))

    async def list_libraries(self, call: Call) -> Answer:
        """Which libraries were ingested, in which versions."""
        libraries = await self.app.libraries()
        found = await asyncio.to_thread(libraries.editions)
        # Only the operator may know the folders.
        shown = ("id", "library", "version", "follows", "ingested_at", "files", "sections")
        rows = [{name: getattr(one, name) for name in shown} for one in found]
        return answer({"libraries": rows})

    # --- tools

    async def resolve(self, body: ResolveBody, caller: Caller) -> str:
        libraries = await self.app.libraries()
        found = await asyncio.to_thread(libraries.editions)
        wanted = body.library_name.casefold().strip()
        near = [one for one in found if wanted in one.library.casefold() or one.library.casefold() in wanted]
        if not near:
            known = ", ".join(dict.fromkeys(one.library for one in found)) or "none"
            return f"No library like {body.library_name[:80]!r} was ingested. There is: {known}"
        return "\n\n".join(_tell(one) for one in sorted(near, key=lambda one: one.name, reverse=True)[:LISTED])

    async def query_docs(self, body: QueryDocsBody, caller: Caller) -> str:
        _, _, rest = body.library_id.strip("/").partition("/")
        library, _, version = rest.partition("/")
        libraries = await self.app.libraries()
        choice = await asyncio.to_thread(libraries.choose, body.query, library or body.library_id, version)
        if not choice.editions:
            return f"{choice.missing}."
        asked = choice.without_names(body.query)
        found = await asyncio.to_thread(retrieve, libraries, asked, choice.editions, TOLD)
        if found.confidence < self.app.least:
            return "That is not in these documents."
        return "\n\n".join(
            f"### {one.place}\n{one.file}#{one.anchor} ({one.start}-{one.end})\n\n{one.text.strip()}"
            for one in found.passages
        )


def _query(body: AskBody, caller: Caller) -> Query:
    texts = (body.query, body.editor_content or "", body.selected_text or "")
    check_text(tuple(Turn("user", text) for text in texts), 422)
    session = body.session_id.strip() or None
    return Query(body.query, declared=body.query_type, session=session, tenant=caller.tenant or None)


def _context(body: AskBody) -> AskContext:
    return AskContext(
        body.selected_text or "",
        body.editor_content or "",
        _text(body.extra_context),
        _text(body.user_info),
        body.library or "",
        body.version or "",
    )


def _text(value: Any) -> str:
    """Text as it is, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode()


async def _with_refusal(events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
    """The events. The answer has begun, so a budget or a limit that refuses now is told as the last event."""
    async with aclosing(events):
        try:
            async for event in events:
                yield event
        except Refused as refused:
            yield Failed(str(refused))


async def last_of(events: AsyncGenerator[Event, None]) -> AssistAnswer:
    """The answer; raises Refused if it failed."""
    async with aclosing(events):
        async for event in events:
            if isinstance(event, AssistAnswer):
                return event
            if isinstance(event, Failed):
                raise Refused(502, "upstream_error", event.reason)
    raise Refused(502, "upstream_error", "no model answered")


def _tell(one: Edition) -> str:
    return (
        f"- Title: {one.library} {one.version}\n- Library ID: {one.id}\n"
        f"- Description: {one.sections} sections of {one.files} files\n- Version: {one.version}"
    )
