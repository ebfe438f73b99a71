"""Who is asked next when a provider fails, who is passed over and why, and what is written down of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gateway.bench import HELLO, PROOF, TIERS, Bench, bench_of, caller
from turnout.apps.caller import Budget
from turnout.models.secret import SecretPlace
from turnout.testing import Fault, Reply

QUICK: dict[str, Any] = {tier: {"first_token_s": 0.5, "idle_s": 0.5, "total_s": 4.0} for tier in TIERS}
CHAINS = {
    "simple": ["simple", "medium", "complex"],
    "medium": ["medium", "complex"],
    "complex": ["complex", "reasoning"],
    "reasoning": ["reasoning"],
}


@pytest.mark.parametrize("tier", CHAINS)
def test_the_chain_is_walked_in_its_order(tmp_path: Path, tier: str) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            for provider in bench.providers.values():
                provider.default = Reply(status=500)
            told = await bench.ask(tier)
            assert bench.asked == CHAINS[tier]
            assert told.status == 502
            happened = bench.outcome(told)
            assert (happened.ended, happened.attempts) == ("failed", len(CHAINS[tier]))
            assert [one["slot"] for one in happened.extra["attempts"]] == CHAINS[tier]
            # And who answers in the end is who is named.
            bench.forget()
            last = CHAINS[tier][-1]
            bench.providers[last].default = Reply("here")
            told = await bench.ask(tier)
            assert (told.status, told.slot, told.headers["x-turnout-attempts"]) == (200, last, str(len(CHAINS[tier])))
            assert told.headers["x-turnout-route"] == tier.upper()
            first = CHAINS[tier][0]
            told_why = None if first == last else f"{first}-co/{first}-model did not answer"
            assert bench.outcome(told).fallback == told_why

    asyncio.run(scenario())


MOVES = (401, 402, 403, 404, 408, 409, 429, 500, 502, 503, 504, 529)
STAYS = (400, 413, 422)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_which_failures_move_on(tmp_path: Path, stream: bool) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path, **QUICK) as bench:
            for status in MOVES:
                await moves(bench, Reply(status=status), "status", status)
            for status in STAYS:
                bench.forget()
                bench.providers["simple"].default = Reply("no good", status=status)
                told = await bench.ask("simple", stream=stream)
                assert (told.status, bench.asked) == (status, ["simple"])
                assert told.json["error"]["message"].startswith("no good")
                assert bench.outcome(told).extra["attempts"][0]["status"] == status
            await moves(bench, Reply(fault=Fault("stall")), "timeout", 0)
            await moves(bench, Reply(fault=Fault("wrong_type")), "broken", 0)
            await moves(bench, Reply(fault=Fault("cut", "before_delta")), "broken", 0)
            bench.providers["simple"].refuse()
            await moves(bench, Reply(), "unreachable", 0, tries=2)
            bench.providers["simple"].accept()

    async def moves(bench: Bench, reply: Reply, ended: str, status: int, tries: int = 1) -> None:
        bench.forget()
        bench.providers["simple"].default = reply
        told = await bench.ask("simple", stream=stream)
        assert (told.status, told.slot, bench.asked[-1]) == (200, "medium", "medium")
        attempts = bench.outcome(told).extra["attempts"]
        assert [one["ended"] for one in attempts] == [ended] * tries + ["answered"]
        assert attempts[0].get("status", 0) == status

    asyncio.run(scenario())


def test_an_answer_in_one_piece_may_take_longer_than_a_first_token(tmp_path: Path) -> None:
    """Its headers come when all of it is written: that is no sign that nobody is there."""

    async def scenario() -> None:
        async with bench_of(tmp_path, **QUICK) as bench:
            bench.providers["simple"].default = Reply("at last", delay_s=1.2)
            whole = await bench.ask("simple")
            assert (whole.status, whole.slot) == (200, "simple")
            streamed = await bench.ask("simple", stream=True)
            assert (streamed.status, streamed.slot) == (200, "medium")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("said", "told"), [(("60", "7.2", "90"), "8"), (("", "30", ""), "30"), (("", "soon", ""), None)]
)
def test_when_everybody_is_busy_the_client_hears_until_when(
    tmp_path: Path, said: tuple[str, str, str], told: str | None
) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            for tier, after in zip(TIERS, said, strict=False):
                bench.providers[tier].default = Reply(status=429, headers={"retry-after": after} if after else {})
            busy = await bench.ask("simple")
            assert (busy.status, busy.headers.get("retry-after")) == (429, told)

    asyncio.run(scenario())


def test_who_leaves_does_not_end_anothers_probe(tmp_path: Path) -> None:
    """The last of a chain is asked whatever its breaker says; that it is given up says nothing of the probe's fate."""

    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            slot = bench.gateway.models.slots.find("reasoning")
            assert slot is not None
            breaker = bench.gateway.models.breaker(slot)
            while breaker.state == "closed":
                breaker.failed()
            breaker._since = 0.0
            assert breaker.allows(), "the probe"
            bench.providers["reasoning"].default = Reply(delay_s=5.0)
            task = asyncio.create_task(bench.ask("reasoning"))
            while not bench.asked:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not breaker.allows(), "it is still under way"

    asyncio.run(scenario())


