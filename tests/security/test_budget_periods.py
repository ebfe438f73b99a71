"""A key's budgets: in all, for a day and for a month. All of them hold together, and each renews when it should."""

import math
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secured_server import RawResponse, call, chat, forget, id_of, make_key, secured_server, settings
from serving import RunningServer, serving
from stored_decisions import ask as decide
from turnout.apps.caller import Budget, Limits, Period
from turnout.core.errors import Refused
from turnout.store.row import SpendRow
from turnout.testing import Reply, ScriptedProvider
from turnout.web import auth as auth_module

# A call of 100 tokens in and 100 out costs a tenth of a cent.
PRICES = "prices = { input_usd = 5.0, output_usd = 5.0 }"
CALL_USD = 0.001
DAY_S = 86_400.0


def at(said: str) -> float:
    return datetime.fromisoformat(said).replace(tzinfo=UTC).timestamp()


class Clock:
    def __init__(self, said: str = "2026-03-14T12:00") -> None:
        self.now = at(said)

    def __call__(self) -> float:
        return self.now


class Moment(NamedTuple):
    now: str
    day: str
    tomorrow: str
    month: str
    next_month: str


@pytest.mark.parametrize(
    "case",
    [
        Moment("2026-03-14T12:00", "2026-03-14", "2026-03-15", "2026-03-01", "2026-04-01"),
        Moment("2026-12-31T23:59:59", "2026-12-31", "2027-01-01", "2026-12-01", "2027-01-01"),
        Moment("2026-02-01", "2026-02-01", "2026-02-02", "2026-02-01", "2026-03-01"),
        Moment("2028-02-29T00:00:01", "2028-02-29", "2028-03-01", "2028-02-01", "2028-03-01"),
        Moment("2026-01-31T08:00", "2026-01-31", "2026-02-01", "2026-01-01", "2026-02-01"),
    ],
    ids=lambda case: case.now,
)
def test_periods_are_the_calendars_in_utc(case: Moment) -> None:
    now = at(case.now)
    assert (Period.DAY.start(now), Period.DAY.end(now)) == (at(case.day), at(case.tomorrow))
    assert (Period.MONTH.start(now), Period.MONTH.end(now)) == (at(case.month), at(case.next_month))
    assert (Period.TOTAL.start(now), Period.TOTAL.end(now)) == (0.0, math.inf)


def test_what_is_left_is_the_least_that_any_limit_leaves() -> None:
    clock = Clock()
    budget = Budget(10.0, day_usd=2.0, month_usd=3.0, clock=clock)
    assert budget.is_limited
    assert budget.left_usd == 2.0
    budget.settle(budget.reserve(1.5), 1.5)
    assert budget.left_usd == 0.5, "the day's"
    clock.now += DAY_S
    assert budget.left_usd == 1.5, "the month's"
    budget.settle(budget.reserve(1.5), 1.5)
    clock.now = at("2026-04-01T00:00")
    assert budget.left_usd == 2.0
    for month in range(5, 10):
        budget.settle(budget.reserve(1.25), 1.25)
        clock.now = at(f"2026-{month:02}-01")
    assert budget.spent_usd == 9.25
    assert budget.left_usd == 0.75, "the whole budget's"
    for one in (Budget(), Budget(clock=clock)):
        assert not one.is_limited
        assert one.left_usd is None
    assert all(Budget(**limit).is_limited for limit in ({"total_usd": 0.0}, {"day_usd": 1.0}, {"month_usd": 1.0}))


class Spent(NamedTuple):
    limits: Limits
    said: str
    wait_s: float | None


@pytest.mark.parametrize(
    "case",
    [
        Spent(
            Limits(day=1.0, month=5.0),
            "this key's budget of $1.0000 a day is spent: it renews at 2026-03-15 00:00 UTC; wait for that, raise the "
            "budget, or use another key",
            DAY_S / 2,
        ),
        Spent(
            Limits(day=1.0, month=1.0),
            "this key's budget of $1.0000 a month is spent: it renews at 2026-04-01 00:00 UTC; wait for that, raise "
            "the budget, or use another key",
            17.5 * DAY_S,
        ),
        Spent(
            Limits(1.0, 1.0, 1.0),
            "this key's budget of $1.0000 is spent: raise the budget, or use another key",
            None,
        ),
    ],
    ids=["day", "month", "total"],
)
def test_a_refusal_says_which_budget_is_spent_and_when_it_renews(case: Spent) -> None:
    budget = Budget(case.limits.total, day_usd=case.limits.day, month_usd=case.limits.month, clock=Clock())
    budget.settle(0.0, 1.0)
    for refused in (budget.check, lambda: budget.reserve(0.1)):
        with pytest.raises(Refused) as caught:
            refused()
        assert (caught.value.status, caught.value.kind) == (402, "insufficient_quota")
        assert str(caught.value) == case.said
        assert caught.value.retry_after_s == case.wait_s


