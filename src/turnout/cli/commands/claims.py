"""`turnout claims`: ask the library of audited claims, look into it, have a claim audited."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path as File
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from turnout.core.errors import TurnoutError, suggest
from turnout.core.query import Turn

from ..app import examples_of, show_paragraphs
from ..application import local_caller, needing, open_runtime, run
from ..draw.screen import console, visible, write_json
from ..option import DecisionArgument, JsonOption, StoreOptions, TenantOptions, TextArgument, user_name
from ..question import append_turn, check_session, read_session, read_text
from .claims_audit import audit
from .claims_library import LIBRARY_COMMANDS, opened

if TYPE_CHECKING:
    from turnout.apps.claims.answer import ClaimAnswer
    from turnout.apps.claims.app import ClaimQuestion, ClaimsApp
    from turnout.apps.claims.card import Card, ClaimType
    from turnout.apps.claims.pipeline import AuditFailed

app = App(name="claims", help_epilogue=examples_of("claims"))
app.command(audit, name="audit")
for _name, _run in LIBRARY_COMMANDS:
    app.command(_run, name=_name)  # type: ignore[call-overload]

TypeOption = Annotated[
    str, Parameter(name="--type", help="Only of this type, such as historical or epistemology.", metavar="TYPE")
]


@app.command(name="ask")
def ask_claims(
    text: TextArgument = None,
    /,
    *,
    session: Annotated[
        str | None, Parameter(help="A JSONL file of earlier turns; question and answer are added.", metavar="FILE")
    ] = None,
    no_audit: Annotated[bool, Parameter(help="If the claim is new, only say so; nothing is audited.")] = False,
    json: JsonOption = False,
    where: StoreOptions = StoreOptions(),
) -> int:
    """Ask: the card that answers, a synthesis of cards, or a new audit, which is shown as it goes.

    The exit code is 1 if an audit ended without a card.
    """
    with needing("asking claims needs"):
        from turnout.apps.claims.answer import tell_answer, tell_audited
        from turnout.apps.claims.app import ClaimQuestion, ClaimsApp

    asked = read_text(text)
    if session is not None:
        check_session(File(session))
    turns = tuple(read_session(File(session))) if session is not None else ()
    # The same file is the same session: what it has shown is found again.
    name = File(session).stem[:100] if session is not None else ""
    app = ClaimsApp(open_runtime(where, "claims"), keeps_events=False, audits=not no_audit)
    question = ClaimQuestion(asked, turns, "".join(c if c.isalnum() else "-" for c in name))
    told, audited = run(app.runtime, _ask(app, question))
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
    from turnout.apps.claims.answer import AuditEnded, ClaimAnswer

    from ..draw.claims import live_events

    told: ClaimAnswer | None = None
    audited: Card | AuditFailed | None = None
    with live_events() as happened:
        async with aclosing(app.follow(question, local_caller())) as events:
            async for event in events:
                happened(event)
                told = event if isinstance(event, ClaimAnswer) else told
                audited = event.response if isinstance(event, AuditEnded) else audited
    assert told is not None  # noqa: S101 - asking ends with one
    return told, audited


def _show(told: ClaimAnswer, audited: Card | AuditFailed | None) -> None:
    from ..draw.claims import answer

    screen = console()
    screen.print(answer(told, audited, screen.glyphs), width=screen.room if screen.is_terminal else None)


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
    """Say whether this was the right claim. Your feedback is kept with the decision, and training uses it."""
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


@app.command(name="list")
def list_claims(
    *,
    kind: TypeOption = "",
    hidden: Annotated[bool, Parameter(help="Include hidden cards.")] = False,
    json: JsonOption = False,
    where: StoreOptions = StoreOptions(),
) -> int:
    """List the cards, by id."""
    with opened(where) as library:
        cards = list(library.list(claim_type=_read_kind(kind), hidden=hidden))
    from ..draw.claims import card_line

    if json:
        write_json([{"id": one.id, "claim_text": one.claim_text, "verdict": one.verdict} for one in cards])
        return 0
    screen = console()
    for card in cards:
        screen.say(card_line(card, screen.glyphs))
    return 0


@app.command(name="show")
def show_claim(
    ident: Annotated[str, Parameter(name="ID", help="The id of a card.")],
    /,
    *,
    json: JsonOption = False,
    where: StoreOptions = StoreOptions(),
) -> int:
    """Show a card: the claim, the verdict, the answer and its sources."""
    from ..draw.audit import card_picture

    with opened(where) as library:
        card = library.get(ident)
        known = [one.id for one in library.list()] if card is None else []
    if card is None:
        raise TurnoutError(f"there is no card {ident[:80]!r}{suggest(ident, known)} (see turnout claims list)")
    if json:
        write_json(card)
        return 0
    screen = console()
    screen.print(card_picture(card, screen.glyphs), width=screen.room if screen.is_terminal else None)
    return 0


@app.command(name="search")
def search_claims(
    text: TextArgument = None,
    /,
    *,
    kind: TypeOption = "",
    limit: Annotated[int, Parameter(name=("--limit", "-n"), help="How many at most.", metavar="N")] = 5,
    json: JsonOption = False,
    where: StoreOptions = StoreOptions(),
) -> int:
    """Search the cards that a question may mean, the best first. The exit code is 1 if none is near enough."""
    asked, wanted = read_text(text), _read_kind(kind)
    if limit < 1:
        raise TurnoutError(f"--limit {limit}: at least 1")
    with opened(where) as library:
        found = library.search(asked, limit=limit, claim_type=wanted)
    from turnout.apps.claims.router_agent import tell_candidate

    from ..draw.claims import card_line

    if json:
        write_json([tell_candidate(one) for one in found])
    else:
        screen = console()
        for one in found:
            screen.say(card_line(one.card, screen.glyphs, one.similarity))
        if not found:
            screen.say(("no card is near enough", "dim"))
    return 0 if found else 1


def _read_kind(said: str) -> ClaimType | None:
    from turnout.apps.claims.card import ClaimType, read_type

    found, known = read_type(said) if said else None, [one.value for one in ClaimType]
    if said and found is None:
        raise TurnoutError(f"--type {said[:40]!r}{suggest(said, known)}: one of {', '.join(known)}")
    return found


show_paragraphs(app)
