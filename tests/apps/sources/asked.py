"""A question, its sources and what became of it, without an application around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from toml_router import unlearnt
from turnout import Query, Router
from turnout.apps.event import Event
from turnout.apps.sources.cache import Cache
from turnout.apps.sources.desk import Desk
from turnout.apps.sources.frame import tell_all
from turnout.apps.sources.plan import Plan, make_plan
from turnout.apps.sources.result import SearchResult, search_result
from turnout.apps.sources.run import BOUND_S, prepare, run_all
from turnout.apps.sources.source import EntityState, Fact, Source
from turnout.testing.scripted_source import ScriptedSource

ALL = ("kiwix", "forecast", "news", "web", "ha", "changes", "uptime", "files")


@cache
def words_alone() -> Router:
    """The profile without its student: what the specification's lists say."""
    return unlearnt("sources")


def scripted(**scripts: object) -> dict[str, ScriptedSource]:
    """A source of each name; a script of one entry may be the entry."""
    found = {name.rstrip("_"): script for name, script in scripts.items()}
    return {
        name: ScriptedSource(name, script if isinstance(script, list) else [script]) for name, script in found.items()
    }


def is_open(condition: str, facts: Sequence[Fact]) -> bool | None:
    """A judge of doors."""
    states = [fact.state for fact in facts if isinstance(fact, EntityState)]
    return "open" in states if states else None


class AskResult(NamedTuple):
    result: SearchResult
    events: list[Event]
    plan: Plan


async def ask(
    question: str, sources: Mapping[str, ScriptedSource], *, desk: Desk | None = None, bound_s: float = BOUND_S
) -> AskResult:
    plan = make_plan(words_alone().route_sync(Query(question)), question, sources)
    return await ask_plan(plan, desk or Desk(sources, Cache("result", 500)), bound_s=bound_s)


async def ask_plan(
    plan: Plan, desk: Desk, *, bound_s: float = BOUND_S, noted: Callable[[Event], object] = lambda event: None
) -> AskResult:
    events: list[Event] = []

    def emit(event: Event) -> None:
        events.append(event)
        noted(event)

    ran = await run_all(prepare(plan, desk, emit, bound_s=bound_s), is_open)
    parts = [one.result for one in ran]
    return AskResult(search_result(plan, parts, tell_all(parts)), events, plan)


class SourcesDouble:
    """Stands in for what the settings name."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self.sources = sources
        self.stamps: dict[str, str] = {}
        self.by_kind: dict[str, str] = {}
        self.kinds: dict[str, str] = {}

    async def take_snapshots(self) -> None:
        return

    async def close(self) -> None:
        return