def test_a_call_too_expensive_for_the_rest_of_a_day_may_wait_for_the_next() -> None:
    budget = Budget(day_usd=1.0, clock=Clock())
    budget.settle(0.0, 0.75)
    with pytest.raises(
        Refused, match=r"a day has \$0.2500 left and this call may cost \$0.5000: it renews at"
    ) as later:
        budget.reserve(0.5)
    assert later.value.retry_after_s == DAY_S / 2
    with pytest.raises(Refused, match=r"may cost \$2.0000: raise the budget, or ask for fewer tokens") as never:
        budget.reserve(2.0)
    assert never.value.retry_after_s is None, "no day can pay for it"


@pytest.mark.parametrize("period", ["day", "month"])
def test_a_call_under_way_at_midnight_is_paid_for_by_the_new_period(period: str) -> None:
    clock = Clock("2026-03-31T23:59:59")
    budget = Budget(**{f"{period}_usd": 1.0}, clock=clock)
    budget.settle(budget.reserve(0.5), 0.5)
    under_way = budget.reserve(0.375)
    assert budget.left_usd == 0.125
    clock.now = at("2026-04-01T00:00")
    assert budget.left_usd == 0.625, "what was spent is forgotten, what is under way is not"
    second = budget.reserve(0.5)
    with pytest.raises(Refused):
        budget.reserve(0.25)
    budget.settle(under_way, 0.25)
    budget.settle(second, 0.5)
    assert (budget.reserved_usd, budget.left_usd, budget.spent_usd) == (0.0, 0.25, 1.25)


def test_a_clock_that_is_put_back_opens_nothing_again() -> None:
    clock = Clock("2026-03-15T00:00:01")
    budget = Budget(day_usd=1.0, clock=clock)
    budget.settle(0.0, 1.0)
    clock.now -= 2
    assert budget.left_usd == 0.0
    clock.now += 2
    assert budget.left_usd == 0.0


def test_what_the_store_says_of_a_day_that_is_over_does_not_count() -> None:
    clock = Clock("2026-03-31T23:59:59")
    budget, asked_at = Budget(day_usd=1.0, clock=clock), clock.now
    limits, spent = Limits(day=1.0, month=2.0), {Period.DAY: 1.0, Period.MONTH: 1.5}
    clock.now += 2  # while the store was read
    assert budget.left_usd == 1.0
    budget.renew(limits, spent, asked_at)
    assert budget.left_usd == 1.0
    budget.renew(limits, {Period.DAY: 0.25, Period.MONTH: 0.25}, clock.now)
    budget.renew(limits, {Period.DAY: 0.125}, clock.now)
    assert budget.left_usd == 0.75, "less than is known is nothing new"


amounts = st.floats(allow_nan=True, allow_infinity=True)
steps = st.lists(st.tuples(amounts, amounts, amounts, st.floats(0, 40 * DAY_S)), max_size=8)


@given(steps)
def test_no_number_changes_a_budget_for_the_better(told: list[tuple[float, float, float, float]]) -> None:
    clock = Clock()
    budget = Budget(5.0, day_usd=2.0, month_usd=3.0, clock=clock)
    for wanted, reserved, spent, later in told:
        before, booked = budget.left_usd, budget.spent_usd
        assert before is not None
        try:
            set_aside = budget.reserve(wanted)
        except Refused:
            set_aside = 0.0
        assert 0.0 <= set_aside <= before
        budget.settle(reserved, spent)
        assert budget.spent_usd >= booked
        # Two costs near the largest number there is add up to infinity, which is spent for good.
        assert math.isfinite(budget.spent_usd) or max(booked, spent) > 1e300
        assert budget.reserved_usd >= 0.0
        assert budget.left_usd is not None
        assert 0.0 <= budget.left_usd <= before
        budget.settle(budget.reserved_usd, 0.0)
        clock.now += later


