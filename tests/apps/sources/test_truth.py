"""Whatever sources do, what is said of them is what happened: held against an oracle that knows their scripts."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from apps.sources.asked import ask_plan, scripted
from apps.sources.timeless import run_timeless
from turnout.apps.event import FellBack, PartStarted, Section, SourceAnswered, SourceFailed, SourceSlow
from turnout.apps.sources.cache import Cache
from turnout.apps.sources.desk import FRESH_S, Desk
from turnout.apps.sources.plan import Plan, PlannedPart, PlannedSource
from turnout.apps.sources.run import BOUND_S, FALLBACK_SHARE
from turnout.apps.sources.source import Cause, Empty, Failure, SourceAnswer
from turnout.testing import Stall

NAMES = ("kiwix", "news", "web", "ha", "forecast", "files", "extra")
DELAYS = (0.0, 0.0, 0.0, 0.5, 7.0, 8.0, 14.0, 3600.0)


class Behaviour(NamedTuple):
    """What a source does, and after how long."""

    kind: str
    delay: float
    stubborn: bool = False

    def entry(self, name: str) -> object:
        entries: dict[str, object] = {
            "answered": SourceAnswer(f"{name} speaks of its own."),
            "empty": Empty(),
            "blank": SourceAnswer(" "),
            "unreachable": Failure(Cause.UNREACHABLE, "down"),
            "raises": ValueError("broken"),
            "rubbish": ["rubbish"],
        }
        return Stall(self.delay, entries[self.kind], self.stubborn)

    def ends(self, limit: float) -> str:
        ended = {"blank": "empty", "raises": "error", "rubbish": "malformed"}.get(self.kind, self.kind)
        return ended if self.delay < limit else "slow"


KINDS = (*["answered"] * 5, "empty", "blank", "unreachable", "raises", "rubbish")
behaviours = st.builds(Behaviour, st.sampled_from(KINDS), st.sampled_from(DELAYS), st.booleans())


def part_of(number: int, names: list[str], role: str) -> PlannedPart:
    falls_back = () if "web" in names else ("kiwix", "news")
    sources = tuple(PlannedSource(name, "web" if name in falls_back else "") for name in names)
    return PlannedPart(
        role, f"question {number}", sources, "do it" if role == "condition" else "", decision=f"d{number}"
    )


parts = st.lists(
    st.tuples(
        st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True), st.sampled_from(("part", "condition"))
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=120, deadline=None)
@given(parts, st.dictionaries(st.sampled_from(NAMES), behaviours))
def test_what_is_said_is_what_happened(asked: list[tuple[list[str], str]], does: dict[str, Behaviour]) -> None:
    plan = Plan("?", tuple(part_of(number, names, role) for number, (names, role) in enumerate(asked)))
    sources = scripted(**{name: one.entry(name) for name, one in does.items()})

    async def twice() -> None:
        desk = Desk(sources, Cache("result", 500))
        first = await ask_plan(plan, desk)
        check(plan, does, first, cached=set())
        known = {
            (part.text, one.source)
            for part in first.result.parts
            for one in part.tried
            if one.ended == "answered" and one.source in FRESH_S
        }
        check(plan, does, await ask_plan(plan, desk), cached=known)
        for source in sources.values():
            source.release()

    run_timeless(twice())


def check(plan: Plan, does: dict[str, Behaviour], found: object, cached: set[tuple[str, str]]) -> None:
    result, events, _ = found  # type: ignore[misc]
    assert result.source_used == ("fusion" if len(plan.parts) > 1 else result.parts[0].source_used)
    assert result.fallback_occurred == any(part.fallback_occurred for part in result.parts)
    assert result.cached == all(part.cached for part in result.parts)
    assert result.success == any(part.success for part in result.parts)
    for number, (part, said) in enumerate(zip(plan.parts, result.parts, strict=True)):

        def ends(name: str, limit: float, text: str = part.text) -> str:
            if (text, name) in cached:
                return "answered"
            return does[name].ends(limit) if name in does else "not_configured"

        half = FALLBACK_SHARE * BOUND_S
        expected, replaced, since = {}, [], []
        for source in part.sources:
            limit = half if source.fallback else BOUND_S
            expected[source.name] = ends(source.name, limit)
            if source.fallback and expected[source.name] != "answered":
                replaced.append(source.name)
                since.append(min(does[source.name].delay, half) if source.name in does else 0.0)
        if replaced:
            # Who is asked instead has what is left of the bound.
            expected["web"] = ends("web", BOUND_S - min(since))
        assert {one.source: one.ended for one in said.tried} == expected
        assert len(said.tried) == len(expected)
        used = {name for name, how in expected.items() if how == "answered"}
        assert set(said.sources) == used
        assert said.success == bool(used)
        assert said.fallback_occurred == bool(replaced)
        instead = [one.instead_of for one in said.tried if one.instead_of]
        assert instead == ([tuple(replaced)] if replaced else [])
        assert {one.source for one in said.tried if one.cached} == {
            name for name in used if (part.text, name) in cached
        }
        assert said.cached == (bool(used) and all((part.text, name) in cached for name in used))
        if len(used) > 1:
            assert said.source_used == "fusion"
        elif used:
            assert {said.source_used} == used
        else:
            last = "web" if replaced and len(part.sources) == 1 else said.intended_source
            assert said.source_used == last
        # Nobody who was tried goes unnamed; no answer is held back.
        assert all(one.source in said.result for one in said.tried if one.ended != "answered")
        assert all(f"{name} speaks of its own." in said.result for name in used)
        assert said.latency_ms <= BOUND_S * 1000 + 1
        # The trace says the same.
        trace = [event for event in events if getattr(event, "part", None) == number]
        assert isinstance(trace[0], PartStarted)
        for kind in (SourceAnswered, Section):
            assert sorted(event.source for event in trace if isinstance(event, kind)) == sorted(used)
        slow = {event.source for event in trace if isinstance(event, SourceSlow)}
        assert slow == {name for name, how in expected.items() if how == "slow"}
        failed = {event.source: event.why for event in trace if isinstance(event, SourceFailed)}
        assert failed == {name: how for name, how in expected.items() if how not in ("answered", "slow")}
        assert {event.source for event in trace if isinstance(event, FellBack)} == set(replaced)
