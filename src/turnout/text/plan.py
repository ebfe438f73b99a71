"""A compound or conditional question as a plan: its parts in order, each to be decided on its own.

A leading "if X, Y" asks only X; Y is what the reply is framed around and is kept with it; whatever is asked besides is
the remainder. A conjunction separates parts, and a part may itself be conditional. A question that is one question has
no plan.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from msgspec.structs import replace

from turnout.core.profile import Part
from turnout.core.query import Reading

from .condition import read_condition
from .match import Matcher
from .split import split, triggers


def planner(
    matcher: Matcher, *, triggering: Container[int] | None, compound: bool, conditions: bool
) -> Callable[[Reading], tuple[Part, ...]]:
    """A function that plans questions for one profile; `triggering` are the patterns that make a half meaningful."""
    hits = triggers(matcher, triggering)

    def pieces(text: str, role: str) -> list[tuple[str, str, str]]:
        """(role, text, consequence) of each part."""
        condition = read_condition(text, hits) if conditions else None
        if condition is not None:
            first = ("condition", condition.condition, condition.consequence)
            return [first, *(pieces(condition.remainder, "remainder") if condition.remainder else [])]
        parts = split(text, hits) if compound else [text]
        if len(parts) < 2:
            return [(role, text, "")]
        return [piece for part in parts for piece in pieces(part, role)]

    def plan(reading: Reading) -> tuple[Part, ...]:
        # A caller who names the route has decided already.
        if reading.query.declared is not None:
            return ()
        found = pieces(reading.words, "part")
        if len(found) == 1 and found[0][0] == "part":
            return ()
        return tuple(Part(role, replace(reading.query, text=text, turns=()), then) for role, text, then in found)

    return plan
