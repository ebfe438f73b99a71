"""A question to the library of claims on the terminal: the events, and the answer."""

from __future__ import annotations

from collections.abc import Callable

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

from .screen import Glyphs, console, visible, visible_lines

# The words the chat page uses for each state.
STATES: dict[type[Event], str] = {
    ContextAnalysisStarted: "Analyzing context",
    RoutingStarted: "Searching existing claims",
    ContextualResponseStarted: "Analyzing existing claims",
    PipelineStarted: "Generating new claim",
}


def event_printer() -> Callable[[Event], None]:
    """A function that prints events on stderr, a line each, if that is a terminal."""
    screen = console(stderr=True)

    def show(event: Event) -> None:
        if screen.is_terminal and (line := event_line(event, screen.glyphs)):
            screen.say((visible(line), "dim"))

    return show


def event_line(event: Event, glyphs: Glyphs) -> str:
    """The line for an event; empty if it is not shown."""
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


def answer_page(answer: ClaimAnswer, audited: Card | AuditFailed | None, glyphs: Glyphs) -> RenderableType:
    """The mode with its reason, and the answer."""
    response = answer.response
    if audited is not None:
        text = tell_audited(audited)
    elif isinstance(response, AuditStarted):
        text = "A new claim: no card answers it."
    else:
        text = tell_answer(response)
    why = Text.assemble((answer.mode, "bold cyan"), (f" {glyphs.dot} {visible(answer.reasoning)}", "dim"))
    return Group(why, Text(), Text(visible_lines(text)), Text(), Text(f"decision {answer.decision_id}", "dim"))
