"""P3: a key never spends more than its budget and what was under way, whatever it asks and however many ask."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from secured_server import RawResponse, call, chat, forget, id_of, make_key, secured_server, settings
from serving import RunningServer, serving
from stored_decisions import select
from turnout.apps.caller import Budget
from turnout.core.errors import Refused
from turnout.testing import Received, Reply, ScriptedProvider
from turnout.web import auth

# A call of 100 tokens in and 100 out costs a tenth of a cent.
PRICES = "prices = { input_usd = 5.0, output_usd = 5.0 }"
CALL_USD = 0.001
PATHS = ("/v1/chat/completions", "/v1/messages", "/v1/responses")


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[RunningServer, ScriptedProvider]]:
    with secured_server(tmp_path / "budget", prices=PRICES) as (served, provider):
        provider.default = Reply("ok", usage=(100, 100))
        yield served, provider


# Some 110 tokens of instructions, by the estimate that goes before the call.
SYSTEM = "You answer briefly and politely. " * 13


def ask(served: RunningServer, key: str, path: str = PATHS[0], **fields: object) -> RawResponse:
    body = chat(**fields) | {"max_output_tokens": fields.get("max_tokens", 100)}
    body["messages"].insert(0, {"role": "system", "content": SYSTEM})
    body["input"] = body["messages"]
    return call(served.url, "POST", path, body, key=key)


def spent(served: RunningServer, key: str) -> float:
    return served.store.keys.spent(id_of(key))


@pytest.mark.parametrize("path", PATHS)
def test_at_the_end_of_a_budget(pair: tuple[RunningServer, ScriptedProvider], path: str) -> None:
    served, provider = pair
    key = make_key(served.store, budget_usd=3.2 * CALL_USD)
    forget(served)
    found = [ask(served, key, path) for _ in range(8)]
    statuses = Counter(got.status for got in found)
    assert statuses[200] == 3
    assert statuses[402] == 5
    told = found[-1].json["error"]
    assert "$0.0032" in told["message"]
    assert "raise the budget" in told["message"]
    assert told["type"] == ("billing_error" if path == "/v1/messages" else "insufficient_quota")
    assert spent(served, key) == pytest.approx(3 * CALL_USD)
    assert provider.received == 3


@pytest.mark.parametrize("stream", [False, True])
def test_many_at_once(pair: tuple[RunningServer, ScriptedProvider], stream: bool) -> None:
    """Forty clients at once on a budget for ten calls. Each is set aside before it is made."""
    served, provider = pair
    provider.default = Reply("ok", usage=(100, 100), delay_s=0.05)
    key = make_key(served.store, budget_usd=10 * CALL_USD)
    forget(served)
    found: list[int] = []

    def client() -> None:
        told = {"include_usage": True}
        found.extend(ask(served, key, stream=stream, stream_options=told).status for _ in range(3))

    threads = [threading.Thread(target=client) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) <= {200, 402, 503}
    budget = served.server.auth._budgets[id_of(key)]
    until = time.monotonic() + 10.0
    while budget.reserved_usd > 1e-9 and time.monotonic() < until:
        time.sleep(0.01)  # a stream is settled when its last byte has been sent
    assert spent(served, key) <= 10 * CALL_USD + 1e-9
    assert spent(served, key) >= 8 * CALL_USD, "and what there is can be used"
    assert budget.reserved_usd == pytest.approx(0.0)
    assert budget.spent_usd == pytest.approx(spent(served, key))


def test_more_than_was_asked_for(pair: tuple[RunningServer, ScriptedProvider]) -> None:
    """A provider that writes ten times what it was allowed: one call over, and then no more."""
    served, provider = pair
    provider.default = Reply("ok", usage=(100, 1000))
    key = make_key(served.store, budget_usd=4 * CALL_USD)
    forget(served)
    assert [ask(served, key).status for _ in range(5)].count(200) == 1
    assert spent(served, key) <= 4 * CALL_USD + 11 * CALL_USD


@pytest.mark.parametrize(
    "fields",
    [
        {"max_tokens": 10**9},
        {"max_tokens": 100, "n": 100},
        {"max_tokens": 1, "max_completion_tokens": 10**9},
        {"max_tokens": 10**9, "max_completion_tokens": 1},
        {"text": "hello there" + " " * 40_000},
    ],
)
def test_what_may_cost_too_much_is_not_begun(
    pair: tuple[RunningServer, ScriptedProvider], fields: dict[str, object]
) -> None:
    served, provider = pair
    key = make_key(served.store, budget_usd=2 * CALL_USD)
    forget(served)
    got = ask(served, key, **fields)
    assert got.status == 402, got
    assert provider.received == 0


@pytest.mark.parametrize("tokens", [-1, -(10**9), 0])
@pytest.mark.parametrize("path", PATHS)
def test_absurd_limits_make_no_room(pair: tuple[RunningServer, ScriptedProvider], tokens: int, path: str) -> None:
    """A negative number of tokens is no credit, while others are under way."""
    served, provider = pair
    provider.default = Reply("ok", usage=(100, 100), delay_s=0.2)
    key = make_key(served.store, budget_usd=3 * CALL_USD)
    forget(served)
    threads = [threading.Thread(target=ask, args=(served, key, path), kwargs={"max_tokens": tokens}) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    budget = served.server.auth._budgets.get(id_of(key))
    assert budget is None or (budget.reserved_usd >= 0 and (budget.left_usd or 0) <= 3 * CALL_USD)
    for thread in threads:
        thread.join()
    assert budget is None or budget.reserved_usd == pytest.approx(0.0)


def test_a_budget() -> None:
    budget = Budget(1.0)
    assert budget.reserve(-5.0) == 0.0
    assert budget.left_usd == 1.0
    assert budget.reserve(1.0) == 1.0
    with pytest.raises(Refused) as caught:
        budget.reserve(0.0)
    assert caught.value.status == 402
    budget.settle(1.0, 1.5)
    assert budget.left_usd == 0.0
    with pytest.raises(Refused, match="is spent"):
        budget.check()
    Budget().check()
    assert Budget().reserve(10.0) == 10.0


def test_failures_cost_nothing_and_hold_nothing(pair: tuple[RunningServer, ScriptedProvider]) -> None:
    served, provider = pair
    key = make_key(served.store, budget_usd=4 * CALL_USD)
    forget(served)
    for reply in (Reply(status=500), Reply(status=400), Reply(status=429), Reply(body=b"not json")):
        provider.default = reply
        assert ask(served, key).status >= 400
    provider.default = Reply("ok", usage=(100, 100))
    budget = served.server.auth._budgets[id_of(key)]
    assert budget.reserved_usd == pytest.approx(0.0)
    assert budget.spent_usd == 0.0
    assert ask(served, key).status in (200, 502)


def test_a_restart_forgets_nothing(tmp_path: Path) -> None:
    """What was spent is in the store's rows, each decision once; a new process starts from them."""
    with secured_server(tmp_path / "first", prices=PRICES) as (served, provider):
        provider.default = Reply("ok", usage=(100, 100))
        key = make_key(served.store, budget_usd=5.2 * CALL_USD)
        forget(served)
        assert [ask(served, key).status for _ in range(3)] == [200] * 3
        served.store.flush()
        # What the journal would do again after a crash: the same rows, a second time.
        served.store.backend.change(
            "insert into spending (decision_id, key_id, amount_usd, created_ms)"
            " select decision_id, key_id, amount_usd, created_ms from spending where true on conflict do nothing",
            {},
        )
        assert spent(served, key) == pytest.approx(3 * CALL_USD)
        served.stop()
        time.sleep(0.1)
        with serving(tmp_path / "first", settings(provider, prices=PRICES)) as again:
            assert spent(again, key) == pytest.approx(3 * CALL_USD)
            assert [ask(again, key).status for _ in range(4)] == [200, 200, 402, 402]
            assert spent(again, key) == pytest.approx(5 * CALL_USD)
    rows = select(
        f"sqlite:///{tmp_path}/first/turnout.db", "select count(*), count(distinct decision_id) from spending"
    )
    assert rows == [(5, 5)]


