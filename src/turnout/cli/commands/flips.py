"""`turnout contract flips`: whether history changes what it must not, measured."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter

from turnout.config.cases import read_cases
from turnout.config.load import load, read_chain
from turnout.core.errors import NoLogYet, QueryError
from turnout.core.query import Query
from turnout.core.router import Router
from turnout.store.flip import HISTORIES, Flip, FlipCount, FlipQuestion, FlipRate, logged_questions, measure, note_flips

from ..draw.screen import Glyphs, console, counted, glyphs_for, visible, write_json
from ..option import (
    DEFAULT_PROFILE,
    ConfigOption,
    DbOption,
    FieldOption,
    JsonOption,
    ProfileOption,
    SinceOption,
    TenantOption,
    UntilOption,
)
from ..rows import chunks, read_row, text_of
from ..stored import span_of, writing_log
from ..stream import progressing, reading
from .contract import quote

if TYPE_CHECKING:
    from rich.console import Console

# Questions of the log that are measured, the newest: each takes a fraction of a millisecond.
MOST = 1000
# Flips that are listed; with --json, all are.
LISTED = 20


def flips(
    *,
    profile: ProfileOption = DEFAULT_PROFILE,
    source: Annotated[
        str | None,
        Parameter(name="--from", help="Questions to use, JSONL; `-` reads stdin.", show_default=False, metavar="FILE"),
    ] = None,
    field: FieldOption = "text",
    histories: Annotated[int, Parameter(name="--histories", help="Histories for each question.", metavar="N")] = (
        HISTORIES
    ),
    most: Annotated[
        int, Parameter(name="--questions", help="How many questions of the log, the newest.", metavar="N")
    ] = MOST,
    seed: Annotated[int, Parameter(name="--seed", help="The same seed makes the same histories.", metavar="N")] = 0,
    since: SinceOption = None,
    until: UntilOption = None,
    tenant: TenantOption = "",
    json: JsonOption = False,
    db: DbOption = None,
    config: ConfigOption = None,
) -> int:
    for option, number in (("--histories", histories), ("--questions", most)):
        if number < 1:
            raise QueryError(f"{option} {number}: at least 1 is needed")
    from turnout.models.embed import find_embedder

    router = load(profile, config=config, embedder=find_embedder())
    span = span_of(since, until)
    golden = _golden(profile)
    with contextlib.ExitStack() as opened:
        store = None
        questions: list[FlipQuestion] = []
        where = "its golden cases"
        if source is not None:
            questions, where = _read(source, field), "a file"
        else:
            with contextlib.suppress(NoLogYet):
                store = opened.enter_context(writing_log(db, config))
                records = store.records(tenant)
                tenant = records.tenant
                questions = logged_questions(records, router.profile.name, span=span, most=most)
                where = "the log" if questions else where
            questions = questions or golden
        if not questions:
            raise QueryError(f"{profile}: no question to measure with, in the log or as golden cases: add --from FILE")
        with progressing("questions") as progress:
            found = measure(router, questions, quoted=golden, histories=histories, seed=seed, progress=progress)
        noted = note_flips(store.journal, router.profile, tenant, questions, found.found) if store is not None else 0
    if json:
        head = {"profile": router.profile.name, "profile_hash": router.profile.hash, "source": where, "seed": seed}
        write_json(msgspec.json.encode({**head, **_form(found), "noted": noted}))
    else:
        _print_flips(console(), router, found, where, histories, noted)
    return 1 if found.alone.flips else 0


def _golden(profile: str) -> list[FlipQuestion]:
    path = read_chain(profile).cases
    if path is None or not path.is_file():
        return []
    asked = {case.text: FlipQuestion(Query(case.text), case.route) for case in read_cases(path) if case.text}
    return list(asked.values())


def _read(source: str, field: str) -> list[FlipQuestion]:
    found: dict[str, FlipQuestion] = {}
    with reading(source) as (file, _):
        for chunk in chunks(file):
            for number, line in enumerate(chunk.lines, chunk.first):
                try:
                    text = text_of(read_row(line), field)
                except QueryError as error:
                    raise QueryError(f"row {number}: {error}") from None
                found.setdefault(text, FlipQuestion(Query(text), ""))
    return list(found.values())


def _form(found: FlipRate) -> dict[str, Any]:
    def counts(measured: FlipCount) -> dict[str, Any]:
        return {**msgspec.structs.asdict(measured), "flip_rate": measured.rate}

    return {
        "alone": counts(found.alone),
        "referring": counts(found.referring),
        "unasked": found.unasked,
        "flips": found.found,
    }


def _print_flips(screen: Console, router: Router, found: FlipRate, where: str, histories: int, noted: int) -> None:
    from rich.table import Table
    from rich.text import Text

    from ..draw.shape import Rail

    glyphs = glyphs_for(screen)
    screen.print(Text.assemble((router.profile.name, "bold"), (f" {router.profile.hash}", "dim")))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    for _ in range(3):
        grid.add_column(justify="right", no_wrap=True)
    grid.add_row(*(Text(head, "dim") for head in (f"from {where}", "questions", "flips", "flip rate")))
    for name, measured in (("that stand alone", found.alone), ("with an open reference", found.referring)):
        style = "bold red" if measured.flips and measured is found.alone else ""
        flipped = Text(f"{measured.flips:,} of {measured.routings:,}", style)
        grid.add_row(name, f"{measured.questions:,}", flipped, f"{measured.rate:.2%}")
    screen.print(Rail(grid, "  "))
    listed = [flip for flip in found.found if not flip.refers]
    for flip in listed[:LISTED]:
        screen.print(Rail(_flip(flip, glyphs), "  "))
    if len(listed) > LISTED:
        screen.print(f"  and {len(listed) - LISTED:,} more (--json lists all)")
    if found.unasked:
        screen.print(f"local layers only: {', '.join(found.unasked)} not asked", soft_wrap=True)
    if noted:
        screen.print(f"{counted(noted, 'logged decision')} noted as breaking the contract (turnout contract report)")


def _flip(flip: Flip, glyphs: Glyphs) -> Any:
    from rich.text import Text

    was, became = " + ".join(flip.was), " + ".join(flip.became)
    change = Text.assemble(visible(was), f" {glyphs.arrow} ", (visible(became), "bold red"), f" after {flip.history}  ")
    return change.append(visible(quote(flip.text, glyphs)))
