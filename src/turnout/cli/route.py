"""`turnout route`: one question, one decision, in two lines or as JSON."""

from __future__ import annotations

from .option import (
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


def route(
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
    from .question import Ask, decide_asked

    decision = decide_asked(Ask(text, declare, ceiling, turns, session), profile, config, local=local)
    if json:
        from .screen import write_bytes

        write_bytes(decision.json())
        return 0
    from .render import summary
    from .screen import console, glyphs_for

    screen = console()
    for line in summary(decision, glyphs_for(screen)):
        screen.print(line, soft_wrap=not screen.is_terminal)
    return 0
