"""`turnout feedback`: a human's word on a decision. It is kept beside the decision and never changes it."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from turnout.runtime.log import reading_log, records_with
from turnout.store import Feedback, Logged
from turnout.store.judge import RIGHT, WRONG, judge, routes_of

from ..draw.screen import console, visible, write_json
from ..option import DecisionArgument, JsonOption, TenantOptions, user_name


def feedback(
    ident: DecisionArgument,
    word: Annotated[str, Parameter(name="WORD", help="right, wrong, or the route it should have been.")],
    /,
    *,
    by: Annotated[str | None, Parameter(help="Who gives it; by default you.", metavar="NAME")] = None,
    note: Annotated[str, Parameter(help="Why.", metavar="TEXT")] = "",
    json: JsonOption = False,
    where: TenantOptions = TenantOptions(),
) -> int:

    with reading_log(where) as store:
        records = records_with(store, ident, where.tenant)
        found = records.get(ident)
        routes = routes_of(records, found)
        said = judge(records, found, word, routes, by=by or user_name(), note=note)
    if json:
        write_json(said)
        return 0
    _print(found, said, routes, where)
    return 0


def _print(found: Logged, said: Feedback, routes: tuple[str, ...], where: TenantOptions) -> None:

    screen = console()
    glyphs = screen.glyphs
    was = visible(" + ".join(found.routes))
    if said.verdict == RIGHT:
        told = Text.assemble((was, "bold green"), " is right")
    elif said.should_be is not None:
        told = Text.assemble(
            (was, "bold yellow"), f" {glyphs.arrow} ", (visible(said.should_be), "bold green"), " is what it should be"
        )
    else:
        told = Text.assemble((was, "bold yellow"), " is wrong")
    told.append(f"  {found.id} {glyphs.dot} by {visible(said.by)}", "dim")
    screen.say(told)
    if said.verdict == WRONG and said.should_be is None:
        others = ", ".join(route for route in routes if route not in found.routes)
        tenant = ("--tenant", where.tenant) if where.tenant else ()
        again = where.hint("feedback", found.id, "ROUTE", *tenant)
        screen.say((f"{again} says what it should have been: {visible(others)}", "dim"))
