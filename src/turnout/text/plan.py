"""Splits a compound or conditional question into parts, each to be decided on its own.

A leading "if X, Y" asks only X; Y, around which the reply is framed, is kept with it; anything else that is asked is
the remainder. Conjunctions separate parts, and a part may itself be conditional. Sentences that ask are separate parts
if the profile can decide each alone. A single question has no parts.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from msgspec.structs import replace

from turnout.core.profile import Part
from turnout.core.query import Reading

from .condition import read_condition
from .joint import Hits
from .match import Matcher
from .split import MOST, split, split_questions, triggers


def planner(
    matcher: Matcher, *, triggering: Container[int] | None, compound: bool, conditions: bool, knows: Hits | None = None
) -> Callable[[Reading], tuple[Part, ...]]:
    """A function that splits questions for one profile. `triggering` are the ids of the patterns that count as trigger
    phrases; `knows` says whether the profile decides a question alone, and without it sentences stay together."""
    hits = triggers(matcher, triggering)

    def pieces(whole: str) -> list[tuple[str, str, str]]:
        """(role, text, consequence) of each part, at most `MOST`; the last part has the rest."""
        found: list[tuple[str, str, str]] = []
        ahead = [("part", whole)]
        while ahead:
            role, text = ahead.pop()
            left = MOST - len(found) - len(ahead)
            condition = read_condition(text, hits) if conditions else None
            if condition is not None and (left > 1 or not condition.remainder):
                found.append(("condition", condition.condition, condition.consequence))
                if condition.remainder:
                    ahead.append(("remainder", condition.remainder))
                continue
            parts = [text]
            if compound and condition is None and knows is not None:
                parts = split_questions(text, hits, knows, most=left)
            if compound and condition is None and len(parts) < 2:
                parts = split(text, hits, most=left)
            if len(parts) < 2:
                found.append((role, text, ""))
            else:
                ahead += [(role, part) for part in reversed(parts)]
        return found

    def plan(reading: Reading) -> tuple[Part, ...]:
        # A caller who declares a route has decided already.
        if reading.query.declared is not None:
            return ()
        found = pieces(reading.words)
        if len(found) == 1 and found[0][0] == "part":
            return ()
        return tuple(Part(role, replace(reading.query, text=text, turns=()), then) for role, text, then in found)

    return plan
