"""`turnout feedback`: a human's word on a decision. It is kept beside the decision and never changes it."""

from __future__ import annotations

from typing import Annotated, Final

from cyclopts import Parameter
from rich.text import Text

from turnout.core.errors import QueryError
from turnout.store import Feedback, Logged, Records
from turnout.store.records import Judgement

from ..draw.screen import console, glyphs_for, visible, write_json
from ..option import DecisionArgument, JsonOption, TenantOptions
from ..stored import records_with

RIGHT: Final = "right"
WRONG: Final = "wrong"
VERDICTS: dict[str, Judgement] = {RIGHT: RIGHT, WRONG: WRONG}


def feedback(
    ident: DecisionArgument,
    word: Annotated[str, Parameter(name="WORD", help="right, wrong, or the route it should have been.")],
    /,
    *,
    by: Annotated[
        str | None, Parameter(name="--by", help="Who says so; by default you.", show_default=False, metavar="NAME")
    ] = None,
    note: Annotated[str, Parameter(name="--note", help="Why.", metavar="TEXT", show_default=False)] = "",
    json: JsonOption = False,
    where: TenantOptions = TenantOptions(),
) -> int:

    with where.open() as store:
        records = records_with(store, where.tenant, ident)
        found = records.get(ident)
        routes = routes_of(records, found)
        said = judge(records, found, word, routes, by=by or user(), note=note)
    if json:
        write_json(said)
        return 0
    _print(found, said, routes, where)
    return 0


def routes_of(records: Records, found: Logged) -> tuple[str, ...]:
    """The routes of the profile that decided; of one that is no longer there, what it chose."""
    profile = records.profile(found.profile_hash)
    return tuple(profile["routes"]) if profile is not None else found.routes


def judge(records: Records, found: Logged, word: str, routes: tuple[str, ...], *, by: str, note: str) -> Feedback:
    """Write the word down. A route that was the decision is the same as `right`."""
    verdict, route = meaning(word, routes, found)
    if verdict is None:
        verdict = RIGHT if (route,) == found.routes else WRONG
    should_be = route if verdict == WRONG else None
    return records.judge(found.id, verdict, should_be=should_be, by=by, note=note)


def meaning(word: str, routes: tuple[str, ...], found: Logged) -> tuple[Judgement | None, str | None]:
    """A verdict, or a route. `route:NAME` and `verdict:WORD` tell apart what a profile names alike."""
    kind, colon, rest = word.partition(":")
    if colon and kind in ("route", "verdict"):
        word = rest
    else:
        kind = ""
    verdict = VERDICTS.get(word.casefold()) if kind != "route" else None
    alike = [route for route in routes if route.casefold() == word.casefold()]
    # A name nobody knows goes on as it is: the store says which ones there are.
    route = word if word in routes or len(alike) != 1 else alike[0]
    if kind == "verdict" and verdict is None:
        raise QueryError(f"verdict {word[:40]!r} is neither right nor wrong")
    if verdict is not None and alike and not kind:
        raise QueryError(
            f"{word!r} is a verdict, and {route!r} a route of profile {found.profile!r}: "
            f"write verdict:{verdict} or route:{route}"
        )
    return (verdict, None) if verdict is not None else (None, route)


def user() -> str:
    """Whoever is logged in here."""
    import getpass
    import os

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container without a name for its user
        return f"uid {os.getuid()}"


def _print(found: Logged, said: Feedback, routes: tuple[str, ...], where: TenantOptions) -> None:

    screen = console()
    glyphs = glyphs_for(screen)
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
    screen.print(told, soft_wrap=True)
    if said.verdict == WRONG and said.should_be is None:
        others = ", ".join(route for route in routes if route not in found.routes)
        tenant = ("--tenant", where.tenant) if where.tenant else ()
        again = where.hint("feedback", found.id, "ROUTE", *tenant)
        screen.print(Text(f"{again} says what it should have been: {visible(others)}", "dim"), soft_wrap=True)
