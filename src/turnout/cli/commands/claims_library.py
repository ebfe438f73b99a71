"""The commands of `turnout claims` that maintain the library: import and export, hide and delete, calibrate."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Literal

import msgspec
from cyclopts import App, Parameter

from turnout.apps.claims.exchange import BadCards, CardProblem, read_cards, starter_cards, write_cards, write_reviews
from turnout.apps.claims.kind import retype
from turnout.apps.claims.library import ClaimLibrary, open_library
from turnout.apps.claims.match import LabelledQuestion, fit_observed, observe, share_found
from turnout.core.errors import TurnoutError, suggest
from turnout.text.count import counted
from turnout.text.json import UNREADABLE, why_unreadable

from ..app import examples_of
from ..application import opened_runtime
from ..draw.screen import console, visible, write_json
from ..option import STDIN, JsonOption, StoreOptions
from ..stream import reading, writing

app = App(name="claims", help_epilogue=examples_of("claims"))

# A hundred thousand cards with everything their agents wrote.
FILE_BYTES = 512 * 1024 * 1024


@contextlib.contextmanager
def opened(where: StoreOptions) -> Iterator[ClaimLibrary]:
    """The library of a store, for one command."""
    with opened_runtime(where, "claims") as runtime, open_library(runtime) as library:
        yield library


@app.command(name="import")
def import_cards(
    file: Annotated[str, Parameter(name="FILE", help="JSONL of cards, or ClaimReview as JSON-LD; `-` is stdin.")] = "",
    /,
    *,
    starter: Annotated[bool, Parameter(help="The cards that ship with Turnout.")] = False,
    json: JsonOption = False,
    where: StoreOptions = StoreOptions(),
) -> None:
    """Add cards to the library; a card with an existing id replaces that card.

    A file with a mistake is refused as a whole, and every mistake in it is named with its line.
    """
    if bool(file) == starter:
        raise TurnoutError("name a FILE of cards, or --starter for those that ship with Turnout")
    try:
        cards = list(starter_cards()) if starter else read_cards(_read(file))
    except BadCards as error:
        raise TurnoutError(f"{visible(file)}: nothing was imported\n{error}") from None
    with opened(where) as library:
        imported = library.put_all(cards, imported=True)
        total = library.count()
    twins = {card.id: card.twin_of for card in imported if card.twin_of}
    if json:
        write_json({"imported": len(imported), "twins": twins, "cards": total})
        return
    screen = console()
    screen.say(f"{counted(len(imported), 'card')} imported; the library has {total:,}.")
    for ident, other in twins.items():
        screen.say((f"{visible(ident)} says the same as {visible(other)}, which is the one that is found", "dim"))


@app.command(name="export")
def export_cards(
    file: Annotated[str, Parameter(name="FILE", help="Where to; `-`, or nothing, is stdout.")] = STDIN,
    /,
    *,
    form: Annotated[
        Literal["jsonl", "claimreview"], Parameter(name="--format", help="Our own, or schema.org's as JSON-LD.")
    ] = "jsonl",
    hidden: Annotated[bool, Parameter(help="Include hidden cards.")] = False,
    where: StoreOptions = StoreOptions(),
) -> None:
    """Export the library's cards; an import restores exactly what was exported."""
    with opened(where) as library, writing(file) as out:
        cards = list(library.list(hidden=hidden))
        for line in write_cards(cards) if form == "jsonl" else (write_reviews(cards),):
            out.write(line)
    if file != STDIN:
        console(stderr=True).say(visible(f"{counted(len(cards), 'card')} written to {file}"))


def no_such_card(ident: str, known: Iterable[str]) -> TurnoutError:
    return TurnoutError(f"there is no card {ident[:80]!r}{suggest(ident, known)} (see turnout claims list)")


CardArguments = Annotated[tuple[str, ...], Parameter(name="ID", help="The ids of cards.")]


@app.command(name="hide")
def hide(ids: CardArguments, /, *, json: JsonOption = False, where: StoreOptions = StoreOptions()) -> None:
    """Hide cards: they stay in the library and answer no question."""
    _change(ids, "hidden", lambda library, ident: library.set_visible(ident, False), json, where)


@app.command(name="unhide")
def unhide(ids: CardArguments, /, *, json: JsonOption = False, where: StoreOptions = StoreOptions()) -> None:
    """Let hidden cards answer questions again."""
    _change(ids, "visible", lambda library, ident: library.set_visible(ident, True), json, where)


@app.command(name="delete")
def delete(ids: CardArguments, /, *, json: JsonOption = False, where: StoreOptions = StoreOptions()) -> None:
    """Delete cards permanently; `turnout claims export` writes them to a file first. A shipped card comes back with
    `turnout claims import --starter`."""
    _change(ids, "deleted", lambda library, ident: library.delete(ident), json, where)


