"""One layer's part of the picture: what fired and what each signal adds, its scores, and its gate."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from turnout.core.verdict import Reason, Verdict
from turnout.explain.explanation import LayerExplanation
from turnout.explain.question import Question

from .screen import Glyphs, visible
from .shape import bar, gauge, ruler, signed_bar

# Cells on each side of a signed bar's axis, and of a score's bar.
SIDE, SCORE = 9, 24
# With fewer cells than these, words need the room more than bars do.
ROOMY = 60
# With fewer than these, a gauge would push out the numbers it is drawn from.
TIGHT = 40
# A matched passage longer than this is quoted by its beginning.
QUOTED = 32
# Losers beyond these are named by number only; a profile may have many routes.
SHOWN_SCORES = 8


def verdict_style(step: LayerExplanation) -> str:
    return "bold green" if step.ended == "accepted" else "bold yellow"


def details(step: LayerExplanation, question: Question, glyphs: Glyphs, width: int) -> Iterator[RenderableType]:
    verdict = step.verdict
    if verdict is None:
        return
    yield _signals(step, verdict, question, glyphs, side=SIDE if width >= ROOMY else SIDE // 3)
    bands, style = step.bands, verdict_style(step)
    if bands is not None and len(verdict.scores) == 1:
        yield ""
        chosen = verdict.routes[0]
        yield from ruler(step.score, bands.edges, bands.routes, chosen, width=width, glyphs=glyphs, style=style)
    elif verdict.scores:
        yield ""
        yield _scores(step, verdict, glyphs, length=SCORE if width >= ROOMY else SCORE // 3)
    yield ""
    yield _gate(step, verdict, glyphs, length=SCORE if width >= ROOMY else SCORE // 3 if width >= TIGHT else 0)


def _signals(step: LayerExplanation, verdict: Verdict, question: Question, glyphs: Glyphs, *, side: int) -> Table:
    weights = {reason.code: verdict.adds[reason.code] for reason in step.fired if reason.code in verdict.adds}
    grid = _bar_table(len("+0.000"))
    largest = max(map(abs, weights.values()), default=1.0)
    left = side if min(weights.values(), default=0.0) < 0 else 0
    if weights:
        what = "adds" if len(verdict.scores) == 1 or side < SIDE else "adds to the winner"
        grid.add_row(Text("fired", "dim"), "", Text(what, "dim"))
    for reason in step.fired:
        added = weights.get(reason.code)
        if added is None:
            grid.add_row(_said(reason, question, glyphs), "", "")
        else:
            shape = signed_bar(added / largest, left, side, glyphs, ("magenta", "cyan"))
            grid.add_row(_said(reason, question, glyphs), Text(number(added, glyphs)), shape)
    if weights and len(verdict.scores) == 1:
        grid.add_row(Text("sum", "dim", justify="right"), Text(number(step.score, glyphs), "bold"), "")
    return grid


def _bar_table(number_width: int) -> Table:
    """What, how much, and a bar."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(overflow="fold")
    grid.add_column(justify="right", no_wrap=True, min_width=number_width)
    grid.add_column(no_wrap=True)
    return grid


def _said(reason: Reason, question: Question, glyphs: Glyphs) -> Text:
    """The reason; with the words that matched, where it does not name them itself."""
    text = Text(visible(reason.text))
    if not reason.text.endswith(")") and (words := question.matched(reason.code)):
        opening, closing = glyphs.quotes
        shown = words if len(words) <= QUOTED else f"{words[: QUOTED - 1]}{glyphs.dots}"
        text.append(f" {opening}{visible(shown)}{closing}", "dim")
    return text


def _scores(step: LayerExplanation, verdict: Verdict, glyphs: Glyphs, *, length: int) -> Table:
    """The winner and the losers, best first."""
    grid = _bar_table(len("0.000"))
    ranked = sorted(verdict.scores.items(), key=lambda item: -item[1])
    scale = max(1.0, ranked[0][1])
    for route, score in ranked[:SHOWN_SCORES]:
        won = route in verdict.routes
        style = verdict_style(step) if won else "dim"
        grid.add_row(Text(visible(route), style), f"{score:.3f}", bar(score / scale, length, glyphs, style))
    if len(ranked) > SHOWN_SCORES:
        grid.add_row(Text(f"and {len(ranked) - SHOWN_SCORES} more", "dim"), "", "")
    return grid


def _gate(step: LayerExplanation, verdict: Verdict, glyphs: Glyphs, *, length: int) -> RenderableType:
    """What the gate needed and what it found."""
    gate = step.gate
    name = "confidence" if verdict.calibrated else "score"
    if verdict.decisive:
        return Text.assemble(f"{name} {verdict.confidence:.2f}  ", ("decisive: no gate is asked", "dim"))
    grid = Table.grid(padding=(0, 2 if length else 1))
    rows = [(name, verdict.confidence, gate.confidence)]
    if gate.margin > 0.0:
        rows.append(("margin", verdict.margin, gate.margin))
    # Where room is short there is no gauge, then the need wraps; what was measured is never cut.
    grid.add_column(no_wrap=True, min_width=max(len(label) for label, _, _ in rows))
    grid.add_column(no_wrap=True, min_width=len("0.00"))
    if length:
        grid.add_column(no_wrap=True)
    grid.add_column()
    for label, found, needed in rows:
        enough = found >= needed
        style = "green" if enough else "yellow"
        shape = [gauge(found, needed, length, glyphs, style)] if length else []
        sign = glyphs.yes if enough else glyphs.no
        grid.add_row(label, f"{found:.2f}", *shape, Text.assemble(f"needs {needed:.2f} ", (sign, f"bold {style}")))
    return Group(grid, Text(visible(step.held_text), "dim")) if step.held_text else grid


def number(value: float, glyphs: Glyphs) -> str:
    return f"{'+' if value >= 0 else glyphs.minus}{abs(value):.3f}"
