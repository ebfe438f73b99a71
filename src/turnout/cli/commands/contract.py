"""`turnout contract`: whether the rules of a profile were kept.

A guard for a build: the exit code is 1 as soon as one rule was broken, or one question flipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from cyclopts import App
from rich.table import Table
from rich.text import Text

from turnout.config.load import shipped
from turnout.runtime.log import nothing_there, reading_log
from turnout.store.report import RuleReport
from turnout.store.report import report as rule_reports
from turnout.text.count import counted

from ..app import examples_of
from ..draw.screen import Glyphs, clock, console, glyphs_for, quoted, visible, write_json
from ..draw.shape import Rail
from ..option import JsonOption, SpanOptions, TenantOptions, hint

if TYPE_CHECKING:
    from rich.console import Console

# How much of a question is quoted.
QUOTED = 160

app = App(name="contract", help_epilogue=examples_of("contract"))
app.command(
    "turnout.cli.commands.flips:flips",
    name="flips",
    help="Measure whether what was said before changes what a question is.\n\n"
    "Each question is decided with no history and with many: other questions in any order, one route's most typical "
    "question six times, and histories that name another route or order it. Where a question points to nothing "
    "outside itself, any difference is a flip. Questions come from the log, else from the profile's golden cases. "
    "Local layers only. Flips of logged decisions are noted as broken rules. The exit code is 1 if there are flips.",
)


@app.command(
    name="report",
    help="Say of every rule how much was checked and how often it was broken.\n\n"
    "With up to three examples of each broken rule, which turnout show draws. Rules that were never broken are "
    "listed, too. The exit code is 1 if any rule was broken in the span.",
)
def report(
    *,
    which: SpanOptions = SpanOptions(),
    json: JsonOption = False,
    where: TenantOptions = TenantOptions(),
) -> int:
    span = which.span()
    with reading_log(where) as store:
        records = store.records(where.tenant)
        found = rule_reports(records, span=span, profile=which.profile)
        checked = sum(one.decisions for one in records.checked(span=span, profile=which.profile))
        empty = "" if checked or found else nothing_there(store, records, where)
    broken = sum(one.violations for one in found)
    if json:
        write_json({"decisions": checked, "violations": broken, "rules": found})
    elif empty:
        print(visible(empty))
    else:
        _print_rules(console(), found, checked, broken)
    return 1 if broken else 0


def _print_rules(screen: Console, found: list[RuleReport], checked: int, broken: int) -> None:

    glyphs = glyphs_for(screen)
    names = list(dict.fromkeys(one.profile for one in found))
    for name in names:
        screen.print(Text(visible(name), "bold"))
        for one in found:
            if one.profile == name:
                screen.print(Rail(_rule(one, glyphs), "  "))
        screen.print()
    if not names:
        screen.print(f"{counted(checked, 'decision')}, of profiles without a contract")
        return
    said = f"{counted(broken, 'violation')} in {counted(checked, 'decision')}"
    screen.print(Text(said, "bold red") if broken else said)


def _rule(one: RuleReport, glyphs: Glyphs) -> Any:

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, min_width=8)
    grid.add_column(ratio=1)
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
        asked = "(text not kept)" if example.question is None else quote(example.question, glyphs)
        evidence = f"{example.fact} = {msgspec.json.encode(example.found).decode()}: {example.explanation}"
        grid.add_row("", Text.assemble((example.decision_id, "dim"), " ", asked))
        grid.add_row("", Text(f"  {visible(evidence)}"))
    return grid


def _seen(one: RuleReport) -> str:
    """How much was held against the rule."""
    parts = []
    if "decision" in one.phases:
        parts.append(counted(one.decisions, "decision"))
    if "outcome" in one.phases:
        parts.append(counted(one.outcomes, "outcome"))
    if parts:
        return f"{' and '.join(parts)} checked"
    if not one.phases:
        return "checked when the profile is loaded"
    # A profile of one's own is loaded by its file, which the log does not know.
    profile = one.profile if one.profile in shipped() else "PROFILE"
    return f"{hint('contract', 'flips', '-p', profile)} measures it"


def quote(text: str, glyphs: Glyphs) -> str:
    return quoted(text, QUOTED, glyphs)
