"""One question, one call; an answer is asked for again only when it is old; nobody waits for who is not waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from apps.sources.asked import ask_plan, scripted
from apps.sources.timeless import run_timeless
from turnout.apps.event import Section
from turnout.apps.sources.cache import Cache
from turnout.apps.sources.desk import FRESH_S, Desk
from turnout.apps.sources.plan import Plan, PlannedPart, PlannedSource
from turnout.apps.sources.source import Cause, Empty, Failure, SourceAnswer, SourceQuestion
from turnout.store import open_store
from turnout.testing import Stall
from turnout.testing.scripted_source import HANG, ScriptedSource


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Fresh(NamedTuple):
    source: str
    seconds: float


@pytest.mark.parametrize("case", [Fresh(*row) for row in FRESH_S.items()], ids=lambda case: case.source)
def test_an_answer_is_fresh_as_long_as_the_specification_says(case: Fresh) -> None:
    async def check() -> None:
        clock, sources = Clock(), scripted(**{case.source: "it"})
        desk = Desk(sources, Cache("result", 500, clock=clock))
        assert not (await desk.ask(case.source, SourceQuestion("q"))).cached
        clock.now += case.seconds - 1
        assert (await desk.ask(case.source, SourceQuestion("  Q "))).cached
        clock.now += 1
        assert not (await desk.ask(case.source, SourceQuestion("q"))).cached
        assert len(sources[case.source].calls) == 2

    run_timeless(check())


@pytest.mark.parametrize("nothing", [Empty(), Failure(Cause.ERROR, "x"), SourceAnswer(""), ValueError()], ids=repr)
def test_only_successes_are_kept(nothing: object) -> None:
    async def check() -> None:
        sources = scripted(kiwix=[nothing, "now"])
        desk = Desk(sources, Cache("result", 500))
        assert not isinstance((await desk.ask("kiwix", SourceQuestion("q"))).result, SourceAnswer)
        assert await desk.ask("kiwix", SourceQuestion("q")) == (SourceAnswer("now"), False)
        assert await desk.ask("kiwix", SourceQuestion("q")) == (SourceAnswer("now"), True)

    run_timeless(check())


def test_a_tenant_never_gets_another_ones_answer() -> None:
    async def check() -> None:
        desk = Desk(scripted(kiwix=["one", "two"]), Cache("result", 500))
        assert (await desk.ask("kiwix", SourceQuestion("q"), "a")).result == SourceAnswer("one")
        assert await desk.ask("kiwix", SourceQuestion("q"), "b") == (SourceAnswer("two"), False)

    run_timeless(check())


def test_there_are_at_most_so_many() -> None:
    async def check() -> None:
        cache = Cache("result", 3)
        for number in range(5):
            cache.put("", (str(number),), b"{}", 60)
        assert [await cache.get("", (str(number),)) for number in range(5)] == [None, None, b"{}", b"{}", b"{}"]

    run_timeless(check())


def test_it_outlives_the_process_and_stays_bounded(tmp_path: Path) -> None:
    async def ask(question: str) -> tuple[str, bool]:
        with open_store(str(tmp_path / "turnout.db")) as store:
            cache = Cache("result", 3, store)
            desk = Desk(scripted(kiwix="it"), cache)
            told = await desk.ask("kiwix", SourceQuestion(question))
            await cache.settle()
            return str(await cache.count("")), told.cached

    assert asyncio.run(ask("one")) == ("1", False)
    assert asyncio.run(ask("one")) == ("1", True)
    for number in range(4):
        count, _ = asyncio.run(ask(f"number {number}"))
    assert count == "3"
    assert asyncio.run(ask("one")) == ("3", False)


def test_a_store_that_keeps_no_text_keeps_no_answers(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "turnout.db"), text="hash") as store:
        assert Cache("result", 3, store).store is None


def test_a_question_is_asked_once_at_a_time() -> None:
    async def check() -> None:
        sources = scripted(kiwix=Stall(1.0, "it"))
        desk = Desk(sources, Cache("result", 500))
        told = await asyncio.gather(*(desk.ask("kiwix", SourceQuestion("q")) for _ in range(20)))
        assert {one.result for one in told} == {SourceAnswer("it")}
        assert not any(one.cached for one in told)
        assert len(sources["kiwix"].calls) == 1

    run_timeless(check())


def test_one_who_leaves_does_not_take_the_others_along() -> None:
    async def check() -> None:
        sources = scripted(kiwix=Stall(2.0, "it"))
        desk = Desk(sources, Cache("result", 500))
        stays = asyncio.create_task(desk.ask("kiwix", SourceQuestion("q")))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(desk.ask("kiwix", SourceQuestion("q")), 1.0)
        assert (await stays).result == SourceAnswer("it")
        assert sources["kiwix"].cancelled == 0

    run_timeless(check())


@pytest.mark.parametrize("stubborn", [False, True])
def test_a_source_nobody_waits_for_is_cancelled(stubborn: bool) -> None:
    async def check() -> None:
        source = ScriptedSource("kiwix", [Stall(3600.0, "it", stubborn)])
        desk = Desk({"kiwix": source}, Cache("result", 500))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(desk.ask("kiwix", SourceQuestion("q")), 1.0)
        await asyncio.sleep(0.1)
        assert source.cancelled == 1
        source.release()
        await asyncio.sleep(0.1)

    run_timeless(check())


def test_an_answer_is_fresh_by_the_kind_of_its_source() -> None:
    async def check() -> None:
        desk = Desk(scripted(wiki=["one", "two"], mine=["one", "two"]), Cache("result", 500), kinds={"wiki": "kiwix"})
        for name, said, cached in (("wiki", "one", True), ("mine", "two", False)):
            await desk.ask(name, SourceQuestion("q"))
            told = await desk.ask(name, SourceQuestion("q"))
            assert (told.result, told.cached) == (SourceAnswer(said), cached)

    run_timeless(check())


def hung_plan(names: list[str]) -> Plan:
    halves = (names[:4], names[4:])
    made = [PlannedPart("part", f"q{at}", tuple(map(PlannedSource, half))) for at, half in enumerate(halves)]
    return Plan("?", tuple(made))


@pytest.mark.parametrize("run", [run_timeless, asyncio.run], ids=["bound of 15 s", "real time, 1 s"])
def test_two_parts_of_four_sources_six_of_them_hung(run: Callable[..., None]) -> None:
    names = [f"s{number}" for number in range(8)]
    hung = {"s0", "s1", "s3", "s4", "s6", "s7"}
    bound_s = 15.0 if run is run_timeless else 1.0

    async def check() -> None:
        loop = asyncio.get_running_loop()
        sources = scripted(**{name: HANG if name in hung else f"{name} speaks." for name in names})
        began, first = loop.time(), []

        def noted(event: object) -> None:
            if isinstance(event, Section):
                first.append((event.source, loop.time() - began))

        found = await ask_plan(hung_plan(names), Desk(sources, Cache("result", 500)), bound_s=bound_s, noted=noted)
        took = loop.time() - began
        assert took < bound_s + 0.25
        assert [source for source, _ in first] == ["s2", "s5"]
        assert all(after < 1.0 for _, after in first)
        assert all(part.success for part in found.result.parts)
        assert all(f"{name} did not answer in time" in found.result.result for name in hung)
        assert all(sources[name].cancelled == 1 for name in hung)

    run(check())
