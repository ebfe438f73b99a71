"""Two slots with one model in two places are two: one's failures, prompt cache and prices are not the other's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gateway.bench import HELLO, PROOF, bench_of, caller
from turnout.apps.gateway.choose import staying_saves
from turnout.models.secret import SecretPlace
from turnout.models.slot import Prices, Slot, SlotFile, Slots, make_slot
from turnout.testing import Reply

SAME: dict[str, Any] = {tier: {"model": "one-co/one"} for tier in ("simple", "medium")}


def slot(name: str, url: str, **more: Any) -> Slot:
    return make_slot(name, SlotFile("one-co/one", base_url=url, **more))


def test_what_makes_two_slots_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONE", "sk-11111111")
    monkeypatch.setenv("TWO", "sk-22222222")
    here = slot("a", "http://127.0.0.1:1/v1")
    assert here.endpoint == slot("b", "http://127.0.0.1:1/v1", prices=Prices(1.0, 2.0)).endpoint
    for other in (
        slot("b", "http://127.0.0.1:2/v1"),
        slot("b", "https://127.0.0.1:1/v1"),
        slot("b", "http://127.0.0.1:1/v2"),
        slot("b", "http://127.0.0.1:1/v1", key=SecretPlace(env="ONE")),
        make_slot("b", SlotFile("one-co/two", base_url="http://127.0.0.1:1/v1")),
    ):
        assert other.endpoint != here.endpoint
    keyed = [slot("b", "http://127.0.0.1:1/v1", key=SecretPlace(env=name)) for name in ("ONE", "TWO")]
    assert keyed[0].endpoint != keyed[1].endpoint, "two accounts, each with its limits"
    assert "1111" not in repr(keyed[0].endpoint)


def test_one_failing_is_not_the_other(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path, **SAME) as bench:
            bench.providers["simple"].default = Reply(status=500)
            told = await bench.ask("simple")
            assert (told.status, told.slot, bench.asked) == (200, "medium", ["simple", "medium"])
            assert bench.outcome(told).fallback == "one-co/one (simple) did not answer"
            for _ in range(6):
                await bench.ask("simple")
            breakers = [
                bench.gateway.models.breaker(bench.gateway.models.slots.slots[name]) for name in ("simple", "medium")
            ]
            assert [breaker.state for breaker in breakers] == ["open", "closed"]

    asyncio.run(scenario())


def test_one_slot_under_two_names_is_asked_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            url = bench.providers["simple"].base_url
        usual = {"model": "one-co/one", "base_url": url}
        async with bench_of(tmp_path, simple=usual, medium=usual) as bench:
            told = await bench.ask("simple")
            attempts = bench.outcome(told).extra["attempts"]
            assert [one["slot"] for one in attempts] == ["simple", "simple", "complex"], "unreachable, again, the next"

    asyncio.run(scenario())


def test_a_client_that_names_the_model_gets_the_first_that_is_fit(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path, **SAME) as bench:
            assert (await bench.ask("one-co/one")).slot == "simple"
        first: dict[str, Any] = SAME | {"simple": {"model": "one-co/one", "tools": False}}
        async with bench_of(tmp_path, **first) as bench:
            assert (await bench.ask("one-co/one")).slot == "simple"
            assert (await bench.ask("One-Co/ONE", tools=[{"type": "function"}])).slot == "medium"
        first = SAME | {"simple": {"model": "one-co/one", "key": SecretPlace(env="NO_SUCH_KEY_HERE")}}
        async with bench_of(tmp_path, **first) as bench:
            assert (await bench.ask("one-co/one")).slot == "medium"
            low = await bench.ask("one-co/one", who=caller(ceiling="SIMPLE"))
            assert low.status == 503, "the second is above the ceiling, the first has no key"
        last: dict[str, Any] = {tier: {"model": "one-co/one"} for tier in ("simple", "reasoning")}
        async with bench_of(tmp_path, **last) as bench:
            assert (await bench.ask("one-co/one", who=caller(ceiling="MEDIUM"))).slot == "simple"
            refused = await bench.ask("complex-co/complex-model", who=caller(ceiling="MEDIUM"))
            assert refused.status == 403

    asyncio.run(scenario())


def test_a_prompt_is_cached_in_one_place(tmp_path: Path) -> None:
    """Staying saves what moving to the same model elsewhere would pay again."""
    prices = Prices(3.0, 15.0, 0.3)
    here, there = slot("a", "http://127.0.0.1:1/v1", prices=prices), slot("b", "http://127.0.0.1:2/v1", prices=prices)
    assert staying_saves(here, there, 50_000, 50_100)
    assert not staying_saves(here, slot("c", "http://127.0.0.1:1/v1", prices=prices), 50_000, 50_100)

    async def scenario() -> None:
        # One id for the last two tiers: the conversation that began with the more expensive one goes on there.
        same: dict[str, Any] = {tier: {"model": "one-co/one", "prices": prices} for tier in ("simple", "reasoning")}
        async with bench_of(tmp_path, **same) as bench:
            bench.providers["reasoning"].default = Reply("so", usage=(50_000, 10))
            told = await bench.ask("auto", [{"role": "user", "content": PROOF}])
            assert told.slot == "reasoning"
            turns = [{"role": "user", "content": PROOF}, {"role": "assistant", "content": "so"}]
            told = await bench.ask("auto", [*turns, {"role": "user", "content": HELLO}])
            assert (told.slot, told.headers.get("x-turnout-pinned")) == ("reasoning", "cache")

    asyncio.run(scenario())


def test_a_slot_is_found_by_the_first_that_has_its_key() -> None:
    lacking = slot("a", "http://127.0.0.1:1/v1", key=SecretPlace(env="NO_SUCH_KEY_HERE"))
    ready = slot("b", "http://127.0.0.1:2/v1")
    assert Slots({"a": lacking, "b": ready}).by_id("one-co/one") is ready
    assert Slots({"a": lacking}).by_id("one-co/one") is lacking
    assert Slots({"a": lacking}).by_id("one-co/other") is None
