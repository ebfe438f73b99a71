"""`turnout explain`: the picture of one decision."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from ..draw.screen import console, write_json
from ..option import JsonOption, TextArgument
from ..question import Ask


def explain(
    text: TextArgument = None,
    /,
    *,
    ask: Ask = Ask(),
    plan: Annotated[bool, Parameter(help="Draw only the parts of the question, as a tree.")] = False,
    json: JsonOption = False,
) -> None:
    decision = ask.decide(text)
    if json:
        write_json(decision.json())
        return
    from turnout.explain.explanation import explain as explain_decision

    from ..draw.picture import picture
    from ..draw.plan import tree

    screen = console()
    glyphs, width = screen.glyphs, screen.room
    explained = explain_decision(decision)
    screen.print(tree(explained, glyphs) if plan else picture(explained, glyphs, width), width=width)