def test_two_processes_share_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the other one has booked is noticed when the key is looked up again."""
    monkeypatch.setattr(auth, "CACHED_S", 0.2)
    with secured_server(tmp_path / "shared", prices=PRICES) as (one, provider):
        provider.default = Reply("ok", usage=(100, 100))
        key = make_key(one.store, budget_usd=4.2 * CALL_USD)
        forget(one)
        with serving(tmp_path / "shared", settings(provider, prices=PRICES)) as two:
            assert [ask(served, key).status for served in (one, two, one, two)] == [200] * 4
            for served in (one, two):
                served.store.flush()
            time.sleep(0.3)
            assert [ask(served, key).status for served in (one, two)] == [402, 402]
            assert spent(one, key) == pytest.approx(4 * CALL_USD)
    assert provider.received == 4


def test_a_model_without_a_price_is_not_for_budgets(tmp_path: Path) -> None:
    with secured_server(tmp_path / "free") as (served, provider):
        key, other = make_key(served.store, budget_usd=1.0), make_key(served.store)
        forget(served)
        got = ask(served, key)
        assert got.status == 503
        assert "has no price, and this key has a budget" in got.json["error"]["message"]
        assert provider.received == 0
        assert ask(served, other).status == 200


# --- deciding costs too

VAGUE = "Tell me about the harbour and what people there thought of it at the time, number {number}"


def classified(request: Received) -> Reply:
    """The classifier's answers cost a tenth of a call."""
    asked = request.body["model"]
    return Reply("MEDIUM", usage=(10, 10)) if asked == "classifier" else Reply("ok", usage=(100, 100))


