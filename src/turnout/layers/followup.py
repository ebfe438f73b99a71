"""`followup.v1`, an adjustment: a question that refers to earlier turns goes to a route that sends them along.

"Why three to one?" looks like a question of its own, but is a follow-up after an answer. Only a query with earlier
turns can be judged; without them nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from turnout.core.query import Reading
from turnout.core.registry import kind
from turnout.core.verdict import Reason
from turnout.text.reference import find_reference

from .check import unknown

# Turns that a question may refer to: as many as `turnout.text.followup` reads.
TURNS = 4


class FollowupConfig(Struct, frozen=True, forbid_unknown_fields=True):
    instead_of: str
    """The route that does not send the conversation."""
    route: str
    """The route that does."""

    def faults(self, routes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        yield from unknown("instead_of", (self.instead_of,), routes)
        yield from unknown("route", (self.route,), routes)


class Followup:
    def __init__(self, config: FollowupConfig) -> None:
        self.instead_of = config.instead_of
        self.route = config.route

    def __call__(self, reading: Reading, routes: tuple[str, ...]) -> tuple[tuple[str, ...], Reason] | None:
        # A declared route is not changed.
        if reading.query.declared is not None or routes != (self.instead_of,):
            return None
        reason = self.find_reason(reading)
        return None if reason is None else ((self.route,), reason)

    def find_reason(self, reading: Reading) -> Reason | None:
        """Why the question needs the other route; None if it does not."""
        before = reading.query.turns[:-1][-TURNS:]
        reference = find_reference(reading.words, [turn.text for turn in before]) if before else None
        if reference is None:
            return None
        return Reason("followup.context", f"{reference.words!r} leans on what was said before: {self.route}")


@kind("followup.v1", stage="adjust")
def followup(config: FollowupConfig) -> Followup:
    return Followup(config)
