"""Chat over audited claims: the progress, then the card, the synthesis or the audit while it runs, and the reasons.

The form holds the conversation, so reloading the page starts a new one, and the server keeps nothing for a page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from turnout.apps.app import Answer, Call, Route
from turnout.apps.claims.answer import AuditEnded, AuditStarted, ClaimAnswer
from turnout.apps.claims.app import MOST_TURNS, ClaimQuestion, ClaimsApp
from turnout.apps.claims.card import Card
from turnout.apps.claims.event import AgentCompleted, AgentStarted, ChatEvent, PipelineStarted
from turnout.apps.event import Event
from turnout.apps.request import invalid
from turnout.core.decision import new_id
from turnout.core.query import Turn
from turnout.store.records import Judgement

from .page import in_thread, page, read_form
from .stream import PagePart, part, stream

if TYPE_CHECKING:
    from .console import Console

STATES = {
    "context_analysis_started": "Analyzing context…",
    "routing_started": "Searching existing claims…",
    "contextual_response_started": "Analyzing existing claims…",
    "pipeline_started": "Generating new claim…",
}
# Claims of the starter cards.
EXAMPLES = (
    "Did a worldwide flood cover the Earth?",
    "Do humans use only ten percent of their brains?",
    "Did the EU ban bendy bananas?",
)
_turns = msgspec.json.Decoder(list[tuple[str, str]])


class ChatPage:
    """The changes that one question makes to the page."""

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
            if not isinstance(event.response, AuditStarted):
                template = "chat_card.html" if isinstance(event.response, Card) else "chat_synthesis.html"
                yield part(f"answer-{self.number}", template, found=event.response)
                yield from self.ended(event.session_id, event.result)
            yield part(f"why-{self.number}", "chat_why.html", "replace", answer=event)
        elif isinstance(event, AuditEnded):
            if isinstance(event.response, Card):
                yield part(f"answer-{self.number}", "chat_card.html", found=event.response)
            else:
                yield part(f"answer-{self.number}", "error_part.html", said=event.result, signs_in=False)
            yield from self.ended(self.asked.session, event.result)

    def ended(self, session: str, text: str) -> Iterator[PagePart]:
        turns = [(turn.role, turn.text) for turn in self.asked.turns]
        turns += [("user", self.asked.text), ("assistant", text)]
        history = msgspec.json.encode(turns[-MOST_TURNS:]).decode()
        yield part("conversation-state", "chat_history.html", "replace", history=history, session=session)
        yield part("state", "chat_state.html", "replace", said="")


def chat_routes(console: Console) -> Sequence[Route]:
    app = next((one for one in console.server.apps if isinstance(one, ClaimsApp)), None)
    if app is None:
        return []

    async def chat(call: Call) -> Answer:
        """The page to ask about claims."""
        return console.show(call, "chat.html", here="/chat", history="[]", session=new_id(), examples=EXAMPLES)

    async def run(call: Call) -> Answer:
        """Ask, and show what happens."""
        form = read_form(call)
        try:
            turns = tuple(Turn(role, text) for role, text in _turns.decode(form.get("history") or "[]"))
        except msgspec.DecodeError:
            raise invalid("the conversation cannot be read: load the page anew") from None
        text = form.get("q", "").strip()
        if not text:
            raise invalid("the question is blank: say what you want to know")
        asked = ClaimQuestion(text, turns[-MOST_TURNS:], form.get("session", "")[:128] or new_id())
        shown = ChatPage(asked, new_id())
        first = part("conversation", "chat_turn.html", question=text, number=shown.number)
        return stream(app.follow(asked, call.caller), shown.render, first)

    async def judge(call: Call) -> Answer:
        """Was this the right claim?"""
        form, records = read_form(call), console.records(call)
        right = form.get("right") == "1"
        verdict: Judgement = "right" if right else "wrong"
        by = call.caller.key_id or "console"
        await in_thread(lambda: records.judge(call.params["id"], verdict, by=by))
        return page("chat_judged.html", right=right)

    return [
        Route("GET", "/chat", "ask", chat, is_page=True),
        Route("POST", "/chat/run", "ask", run, is_page=True, asks=True),
        Route("POST", "/chat/judge/{id}", "feedback:write", judge, is_page=True),
    ]
