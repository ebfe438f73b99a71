"""`turnout explain`: the picture of one decision."""

from __future__ import annotations

from ..option import (
    DEFAULT_PROFILE,
    CeilingOption,
    ConfigOption,
    DeclareOption,
    JsonOption,
    LocalOption,
    PlanOption,
    ProfileOption,
    SessionOption,
    TextArgument,
    TurnsOption,
)


def explain(
    text: TextArgument = None,
    /,
    *,
    profile: ProfileOption = DEFAULT_PROFILE,
    plan: PlanOption = False,
    json: JsonOption = False,
    declare: DeclareOption = None,
    ceiling: CeilingOption = None,
    session: SessionOption = None,
    turns: TurnsOption = None,
    local: LocalOption = False,
    config: ConfigOption = None,
) -> int:
    from ..question import Ask, decide_asked

    decision = decide_asked(Ask(text, declare, ceiling, turns, session), profile, config, local=local)
    if json:
        from ..draw.screen import write_json

        write_json(decision.json())
        return 0
    from turnout.explain.live import explain as explain_decision

    from ..draw.plan import tree
    from ..draw.render import picture
    from ..draw.screen import console, glyphs_for, width_of

    screen = console()
    glyphs, width = glyphs_for(screen), width_of(screen)
    explained = explain_decision(decision)
    screen.print(tree(explained, glyphs) if plan else picture(explained, glyphs, width), width=width)
    return 0
