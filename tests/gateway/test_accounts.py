"""What a request cost and how it ended, once, in every path; and how its tier came about, in the spec's words."""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gateway.bench import HELLO, Bench, bench_of, caller, request
from toml_router import unlearnt
from turnout import load
from turnout.apps.caller import Budget
from turnout.models.provider import WIRES, Wire
from turnout.models.slot import Prices
from turnout.testing import Fault, Received, Reply, ScriptedProvider

# The signals are not sure of this one, so a model is asked where there is one.
UNSURE = "Write a function to sort an array in JavaScript"
CLASSIFIER_PRICES = Prices(10.0, 10.0)


# --- tokens and money


class UsedCase(NamedTuple):
    id: str
    stream: bool
    reply: Reply
    tokens: tuple[int, int]
    cost: float
    """At 2 a million in, 10 out, 0.2 cached: the medium slot's."""


USED = [
    UsedCase("whole", False, Reply(usage=(1000, 100)), (1000, 100), 0.003),
    UsedCase("stream", True, Reply(usage=(1000, 100)), (1000, 100), 0.003),
    UsedCase("whole-cached", False, Reply(usage=(1000, 100), cached=800), (1000, 100), 0.00156),
    UsedCase("stream-cached", True, Reply(usage=(1000, 100), cached=800), (1000, 100), 0.00156),
    UsedCase("stream-slow", True, Reply("a b c", usage=(1000, 100), chunk_delay_s=0.01), (1000, 100), 0.003),
]


@pytest.mark.parametrize("wire", WIRES)
def test_usage_is_the_providers(tmp_path: Path, wire: Wire) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            for case in USED:
                bench.providers["medium"].default = case.reply
                more = {"stream_options": {"include_usage": True}} if wire == "openai-chat" and case.stream else {}
                told = await bench.ask("medium", wire=wire, stream=case.stream, **more)
                happened = bench.outcome(told)
                assert (case.id, happened.input_tokens, happened.output_tokens) == (case.id, *case.tokens)
                assert happened.cost_usd == pytest.approx(case.cost)
                assert "estimated_tokens" not in happened.extra
                # The most expensive slot of the profile is the reasoning one: four times the price.
                assert happened.baseline_usd == pytest.approx(4 * case.cost)
                assert (happened.classifier_usd, happened.fallback, happened.attempts) == (None, None, 1)
                assert happened.elapsed_ms is not None
                assert happened.extra["wire"] == wire

    asyncio.run(scenario())


