"""A question to the library of claims on the terminal: what happens, and what it gets."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from turnout.apps.claims.answer import AuditStarted, ClaimAnswer, tell_answer, tell_audited
from turnout.apps.claims.card import Card
from turnout.apps.claims.event import (
    AgentCompleted,
    AgentStarted,
    ContextAnalysisStarted,
    ContextualResponseStarted,
    PipelineFailed,
    PipelineStarted,
    RouterFallback,
    RoutingCompleted,
    RoutingStarted,
)
from turnout.apps.claims.pipeline import AuditFailed
from turnout.apps.event import Event

from .screen import Glyphs, console, visible

# What the chat page says in each state.
STATES: dict[type[Event], str] = {
    ContextAnalysisStarted: "Analyzing context",
    RoutingStarted: "Searching existing claims",
    ContextualResponseStarted: "Analyzing existing claims",
    PipelineStarted: "Generating new claim",
}


@contextlib.contextmanager
def live_events() -> Iterator[Callable[[Event], None]]:
    """Shows what happens on stderr, a line each, if that is a terminal."""
    screen = console(stderr=True)
    glyphs = screen.glyphs

    def note(event: Event) -> None:
        if screen.is_terminal and (line := event_line(event, glyphs)):
            screen.say((visible(line), "dim"))

    yield note


def event_line(event: Event, glyphs: Glyphs) -> str:
    """What is said of an event; empty: nothing."""
    match event:
        case AgentStarted():
            return f"{glyphs.passed} {event.agent}"
        case AgentCompleted():
            return f"{glyphs.yes} {event.agent}  {event.elapsed_ms / 1000:.1f} s  {event.said}"
        case PipelineFailed():
            return f"{glyphs.fault} {event.agent}: {event.reason}"
        case RouterFallback():
            return f"{glyphs.fault} the router failed: {event.reason}"
        case RoutingCompleted():
            return f"{glyphs.arrow} {event.mode}"
        case _:
            return f"{STATES[type(event)]}…" if type(event) in STATES else ""


def card_line(card: Card, glyphs: Glyphs, similarity: float | None = None) -> Text:
    """A card in a list."""
    near = f"  {similarity:.2f}" if similarity is not None else ""
    line = Text.assemble((visible(card.id), "bold"), (near, "dim"))
    line.append(f"  {card.verdict}", "cyan")
    line.append(f" {glyphs.dot} {card.claim_type_category} {glyphs.dot} ", "dim")
    line.append(visible(card.claim_text))
    return line.append(" (demonstration)", "dim") if card.demo else line


def answer(told: ClaimAnswer, audited: Card | AuditFailed | None, glyphs: Glyphs) -> RenderableType:
    """The mode, the answer, and why."""
    response = told.response
    if audited is not None:
        text = tell_audited(audited)
    elif isinstance(response, AuditStarted):
        text = "A new claim: no card answers it."
    else:
        text = tell_answer(response)
    body = Text("\n".join(map(visible, text.split("\n"))))
    why = Text.assemble((told.mode, "bold cyan"), (f" {glyphs.dot} {visible(told.reasoning)}", "dim"))
    return Group(why, Text(), body, Text(), Text(f"decision {told.decision_id}", "dim"))
