"""`turnout feedback`: say whether a decision was right. Feedback is kept with the decision and does not change it."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from turnout.runtime.log import reading_log, records_with
from turnout.store import Feedback, Logged
from turnout.store.judge import RIGHT, judge, routes_of

from ..draw.screen import console, visible, write_json
from ..option import DecisionArgument, JsonOption, NameOption, TenantOptions, user_name


def feedback(
    ident: DecisionArgument,
    word: Annotated[str, Parameter(name="WORD", help="right, wrong, or the route it should have been.")],
    /,
    *,
    by: Annotated[NameOption, Parameter(help="Who gives it; by default you.")] = None,
    note: Annotated[str, Parameter(help="Why.", metavar="TEXT")] = "",
    json: JsonOption = False,
    where: TenantOptions = TenantOptions(),
) -> None:
    with reading_log(where) as store:
        records = records_with(store, ident, where.tenant)
        row = records.get(ident)
        routes = routes_of(records, row)
        given = judge(records, row, word, routes, by=by or user_name(), note=note)
    if json:
        write_json(given)
    else:
        _print(row, given, routes, where)


def _print(row: Logged, given: Feedback, routes: tuple[str, ...], where: TenantOptions) -> None:
    screen = console()
    glyphs = screen.glyphs
    is_right = given.verdict == RIGHT
    line = Text.assemble((visible(" + ".join(row.routes)), "bold green" if is_right else "bold yellow"))
    if given.should_be is not None:
        line.append(f" {glyphs.arrow} ").append(visible(given.should_be), "bold green").append(", corrected")
    else:
        line.append(" is right" if is_right else " is wrong")
    screen.say(line.append(f"  {row.id} {glyphs.dot} by {visible(given.by)}", "dim"))
    if not is_right and given.should_be is None:
        others = ", ".join(route for route in routes if route not in row.routes)
        tenant = ("--tenant", where.tenant) if where.tenant else ()
        again = where.hint("feedback", row.id, "ROUTE", *tenant)
        screen.say((f"{again} says what it should have been: {visible(others)}", "dim"))