def _change(
    ids: tuple[str, ...],
    done: str,
    change: Callable[[ClaimLibrary, str], bool],
    json: bool,
    where: StoreOptions,
) -> None:
    """Change the cards of these ids; if one is unknown, none is changed."""
    if not ids:
        raise TurnoutError("name the ID of a card (see turnout claims list)")
    with opened(where) as library:
        known = [card.id for card in library.list(hidden=True)]
        for ident in ids:
            if ident not in known:
                raise no_such_card(ident, known)
        for ident in ids:
            change(library, ident)
    if json:
        write_json({done: ids})
    else:
        console().say(visible(f"{done}: {', '.join(ids)}"))


@app.command(name="calibrate")
def calibrate(
    file: Annotated[
        str, Parameter(name="FILE", help='JSONL of questions: {"question": …, "card": ID}; without a card it has none.')
    ],
    /,
    *,
    bound: Annotated[float, Parameter(help="Share of false exact matches that is allowed.", metavar="P")] = 0.05,
    confidence: Annotated[float, Parameter(help="How sure that must be.", metavar="P")] = 0.95,
    dry_run: Annotated[bool, Parameter(help="Only show the result.")] = False,
    json: JsonOption = False,
    where: StoreOptions = StoreOptions(),
) -> None:
    """Fit the gate for exact matches to your own questions, for the embedder in use.

    Each question is asked twice: with its card in the library and as if it were not there. A running server uses the
    new gate from the next question on.
    """
    if not 0 < bound < 1 or not 0 < confidence < 1:
        raise TurnoutError(f"--bound {bound} --confidence {confidence}: shares between 0 and 1")
    questions = read_questions(_read(file))
    with opened(where) as library:
        unknown = sorted({one.card for one in questions if one.card and library.get(one.card) is None})
        if unknown:
            raise TurnoutError(f"{file}: there is no card {', '.join(map(repr, unknown[:5]))}: import it first")
        seen = [observe(library, one) for one in questions]
        embedder = library.index.embedder
        gate = fit_observed(seen, embedder.name if embedder else "text", bound=bound, confidence=confidence)
        if not dry_run:
            library.keep_gate(gate)
    found, wrong = share_found(gate, seen)
    if json:
        write_json({"gate": gate, "found": found, "false_exact": wrong, "questions": len(questions)})
        return
    screen = console()
    screen.say(f"{visible(gate.embedder)}: an exact match needs {gate.threshold:.3f}, a candidate {gate.floor:.3f}")
    screen.say(
        f"{found:.1%} of {counted(len(questions), 'question')} find their card; {wrong:.1%} would find another if it "
        f"were not there (at most {bound:.0%}, {confidence:.0%} sure)"
    )


@app.command(name="backfill-types")
def backfill_types(
    *,
    every: Annotated[bool, Parameter(name="--all", help="For every card, even if it has a type.")] = False,
    dry_run: Annotated[bool, Parameter(help="Only say what would change.")] = False,
    json: JsonOption = False,
    where: StoreOptions = StoreOptions(),
) -> None:
    """Set the type of cards that were imported without one, from the words of their claims."""
    with opened(where) as library:
        pairs = [(card, new) for card in library.list(hidden=True) if (new := retype(card, every=every)) is not None]
        for _, new in () if dry_run else pairs:
            library.keep(new)
    changed = {old.id: (old.claim_type_category.value, new.claim_type_category.value) for old, new in pairs}
    if json:
        write_json({ident: {"was": was, "is": now} for ident, (was, now) in changed.items()})
        return
    screen = console()
    for ident, (was, now) in changed.items():
        screen.say(f"{visible(ident)}: {was} {screen.glyphs.arrow} {now}")
    screen.say(f"{counted(len(changed), 'card')} {'would change' if dry_run else 'changed'}.")


def read_questions(raw: bytes) -> list[LabelledQuestion]:
    """The labelled questions of a file; raises with every line that is not one."""
    found, problems = [], []
    for number, line in enumerate(raw.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            found.append(msgspec.json.decode(line, type=LabelledQuestion))
        except UNREADABLE as error:
            problems.append(CardProblem(number, why_unreadable(error, line)))
    if problems:
        raise BadCards(problems)
    return found


def _read(file: str) -> bytes:
    with reading(file) as (source, size):
        if (size or 0) > FILE_BYTES:
            raise TurnoutError(f"{file}: {size:,} bytes, {FILE_BYTES:,} are read at once: import it in parts")
        raw = source.read(FILE_BYTES + 1)
    if len(raw) > FILE_BYTES:
        raise TurnoutError(f"more than {FILE_BYTES:,} bytes: import them in parts")
    return raw
