"""Docs: a question about ingested documentation, the passages found, and an answer that cites them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from turnout.apps.app import Answer, Call, Route
from turnout.apps.assist.app import AssistApp
from turnout.apps.assist.event import AskContext, AssistAnswer, Retrieved, TypeDecided
from turnout.apps.event import Event, Token
from turnout.core.query import Query

from .page import read_form
from .stream import PagePart, part, stream

if TYPE_CHECKING:
    from .console import Console


def render(event: Event) -> Iterator[PagePart]:
    match event:
        case TypeDecided():
            yield part("decided", "docs_decided.html", "replace", event=event)
        case Retrieved():
            yield part("passages", "docs_passages.html", "replace", event=event)
        case Token():
            yield PagePart("written", event.text, "text")
        case AssistAnswer():
            yield part("ended", "docs_answer.html", "replace", event=event)


def docs_routes(console: Console) -> Sequence[Route]:
    app = next((one for one in console.server.apps if isinstance(one, AssistApp)), None)
    if app is None:
        return []

    async def docs(call: Call) -> Answer:
        """The page to ask the documentation."""
        libraries = await app.libraries()
        editions = await asyncio.to_thread(libraries.editions)
        return console.show(call, "docs.html", here="/docs", editions=editions)

    async def run(call: Call) -> Answer:
        """Ask, and show the passages."""
        form = read_form(call)
        session, named = form.get("session", "").strip()[:200] or None, form.get("library", "")[:200]
        context = AskContext(selected_text=form.get("selected_text", ""), library=named)
        query = Query(form.get("q", "").strip(), session=session, tenant=call.caller.tenant or None)
        decision = await app.decide(query, call.caller, context)
        return stream(app.act(decision, query, call.caller, context), render)

    return [
        Route("GET", "/docs", "ask", docs, is_page=True),
        Route("POST", "/docs/run", "ask", run, is_page=True, asks=True),
    ]
