"""Ask: a question to the configured sources, its plan as a tree, the state of each source, and an answer with links to
the passages it cites."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from turnout.apps.app import Answer, Call, Route
from turnout.apps.event import Event
from turnout.apps.request import invalid
from turnout.apps.sources.app import SourcesApp
from turnout.apps.sources.ask import AskRequest
from turnout.core.query import Query

from .page import read_form
from .stream import PagePart, part, stream

if TYPE_CHECKING:
    from .console import Console


class AskPage:
    """One answer while it comes, with its sections, to which citations link."""

    def __init__(self) -> None:
        self.sections: list[tuple[int, str]] = []
        """The part and the source of each."""

    def render(self, happened: Event) -> Iterator[PagePart]:
        event: dict[str, Any] = msgspec.to_builtins(happened)
        if event["event"] == "section":
            self.sections.append((event["part"], event["source"]))
        elif event["event"] == "citation":
            event["passage"] = self.passage(event["number"], event["source"])
        yield from render(event)

    def passage(self, number: int, source: str) -> str:
        """The element of the section that a citation's number stands for; sections are numbered part by part."""
        ordered = sorted(self.sections, key=lambda one: one[0])
        found = next((one for one in ordered[number - 1 :] + ordered if one[1] == source), None)
        return "" if found is None else f"section-{found[0]}-{found[1]}"


def render(event: dict[str, Any]) -> Iterator[PagePart]:
    match event["event"]:
        case "source_answered" | "source_failed" | "source_slow":
            yield part(f"state-{event['part']}-{event['source']}", "ask_state.html", "replace", event=event)
        case "fell_back":
            yield part(f"part-{event['part']}", "ask_fallback.html", event=event)
        case "section":
            yield part("sections", "ask_section.html", event=event)
        case "token":
            yield PagePart("written", event["text"], "text")
        case "citation":
            yield part("citations", "ask_citation.html", event=event)
        case "done":
            yield part("ended", "ask_done.html", "replace", event=event)


def ask_routes(console: Console) -> Sequence[Route]:
    app = next((one for one in console.server.apps if isinstance(one, SourcesApp)), None)
    if app is None:
        return []

    async def ask(call: Call) -> Answer:
        """The page to ask the sources."""
        return console.show(call, "ask.html", here="/ask", sources=list(app.sources), asked=call.options.get("q", ""))

    async def run(call: Call) -> Answer:
        """Ask, and show what happens."""
        form = read_form(call)
        text = form.get("q", "").strip()
        if not text:
            raise invalid("the question is blank: say what you want to know")
        query = Query(text, tenant=call.caller.tenant or None)
        decision = await app.decide(AskRequest(query, form.get("source") or "auto"), call.caller)
        plan = part("plan", "ask_plan.html", "replace", plan=app.plan(decision, query))
        return stream(app.act(decision, query, call.caller), AskPage().render, plan)

    return [
        Route("GET", "/ask", "ask", ask, is_page=True),
        Route("POST", "/ask/run", "ask", run, is_page=True, asks=True),
    ]
