"""`turnout explain`: the picture of one decision."""

from __future__ import annotations

from ..draw.screen import console, glyphs_for, width_of, write_json
from ..option import JsonOption, PlanOption, TextArgument
from ..question import Ask


def explain(
    text: TextArgument = None,
    /,
    *,
    ask: Ask = Ask(),
    plan: PlanOption = False,
    json: JsonOption = False,
) -> int:
    decision = ask.decide(text)
    if json:
        write_json(decision.json())
        return 0
    from ..draw.plan import tree
    from ..draw.render import picture

    screen = console()
    glyphs, width = glyphs_for(screen), width_of(screen)
    screen.print(tree(decision, glyphs) if plan else picture(decision, glyphs, width), width=width)
    return 0
