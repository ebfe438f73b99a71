"""What deciding may cost is set aside before a model is asked, and booked after it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from gateway.bench import caller
from toml_router import unlearn
from turnout import Query, Router, load
from turnout.apps.caller import Budget
from turnout.apps.ledger import TOOL_TOKENS, decide, spent_usd, worst_usd
from turnout.core.errors import Refused
from turnout.core.profile import PlacedLayer
from turnout.core.query import Turn
from turnout.models.ask import Models
from turnout.models.slot import Prices, SlotFile, Slots, make_slot
from turnout.net.client import Client
from turnout.net.egress import Egress
from turnout.testing import Fault, Reply, ScriptedProvider

PRICES = Prices(1.0, 5.0)
VAGUE = "Tell me about the harbour and what people there thought of it at the time"
MILLION = 1_000_000


def slots_of(base_url: str, prices: Prices | None = PRICES, **more: Any) -> Slots:
    file = SlotFile("fake/classifier", base_url=base_url, private=True, prices=prices, **more)
    return Slots({"classifier": make_slot("classifier", file)})


def with_model(
    use: Callable[[Router, Slots, ScriptedProvider], Any],
    reply: Reply,
    profile: str = "tiers",
    prices: Prices | None = PRICES,
) -> Any:
    """Run it with a router whose classifier says so."""

    async def run() -> Any:
        async with ScriptedProvider(reply) as provider:
            slots = slots_of(provider.base_url, prices)
            client = Client(Egress(slots.origins))
            try:
                return await use(unlearn(load(profile, models=Models(slots, client))), slots, provider)
            finally:
                await client.close()

    return asyncio.run(run())


def asking(profile: str) -> tuple[PlacedLayer, Slots]:
    """The layer of a profile that asks a model."""
    slots = slots_of("http://127.0.0.1:9/v1")
    router = load(profile, models=Models(slots, Client(Egress(slots.origins))))
    return next(place for place in router.profile.layers if place.cost == "network"), slots


class TestWorst:
    @pytest.mark.parametrize("profile", ["study", "tiers", "sources", "assist"])
    def test_it_is_more_than_any_prompt_has(self, profile: str) -> None:
        """Of a prompt of words in any script, a token is a byte at least; of the instruction, three."""
        place, slots = asking(profile)
        for text in ("hello", "what is it? " * 1000, "水" * 1000, "🙂" * 1000, "é" * 7):
            layer: Any = place.call
            sent = text[: layer.config.characters].encode()
            least = len(layer.system.encode()) // 4 + len(sent) + 5 * layer.config.max_tokens
            worst = worst_usd(place, Query(text), slots)
            assert worst is not None
            assert least / MILLION < worst < (least + 2000 + 3 * len(sent)) / MILLION

    def test_it_counts_turns_and_intents(self) -> None:
        place, slots = asking("assist")

        def worst(query: Query) -> float:
            return worst_usd(place, query, slots) or 0.0

        assert worst(Query(turns=(Turn("user", "x" * 400),))) == worst(Query("x" * 400))
        assert worst(Query("x", intents=("y" * 1000,))) >= worst(Query("x")) + 1000 / MILLION
        assert worst(Query("x", intents=("y" * 1000,) * 50)) < worst(Query("x", intents=("y" * 1000,) * 6)) + 1e-9

    def test_a_schema_counts_where_it_is_sent(self) -> None:
        place, slots = asking("study")
        held = slots_of("http://127.0.0.1:9/v1", structured=True)
        plain, shaped = worst_usd(place, Query("x"), slots), worst_usd(place, Query("x"), held)
        assert plain is not None
        assert shaped is not None
        assert shaped > plain + TOOL_TOKENS / MILLION

    def test_without_a_price_it_is_not_known(self) -> None:
        place, _ = asking("tiers")
        assert worst_usd(place, Query("x"), slots_of("http://127.0.0.1:9/v1", None)) is None
        assert worst_usd(place, Query("x"), Slots({})) is None

    def test_a_layer_that_asks_no_model_costs_nothing(self) -> None:
        router = load("tiers")
        assert [worst_usd(place, Query("x"), Slots({})) for place in router.profile.layers] == [0.0] * len(
            router.profile.layers
        )


class TestDecide:
    def test_it_is_set_aside_while_the_model_is_asked(self) -> None:
        budget, seen = Budget(0.01), []

        async def use(router: Router, slots: Slots, provider: ScriptedProvider) -> None:
            task = asyncio.ensure_future(decide(router, Query(VAGUE), caller(budget=budget), slots, None))
            while provider.received == 0:
                await asyncio.sleep(0.005)
            seen.append(budget.reserved_usd)
            decision = await task
            assert decision.by == "llm"
            place = next(place for place in router.profile.layers if place.cost == "network")
            assert seen == [worst_usd(place, Query(VAGUE), slots)]
            assert spent_usd(decision, slots) == pytest.approx((40 * 1.0 + 2 * 5.0) / MILLION)
            assert seen[0] > spent_usd(decision, slots)
            assert (budget.reserved_usd, budget.spent_usd) == (0.0, 0.0), "booked by whom it returns to"

        with_model(use, Reply("MEDIUM", usage=(40, 2), delay_s=0.05))

    def test_a_budget_that_does_not_cover_it_asks_nobody(self) -> None:
        async def use(router: Router, slots: Slots, provider: ScriptedProvider) -> None:
            budget = Budget(0.0001)
            with pytest.raises(Refused) as caught:
                await decide(router, Query(VAGUE), caller(budget=budget), slots, None)
            assert caught.value.status == 402
            assert (provider.received, budget.reserved_usd) == (0, 0.0)
            # What the layers on this machine decide costs nothing.
            assert (await decide(router, Query("hello"), caller(budget=budget), slots, None)).route == "SIMPLE"

        with_model(use, Reply("MEDIUM"))

    def test_a_burst_does_not_overspend(self) -> None:
        """Forty at once on a budget for five: the others are refused before the model is asked."""

        async def use(router: Router, slots: Slots, provider: ScriptedProvider) -> None:
            place = next(place for place in router.profile.layers if place.cost == "network")
            worst = worst_usd(place, Query(f"{VAGUE} 10"), slots)
            assert worst is not None
            who = caller(budget=Budget(5.5 * worst))
            asked = [decide(router, Query(f"{VAGUE} {number}"), who, slots, None) for number in range(10, 50)]
            found = await asyncio.gather(*asked, return_exceptions=True)
            assert sum(isinstance(one, Refused) for one in found) == 35
            assert provider.received == 5

        with_model(use, Reply("MEDIUM", usage=(40, 2), delay_s=0.1))

    @pytest.mark.parametrize(("budget_usd", "asked"), [(None, 1), (1.0, 0)])
    def test_a_model_without_a_price_is_not_for_budgets(self, budget_usd: float | None, asked: int) -> None:
        """The decision is made without it, and says so."""

        async def use(router: Router, slots: Slots, provider: ScriptedProvider) -> None:
            decision = await decide(router, Query(VAGUE), caller(budget=Budget(budget_usd)), slots, None)
            assert provider.received == asked
            assert (decision.by == "llm") is bool(asked)
            assert spent_usd(decision, slots) is None
            reasons = {reason.code: reason.text for step in decision.steps for reason in step.reasons}
            assert ("has no known price, and this key has a budget" in reasons.get("llm.skipped", "")) is not bool(
                asked
            )
            assert router.replay(decision) == decision

        with_model(use, Reply("MEDIUM"), prices=None)

    def test_parts_are_paid_for_one_by_one(self) -> None:
        async def use(router: Router, slots: Slots, provider: ScriptedProvider) -> None:
            budget = Budget(1.0)
            text = "tell me about zxcv and what did people think of qwrt"
            decision = await decide(router, Query(text), caller(budget=budget), slots, None)
            assert provider.received == len(decision.parts) >= 2
            assert spent_usd(decision, slots) == pytest.approx(provider.received * 50 / MILLION)
            assert budget.reserved_usd == 0.0

        with_model(use, Reply("web", usage=(40, 2)), profile="sources")


class TestSpent:
    """What a model took and did not say is booked at the most; what was not asked, or refused, is not."""

    @pytest.mark.parametrize(
        ("reply", "billed"),
        [
            pytest.param(Reply("MEDIUM", usage=(40, 2)), 50 / MILLION, id="said"),
            pytest.param(Reply("no tier at all", usage=(40, 2)), 50 / MILLION, id="said, and no answer"),
            pytest.param(Reply(fault=Fault("stall", "before_headers")), None, id="no answer in time"),
            pytest.param(
                Reply(
                    body=b'{"choices":[{"message":{"content":"MEDIUM"}}]}', headers={"content-type": "application/json"}
                ),
                None,
                id="not said",
            ),
            pytest.param(Reply(status=500), 0.0, id="an error"),
        ],
    )
    def test_spent(self, reply: Reply, billed: float | None) -> None:
        async def use(router: Router, slots: Slots, provider: ScriptedProvider) -> None:
            decision = await decide(router, Query(VAGUE), caller(budget=Budget(1.0)), slots, None)
            place = next(place for place in router.profile.layers if place.cost == "network")
            worst = worst_usd(place, Query(VAGUE), slots)
            assert provider.received == 1
            assert (spent_usd(decision, slots) or 0.0) == pytest.approx(worst if billed is None else billed)

        with_model(use, reply)

    def test_what_is_remembered_costs_nothing(self) -> None:
        async def use(router: Router, slots: Slots, provider: ScriptedProvider) -> None:
            for _ in range(2):
                decision = await decide(router, Query(VAGUE), caller(budget=Budget(1.0)), slots, None)
            assert (provider.received, decision.outcome, spent_usd(decision, slots)) == (1, "C-", 0.0)

        with_model(use, Reply("MEDIUM", usage=(40, 2)))
