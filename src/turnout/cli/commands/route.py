"""`turnout route`: one question, one decision, in two lines or as JSON; then it is logged."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from turnout.core.decision import Decision
from turnout.core.errors import TurnoutError

from ..draw.screen import complain, console, write_json
from ..option import DbOption, JsonOption, TextArgument, hint
from ..question import Ask

# Of a profile whose application decides with more than it.
BY_APP = "The cards of the library are not looked at here; this does what the application would"


def route(
    text: TextArgument = None,
    /,
    *,
    ask: Ask = Ask(),
    json: JsonOption = False,
    tenant: Annotated[
        str | None, Parameter(help="The tenant of the question, for the decision log.", metavar="NAME")
    ] = None,
    no_log: Annotated[bool, Parameter(help="Do not log the decision.")] = False,
    db: DbOption = None,
) -> int:
    decision = ask.decide(text, tenant)
    try:
        _print(decision, json=json)
    finally:
        # A reader may close the pipe early: the decision was made all the same.
        if not no_log:
            write_down(decision, db, ask.config)
    return 0


def _print(decision: Decision, *, json: bool) -> None:
    if json:
        write_json(decision.json())
    else:
        from turnout.core.registry import is_brought_by_app

        from ..draw.picture import summary

        screen = console()
        for line in summary(decision, screen.glyphs):
            screen.print(line, soft_wrap=not screen.is_terminal)
        if any(is_brought_by_app(step.place.kind) for step in decision.steps):
            console(stderr=True).say((f"{BY_APP}: {hint('claims', 'ask', decision.query.text)}", "dim"))
    # The answer is out before the log is opened: no one waits for a database.
    sys.stdout.flush()


def write_down(decision: Decision, db: str | None, config: str | None) -> None:
    """Log the decision. It is on the screen already and stands: what goes wrong here is told, and no more than that."""
    from turnout.config.settings import store_settings

    try:
        if not store_settings(config).log_commands:
            return
        from turnout.runtime.log import quiet
        from turnout.store import open_store

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
