"""Study: a question about a page, what was sent to the model and what was left out, and the answer by sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from turnout.apps.app import Answer, Call, Route
from turnout.apps.event import Event
from turnout.apps.study.answer import NoteCitation, SpokenSentence
from turnout.apps.study.app import StudyApp
from turnout.apps.study.ask import RouteChosen, StudyAnswer
from turnout.apps.study.routes import read_question

from .stream import PagePart, part, stream

if TYPE_CHECKING:
    from .console import Console


def render(event: Event) -> Iterator[PagePart]:
    match event:
        case RouteChosen():
            yield part("sent", "study_sent.html", "replace", event=event)
        case SpokenSentence():
            yield PagePart("written", event.text, "text")
        case NoteCitation():
            yield part("citations", "study_citation.html", event=event)
        case StudyAnswer():
            yield part("saved", "study_saved.html", "replace", event=event)
            yield part("spared", "study_spared.html", "replace", event=event)


def study_routes(console: Console) -> Sequence[Route]:
    app = next((one for one in console.server.apps if isinstance(one, StudyApp)), None)
    if app is None:
        return []

    async def study(call: Call) -> Answer:
        """The page of a reader."""
        return console.show(call, "study.html", here="/study")

    async def run(call: Call) -> Answer:
        """Ask, and show what was sent."""
        asked, _ = await read_question(call)
        return stream(app.ask(asked, call.caller), render)

    return [
        Route("GET", "/study", "ask", study, is_page=True),
        Route("POST", "/study/run", "ask", run, is_page=True, asks=True),
    ]
