"""The plan of a question, which can be shown before it runs: its parts in order, each with its sources.

It depends only on the decision and on the configured sources, and answers do not change it: sources and fallbacks are
settled before the first source is asked.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from turnout.core.decision import Decision

# The specification's limit on the sources of a fusion.
MOST_SOURCES = 4
# The specification's fallback, if one of these sources has nothing or fails.
FALLBACK = "web"
FALLS_BACK = ("kiwix", "news")
# If nothing matched and no model could be asked, the first of these that is configured.
FILES = "files"
DEFAULTS = ("kiwix", FILES, "web")
# Sources whose answers a condition can be judged by: states, counts and probabilities, or a check with yes or no.
JUDGING = frozenset(("ha", "uptime", "forecast", "changes", "news"))


class PlannedSource(Struct, frozen=True, omit_defaults=True):
    name: str
    fallback: str = ""
    """The source asked if this one has nothing or fails; empty if none is."""
    configured: bool = True


class PlannedPart(Struct, frozen=True, omit_defaults=True):
    role: str
    """`whole`, `part`, `condition` or `remainder`."""
    text: str
    """The question to the sources."""
    sources: tuple[PlannedSource, ...]
    then: str = ""
    """The consequence of a condition."""
    by: str = ""
    """The layer that chose the sources."""
    why: str = ""
    decision: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(source.name for source in self.sources)

    @property
    def intended(self) -> str:
        """The source that is meant to answer; `fusion` if there are several."""
        return self.names[0] if len(self.sources) == 1 else "fusion"


class Plan(Struct, frozen=True, omit_defaults=True):
    question: str
    """As the user asked it."""
    parts: tuple[PlannedPart, ...]
    standalone: str = ""
    """A follow-up reworded to be understood alone; empty if it did not need that."""
    decision: str = ""

    def unlogged(self) -> Plan:
        """The plan without decision ids, for a question that is not asked and so is not in the log."""
        return replace(self, decision="", parts=tuple(replace(part, decision="") for part in self.parts))


def make_plan(
    decision: Decision, question: str, configured: Container[str], by_kind: Mapping[str, str] | None = None
) -> Plan:
    """The plan of a decided question, perhaps reworded. `by_kind` has the source for each route that no source is named
    after: `notes` for `files`."""
    asked = decision.query.text
    sources = _ConfiguredSources(configured, by_kind or {})
    parts = tuple(_plan_part(part, sources, asked) for part in decision.parts or (decision,))
    if len(parts) == 1 and parts[0].role == "part":
        parts = (replace(parts[0], role="whole", text=asked, then=""),)
    return Plan(question, parts, asked if asked != question else "", decision.id)


def _plan_part(decision: Decision, sources: _ConfiguredSources, whole: str) -> PlannedPart:
    routes = tuple(decision.policy.sources or decision.routes)[:MOST_SOURCES]
    if decision.outcome[0] == "D":
        pass  # the caller named the source
    elif decision.by == "fallback" and routes[0] not in sources:
        routes = next(((route,) for route in DEFAULTS if route in sources), routes)
    elif "kiwix" in routes and "kiwix" not in sources and FILES in sources:
        routes = tuple(dict.fromkeys(FILES if route == "kiwix" else route for route in routes))
    planned = tuple(_plan_source(route, routes, sources, decision) for route in routes)
    role, text, then = decision.role or "whole", decision.query.text, decision.then
    if role == "condition" and JUDGING.isdisjoint(routes):
        # No source can tell whether it is the case, so it is one question, like "if Napoleon had won, who …".
        text = whole if whole.rstrip().endswith(then.rstrip()) else f"if {text}, {then}"
        role, then = "part", ""
    why = decision.reasons[0].text if decision.reasons else ""
    return PlannedPart(role, text, planned, then, decision.by, why, decision.id)


class _ConfiguredSources(NamedTuple):
    """The configured sources, by the routes they answer."""

    configured: Container[str]
    by_kind: Mapping[str, str]

    def name(self, route: str) -> str:
        return route if route in self.configured else self.by_kind.get(route, route)

    def __contains__(self, route: object) -> bool:
        return isinstance(route, str) and self.name(route) in self.configured


def _plan_source(route: str, routes: tuple[str, ...], sources: _ConfiguredSources, decision: Decision) -> PlannedSource:
    """Files that replace the encyclopedia have its fallback. A source that is asked anyway is not a fallback."""
    replaces_kiwix = route == FILES and FILES not in decision.routes and "kiwix" in decision.routes
    fallback = ""
    if (route in FALLS_BACK or replaces_kiwix) and FALLBACK not in routes:
        # Without a web search, the user's files may have the answer.
        in_files = FALLBACK not in sources and FILES in sources and FILES not in routes
        fallback = sources.name(FILES if in_files else FALLBACK)
    elif routes == (route,) and route not in sources and FILES in sources and decision.outcome[0] != "D":
        # The user's files may have what the missing source would say: the code of the boiler's filter.
        fallback = sources.name(FILES)
    return PlannedSource(sources.name(route), fallback, route in sources)
