"""`turnout claims`: ask the library of audited claims, look into it, have a claim audited."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path as File
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from turnout.apps.claims.card import Card, ClaimType, read_type
from turnout.core.errors import TurnoutError, suggest
from turnout.core.query import Turn
from turnout.runtime.log import reading_log, records_with
from turnout.store.judge import judge, routes_of

from ..app import show_paragraphs
from ..application import local_caller, needing, open_runtime, run
from ..draw.screen import console, visible, write_json
from ..option import DecisionArgument, JsonOption, StoreOptions, TenantOptions, TextArgument, check_least, user_name
from ..question import SessionOption, append_turns, check_session, read_session, read_text
from .claims_audit import audit, show_card
from .claims_library import app, no_such_card, opened

if TYPE_CHECKING:
    from turnout.apps.claims.answer import ClaimAnswer
    from turnout.apps.claims.app import ClaimQuestion, ClaimsApp
    from turnout.apps.claims.pipeline import AuditFailed

app.command(audit, name="audit")

TypeOption = Annotated[
    str, Parameter(name="--type", help="Only of this type, such as historical or epistemology.", metavar="TYPE")
]


@app.command(name="ask")
def ask_claims(
    text: TextArgument = None,
    /,
    *,
    session: SessionOption = None,
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
        from turnout.apps.claims.pipeline import AuditFailed

    question = read_text(text)
    turns: tuple[Turn, ...] = ()
    name = ""
    if session is not None:
        check_session(session)
        turns = read_session(session)
        # The name is that of the file, so that the next question with it continues the same session.
        name = "".join(c if c.isalnum() else "-" for c in File(session).stem[:100])
    app = ClaimsApp(open_runtime(where, "claims"), keeps_events=False, audits=not no_audit)
    answer, audited = run(app.runtime, _ask(app, ClaimQuestion(question, turns, name)))
    if json:
        write_json(answer if audited is None else {"answer": answer, "audited": audited})
    else:
        _show(answer, audited)
    if session is not None:
        reply = tell_answer(answer.response) if audited is None else tell_audited(audited)
        append_turns(session, Turn("user", question), Turn("assistant", reply))
    return 1 if isinstance(audited, AuditFailed) else 0


async def _ask(app: ClaimsApp, question: ClaimQuestion) -> tuple[ClaimAnswer, Card | AuditFailed | None]:
    """Ask, show the events on stderr, and wait for the audit if there is one."""
    from turnout.apps.claims.answer import AuditEnded, ClaimAnswer

    from ..draw.claims import event_printer

    show = event_printer()
    answer: ClaimAnswer | None = None
    audited: Card | AuditFailed | None = None
    async with aclosing(app.follow(question, local_caller())) as events:
        async for event in events:
            show(event)
            answer = event if isinstance(event, ClaimAnswer) else answer
            audited = event.response if isinstance(event, AuditEnded) else audited
    assert answer is not None  # noqa: S101 - asking ends with one
    return answer, audited


def _show(answer: ClaimAnswer, audited: Card | AuditFailed | None) -> None:
    from ..draw.claims import answer_page

    screen = console()
    screen.prose(answer_page(answer, audited, screen.glyphs))


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
) -> None:
    """Say whether this was the right claim. Your feedback is kept with the decision, and training uses it."""
    note = f"card {card} {note}".strip() if card else note
    with reading_log(where) as store:
        records = records_with(store, ident, where.tenant)
        row = records.get(ident)
        if row.profile != "claims":
            raise TurnoutError(f"{row.id} is a decision of {row.profile}, not of claims: turnout feedback takes it")
        feedback = judge(records, row, word, routes_of(records, row), by=user_name(), note=note)
    if json:
        write_json(feedback)
    else:
        should = f", should be {feedback.should_be}" if feedback.should_be else ""
        console().say(visible(f"{row.route} is {feedback.verdict}{should}  {row.id}"))


@app.command(name="list")
def list_claims(
    *,
    kind: TypeOption = "",
    hidden: Annotated[bool, Parameter(help="Include hidden cards.")] = False,
    json: JsonOption = False,
    where: StoreOptions = StoreOptions(),
) -> None:
    """List the cards, by id."""
    with opened(where) as library:
        cards = list(library.list(claim_type=_read_kind(kind), hidden=hidden))
    from ..draw.claims import card_line

    if json:
        write_json([{"id": card.id, "claim_text": card.claim_text, "verdict": card.verdict} for card in cards])
        return
    screen = console()
    for card in cards:
        screen.say(card_line(card, screen.glyphs))


@app.command(name="show")
def show_claim(
    ident: Annotated[str, Parameter(name="ID", help="The id of a card.")],
    /,
    *,
    json: JsonOption = False,
    where: StoreOptions = StoreOptions(),
) -> int:
    """Show a card: the claim, the verdict, the answer and its sources."""
    with opened(where) as library:
        card = library.get(ident)
        if card is None:
            raise no_such_card(ident, (one.id for one in library.list()))
    return show_card(card, json=json)


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
    question, claim_type = read_text(text), _read_kind(kind)
    check_least("--limit", limit)
    with opened(where) as library:
        found = library.search(question, limit=limit, claim_type=claim_type)
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


def _read_kind(text: str) -> ClaimType | None:
    claim_type = read_type(text) if text else None
    if text and claim_type is None:
        known = [one.value for one in ClaimType]
        raise TurnoutError(f"--type {text[:40]!r}{suggest(text, known)}: one of {', '.join(known)}")
    return claim_type


show_paragraphs(app)
