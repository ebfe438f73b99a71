"""`turnout contract`: whether a profile's rules were kept, and whether earlier turns change decisions they must not.

Made for builds: the exit code is 1 if a rule was broken or a question flipped.
"""

from __future__ import annotations

import contextlib
from typing import Annotated, Any

import msgspec
from cyclopts import App, Parameter
from rich.table import Table
from rich.text import Text

from turnout.config.cases import read_cases
from turnout.config.load import is_shipped, read_chain
from turnout.config.name import DEFAULT_PROFILE, current_name
from turnout.core.errors import NoLogYet, QueryError
from turnout.core.query import Query
from turnout.core.router import Router
from turnout.runtime.load import load_profile
from turnout.runtime.log import nothing_there, reading_log, writing_log
from turnout.runtime.rows import read_texts
from turnout.store.flip import HISTORIES, Flip, FlipCount, FlipQuestion, FlipRate, logged_questions, measure, note_flips
from turnout.store.report import RuleReport
from turnout.store.report import report as rule_reports
from turnout.text.count import counted

from ..app import examples_of, show_paragraphs
from ..draw.screen import Glyphs, clock, console, quoted, visible, write_json
from ..draw.shape import columns
from ..option import (
    FieldOption,
    FileOption,
    JsonOption,
    NumberOption,
    ProfileOption,
    SpanOptions,
    TenantOptions,
    TimeOptions,
    check_least,
    hint,
)
from ..stream import progressing, reading

# Characters of a question that are quoted.
QUOTED = 160
# The newest questions of the log that are measured: each takes a fraction of a millisecond.
MOST = 1000
# Flips that are listed; --json has all.
LISTED = 20

app = App(name="contract", help_epilogue=examples_of("contract"))


@app.command
def report(
    *,
    which: SpanOptions = SpanOptions(),
    json: JsonOption = False,
    where: TenantOptions = TenantOptions(),
) -> int:
    """Show for every rule how much was checked and how often it was broken.

    With up to three examples of each broken rule, which turnout show draws. Rules that were never broken are listed,
    too. The exit code is 1 if any rule was broken in the span.
    """
    span = which.span()
    with reading_log(where) as store:
        which.check_profile(store)
        records = store.records(where.tenant)
        found = rule_reports(records, span=span, profile=which.logged_as)
        checked = sum(one.decisions for one in records.checked(span=span, profile=which.logged_as))
        empty = "" if checked or found else nothing_there(store, records, where)
    broken = sum(one.violations for one in found)
    if json:
        write_json({"decisions": checked, "violations": broken, "rules": found})
    elif empty:
        print(visible(empty))
    else:
        _print_rules(found, checked, broken)
    return 1 if broken else 0


def _print_rules(found: list[RuleReport], checked: int, broken: int) -> None:
    screen = console()
    names = list(dict.fromkeys(one.profile for one in found))
    for name in names:
        screen.say((visible(name), "bold"))
        for one in found:
            if one.profile == name:
                screen.inset(_rule(one, screen.glyphs))
        screen.print()
    if not names:
        screen.say(f"{counted(checked, 'decision')}, of profiles without a contract")
        return
    total = f"{counted(broken, 'violation')} in {counted(checked, 'decision')}"
    screen.say((total, "bold red" if broken else ""))


def _rule(one: RuleReport, glyphs: Glyphs) -> Table:
    grid = columns("", "wrap")
    grid.columns[0].min_width = 8
    if one.last_ms is not None:
        kept = Text.assemble((f"{glyphs.fault} broken {counted(one.violations, 'time')}", "bold red"))
        kept.append(f", last {clock(one.last_ms)}; ")
    elif one.decisions or one.outcomes:
        kept = Text.assemble((f"{glyphs.yes} kept", "green"), "; ")
    else:
        kept = Text(f"{glyphs.passed} ")
    grid.add_row(Text(visible(one.rule), "bold"), Text(visible(one.says)))
    grid.add_row("", kept.append(_seen(one)))
    for example in one.examples:
        asked = "(text not kept)" if example.question is None else quoted(example.question, glyphs, QUOTED)
        evidence = f"{example.fact} = {msgspec.json.encode(example.found).decode()}: {example.explanation}"
        grid.add_row("", Text.assemble((example.decision_id, "dim"), " ", asked))
        grid.add_row("", Text(f"  {visible(evidence)}"))
    return grid


def _seen(one: RuleReport) -> str:
    """How much the rule was checked against."""
    counts = (("decision", one.decisions), ("outcome", one.outcomes))
    if parts := [counted(count, noun) for noun, count in counts if noun in one.phases]:
        return f"{' and '.join(parts)} checked"
    if not one.phases:
        return "checked when the profile is loaded"
    # A user's own profile is loaded from its file, which the log does not know.
    profile = current_name(one.profile) if is_shipped(one.profile) else "PROFILE"
    return f"{hint('contract', 'flips', '-p', profile)} measures it"


