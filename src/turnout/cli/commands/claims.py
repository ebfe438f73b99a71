"""`turnout claims`: ask the library of audited claims, look into it, have a claim audited."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path as File
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from turnout.core.errors import Refused, TurnoutError
from turnout.core.query import Turn

from ..app import examples_of
from ..draw.screen import console, visible, write_json
from ..option import ConfigOption, DbOption, DecisionArgument, JsonOption, TenantOptions, TextArgument, user_name
from ..question import append_turn, read_session, read_text

if TYPE_CHECKING:
    from turnout.apps.claims.answer import ClaimAnswer
    from turnout.apps.claims.app import ClaimQuestion, ClaimsApp
    from turnout.apps.claims.card import Card
    from turnout.apps.claims.pipeline import AuditFailed

app = App(name="claims", help_epilogue=examples_of("claims"))


@app.command(name="ask")
def ask_claims(
    text: TextArgument = None,
    /,
    *,
    session: Annotated[
        str | None, Parameter(help="A JSONL file of earlier turns; question and answer are added.", metavar="FILE")
    ] = None,
    no_audit: Annotated[bool, Parameter(help="Of a new claim, only say that it is one; nothing is audited.")] = False,
    json: JsonOption = False,
    db: DbOption = None,
    config: ConfigOption = None,
) -> int:
    """Ask: the card that answers, a synthesis of cards, or a new audit, which is shown as it goes.

    The exit code is 1 if an audit ended without a card.
    """
    from turnout.apps.claims.answer import tell_answer, tell_audited
    from turnout.apps.claims.app import ClaimQuestion

    asked = read_text(text)
    turns = tuple(read_session(File(session))) if session is not None else ()
    # The same file is the same session: what it has shown is found again.
    name = File(session).stem[:100] if session is not None else ""
    app = _open(db, config, audits=not no_audit)
    question = ClaimQuestion(asked, turns, "".join(c if c.isalnum() else "-" for c in name))
    told, audited = asyncio.run(_ask(app, question))
    if json:
        write_json(told if audited is None else {"answer": told, "audited": audited})
    else:
        _show(told, audited)
    if session is not None:
        append_turn(File(session), Turn("user", asked))
        said = tell_answer(told.response) if audited is None else tell_audited(audited)
        append_turn(File(session), Turn("assistant", said))
    return 1 if audited is not None and not hasattr(audited, "verdict") else 0


async def _ask(app: ClaimsApp, question: ClaimQuestion) -> tuple[ClaimAnswer, Card | AuditFailed | None]:
    """Ask, show on stderr what happens, and wait for the audit if there is one."""
    from turnout.apps.caller import Budget, Caller
    from turnout.apps.claims.answer import AuditStarted, ClaimAnswer

    from ..draw.claims import live_events

    caller = Caller("", "", frozenset(("ask",)), Budget())
    told: ClaimAnswer | None = None
    audited: Card | AuditFailed | None = None
    try:
        with live_events() as happened:
            async with aclosing(app.ask(question, caller)) as events:
                async for event in events:
                    happened(event)
                    told = event if isinstance(event, ClaimAnswer) else told
            assert told is not None  # noqa: S101 - it is the last event
            if isinstance(told.response, AuditStarted) and told.response.pipeline_id:
                pipeline = await app.pipeline()
                async with aclosing(pipeline.events(told.session_id, tenant="")) as going:
                    async for step in going:
                        happened(step)
                audited = await pipeline.result(told.response.pipeline_id)
    except Refused as refused:
        raise TurnoutError(str(refused)) from None
    finally:
        await app.runtime.close()
    return told, audited


def _show(told: ClaimAnswer, audited: Card | AuditFailed | None) -> None:
    from ..draw.claims import answer

    screen = console()
    screen.print(answer(told, audited, screen.glyphs), width=screen.room if screen.is_terminal else None)


def _open(db: str | None, config: str | None, *, audits: bool) -> ClaimsApp:
    try:
        from turnout.apps.claims.app import ClaimsApp
        from turnout.runtime.runtime import Runtime
    except ImportError as error:
        raise TurnoutError(f"asking claims needs {error.name}: pip install 'turnout[serve,claims]'") from None
    from turnout.runtime.log import quiet
    from turnout.store import open_store

    quiet()
    runtime = Runtime(open_store(db, config=config), profile="claims", config=config)
    return ClaimsApp(runtime, keeps_events=False, audits=audits)


@app.command(name="feedback")
def claim_feedback(
    ident: DecisionArgument,
    word: Annotated[
        Literal["right", "wrong", "exact_match", "contextual", "novel_claim"],
        Parameter(name="WORD", help="right, wrong, or the mode it should have been."),
    ],
    /,
    *,
    card: Annotated[str, Parameter(help="The card that would have been right.", metavar="ID")] = "",
    note: Annotated[str, Parameter(help="Why.", metavar="TEXT")] = "",
    json: JsonOption = False,
    where: TenantOptions = TenantOptions(),
) -> int:
    """Was this the right claim? Your word is kept beside the decision, and training sees it."""
    from turnout.runtime.log import reading_log, records_with
    from turnout.store.judge import judge, routes_of

    said = " ".join(part for part in (f"card {card}" if card else "", note) if part)
    with reading_log(where) as store:
        records = records_with(store, ident, where.tenant)
        found = records.get(ident)
        if found.profile != "claims":
            raise TurnoutError(f"{found.id} is a decision of {found.profile}, not of claims: turnout feedback takes it")
        kept = judge(records, found, word, routes_of(records, found), by=user_name(), note=said)
    if json:
        write_json(kept)
    else:
        should = f", should be {kept.should_be}" if kept.should_be else ""
        console().say(visible(f"{found.route} is {kept.verdict}{should}  {found.id}"))
    return 0
