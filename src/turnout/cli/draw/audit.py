"""An audit on the terminal: each agent while it works, and the card."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from turnout.apps.claims.card import Card, CardSource
from turnout.apps.claims.event import AgentCompleted, AgentStarted, ChatEvent, PipelineFailed, PipelineStarted

from .screen import Glyphs, console, quoted, visible


class AgentProgress:
    """A line for each agent: waiting, working, done or failed."""

    def __init__(self, glyphs: Glyphs) -> None:
        self.glyphs = glyphs
        self.latest: dict[str, tuple[ChatEvent, float]] = {}
        """The latest event of each agent, and its time."""

    def note(self, event: ChatEvent) -> None:
        if isinstance(event, PipelineStarted):
            self.latest = dict.fromkeys(event.agents, (event, time.monotonic()))
        elif isinstance(event, AgentStarted | AgentCompleted) or (
            isinstance(event, PipelineFailed) and event.agent in self.latest
        ):
            self.latest[event.agent] = event, time.monotonic()

    def __rich__(self) -> Group:
        return Group(*map(self.line, self.latest))

    def line(self, agent: str) -> Text:
        name, (event, since) = agent.replace("_", " "), self.latest[agent]
        match event:
            case PipelineFailed():
                return Text(f"{self.glyphs.fault} {name}", "red")
            case AgentCompleted():
                took = f"  {event.elapsed_ms / 1000:.1f} s  {visible(event.said)}"
                return Text.assemble((f"{self.glyphs.yes} {name}", "green"), (took, "dim"))
            case AgentStarted():
                return Text(f"{self.glyphs.held} {name}  {time.monotonic() - since:.0f} s")
            case _:
                return Text(f"{self.glyphs.passed} {name}", "dim")


@contextlib.contextmanager
def live_agents() -> Iterator[Callable[[ChatEvent], None]]:
    """A function that shows the agents on stderr while they work: live on a terminal, else a line as each ends."""
    screen = console(stderr=True)
    progress = AgentProgress(screen.glyphs)

    def show(event: ChatEvent) -> None:
        progress.note(event)
        if isinstance(event, AgentCompleted) and not screen.is_terminal:
            screen.print(progress.line(event.agent))

    with screen.redrawn(progress):
        yield show


def card_picture(card: Card, glyphs: Glyphs) -> RenderableType:
    """The card for people to read."""
    verdict = Text.assemble((card.verdict.value, "bold"), (f"  {card.confidence_level.value} confidence", "dim"))
    lines: list[RenderableType] = [Text(quoted(card.claim_text, glyphs)), verdict]
    if card.demo:
        lines.append(Text("demonstration: nothing was looked up, and the verdict stands for none", "yellow"))
    if not card.visible:
        lines.append(Text(f"hidden: it answers no question (turnout claims unhide {visible(card.id)})", "yellow"))
    if card.publisher:
        lines.append(Text(f"published by {visible(card.publisher)}, and imported", "dim"))
    lines += [Text(), Text(visible(card.short_answer)), Text()]
    lines += [_source(source, glyphs) for source in card.sources]
    lines += [Text(f"{glyphs.dot} {visible(one)}", "dim") for one in card.limitations]
    lines.append(Text(f"card {card.id}", "dim"))
    return Group(*lines)


def _source(source: CardSource, glyphs: Glyphs) -> Text:
    verified = source.quote_status == "verified"
    line = Text.assemble((f"{glyphs.yes if verified else glyphs.passed} ", "green" if verified else "dim"))
    line.append(visible(source.citation))
    status = "quotation verified" if verified else f"address {source.url_status}, quotation {source.quote_status}"
    return line.append(f"  {status}", "dim")
