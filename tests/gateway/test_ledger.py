"""Each account is closed exactly once, with what happened, whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import NamedTuple

import pytest

from gateway.bench import HELLO, bench_of, caller, request
from turnout import Decision, Query
from turnout.apps.app import StreamBody
from turnout.apps.caller import Budget, Caller
from turnout.apps.gateway.app import Gateway
from turnout.apps.ledger import Account, Ledger, decide
from turnout.core.errors import Refused
from turnout.models.wire import FORMATS


class Case(NamedTuple):
    id: str
    ended: str
    said: str | None = None
    """What the account is told."""
    raised: BaseException | None = None


CASES = [
    Case("nothing-was-said", "cancelled"),
    Case("answered", "answered", "answered"),
    Case("refused", "refused", raised=Refused(402, "insufficient_quota", "no money")),
    Case("refused-in-the-end", "refused", "answered", Refused(403, "permission_error", "no")),
    Case("left", "cancelled", raised=asyncio.CancelledError()),
    Case("broken", "cancelled", raised=RuntimeError("a bug of ours")),
]


async def decided(gateway: Gateway, who: Caller) -> Decision:
    return await decide(gateway.router, Query(HELLO), who, gateway.models.slots, gateway.store)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_an_account_is_closed_with_what_happened(tmp_path: Path, case: Case) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            decision = await decided(bench.gateway, caller())
            ledger = Ledger(bench.store, bench.gateway.models.slots)
            expected = contextlib.suppress(Refused, asyncio.CancelledError, RuntimeError)
            with expected, ledger.open(decision, caller()) as account:
                if case.said == "answered":
                    account.ended = "answered"
                if case.raised is not None:
                    raise case.raised
            assert bench.rows() == (1, 1)
            assert bench.outcome(decision.id).ended == case.ended

    asyncio.run(scenario())


def test_a_generation_is_paid_for_by_its_account(tmp_path: Path) -> None:
    """As an application does it: no gateway in between."""

    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            budget = Budget(1.0)
            who, gateway = caller(budget=budget), bench.gateway
            decision = await decided(gateway, who)
            asked = FORMATS["openai-chat"].read(request("auto", HELLO, "openai-chat"))
            slot = gateway.models.slots.slots["medium"]
            with Ledger(bench.store, gateway.models.slots).open(decision, who) as account:
                generation = account.generate(gateway.models, asked, {})
                await generation.start([slot])
                assert budget.reserved_usd > 0
            outcome = bench.outcome(decision.id)
            assert (outcome.ended, outcome.slot, outcome.attempts) == ("answered", "medium", 1)
            assert budget.reserved_usd == 0
            assert budget.spent_usd == pytest.approx(outcome.cost_usd)

    asyncio.run(scenario())


@pytest.mark.parametrize("pieces", [0, 1, 1000])
def test_a_stream_closes_its_account_once(tmp_path: Path, pieces: int) -> None:
    """Before its first piece, after one, and at its end; and however often it is closed."""

    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            body = request("auto", HELLO, "openai-chat", stream=True)
            answer = await bench.gateway.handle("openai-chat", body, caller(), {})
            assert isinstance(answer.body, StreamBody)
            stream = aiter(answer.body)
            for _ in range(pieces):
                if await anext(stream, None) is None:
                    break
            await answer.body.aclose()
            await answer.body.aclose()
            assert bench.rows() == (1, 1)
            assert not bench.gateway.models.live

    asyncio.run(scenario())


def test_without_a_store_there_is_nothing_to_write(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            decision = await decided(bench.gateway, caller())
            with Ledger(None, bench.gateway.models.slots).open(decision, caller()) as account:
                assert isinstance(account, Account)
                await account.record()
            assert bench.rows() == (0, 0)

    asyncio.run(scenario())
