"""`turnout route`: decide one question, print the decision in two lines or as JSON, and log it."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from turnout.core.decision import Decision
from turnout.core.errors import TurnoutError

from ..draw.screen import complain, console, write_json
from ..option import DbOption, JsonOption, NameOption, TextArgument, hint
from ..question import Ask

# For a profile with layers that only its application has.
BY_APP = "The cards of the library are not looked at here; this does what the application would"


def route(
    text: TextArgument = None,
    /,
    *,
    ask: Ask = Ask(),
    json: JsonOption = False,
    tenant: Annotated[NameOption, Parameter(help="The tenant of the question, for the decision log.")] = None,
    no_log: Annotated[bool, Parameter(help="Do not log the decision.")] = False,
    db: DbOption = None,
) -> None:
    decision = ask.decide(text, tenant)
    try:
        _print(decision, json=json)
    finally:
        # The decision is logged even if the reader of the output has closed the pipe.
        if not no_log:
            _log(decision, db, ask.config)


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
    # The decision is printed before the log is opened, so that the user does not wait for a database.
    sys.stdout.flush()


def _log(decision: Decision, db: str | None, config: str | None) -> None:
    """Log the decision. It is printed already and stands, so that an error here is only a warning."""
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
        reason = str(error)
        if isinstance(error, OSError) and error.filename is not None:
            reason = f"{error.filename}: {error.strerror}"
        complain(f"the decision is not logged: {reason} (--no-log does without)")
        return
    counts, spool = store.counts(), store.journal.spool.folder
    if counts.lost:
        complain(f"the decision is not logged: {counts.last_error} (--no-log does without)")
    elif counts.rejected:
        complain(f"the decision is set aside in {spool}: {counts.last_error}")
    elif counts.backlog_bytes:
        complain(f"the decision waits in {spool} to be logged by the next command: {counts.last_error}")