def test_deciding_is_paid_for(tmp_path: Path) -> None:
    """By requests and by plain decisions; and a key that has nothing left asks no classifier either."""
    with secured_server(tmp_path / "classifier", prices=PRICES, classifier=True) as (served, provider):
        provider.default = classified
        key = make_key(served.store, budget_usd=5 * CALL_USD)
        rich = make_key(served.store)
        forget(served)

        def classifications() -> int:
            return sum(request.body["model"] == "classifier" for request in provider.requests)

        assert call(served.url, "POST", "/v1/route", {"text": VAGUE.format(number=0)}, key=rich).status == 200
        assert classifications() == 1, "the question is one a classifier is asked"
        assert spent(served, rich) == pytest.approx(CALL_USD / 10)

        assert ask(served, key, text=VAGUE.format(number=1)).status == 200
        assert spent(served, key) == pytest.approx(CALL_USD * 1.1)
        # The same question again: the answer is remembered, and nothing is paid for it.
        assert call(served.url, "POST", "/v1/route", {"text": VAGUE.format(number=1)}, key=key).status == 200
        assert spent(served, key) == pytest.approx(CALL_USD * 1.1)

        statuses = Counter(
            call(served.url, "POST", "/v1/route", {"text": VAGUE.format(number=number)}, key=key).status
            for number in range(2, 60)
        )
        assert set(statuses) == {200, 402}
        assert spent(served, key) <= 5 * CALL_USD + CALL_USD / 10 + 1e-9
        before = classifications()
        for number in range(100, 110):
            assert ask(served, key, text=VAGUE.format(number=number)).status == 402
            assert call(served.url, "POST", "/v1/route", {"text": VAGUE.format(number=number)}, key=key).status == 402
        batch = {"queries": [{"text": VAGUE.format(number=number)} for number in range(200, 210)]}
        for one in call(served.url, "POST", "/v1/route/batch", batch, key=key).json["decisions"]:
            assert one["error"]["type"] == "insufficient_quota"
        assert classifications() == before, "a spent budget asks nobody"
