"""What a log says of its traffic, against the plainest way to work it out."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from stored_decisions import ask, taught
from turnout.core.decision import new_id
from turnout.core.query import Query
from turnout.core.verdict import Fault, Verdict
from turnout.store import LEVELS, Bucket, Level, Outcome, Spent, Stats, Store, TimeSpan, open_store
from turnout.store.row import NOTHING, DecisionRow, OutcomeRow
from turnout.testing import ScriptedNetworkLayer, make_router, place

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
# One store serves all examples: each has a tenant of its own.
shared = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
_tenants = (f"tenant {number}" for number in itertools.count())


@st.composite
def decisions(draw: st.DrawFn) -> DecisionRow:
    outcome = draw(st.sampled_from(["S-", "Sl", "L-", "Lt", "A-", "Ft", "Fl", "N-"]))
    return DecisionRow(
        new_id(),
        draw(st.sampled_from([None, None, None, "01PARENT"])),
        "",
        None,
        draw(st.sampled_from(["study", "tiers"])),
        "hash",
        draw(st.sampled_from(["a", "b", "c"])),
        '["a"]',
        0.5,
        draw(st.sampled_from(["local", "llm", "fallback"])),
        outcome,
        None,
        draw(st.sampled_from([1.0, 2.5, 2.5, 1e6]) | st.floats(0, 1e9)),
        draw(st.integers(0, 40).map(lambda hours: 1_750_000_000_000 + hours * HOUR_MS // 2)),
        None,
        None,
        "off",
        NOTHING,
        Raw(b"{}"),
    )


def percentile(values: list[float], percent: float) -> float:
    """The smallest value that so many of a hundred are not above."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def share(rows: list[DecisionRow]) -> float:
    return sum(row.outcome[0] in "LA" for row in rows) / len(rows)


@given(
    rows=st.lists(decisions(), max_size=25),
    bucket_ms=st.sampled_from([HOUR_MS, DAY_MS, 7]),
    shift_ms=st.sampled_from([0, HOUR_MS, -HOUR_MS]),
    profile=st.sampled_from([None, "study", "zebra"]),
    since=st.integers(0, 20),
)
@shared
def test_traffic(
    store: Store, rows: list[DecisionRow], bucket_ms: int, shift_ms: int, profile: str | None, since: int
) -> None:
    tenant = next(_tenants)
    if rows:
        store.backend.write([replace(row, tenant=tenant) for row in rows])
    span = TimeSpan(1_750_000_000_000 + since * HOUR_MS, 1_750_000_000_000 + 15 * HOUR_MS)
    seen = [
        row
        for row in rows
        if row.parent_id is None and profile in (None, row.profile) and span.since_ms <= row.created_ms < span.until_ms
    ]
    found = store.records(tenant).stats(span=span, profile=profile, bucket_ms=bucket_ms, shift_ms=shift_ms)
    assert found.decisions == len(seen)
    for counted, field in (
        (found.layers, "decided_by"),
        (found.routes, "route"),
        (found.profiles, "profile"),
        (found.outcomes, "outcome"),
    ):
        assert counted == Counter(getattr(row, field) for row in seen)
        assert list(counted.values()) == sorted(counted.values(), reverse=True)
    assert found.model_share == pytest.approx(share(seen) if seen else 0.0)
    times = [row.elapsed_us for row in seen]
    expected = (
        {f"p{percent}": percentile(times, percent) for percent in (50, 90, 99)} | {"max": max(times)} if seen else {}
    )
    assert found.latency_us == expected
    buckets: dict[int, list[DecisionRow]] = {}
    for row in seen:
        start = (row.created_ms + shift_ms) // bucket_ms * bucket_ms - shift_ms
        buckets.setdefault(start, []).append(row)
    assert found.buckets == tuple(
        Bucket(start, len(inside), Counter(row.decided_by for row in inside), share(inside))
        for start, inside in sorted(buckets.items())
    )


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


usd = st.integers(0, 64).map(lambda number: number / 8)  # adds up without rounding, in any order


@st.composite
def answers(draw: st.DrawFn) -> Outcome:
    count = maybe(st.integers(0, 2**40))
    return Outcome(
        draw(st.sampled_from(["answered", "failed"])),
        draw(st.sampled_from([None, "main", "small"])),
        draw(st.sampled_from([None, "m1"])),
        draw(count),
        draw(count),
        draw(count),
        draw(maybe(usd)),
        draw(maybe(usd)),
        draw(maybe(usd)),
        fallback=draw(st.sampled_from([None, "timeout"])),
    )


