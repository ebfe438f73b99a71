"""The plan of a question, a value that is shown before it runs: its parts in order, and whom each of them goes to.

It is made of the decision and of what is configured, of nothing else, and nothing that a source says changes it: which
sources are asked, and which one stands in for another, is settled before the first of them is.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from turnout.core.decision import Decision

# The specification's: a fusion has up to four sources.
MOST_SOURCES = 4
# Who is asked where one of these has nothing, or fails: the specification's flow.
FALLBACK = "web"
FALLS_BACK = ("kiwix", "news")
# Asked where nothing matched and no model could be asked: the first of them that is configured.
FILES = "files"
DEFAULTS = ("kiwix", FILES, "web")
# Whose answers a condition can be judged by: states, counts and probabilities, or a check that is yes or no.
JUDGING = frozenset(("ha", "uptime", "forecast", "changes", "news"))


class PlannedSource(Struct, frozen=True, omit_defaults=True):
    name: str
    fallback: str = ""
    """Asked if this one has nothing or fails; empty: none is."""
    configured: bool = True


class PlannedPart(Struct, frozen=True, omit_defaults=True):
    role: str
    """`whole`, `part`, `condition` or `remainder`."""
    text: str
    """What the sources are asked."""
    sources: tuple[PlannedSource, ...]
    then: str = ""
    """What a condition leads to."""
    by: str = ""
    """The layer that chose the sources."""
    why: str = ""
    decision: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(source.name for source in self.sources)

    @property
    def intended(self) -> str:
        """The source that is meant to answer; of several: fusion."""
        return self.names[0] if len(self.sources) == 1 else "fusion"


class Plan(Struct, frozen=True, omit_defaults=True):
    question: str
    """As it was asked."""
    parts: tuple[PlannedPart, ...]
    standalone: str = ""
    """A follow-up as it is understood without what came before; empty where it was understood as it is."""
    decision: str = ""

    def unlogged(self) -> Plan:
        """The plan of a question that is not asked: its decisions are in no log, and have no names there."""
        return replace(self, decision="", parts=tuple(replace(part, decision="") for part in self.parts))


def make_plan(
    decision: Decision, question: str, configured: Container[str], by_kind: Mapping[str, str] | None = None
) -> Plan:
    """The plan of a question that was decided, perhaps in other words. `by_kind` names the source that answers a route
    which none is named after: `notes`, where there are no `files`."""
    asked = decision.query.text
    parts = tuple(_plan_part(part, configured, asked, by_kind or {}) for part in decision.parts or (decision,))
    if len(parts) == 1 and parts[0].role == "part":
        parts = (_whole(parts[0], asked),)
    return Plan(question, parts, asked if asked != question else "", decision.id)


def _plan_part(decision: Decision, configured: Container[str], whole: str, by_kind: Mapping[str, str]) -> PlannedPart:
    there = _There(configured, by_kind)
    routes = tuple(decision.policy.sources or decision.routes)[:MOST_SOURCES]
    if decision.outcome[0] == "D":
        pass  # whoever names a source gets that one
    elif decision.by == "fallback" and routes[0] not in there:
        routes = next(((route,) for route in DEFAULTS if route in there), routes)
    elif "kiwix" in routes and "kiwix" not in there and FILES in there:
        routes = tuple(dict.fromkeys(FILES if route == "kiwix" else route for route in routes))
    planned = tuple(_plan_source(route, routes, there, decision) for route in routes)
    role, text, then = decision.role or "whole", decision.query.text, decision.then
    if role == "condition" and JUDGING.isdisjoint(routes):
        # Nobody could say whether it is the case: then it is one question, as "if Napoleon had won, who …" is.
        text = whole if whole.rstrip().endswith(then.rstrip()) else f"if {text}, {then}"
        role, then = "part", ""
    why = decision.reasons[0].text if decision.reasons else ""
    return PlannedPart(role, text, planned, then, decision.by, why, decision.id)


class _There(NamedTuple):
    """Which source answers a route here, if one does."""

    configured: Container[str]
    by_kind: Mapping[str, str]

    def name(self, route: str) -> str:
        return route if route in self.configured else self.by_kind.get(route, route)

    def __contains__(self, route: object) -> bool:
        return isinstance(route, str) and self.name(route) in self.configured


def _plan_source(route: str, routes: tuple[str, ...], there: _There, decision: Decision) -> PlannedSource:
    """Files that stand in for the encyclopedia fall back as it does. Who is asked anyway is nobody's fallback."""
    stands_in = route == FILES and FILES not in decision.routes and "kiwix" in decision.routes
    instead = ""
    if (route in FALLS_BACK or stands_in) and FALLBACK not in routes:
        # Without a web search one's own papers may have it.
        papers = FALLBACK not in there and FILES in there and FILES not in routes
        instead = there.name(FILES if papers else FALLBACK)
    elif routes == (route,) and route not in there and FILES in there and decision.outcome[0] != "D":
        # What the absent source would say may stand in one's own papers: the code of the boiler's filter.
        instead = there.name(FILES)
    return PlannedSource(there.name(route), instead, route in there)


def _whole(part: PlannedPart, asked: str) -> PlannedPart:
    return PlannedPart("whole", asked, part.sources, "", part.by, part.why, part.decision)
