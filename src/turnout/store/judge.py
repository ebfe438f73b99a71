"""Feedback on a decision as people write it: right, wrong, or the route it should have been."""

from __future__ import annotations

from typing import Final

from turnout.core.errors import QueryError

from .records import Feedback, Judgement, Logged, Records

RIGHT: Final = "right"
WRONG: Final = "wrong"
VERDICTS: dict[str, Judgement] = {RIGHT: RIGHT, WRONG: WRONG}


def routes_of(records: Records, found: Logged) -> tuple[str, ...]:
    """The routes of the profile that decided; the chosen ones if the profile is not stored."""
    profile = records.profile(found.profile_hash)
    return tuple(profile["routes"]) if profile is not None else found.routes


def judge(records: Records, found: Logged, word: str, routes: tuple[str, ...], *, by: str, note: str) -> Feedback:
    """Save feedback. Naming the route that was chosen is the same as `right`."""
    verdict, route = _read_word(word, routes, found)
    if verdict is None:
        verdict = RIGHT if (route,) == found.routes else WRONG
    should_be = route if verdict == WRONG else None
    return records.judge(found.id, verdict, should_be=should_be, by=by, note=note)


def _read_word(word: str, routes: tuple[str, ...], found: Logged) -> tuple[Judgement | None, str | None]:
    """A verdict or a route. `route:NAME` and `verdict:WORD` are for profiles with a route named like a verdict."""
    kind, colon, rest = word.partition(":")
    if colon and kind in ("route", "verdict"):
        word = rest
    else:
        kind = ""
    verdict = VERDICTS.get(word.casefold()) if kind != "route" else None
    alike = [route for route in routes if route.casefold() == word.casefold()]
    # An unknown name is passed on: the store's error lists the routes.
    route = word if word in routes or len(alike) != 1 else alike[0]
    if kind == "verdict" and verdict is None:
        raise QueryError(f"verdict {word[:40]!r} is neither right nor wrong")
    if verdict is not None and alike and not kind:
        raise QueryError(
            f"{word!r} is a verdict, and {route!r} a route of profile {found.profile!r}: "
            f"write verdict:{verdict} or route:{route}"
        )
    return (verdict, None) if verdict is not None else (None, route)
