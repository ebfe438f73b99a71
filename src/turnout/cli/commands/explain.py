"""`turnout explain`: the picture of one decision."""

from __future__ import annotations

from ..option import (
    DEFAULT_PROFILE,
    CeilingOption,
    ConfigOption,
    DeclareOption,
    JsonOption,
    LocalOption,
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
    from ..draw.render import picture
    from ..draw.screen import console, glyphs_for, width_of

    screen = console()
    screen.print(picture(decision, glyphs_for(screen), width_of(screen)), width=width_of(screen))
    return 0
