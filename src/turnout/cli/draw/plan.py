"""The parts of a question as a small tree: the role, words, routes and layer of each.

A question that was not split is the only part, so that the picture is the same for every profile.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from turnout.explain.explanation import Explanation, spell

from .picture import heading, sureness
from .screen import Glyphs, quoted, visible
from .shape import Rail, branched, style_of

# Characters of a part that are quoted: the tree is an overview, and `explain` shows all of it.
QUOTED = 240


def tree(decision: Explanation, glyphs: Glyphs) -> RenderableType:
    """The question, and below it each part on a branch of its own."""
    parts = decision.parts or (decision,)
    body = Group(_quote(decision, glyphs), *branched(list(_named(parts, glyphs)), glyphs))
    return Group(heading(decision, glyphs), "", Rail(body, "  "))


def _named(parts: tuple[Explanation, ...], glyphs: Glyphs) -> Iterator[Rail]:
    """Each part after its role."""
    names = [part.role or ("part" if len(parts) > 1 else "whole") for part in parts]
    width = max(map(len, names))
    for name, part in zip(names, parts, strict=True):
        lines = Group(*_lines(part, glyphs, alone=len(parts) == 1 and not part.role))
        yield Rail(lines, Text(f"{name:<{width}}  ", "bold cyan"), "")


def _lines(part: Explanation, glyphs: Glyphs, *, alone: bool) -> Iterator[Text]:
    """The words of a part, its routes, layer, sources and reasons, and what waits for its answer."""
    if not alone:
        yield _quote(part, glyphs)
    dot = f" {glyphs.dot} "
    who, how = spell(part.outcome)
    routes = " + ".join(map(visible, part.routes))
    yield Text.assemble(
        (f"{glyphs.arrow} ", "dim"),
        (routes, style_of(part.outcome)),
        f"  {sureness(part)}{dot}by {visible(part.by)}{dot}",
        (f"{part.outcome} ({who}, {how})", "dim"),
    )
    if part.policy.sources:
        yield Text.assemble(("sources ", "dim"), (", ".join(map(visible, part.policy.sources)), "bold"))
    why = dot.join(visible(reason.text) for reason in part.reasons)
    if why:
        yield Text(why, "dim")
    if part.then:
        yield Text.assemble(("then ", "dim"), quoted(part.then, glyphs, QUOTED))


def _quote(decision: Explanation, glyphs: Glyphs) -> Text:
    words = decision.question.excerpt
    return Text(quoted(words, glyphs, QUOTED)) if words else Text("(a blank question)", "dim")