class Again(NamedTuple):
    id: str
    reply: Reply
    asked: list[str]


AGAIN = [
    Again("soon", Reply(status=429, headers={"retry-after": "0.01"}), ["simple", "simple"]),
    Again("unavailable", Reply(status=503, headers={"retry-after": "0"}), ["simple", "simple"]),
    Again("late", Reply(status=429, headers={"retry-after": "60"}), ["simple", "medium"]),
    Again("a-date", Reply(status=429, headers={"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"}), ["simple", "medium"]),
    Again("no-number", Reply(status=429, headers={"retry-after": "²"}), ["simple", "medium"]),
    Again("without", Reply(status=429), ["simple", "medium"]),
    Again("another-status", Reply(status=500, headers={"retry-after": "0"}), ["simple", "medium"]),
]


def test_a_provider_that_says_when_is_asked_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            for case in AGAIN:
                bench.forget()
                bench.providers["simple"].script(case.reply)
                told = await bench.ask("simple")
                assert (case.id, told.status, bench.asked) == (case.id, 200, case.asked)

    asyncio.run(scenario())


class Bound(NamedTuple):
    id: str
    ceiling: str
    model: str
    content: str
    route: str
    asked: list[str]


CEILINGS = [
    Bound("lowest", "SIMPLE", "auto", HELLO, "SIMPLE", ["simple"]),
    Bound("in-the-chain", "MEDIUM", "auto", HELLO, "SIMPLE", ["simple", "medium"]),
    Bound("clamped", "MEDIUM", "auto", PROOF, "MEDIUM", ["medium"]),
    Bound("clamped-lowest", "SIMPLE", "auto", PROOF, "SIMPLE", ["simple"]),
    Bound("forced-below", "COMPLEX", "medium", HELLO, "MEDIUM", ["medium", "complex"]),
    Bound("the-highest", "REASONING", "complex", HELLO, "COMPLEX", ["complex", "reasoning"]),
]


@pytest.mark.parametrize("case", CEILINGS, ids=lambda case: case.id)
def test_the_chain_never_passes_the_ceiling(tmp_path: Path, case: Bound) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            for provider in bench.providers.values():
                provider.default = Reply(status=500)
            told = await bench.ask(case.model, case.content, who=caller(ceiling=case.ceiling))
            assert (told.status, bench.asked) == (502, case.asked)
            assert bench.store.records().get(told.decision).route == case.route

    asyncio.run(scenario())


def test_a_slot_without_its_key_is_skipped_with_a_reason(tmp_path: Path) -> None:
    missing = {"key": SecretPlace(env="NO_SUCH_KEY_HERE")}

    async def scenario() -> None:
        async with bench_of(tmp_path, simple=missing) as bench:
            told = await bench.ask("simple")
            assert (told.slot, bench.asked) == ("medium", ["medium"])
            happened = bench.outcome(told)
            assert happened.extra["skipped"] == [
                {
                    "code": "slot.key",
                    "text": "simple (simple-co/simple-model): its key is missing, $NO_SUCH_KEY_HERE is empty",
                }
            ]
            assert happened.fallback == "no slot for SIMPLE could be used"
        async with bench_of(tmp_path, medium=missing, complex=missing) as bench:
            told = await bench.ask("medium")
            assert (told.status, bench.asked) == (503, [])
            assert "NO_SUCH_KEY_HERE" in told.json["error"]["message"]
            happened = bench.outcome(told)
            assert (happened.ended, happened.attempts, len(happened.extra["skipped"])) == ("refused", 0, 2)

    asyncio.run(scenario())


