"""`followup.v1`, an adjustment: a question that leans on what was said before goes to a route that sends it along.

"Why three to one?" looks like a question of its own, and is none after an answer. Only a query that brings its
conversation can be judged; without turns before it nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from turnout.core.errors import suggest
from turnout.core.query import Reading
from turnout.core.registry import Supplies, kind
from turnout.core.verdict import Reason
from turnout.text.reference import find_reference

# Turns that a question may lean on: as many as `turnout.text.followup` reads.
TURNS = 4


class FollowupConfig(Struct, frozen=True, forbid_unknown_fields=True):
    instead_of: str
    """The route that sends no conversation."""
    route: str
    """The one that does."""

    def faults(self, routes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        for field, route in (("instead_of", self.instead_of), ("route", self.route)):
            if route not in routes:
                yield field, f"{route!r} is not a route{suggest(route, routes)}"


class Followup:
    def __init__(self, config: FollowupConfig) -> None:
        self.instead_of = config.instead_of
        self.route = config.route

    def __call__(self, reading: Reading, routes: tuple[str, ...]) -> tuple[tuple[str, ...], Reason] | None:
        before = reading.query.turns[:-1][-TURNS:]
        # A caller who names the route has decided already.
        if not before or reading.query.declared is not None or routes != (self.instead_of,):
            return None
        found = find_reference(reading.words, [turn.text for turn in before])
        if found is None:
            return None
        return (self.route,), Reason("followup.context", f"{found.words!r} leans on what was said before: {self.route}")


@kind("followup.v1", stage="adjust")
def followup(config: FollowupConfig, supplies: Supplies) -> Followup:
    return Followup(config)