def test_without_the_providers_count_it_is_estimated_and_said_to_be(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            bench.providers["medium"].default = Reply("word " * 50)
            told = await bench.ask("medium", "word " * 400, stream=True)
            happened = bench.outcome(told)
            assert happened.extra["estimated_tokens"] is True
            assert 400 <= (happened.input_tokens or 0) <= 700
            assert 10 <= (happened.output_tokens or 0) <= 200
            assert happened.cost_usd is not None
            body = b'{"id":"x","object":"chat.completion","choices":[],"usage":null}'
            bench.providers["medium"].default = Reply(body=body)
            assert bench.outcome(await bench.ask("medium")).extra["estimated_tokens"] is True

    asyncio.run(scenario())


def test_the_baseline_is_the_most_expensive_slot_wherever_it_is(tmp_path: Path) -> None:
    async def scenario() -> None:
        more = {"simple": {"prices": Prices(100.0, 100.0)}, "reasoning": {"prices": None}}
        async with bench_of(tmp_path, **more) as bench:
            bench.providers["medium"].default = Reply("", usage=(1000, 0))
            assert bench.outcome(await bench.ask("medium")).baseline_usd == pytest.approx(0.1)

    asyncio.run(scenario())


def test_a_budget_is_reserved_from_and_settled(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            bench.providers["medium"].default = Reply(usage=(1000, 100))
            budget = Budget(1.0)
            rich = caller(budget=budget)
            for wire in WIRES:
                for stream in (False, True):
                    await bench.ask("medium", wire=wire, who=rich, stream=stream)
            # OpenAI's stream, too: under a budget it is asked to tell its usage.
            assert budget.spent_usd == pytest.approx(0.018)
            assert budget.reserved_usd == 0.0
            for broken in (Reply(status=500), Reply("no", status=400)):
                for tier in ("medium", "complex"):
                    bench.providers[tier].default = broken
                spent = budget.spent_usd
                await bench.ask("medium", who=rich)
                assert (budget.spent_usd, budget.reserved_usd) == (spent, 0.0)
            bench.forget()
            for limit in (-1_000_000, 0):
                told = await bench.ask("medium", who=caller(budget=Budget(0.001)), max_tokens=limit)
                assert told.status == 402, "a limit below nothing makes no call cheap"
            poor = await bench.ask("medium", who=caller(budget=Budget(0.0001)))
            assert (poor.status, bench.asked) == (402, [])

    asyncio.run(scenario())


# --- exactly one decision and one outcome


STREAMED = request("simple", HELLO, "openai-chat", stream=True)


async def leave_at_once(bench: Bench) -> None:
    bench.providers["simple"].default = Reply(delay_s=30)
    task = asyncio.ensure_future(bench.ask("simple"))
    while not bench.asked:
        await asyncio.sleep(0.005)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def leave_before_the_first_piece(bench: Bench) -> None:
    answer = await bench.gateway.handle("openai-chat", STREAMED, caller(), {})
    assert not isinstance(answer.body, bytes)
    await answer.body.aclose()


async def leave_midway(bench: Bench) -> None:
    bench.providers["simple"].default = Reply("a b c d", chunk_delay_s=0.05)
    answer = await bench.gateway.handle("openai-chat", STREAMED, caller(), {})
    assert not isinstance(answer.body, bytes)
    async with contextlib.aclosing(answer.body):
        async for _ in answer.body:
            break


class Way(NamedTuple):
    id: str
    ended: str
    replies: Any = None
    """What every provider answers; or a function that does it all."""
    stream: bool = False
    who: dict[str, Any] = {}  # noqa: RUF012 - never changed


PATHS = [
    Way("answered", "answered", Reply()),
    Way("answered-stream", "answered", Reply(), True),
    Way("empty-stream", "answered", Reply(""), True),
    Way("wrong", "failed", Reply("x", status=400)),
    Way("failed", "failed", Reply(status=500), True),
    Way("cut", "failed", Reply("a b c d", fault=Fault("cut", "after_delta", 3), chunk_delay_s=0.02), True),
    Way("poor", "refused", Reply(), False, {"budget": Budget(1e-9)}),
    Way("left-at-once", "cancelled", leave_at_once),
    Way("left-before-the-first-piece", "cancelled", leave_before_the_first_piece),
    Way("left-midway", "cancelled", leave_midway),
]


@pytest.mark.parametrize("case", PATHS, ids=lambda case: case.id)
def test_one_decision_and_one_outcome(tmp_path: Path, case: Way) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            if isinstance(case.replies, Reply):
                for provider in bench.providers.values():
                    provider.default = case.replies
                await bench.ask("simple", who=caller(**case.who), stream=case.stream)
            else:
                await case.replies(bench)
            assert bench.rows() == (1, 1)
            newest = next(bench.store.records().decisions())
            assert bench.outcome(newest.id).ended == case.ended
            assert not bench.gateway.models.live

    asyncio.run(scenario())


def test_a_client_that_leaves_while_its_decision_is_written(tmp_path: Path) -> None:
    """With `strict` durability the answer waits for the row; leaving then leaves an outcome too."""

    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            append, never = bench.store.append, Future[None]()

            def slow(decision: Any, **more: Any) -> Any:
                append(decision, **more)
                return never

            bench.store.append = slow  # type: ignore[method-assign]
            task = asyncio.ensure_future(bench.ask("simple", stream=True))
            await asyncio.sleep(0.05)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            assert bench.rows() == (1, 1)
            assert bench.asked == []

    asyncio.run(scenario())


# --- how the tier came about


class Method(NamedTuple):
    id: str
    method: str
    content: Any = UNSURE
    model: str = "auto"
    says: str | Reply = "MEDIUM"
    """The classifier."""
    slot: str = "medium"
    profile: str = "tiers"
    cost: float | None = None
    """Of deciding."""


PROVE = "Prove by induction that the sum of the first n odd numbers is n squared."
PACKED = "[Chat messages since your last reply - for context]\nBob: hi\n"
METHODS = [
    Method("forced", "forced", HELLO, "simple", slot="simple"),
    Method("named", "forced", HELLO, "complex-co/complex-model", slot="complex"),
    Method("rule-based", "rule-based", HELLO, slot="simple"),
    Method("student", "rule-based", PROVE, slot="reasoning", profile="tiers-learnt"),
    Method("packed-default", "packed-default", PACKED),
    Method("llm-confirmed", "llm-confirmed", says="MEDIUM", cost=0.00041),
    Method("llm-override", "llm-override", says="COMPLEX", slot="complex", cost=0.00041),
    Method("llm-invalid", "llm-invalid", says="SIMPLE or COMPLEX", cost=0.00041),
    Method("llm-failed", "llm-failed", says=Reply(status=500)),
    Method("llm-skipped", "llm-skipped", profile="tiers-unasked"),
]


@pytest.mark.parametrize("case", METHODS, ids=lambda case: case.id)
def test_the_method_is_named(tmp_path: Path, case: Method) -> None:
    async def scenario() -> None:
        async with ScriptedProvider() as model:
            said = case.says if isinstance(case.says, Reply) else Reply(case.says, usage=(40, 1))
            model.default = said
            classifier = {"model": "tiny-co/tiny", "base_url": model.base_url, "prices": CLASSIFIER_PRICES}
            asked = case.profile == "tiers"
            async with bench_of(tmp_path, "tiers", **({"classifier": classifier} if asked else {})) as bench:
                if not asked:
                    router = load("tiers", config="") if case.profile == "tiers-learnt" else unlearnt("tiers")
                    bench.gateway.router = router
                told = await bench.ask(case.model, case.content)
                assert (told.status, told.slot) == (200, case.slot)
                assert told.headers["x-turnout-method"] == case.method
                happened = bench.outcome(told)
                assert happened.extra["method"] == case.method
                assert happened.classifier_usd == (None if case.cost is None else pytest.approx(case.cost))
                if case.method in ("llm-confirmed", "llm-override"):
                    # Asked again, it is known and costs nothing.
                    told = await bench.ask(case.model, case.content)
                    assert (told.headers["x-turnout-outcome"], told.headers["x-turnout-method"]) == ("C-", case.method)
                    assert bench.outcome(told).classifier_usd == 0.0
                    assert model.received == 1

    asyncio.run(scenario())


def test_deciding_is_paid_for_by_the_key(tmp_path: Path) -> None:
    async def scenario() -> None:
        def answer(request: Received) -> Reply:
            return Reply("MEDIUM", usage=(1000, 0))

        async with ScriptedProvider(answer) as model:
            classifier = {"model": "tiny-co/tiny", "base_url": model.base_url, "prices": CLASSIFIER_PRICES}
            async with bench_of(tmp_path, "tiers", classifier=classifier) as bench:
                bench.providers["medium"].default = Reply("", usage=(1000, 0))
                budget = Budget(1.0)
                await bench.ask("auto", UNSURE, who=caller(budget=budget))
                assert budget.spent_usd == pytest.approx(0.01 + 0.002)

    asyncio.run(scenario())