def total(values: list[Any]) -> Any:
    """The sum of what is known; of nothing known, nothing is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def spent(key: tuple[str | None, str | None, str], told: list[Outcome]) -> Spent:
    compared = [one for one in told if one.baseline_usd is not None and one.cost_usd is not None]
    return Spent(
        *key,
        answers=len(told),
        attempts=total([one.attempts for one in told]),
        input_tokens=total([one.input_tokens for one in told]),
        output_tokens=total([one.output_tokens for one in told]),
        cost_usd=total([one.cost_usd for one in told]),
        classifier_usd=total([one.classifier_usd for one in told]),
        compared=len(compared),
        baseline_usd=total([one.baseline_usd for one in compared]),
        compared_usd=total([(one.cost_usd or 0) + (one.classifier_usd or 0) for one in compared]),
        fallbacks=sum(one.fallback is not None for one in told),
        priced=sum(one.cost_usd is not None for one in told),
    )


def outcome_row(told: Outcome, ident: str, tenant: str) -> OutcomeRow:
    values = [getattr(told, name) for name in OutcomeRow.__struct_fields__[2:-3]]
    return OutcomeRow(ident, tenant, *values, NOTHING, NOTHING, 0)


@given(rows=st.lists(st.tuples(decisions(), answers()), max_size=12))
@shared
def test_spending(store: Store, rows: list[tuple[DecisionRow, Outcome]]) -> None:
    tenant = next(_tenants)
    if rows:
        store.backend.write([replace(row, tenant=tenant) for row, _ in rows])
        store.backend.write([outcome_row(told, row.id, tenant) for row, told in rows])
    groups: dict[tuple[str | None, str | None, str], list[Outcome]] = {}
    # What a part came to is in its question's outcome already.
    rows = [(row, told) for row, told in rows if row.parent_id is None]
    for _, told in rows:
        groups.setdefault((told.slot, told.model, told.ended), []).append(told)
    expected = [spent(key, groups[key]) for key in sorted(groups, key=lambda key: [one or "" for one in key])]
    found = store.records(tenant).stats()
    assert list(found.spent) == expected
    assert all(
        type(one) in (int, float, str, type(None))
        for row in found.spent
        for one in (getattr(row, name) for name in Spent.__struct_fields__)
    )
    known = [(one.baseline_usd, one.cost_usd, one.classifier_usd or 0) for _, one in rows]
    saved = [base - cost - deciding for base, cost, deciding in known if base is not None and cost is not None]
    assert found.saved_usd == (sum(saved) if saved else None)


def test_of_nothing(store: Store) -> None:
    assert store.records().stats() == Stats(0, {}, {}, {}, {}, 0.0, (), {}, ())
    assert store.records().stats().saved_usd is None


class TestSaved:
    """Unknown is not zero: nothing is said to be saved where nobody knows what was spent."""

    @pytest.mark.parametrize(
        ("told", "saved"),
        [
            ([], None),
            ([Outcome()], None),
            ([Outcome(cost_usd=1.0)], None),
            ([Outcome(baseline_usd=5.0)], None),
            ([Outcome(baseline_usd=5.0, classifier_usd=1.0)], None),
            ([Outcome(baseline_usd=5.0, cost_usd=1.0)], 4.0),
            ([Outcome(baseline_usd=5.0, cost_usd=1.0, classifier_usd=0.5)], 3.5),
            ([Outcome(baseline_usd=1.0, cost_usd=1.0, classifier_usd=0.5)], -0.5),
            ([Outcome(baseline_usd=1.0, cost_usd=1.0)], 0.0),
            ([Outcome(baseline_usd=5.0, cost_usd=1.0), Outcome(baseline_usd=9.0), Outcome(cost_usd=7.0)], 4.0),
        ],
    )
    def test_saved(self, store: Store, told: list[Outcome], saved: float | None) -> None:
        for one in told:
            store.record(decision := ask("hello", "tiers"))
            store.settle(decision, one)
        assert store.records().stats().saved_usd == saved


def test_the_share_of_models_is_of_those_that_decided(store: Store) -> None:
    decided = ask()
    for decision in (taught("second"), taught("first"), decided, ask()):
        store.record(decision)
    found = store.records().stats()
    assert (found.model_share, found.layers) == (0.5, {"llm": 2, decided.by: 2})
    assert found.letters == {"llm": "L", decided.by: decided.outcome[0]}


def test_parts_are_not_counted(store: Store) -> None:
    store.record(ask("What is the weather tomorrow and who won the match yesterday?", "sources"))
    found = store.records().stats()
    assert (found.decisions, found.layers) == (1, {"parts": 1})


@pytest.mark.parametrize("level", LEVELS)
def test_the_model_that_was_asked_is_known_whatever_is_kept_of_the_text(store_url: str, level: Level) -> None:
    said = [
        Verdict(("first",), 0.9, evidence=("acme/small", 0.1)),
        Fault("invalid", "hm", evidence=("acme/large", 0.1)),
    ]
    placed = replace(place(ScriptedNetworkLayer(said), "llm", who="L"), kind="llm.v1")
    router = make_router([placed])
    with open_store(store_url, text=level) as store:
        for _ in range(3):
            store.record(asyncio.run(router.route(Query("Define entropy"))))
        assert store.records().stats().asked == {"acme/large": 2, "acme/small": 1}
