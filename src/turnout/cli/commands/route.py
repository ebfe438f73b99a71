"""`turnout route`: one question, one decision, in two lines or as JSON; then it is logged."""

from __future__ import annotations

import sys

from turnout.core.decision import Decision
from turnout.core.errors import TurnoutError

from ..option import (
    DEFAULT_PROFILE,
    AskedByOption,
    CeilingOption,
    ConfigOption,
    DbOption,
    DeclareOption,
    JsonOption,
    LocalOption,
    NoLogOption,
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
    tenant: AskedByOption = None,
    no_log: NoLogOption = False,
    db: DbOption = None,
    config: ConfigOption = None,
) -> int:
    from ..question import Ask, decide_asked

    decision = decide_asked(Ask(text, declare, ceiling, turns, session, tenant), profile, config, local=local)
    try:
        _print(decision, json=json)
    finally:
        # Whoever reads the answer may have read enough of it: the decision was made all the same.
        if not no_log:
            write_down(decision, db, config)
    return 0


def _print(decision: Decision, *, json: bool) -> None:
    if json:
        from ..draw.screen import write_json

        write_json(decision.json())
    else:
        from ..draw.render import summary
        from ..draw.screen import console, glyphs_for

        screen = console()
        for line in summary(decision, glyphs_for(screen)):
            screen.print(line, soft_wrap=not screen.is_terminal)
    # The answer is out before the log is opened: nobody waits for a database.
    sys.stdout.flush()


def write_down(decision: Decision, db: str | None, config: str | None) -> None:
    """Log the decision. It is on the screen already and stands: what goes wrong here is told, and no more than that."""
    from turnout.config.settings import store_settings

    from ..draw.screen import complain

    try:
        if not store_settings(config).log_commands:
            return
        from turnout.store import open_store

        from ..stored import quiet

        quiet()
        with open_store(db, durability="batched", config=config) as store:
            store.record(decision)
    except (TurnoutError, OSError) as error:
        complain(f"the decision is not logged: {sentence(error)} (--no-log does without)")
        return
    counts, spool = store.counts(), store.journal.spool.folder
    if counts.lost:
        complain(f"the decision is not logged: {counts.last_error} (--no-log does without)")
    elif counts.rejected:
        complain(f"the decision is set aside in {spool}: {counts.last_error}")
    elif counts.backlog_bytes:
        complain(f"the decision waits in {spool} to be logged by the next command: {counts.last_error}")


def sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)