@app.command
def flips(
    *,
    profile: ProfileOption = DEFAULT_PROFILE,
    source: Annotated[FileOption, Parameter(name="--from", help="Questions to use, JSONL; `-` reads stdin.")] = None,
    field: FieldOption = "text",
    histories: Annotated[NumberOption, Parameter(help="Histories for each question.")] = HISTORIES,
    most: Annotated[
        NumberOption, Parameter(name="--questions", help="How many questions of the log, the newest.")
    ] = MOST,
    seed: Annotated[NumberOption, Parameter(help="The same seed makes the same histories.")] = 0,
    when: TimeOptions = TimeOptions(),
    json: JsonOption = False,
    where: TenantOptions = TenantOptions(),
) -> int:
    """Measure whether earlier turns change the decision on a question.

    Each question is decided with no history and with many: other questions in any order, one route's most typical
    question six times, and histories that name another route or order it. If a question refers to nothing outside
    itself, any difference is a flip. Questions come from the log, else from the profile's golden cases. Local layers
    only. Flips of logged decisions are recorded as broken rules. The exit code is 1 if there are flips.
    """
    check_least("--histories", histories)
    check_least("--questions", most)
    router = Router(load_profile(profile, config=where.config, local=True))
    span = when.span()
    golden = _golden(profile)
    with contextlib.ExitStack() as opened:
        store, tenant = None, where.tenant
        questions: list[FlipQuestion] = []
        origin = "its golden cases"
        if source is not None:
            with reading(source) as (file, _):
                texts = dict.fromkeys(text for _, (text,) in read_texts(file, "row ", field))
            questions, origin = [FlipQuestion(Query(text), "") for text in texts], "a file"
        else:
            with contextlib.suppress(NoLogYet):
                store = opened.enter_context(writing_log(where, create=False))
                records = store.records(where.tenant)
                tenant = records.tenant
                questions = logged_questions(records, router.profile.name, span=span, most=most)
                origin = "the log" if questions else origin
            questions = questions or golden
        if not questions:
            raise QueryError(f"{profile}: no question to measure with, in the log or as golden cases: add --from FILE")
        with progressing("questions") as progress:
            found = measure(router, questions, quoted=golden, histories=histories, seed=seed, progress=progress)
        noted = note_flips(store.journal, router.profile, tenant, questions, found.found) if store is not None else 0
    if json:
        head = {"profile": router.profile.name, "profile_hash": router.profile.hash, "source": origin, "seed": seed}
        write_json({**head, **_flips_form(found), "noted": noted})
    else:
        _print_flips(router, found, origin, noted)
    return 1 if found.alone.flips else 0


def _golden(profile: str) -> list[FlipQuestion]:
    path = read_chain(profile).cases
    if path is None or not path.is_file():
        return []
    questions = {case.text: FlipQuestion(Query(case.text), case.route) for case in read_cases(path) if case.text}
    return list(questions.values())


def _flips_form(found: FlipRate) -> dict[str, Any]:
    def counts(measured: FlipCount) -> dict[str, Any]:
        return {**msgspec.structs.asdict(measured), "flip_rate": measured.rate}

    rates = {"alone": counts(found.alone), "referring": counts(found.referring)}
    return {**rates, "unasked": found.unasked, "flips": found.found}


def _print_flips(router: Router, found: FlipRate, origin: str, noted: int) -> None:
    screen = console()
    screen.say((router.profile.name, "bold"), (f" {router.profile.hash}", "dim"))
    grid = columns("", "right", "right", "right")
    grid.add_row(*(Text(head, "dim") for head in (f"from {origin}", "questions", "flips", "flip rate")))
    for name, measured in (("that stand alone", found.alone), ("with an open reference", found.referring)):
        style = "bold red" if measured.flips and measured is found.alone else ""
        flipped = Text(f"{measured.flips:,} of {measured.routings:,}", style)
        grid.add_row(name, f"{measured.questions:,}", flipped, f"{measured.rate:.2%}")
    screen.inset(grid)
    flips = [flip for flip in found.found if not flip.refers]
    for flip in flips[:LISTED]:
        screen.inset(_flip(flip, screen.glyphs))
    if len(flips) > LISTED:
        screen.say(f"  and {len(flips) - LISTED:,} more (--json lists all)")
    if found.unasked:
        screen.say(f"local layers only: {', '.join(found.unasked)} not asked")
    if noted:
        screen.say(f"{counted(noted, 'logged decision')} noted as breaking the contract (turnout contract report)")


def _flip(flip: Flip, glyphs: Glyphs) -> Text:
    was, became = " + ".join(flip.was), " + ".join(flip.became)
    change = Text.assemble(visible(was), f" {glyphs.arrow} ", (visible(became), "bold red"), f" after {flip.history}  ")
    return change.append(quoted(flip.text, glyphs, QUOTED))


show_paragraphs(app)