class SkippedCase(NamedTuple):
    id: str
    slot: dict[str, Any]
    more: dict[str, Any]
    code: str
    content: Any = HELLO


IMAGE = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]
SKIPPED = [
    SkippedCase("images", {"images": False}, {}, "slot.images", IMAGE),
    SkippedCase("tools", {"tools": False}, {"tools": [{"type": "function"}]}, "slot.tools"),
    SkippedCase("window", {"context_tokens": 1100}, {"max_tokens": 1200}, "slot.window"),
    SkippedCase("window-of-the-prompt", {"context_tokens": 1100}, {}, "slot.window", "word " * 200),
    SkippedCase("wire", {"wires": ("anthropic-messages",)}, {}, "slot.wire"),
]
NOT_SKIPPED = [
    SkippedCase("no-images", {"images": False}, {}, ""),
    SkippedCase("no-tools", {"tools": False}, {"tools": []}, ""),
    SkippedCase("null-tools", {"tools": False}, {"tools": None}, ""),
    SkippedCase("small-enough", {"context_tokens": 1100}, {"max_completion_tokens": 50}, ""),
]


@pytest.mark.parametrize("case", [*SKIPPED, *NOT_SKIPPED], ids=lambda case: case.id)
def test_a_slot_that_cannot_is_skipped(tmp_path: Path, case: SkippedCase) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path, simple=case.slot) as bench:
            told = await bench.ask("simple", case.content, **case.more)
            found = [one["code"] for one in bench.outcome(told).extra.get("skipped", [])]
            assert (told.slot, found) == (("medium", [case.code]) if case.code else ("simple", []))

    asyncio.run(scenario())


def test_a_key_with_a_budget_needs_prices(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path, simple={"prices": None}) as bench:
            told = await bench.ask("simple", who=caller(budget=Budget(1.0)))
            assert [one["code"] for one in bench.outcome(told).extra["skipped"]] == ["slot.price"]
            told = await bench.ask("simple")
            happened = bench.outcome(told)
            assert (told.slot, happened.cost_usd) == ("simple", None), "unknown is not zero"

    asyncio.run(scenario())


def test_a_missing_slot_is_named(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path, without=("simple",)) as bench:
            told = await bench.ask("simple")
            assert told.slot == "medium"
            assert [one["code"] for one in bench.outcome(told).extra["skipped"]] == ["slot.missing"]

    asyncio.run(scenario())


def test_a_breaker_passes_a_provider_over_but_not_the_last(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            bench.providers["simple"].default = Reply(status=500)
            for _ in range(5):
                await bench.ask("simple")
            asked = len(bench.asked)
            told = await bench.ask("simple")
            assert bench.asked[asked:] == ["medium"]
            assert [one["ended"] for one in bench.outcome(told).extra["attempts"]] == ["breaker", "answered"]
            bench.providers["reasoning"].default = Reply(status=500)
            for _ in range(7):
                assert (await bench.ask("reasoning")).status == 502
            assert bench.asked.count("reasoning") == 7

    asyncio.run(scenario())


class Refusal(NamedTuple):
    id: str
    profile: str
    model: str
    who: dict[str, Any]
    status: int
    says: str


REFUSALS = [
    Refusal("may-not-force", "tiers", "simple", {"may_force": False}, 403, "may not choose a tier"),
    Refusal("above", "tiers", "reasoning", {"ceiling": "MEDIUM"}, 403, "above this key's ceiling"),
    Refusal("named-above", "tiers", "reasoning-co/reasoning-model", {"ceiling": "MEDIUM"}, 403, "may not choose"),
    Refusal("no-such-tier", "assist", "gpt-4o", {}, 400, "gpt-4o"),
    Refusal("ceiling-of-another-profile", "assist", "auto", {"ceiling": "MEDIUM"}, 403, "ceiling"),
    Refusal("ceiling-without-order", "assist", "RETRIEVAL", {"ceiling": "RETRIEVAL"}, 400, "ceiling"),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
def test_what_may_not_be_is_refused_and_not_changed(tmp_path: Path, case: Refusal) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path, case.profile) as bench:
            told = await bench.ask(case.model, who=caller(**case.who))
            assert (told.status, bench.asked) == (case.status, [])
            assert case.says in told.json["error"]["message"]

    asyncio.run(scenario())
