"""A batch is so many questions: each counts against the key's rate and budget, and batches leave room for others."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from faults.test_gateway_leave import eventually
from secured_server import RawResponse, call, chat, forget, id_of, make_key, secured_server
from serving import RunningServer
from stored_decisions import select
from timing import Delays
from turnout.apps import caller as callers
from turnout.apps.caller import Rate
from turnout.core.errors import Refused
from turnout.testing import Received, Reply, ScriptedProvider
from turnout.web.admission import LEAST, Admission

PRICES = "prices = { input_usd = 5.0, output_usd = 5.0 }"
VAGUE = "Tell me about the harbour and what people there thought of it at the time, number {number}"
# A room of eight, of which batches may have four.
PLACES = 8

Pair = tuple[RunningServer, ScriptedProvider]


def batch(count: int, text: str = "hello there") -> dict[str, Any]:
    return {"queries": [{"text": text.format(number=number)} for number in range(count)]}


def kinds(got: RawResponse) -> Counter[str]:
    """How its questions ended: `decided`, or the kind of the error."""
    assert got.status == 200, got
    return Counter("decided" if "id" in one else one["error"]["type"] for one in got.json["decisions"])


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with secured_server(tmp_path / "batch", prices=PRICES, classifier=True) as found:
        yield found


# --- rate


def test_a_batch_asks_no_more_often_than_its_key_may(pair: Pair, tmp_path: Path) -> None:
    served, _ = pair
    key = make_key(served.store, per_minute=60)
    forget(served)
    got = call(served.url, "POST", "/v1/route/batch", batch(1000), key=key)
    assert kinds(got) == {"decided": 60, "rate_limit_exceeded": 940}
    assert "id" in got.json["decisions"][59], "the first of them are decided"
    told = got.json["decisions"][-1]["error"]
    assert set(told) == {"type", "message"}
    assert "60 times a minute: wait" in told["message"]
    served.store.flush()
    assert select(f"sqlite:///{tmp_path}/batch/turnout.db", "select count(*) from decisions") == [(60,)]
    # And the key has no more this minute, whatever it asks.
    for path, body in (("/v1/route", {"text": "hello"}), ("/v1/chat/completions", chat())):
        assert call(served.url, "POST", path, body, key=key).status == 429


def test_requests_and_questions_are_counted_together(pair: Pair) -> None:
    served, _ = pair
    key = make_key(served.store, per_minute=10)
    forget(served)
    for _ in range(4):
        assert call(served.url, "POST", "/v1/route", {"text": "hello"}, key=key).status == 200
    assert kinds(call(served.url, "POST", "/v1/route/batch", batch(5), key=key)) == {"decided": 5}
    assert kinds(call(served.url, "POST", "/v1/route/batch", batch(5), key=key)) == {
        "decided": 1,
        "rate_limit_exceeded": 4,
    }
    # As every request that is let in and cannot be read, one that is no batch counts once.
    other = make_key(served.store, per_minute=2)
    assert call(served.url, "POST", "/v1/route/batch", {"queries": []}, key=other).status == 422
    assert kinds(call(served.url, "POST", "/v1/route/batch", batch(2), key=other)) == {
        "decided": 1,
        "rate_limit_exceeded": 1,
    }


def test_a_reload_forgives_nothing(pair: Pair) -> None:
    served, _ = pair
    key = make_key(served.store, per_minute=3)
    forget(served)
    assert kinds(call(served.url, "POST", "/v1/route/batch", batch(3), key=key)) == {"decided": 3}
    forget(served)
    assert call(served.url, "POST", "/v1/route/batch", batch(3), key=key).status == 429


def test_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(callers.time, "monotonic", lambda: now)
    rate = Rate(2)
    rate.count()
    now = 130.0
    rate.count()
    with pytest.raises(Refused, match="2 times a minute: wait 30 s") as caught:
        rate.count()
    assert (caught.value.status, caught.value.retry_after_s) == (429, 30.0)
    now = 160.0
    rate.count()
    with pytest.raises(Refused):
        rate.count()
    with pytest.raises(Refused, match="0 times a minute"):
        Rate(0).count()
    for _ in range(1000):
        Rate().count()


# --- budget


def test_a_batch_spends_no_more_than_its_key_may(pair: Pair) -> None:
    served, provider = pair
    provider.default = Reply("MEDIUM", usage=(300, 10))
    cost_usd = 310 * 5 / 1_000_000
    key = make_key(served.store, budget_usd=20 * cost_usd)
    forget(served)
    got = call(served.url, "POST", "/v1/route/batch", batch(60, VAGUE), key=key)
    found = kinds(got)
    assert set(found) == {"decided", "insufficient_quota"}
    assert 15 <= found["decided"] <= 20
    assert provider.received == found["decided"], "what is not covered is not asked"
    assert served.store.keys.spent(id_of(key)) == pytest.approx(found["decided"] * cost_usd)
    assert "raise the budget" in got.json["decisions"][-1]["error"]["message"]


def test_a_classifier_without_a_price_is_not_asked_under_a_budget(tmp_path: Path) -> None:
    with secured_server(tmp_path / "unpriced", classifier=True) as (served, provider):
        provider.default = Reply("MEDIUM")
        key, other = make_key(served.store, budget_usd=1.0), make_key(served.store)
        forget(served)
        got = call(served.url, "POST", "/v1/route", {"text": VAGUE}, key=key)
        assert got.status == 200
        assert provider.received == 0
        layer = next(step for step in got.json["trace"] if step["layer"] == "llm")
        assert layer["ended"] == "skipped"
        assert "has no known price, and this key has a budget" in layer["reasons"][0]["text"]
        assert call(served.url, "POST", "/v1/route", {"text": VAGUE}, key=other).json["by"] == "llm"


# --- room


def slow(received: Received) -> Reply:
    """A classifier that takes its time; other models do not."""
    return Reply("MEDIUM", delay_s=0.5) if received.body["model"] == "classifier" else Reply("ok")


def test_batches_leave_room_for_others(tmp_path: Path) -> None:
    """Three times as many batches as there are places, each for a while: a chat is let in and answered at once."""
    with secured_server(tmp_path / "full", classifier=True, server=f"requests = {PLACES}") as (served, provider):
        served.server.admission.wait_s = 0.05
        provider.default = slow
        statuses: list[int] = []
        retry: list[str] = []

        def client(number: int) -> None:
            got = call(served.url, "POST", "/v1/route/batch", batch(6, f"{VAGUE} of {number}"), timeout=30.0)
            statuses.append(got.status)
            retry.extend([got.headers["retry-after"]] if got.status == 503 else [])

        threads = [threading.Thread(target=client, args=(number,)) for number in range(3 * PLACES)]
        for thread in threads:
            thread.start()
        admission = served.server.admission
        eventually(lambda: len(retry) == 3 * PLACES - PLACES // 2, "the batches that have no place are refused")
        with Delays() as delays:
            for _ in range(3):
                started = time.monotonic()
                got = call(served.url, "POST", "/v1/chat/completions", chat("hello"))
                took = time.monotonic() - started
                assert got.status == 200, got
                assert took < delays.allow(0.5)
        assert admission.batches == admission.most_batches == PLACES // 2
        for thread in threads:
            thread.join()
        assert Counter(statuses) == {200: PLACES // 2, 503: 3 * PLACES - PLACES // 2}
        assert all(1 <= int(wait) <= 3 for wait in retry)
        assert admission.batches == admission.active == 0
        assert kinds(call(served.url, "POST", "/v1/route/batch", batch(2))) == {"decided": 2}


def test_the_share_of_batches() -> None:
    """Half of the room there always is: when room shrinks to its least, batches do not fill it."""
    for limit, most in ((1, 1), (2, 1), (8, 4), (200, LEAST // 2), (10_000, LEAST // 2)):
        room = Admission(limit, 0, wait_s=0.05, lag_s=0.02)
        assert room.most_batches == most
    places = [room.batch() for _ in range(LEAST // 2)]
    for place in places:
        place.__enter__()
    with pytest.raises(Refused, match="16 batches are under way") as caught, room.batch():
        pass
    assert (caught.value.status, caught.value.kind) == (503, "overloaded_error")
    assert room.refused == 1
    places[0].__exit__(None, None, None)
    with room.batch():
        assert room.batches == LEAST // 2


def test_a_long_batch_keeps_nobody_waiting(pair: Pair) -> None:
    """A thousand questions decided here, a few of them long: `/health` answers meanwhile."""
    served, _ = pair
    text = "Compare the two and derive which one is better, step by step. " * 200
    body = {"queries": [{"text": text}] * 1000, "profile": "tiers"}

    def slowest_answer() -> float:
        thread = threading.Thread(target=call, args=(served.url, "POST", "/v1/route/batch", body))
        thread.start()
        slowest = 0.0
        # All in one process: its own work counts, not what others take of the machine.
        while thread.is_alive():
            started, work = time.monotonic(), time.process_time()
            assert call(served.url, "GET", "/health").status == 200
            slowest = max(slowest, min(time.monotonic() - started, time.process_time() - work))
        thread.join()
        return slowest

    # A collection of all that the tests have left in this process is not the server's work: it comes once, not thrice.
    assert any(slowest_answer() < 0.25 for _ in range(3))
