"""A question to sources on the terminal: the plan, each source while it is asked, and the answer."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from turnout.apps.event import Event, FellBack, PartStarted, SourceAnswered, SourceFailed, SourceSlow
from turnout.apps.sources.plan import Plan, PlannedPart, PlannedSource
from turnout.apps.sources.result import PartResult, SearchResult, SourceAttempt

from .screen import Glyphs, console, quoted, visible, visible_lines
from .shape import branched

_STYLES = {"answered": "green", "empty": "yellow", "slow": "red"}


def plan_tree(plan: Plan, glyphs: Glyphs) -> RenderableType:
    """The question, and below it each part with its sources."""
    lines: list[RenderableType] = [Text(quoted(plan.question, glyphs))]
    if plan.standalone:
        lines.append(Text.assemble(("understood as ", "dim"), quoted(plan.standalone, glyphs)))
    return Group(*lines, *branched([_part(part, glyphs) for part in plan.parts], glyphs))


def _part(part: PlannedPart, glyphs: Glyphs) -> RenderableType:
    lines = [Text.assemble((f"{part.role}  ", "bold cyan"), quoted(part.text, glyphs))]
    lines += [_source(source, glyphs) for source in part.sources]
    if part.by:
        lines.append(Text.assemble(("by ", "dim"), visible(part.by), (f" {glyphs.dot} {visible(part.why)}", "dim")))
    if part.then:
        lines.append(Text.assemble(("then ", "dim"), quoted(part.then, glyphs)))
    return Group(*lines)


def _source(source: PlannedSource, glyphs: Glyphs) -> Text:
    line = Text.assemble((f"{glyphs.arrow} ", "dim"), (visible(source.name), "bold"))
    if not source.configured:
        line.append("  not configured", "yellow")
    if source.fallback:
        line.append(f"  else {source.fallback}", "dim")
    return line


class Progress:
    """A line for each source that is asked, with the time it takes or how it ended."""

    def __init__(self, glyphs: Glyphs) -> None:
        self.glyphs = glyphs
        self.asked: dict[tuple[int, str], float] = {}
        self.ended: dict[tuple[int, str], SourceAttempt] = {}

    def note(self, event: Event) -> None:
        match event:
            case PartStarted():
                self.asked |= dict.fromkeys(((event.part, name) for name in event.sources), time.monotonic())
            case FellBack():
                self.asked.setdefault((event.part, event.to), time.monotonic())
            case SourceAnswered():
                self._end(event, "answered", cached=event.cached)
            case SourceFailed():
                self._end(event, event.why)
            case SourceSlow():
                self._end(event, "slow")

    def _end(self, event: SourceAnswered | SourceFailed | SourceSlow, how: str, *, cached: bool = False) -> None:
        self.ended[event.part, event.source] = SourceAttempt(event.source, how, event.ms, cached)

    def __rich__(self) -> Group:
        return Group(*(self._line(*key) for key in sorted(self.asked, key=lambda key: key[0])))

    def _line(self, part: int, name: str) -> Text:
        several = any(number > 0 for number, _ in self.asked)
        head = Text(f"{part + 1}  " if several else "", "dim")
        if (part, name) in self.ended:
            return head + ended_line(self.ended[part, name], self.glyphs)
        waited = time.monotonic() - self.asked[part, name]
        return head + Text(f"{self.glyphs.passed} {visible(name)}  {waited:.1f} s", "dim")


def ended_line(tried: SourceAttempt, glyphs: Glyphs) -> Text:
    """How asking one source ended."""
    answered = tried.ended == "answered"
    style = _STYLES.get(tried.ended, "red")
    line = Text.assemble((f"{glyphs.yes if answered else glyphs.fault} {visible(tried.source)}", style))
    took = "cached" if tried.cached else f"{tried.ms / 1000:.1f} s"
    line.append(f"  {took}" if answered else f"  {tried.ended.replace('_', ' ')}  {took}", "dim")
    return line


@contextlib.contextmanager
def live_sources() -> Iterator[Callable[[Event], None]]:
    """A function that shows sources on stderr while they are asked, if that is a terminal."""
    screen = console(stderr=True)
    progress = Progress(screen.glyphs)
    with screen.redrawn(progress, transient=True):
        yield progress.note


def answer(result: SearchResult, glyphs: Glyphs) -> RenderableType:
    """The answer, and below it how each source ended."""
    asked = [_tried(number, part, glyphs, several=len(result.parts) > 1) for number, part in enumerate(result.parts, 1)]
    reasons = dict.fromkeys(
        visible(one.said) for part in result.parts for one in part.tried if one.ended != "answered" and one.said
    )
    return Group(Text(visible_lines(result.result)), Text(), *asked, *(Text(reason, "dim") for reason in reasons))


def _tried(number: int, part: PartResult, glyphs: Glyphs, *, several: bool) -> Text:
    head = Text(f"{number}  " if several else "", "dim")
    return head + Text(f" {glyphs.dot} ").join(ended_line(one, glyphs) for one in part.tried)
