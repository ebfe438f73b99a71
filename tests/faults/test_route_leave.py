"""Clients that go away while a question is decided: no further model is asked, and what was asked is paid for.

Measured before there was such a rule: the client of a batch left after three questions, and 57 more were asked.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from faults.asking import connect
from faults.test_gateway_leave import SOON_S, eventually
from secured_server import call, chat, forget, id_of, make_key, secured_server
from serving import RunningServer
from stored_decisions import select
from timing import Delays
from turnout.testing import Fault, Received, Reply, ScriptedProvider

PRICES = "prices = { input_usd = 5.0, output_usd = 5.0 }"
# What the classifier says it took: 20 tokens.
ANSWER_USD = 0.0001
VAGUE = "Tell me about the harbour and what people there thought of it at the time, number {number}"

Pair = tuple[RunningServer, ScriptedProvider]


@pytest.fixture(params=["batched", "strict"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    more = f'[store]\ndurability = "{request.param}"'
    with secured_server(tmp_path / "left", prices=PRICES, classifier=True, server=more) as found:
        yield found


def sent(path: str, body: Any, key: str) -> bytes:
    raw = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {key}\r\n"
    return f"{head}content-type: application/json\r\ncontent-length: {len(raw)}\r\n\r\n".encode() + raw


def batch(count: int) -> dict[str, Any]:
    return {"queries": [{"text": VAGUE.format(number=number)} for number in range(count)]}


def leave(served: RunningServer, provider: ScriptedProvider, request: bytes, after: int) -> float:
    """Send it and leave when so many questions have reached the classifier; when that was."""

    async def client() -> float:
        _, writer = await connect(served.url)
        writer.write(request)
        until = time.monotonic() + 10
        while provider.received < after:
            assert time.monotonic() < until
            await asyncio.sleep(0.002)
        writer.transport.abort()
        return time.monotonic()

    return asyncio.run(client())


def decided(served: RunningServer, folder: Path) -> int:
    assert served.store.flush(10.0)
    rows: list[tuple[int]] = select(f"sqlite:///{folder}/left/turnout.db", "select count(*) from decisions")
    return rows[0][0]


def test_a_batch_stops_when_its_client_has_gone(pair: Pair, tmp_path: Path) -> None:
    served, provider = pair
    budget_usd = 10.0
    key = make_key(served.store, budget_usd=budget_usd)
    forget(served)
    provider.default = Reply("MEDIUM", usage=(10, 10), delay_s=0.05)
    with Delays() as delays:
        left_at = leave(served, provider, sent("/v1/route/batch", batch(60), key), after=4)
        eventually(lambda: served.server.admission.active == 0, "the place is free")
        free_at = time.monotonic()
    assert free_at - left_at <= delays.allow(SOON_S + 0.05)
    time.sleep(0.3)
    answered = sum(one.finished_at is not None and one.finished_at <= left_at for one in provider.requests)
    assert provider.received <= 5, "nothing is asked for a client that is not there"
    abandoned = provider.received - decided(served, tmp_path)
    assert abandoned in (0, 1)
    assert answered <= decided(served, tmp_path) <= 5, "every decision that was made has its row"
    spent = served.store.keys.spent(id_of(key))
    worst = spent - decided(served, tmp_path) * ANSWER_USD
    assert (worst > ANSWER_USD) if abandoned else worst == pytest.approx(0.0)
    budget = served.server.auth._budgets[id_of(key)]
    assert budget.spent_usd == pytest.approx(spent)
    assert budget.reserved_usd == pytest.approx(0.0)
    assert served.server.admission.batches == 0


@pytest.mark.parametrize("path", ["/v1/route", "/v1/route/batch", "/v1/chat/completions"])
def test_a_model_is_told_at_once(pair: Pair, tmp_path: Path, path: str) -> None:
    served, provider = pair
    key = make_key(served.store, budget_usd=1.0)
    forget(served)
    provider.default = Reply(fault=Fault("stall", "before_headers"))
    text = VAGUE.format(number=0)
    body = {"/v1/route": {"text": text}, "/v1/route/batch": batch(60)}.get(path, chat(text))
    with Delays() as delays:
        left_at = leave(served, provider, sent(path, body, key), after=1)
        eventually(lambda: provider.requests[0].closed_at is not None, "the classifier is told")
    closed_at = provider.requests[0].closed_at
    assert closed_at is not None
    assert closed_at - left_at <= delays.allow(SOON_S), f"it took {closed_at - left_at:.3f} s"
    eventually(lambda: served.server.admission.active == 0, "the place is free")
    time.sleep(0.1)
    assert provider.received == 1
    assert decided(served, tmp_path) == 0, "nothing was decided"
    # The question was sent, and its provider may bill it: the most it can have cost is booked.
    spent = served.store.keys.spent(id_of(key))
    assert ANSWER_USD < spent < 100 * ANSWER_USD
    assert served.server.auth._budgets[id_of(key)].spent_usd == pytest.approx(spent)


def test_who_leaves_takes_nobody_along(pair: Pair) -> None:
    """Another client's question, asked meanwhile, is decided; and the breaker has not heard of it."""
    served, provider = pair
    key = make_key(served.store)
    forget(served)

    def reply(received: Received) -> Reply:
        stalled = b"number 0" in received.raw
        return Reply(fault=Fault("stall", "before_headers")) if stalled else Reply("MEDIUM", usage=(10, 10))

    provider.default = reply
    for number in range(1, 8):
        asked = provider.received
        leave(served, provider, sent("/v1/route", {"text": VAGUE.format(number=0)}, key), after=asked + 1)
        got = call(served.url, "POST", "/v1/route", {"text": VAGUE.format(number=number)}, key=key)
        assert (got.status, got.json["by"]) == (200, "llm")
