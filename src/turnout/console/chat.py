"""Chat over audited claims: what is being done, the card or the synthesis or the audit as it goes, and why.

The conversation stands in the form, so that a page that is loaded anew begins a new one, and the server keeps nothing
for a page.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec

from turnout.apps.app import Answer, Call, Route
from turnout.apps.claims.answer import AuditStarted, ClaimAnswer, tell_answer, tell_audited
from turnout.apps.claims.app import MOST_TURNS, ClaimQuestion, ClaimsApp
from turnout.apps.claims.card import Card
from turnout.apps.claims.event import AgentCompleted, AgentStarted, ChatEvent, PipelineStarted
from turnout.apps.event import Event
from turnout.core.decision import new_id
from turnout.core.errors import Refused, StoreError, StoreUnavailable, UnknownDecision
from turnout.core.query import Turn

from .page import page, read_form
from .stream import PagePart, part, stream

if TYPE_CHECKING:
    from .console import Console

STATES = {
    "context_analysis_started": "Analyzing context…",
    "routing_started": "Searching existing claims…",
    "contextual_response_started": "Analyzing existing claims…",
    "pipeline_started": "Generating new claim…",
}
# Claims of the library that ships.
EXAMPLES = (
    "Did a worldwide flood cover the Earth?",
    "Do humans use only ten percent of their brains?",
    "Did the EU ban bendy bananas?",
)
_turns = msgspec.json.Decoder(list[tuple[str, str]])


class CardMade(Event, frozen=True, tag="card_made"):
    """The card of an audit; or why there is none."""

    card: Card | None
    said: str


async def follow(app: ClaimsApp, asked: ClaimQuestion, call: Call) -> AsyncGenerator[Event, None]:
    """A question, and the audit that it may come to, to its end."""
    last: Event | None = None
    seen = 0
    async with aclosing(app.ask(asked, call.caller)) as events:
        async for last in events:
            seen = max(seen, last.sequence if isinstance(last, ChatEvent) else 0)
            yield last
    if not isinstance(last, ClaimAnswer) or not isinstance(last.response, AuditStarted):
        return
    pipeline = await app.pipeline()
    async with aclosing(pipeline.events(last.session_id, tenant=call.caller.tenant)) as happening:
        async for told in happening:
            # A session tells all that happened in it, earlier audits too.
            if isinstance(told, PipelineStarted | AgentStarted | AgentCompleted) and told.sequence > seen:
                yield told
    made = await pipeline.result(last.response.pipeline_id)
    yield CardMade(made if isinstance(made, Card) else None, tell_audited(made))


class ChatPage:
    """What one question changes on the page."""

    def __init__(self, asked: ClaimQuestion, number: str) -> None:
        self.asked = asked
        self.number = number
        self.decision = ""

    def render(self, event: Event) -> Iterator[PagePart]:
        tag = str(event.__struct_config__.tag)
        if isinstance(event, ChatEvent) and tag in STATES:
            yield part("state", "chat_state.html", "replace", said=STATES[tag])
        if isinstance(event, PipelineStarted):
            yield part(f"answer-{self.number}", "chat_agents.html", "replace", agents=event.agents, number=self.number)
        elif isinstance(event, AgentStarted | AgentCompleted):
            yield part(f"agent-{self.number}-{event.agent}", "chat_agent.html", "replace", event=event, tag=tag)
        elif isinstance(event, ClaimAnswer):
            self.decision = event.decision_id
            is_card = isinstance(event.response, Card)
            if not isinstance(event.response, AuditStarted):
                template = "chat_card.html" if is_card else "chat_synthesis.html"
                yield part(f"answer-{self.number}", template, found=event.response)
                yield from self.ended(event.session_id, tell_answer(event.response))
            yield part(f"why-{self.number}", "chat_why.html", "replace", answer=event)
        elif isinstance(event, CardMade):
            if event.card is not None:
                yield part(f"answer-{self.number}", "chat_card.html", found=event.card)
            else:
                yield part(f"answer-{self.number}", "error_part.html", said=event.said, signs_in=False)
            yield from self.ended(self.asked.session, event.said)

    def ended(self, session: str, said: str) -> Iterator[PagePart]:
        turns = [(turn.role, turn.text) for turn in self.asked.turns]
        turns += [("user", self.asked.text), ("assistant", said)]
        history = msgspec.json.encode(turns[-MOST_TURNS:]).decode()
        yield part("conversation-state", "chat_history.html", "replace", history=history, session=session)
        yield part("state", "chat_state.html", "replace", said="")


def chat_routes(console: Console) -> Sequence[Route]:
    app = next((one for one in console.server.apps if isinstance(one, ClaimsApp)), None)
    if app is None:
        return []

    async def chat(call: Call) -> Answer:
        """Where one asks about claims."""
        return console.show(call, "chat.html", here="/chat", history="[]", session=new_id(), examples=EXAMPLES)

    async def run(call: Call) -> Answer:
        """Ask, and show what happens."""
        form = read_form(call)
        try:
            turns = tuple(Turn(role, text) for role, text in _turns.decode(form.get("history") or "[]"))
        except msgspec.DecodeError:
            raise Refused(422, "invalid_request_error", "the conversation cannot be read: load the page anew") from None
        text = form.get("q", "").strip()
        if not text:
            raise Refused(422, "invalid_request_error", "the question is blank: say what you want to know")
        asked = ClaimQuestion(text, turns[-MOST_TURNS:], form.get("session", "")[:128] or new_id())
        shown = ChatPage(asked, new_id())
        first = part("conversation", "chat_turn.html", question=text, number=shown.number)
        return stream(follow(app, asked, call), shown.render, first)

    async def judge(call: Call) -> Answer:
        """Was this the right claim?"""
        form, records = read_form(call), console.records(call)
        right = form.get("right") == "1"
        by = call.caller.key_id or "console"

        def say() -> object:
            return records.judge(call.params["id"], "right" if right else "wrong", by=by)

        try:
            await asyncio.to_thread(say)
        except StoreUnavailable:
            raise
        except (UnknownDecision, StoreError) as error:
            raise Refused(422, "invalid_request_error", str(error)) from None
        return page("chat_judged.html", right=right)

    return [
        Route("GET", "/chat", "ask", chat, is_page=True),
        Route("POST", "/chat/run", "ask", run, is_page=True, asks=True),
        Route("POST", "/chat/judge/{id}", "feedback:write", judge, is_page=True),
    ]