@pytest.mark.parametrize("spent", [math.nan, math.inf, -math.inf])
def test_a_cost_that_is_no_number_books_what_was_set_aside(spent: float) -> None:
    budget = Budget(1.0)
    budget.settle(budget.reserve(0.25), spent)
    assert (budget.left_usd, budget.reserved_usd) == (0.75, 0.0)
    budget.settle(0.25, -0.5)
    assert budget.left_usd == 0.75, "nothing is given back"
    with pytest.raises(Refused):
        budget.reserve(math.nan)
    assert Budget().reserve(math.inf) == 0.0


# --- served


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[RunningServer, ScriptedProvider]]:
    with secured_server(tmp_path / "periods", prices=PRICES) as (served, provider):
        provider.default = Reply("ok", usage=(100, 100))
        yield served, provider


# Some 110 tokens of instructions, by the estimate that goes before the call.
SYSTEM = "You answer briefly and politely. " * 13


def ask(served: RunningServer, key: str, path: str = "/v1/chat/completions") -> RawResponse:
    body = chat() | {"max_output_tokens": 100}
    body["messages"].insert(0, {"role": "system", "content": SYSTEM})
    body["input"] = body["messages"]
    return call(served.url, "POST", path, body, key=key)


def spend(served: RunningServer, key: str, amount: float, created_s: float) -> None:
    """As if a process had booked it then."""
    served.store.backend.write([SpendRow(decide().id, id_of(key), amount, round(created_s * 1000))])


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
@pytest.mark.parametrize("period", [Period.DAY, Period.MONTH])
def test_a_budget_of_a_period_is_held(pair: tuple[RunningServer, ScriptedProvider], path: str, period: Period) -> None:
    served, provider = pair
    key = make_key(served.store, **{f"budget_{period}_usd": 2.2 * CALL_USD})
    forget(served)
    found = [ask(served, key, path) for _ in range(4)]
    assert [got.status for got in found] == [200, 200, 402, 402]
    assert f"$0.0022 a {period}" in found[-1].json["error"]["message"]
    wait, now = float(found[-1].headers["retry-after"]), time.time()
    assert wait == pytest.approx(period.end(now) - now, abs=60)
    assert provider.received == 2


def test_what_was_spent_before_is_read_from_the_store(pair: tuple[RunningServer, ScriptedProvider]) -> None:
    """By period: yesterday's counts for the whole budget and perhaps the month, not for the day."""
    served, _ = pair
    now = time.time()
    day, month = Period.DAY.start(now), Period.MONTH.start(now)
    limits = {"budget_day_usd": 1.0, "budget_month_usd": 2.0, "budget_usd": 3.0}
    spent = {"day": (now, 1.0), "month": (month, 2.0), "all": (month - 1, 3.0)}
    for name, (when, amount) in spent.items():
        key = make_key(served.store, **limits)
        spend(served, key, amount, when)
        forget(served)
        got = ask(served, key)
        assert got.status == 402, name
    fresh = make_key(served.store, **limits)
    spend(served, fresh, 1.0, day - 1)
    spend(served, fresh, 0.5, month - 1)
    forget(served)
    assert ask(served, fresh).status == 200


def test_a_new_day_needs_no_restart(pair: tuple[RunningServer, ScriptedProvider]) -> None:
    served, _ = pair
    ahead = [0.0]
    served.server.auth.clock = lambda: time.time() + ahead[0]
    key = make_key(served.store, budget_day_usd=1.2 * CALL_USD, budget_month_usd=1000.0)
    forget(served)
    assert [ask(served, key).status for _ in range(2)] == [200, 402]
    ahead[0] = DAY_S
    assert [ask(served, key).status for _ in range(2)] == [200, 402]
    forget(served)
    ahead[0] = 2 * DAY_S
    assert ask(served, key).status == 200, "nor does what the store says of other days count"


def test_two_processes_share_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth_module, "CACHED_S", 0.2)
    with secured_server(tmp_path / "shared", prices=PRICES) as (one, provider):
        provider.default = Reply("ok", usage=(100, 100))
        key = make_key(one.store, budget_day_usd=4.2 * CALL_USD)
        forget(one)
        with serving(tmp_path / "shared", settings(provider, prices=PRICES)) as two:
            assert [ask(served, key).status for served in (one, two, one, two)] == [200] * 4
            for served in (one, two):
                served.store.flush()
            time.sleep(0.3)
            assert [ask(served, key).status for served in (one, two)] == [402, 402]
