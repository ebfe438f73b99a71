"""The plan of a question, a value that is shown before it runs: its parts in order, and whom each of them goes to.

It is made of the decision and of what is configured, of nothing else, and nothing that a source says changes it: which
sources are asked, and which one stands in for another, is settled before the first of them is.
"""

from __future__ import annotations

from collections.abc import Container

from msgspec import Struct

from turnout.core.decision import Decision

# The specification's: a fusion has up to four sources.
MOST_SOURCES = 4
# Who is asked where one of these has nothing, or fails: the specification's flow.
FALLBACK = "web"
FALLS_BACK = ("kiwix", "news")
# Asked where nothing matched and no model could be asked: the first of them that is configured.
DEFAULTS = ("kiwix", "files", "web")
# Whose answers a condition can be judged by: states, counts and probabilities, or a check that is yes or no.
JUDGING = frozenset(("ha", "uptime", "forecast", "changes", "news"))


class PlannedSource(Struct, frozen=True, omit_defaults=True):
    name: str
    fallback: str = ""
    """Asked if this one has nothing or fails; empty: nobody is."""
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


def make_plan(decision: Decision, question: str, configured: Container[str]) -> Plan:
    """The plan of a question that was decided, perhaps in other words."""
    asked = decision.query.text
    parts = tuple(_plan_part(part, configured, asked) for part in decision.parts or (decision,))
    if len(parts) == 1 and parts[0].role == "part":
        parts = (_whole(parts[0], asked),)
    return Plan(question, parts, asked if asked != question else "", decision.id)


def _plan_part(decision: Decision, configured: Container[str], whole: str) -> PlannedPart:
    sources = (decision.policy.sources or decision.routes)[:MOST_SOURCES]
    if decision.outcome[0] == "D":
        pass  # whoever names a source gets that one
    elif decision.by == "fallback" and sources[0] not in configured:
        sources = next(((name,) for name in DEFAULTS if name in configured), sources)
    elif "kiwix" in sources and "kiwix" not in configured and "files" in configured:
        sources = tuple(dict.fromkeys("files" if name == "kiwix" else name for name in sources))
    planned = tuple(_plan_source(name, sources, configured, decision) for name in sources)
    role, text, then = decision.role or "whole", decision.query.text, decision.then
    if role == "condition" and JUDGING.isdisjoint(sources):
        # Nobody could say whether it is the case: then it is one question, as "if Napoleon had won, who …" is.
        text = whole if whole.rstrip().endswith(then.rstrip()) else f"if {text}, {then}"
        role, then = "part", ""
    why = decision.reasons[0].text if decision.reasons else ""
    return PlannedPart(role, text, planned, then, decision.by, why, decision.id)


def _plan_source(name: str, sources: tuple[str, ...], configured: Container[str], decision: Decision) -> PlannedSource:
    """Files that stand in for the encyclopedia fall back as it does. Who is asked anyway is nobody's fallback."""
    stands_in = name == "files" and "files" not in decision.routes and "kiwix" in decision.routes
    falls_back = (name in FALLS_BACK or stands_in) and FALLBACK not in sources
    if name in configured or falls_back or decision.outcome[0] == "D":
        return PlannedSource(name, FALLBACK if falls_back else "", name in configured)
    # Nobody knows what this question is about as well as a source that is not there: one that is may know it, too.
    instead = next((other for other in DEFAULTS if other in configured and other not in sources), "")
    return PlannedSource(name, instead, False)


def _whole(part: PlannedPart, asked: str) -> PlannedPart:
    return PlannedPart("whole", asked, part.sources, "", part.by, part.why, part.decision)
