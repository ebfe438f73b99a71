"""Traffic counted hour by hour says what the log itself says, whatever came late and whatever was deleted."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from stored_decisions import select
from turnout.core.decision import first_id
from turnout.store import Store, TimeSpan, open_store
from turnout.store.backend import HOUR_MS, hour_of, late_hours, record
from turnout.store.hours import EDGES, count_hour, edges_of, percentiles, ranges
from turnout.store.retention import DAY_MS, prune
from turnout.store.row import NOTHING, DecisionRow, OutcomeRow
from turnout.store.traffic import Traffic

NOW_MS = time.time_ns() // 1_000_000
HERE = hour_of(NOW_MS)


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    with open_store(store_url, config="") as store:
        yield store


def decision(number: int, at_ms: int, *, key: str = "", profile: str = "tiers", tenant: str = "") -> DecisionRow:
    ident, outcome = f"{first_id(at_ms)}{number:016}", ("E-", "L-", "Fl")[number % 3]
    by, route = ("student", "llm", "fallback")[number % 3], ("SIMPLE", "COMPLEX")[number % 2]
    kind = (profile, "hash", route, f'["{route}"]', 0.5, by, outcome, None, 100.0 + number, at_ms)
    return DecisionRow(ident, None, tenant, None, *kind, None, None, "off", NOTHING, Raw(b"{}"), key)


def answer(row: DecisionRow, *, again: bool = False) -> OutcomeRow:
    extra = Raw(b'{"again":true}') if again else NOTHING
    costs = (1, 10, 5, 0.5, 2.0, 0.25, None, None, None, 3.0)
    return OutcomeRow(row.id, row.tenant, "answered", "simple", "m", *costs, NOTHING, extra, row.created_ms)


def fill(store: Store) -> list[DecisionRow]:
    """Three days, two keys, two profiles, another tenant's rows among them."""
    rows = [
        decision(n, HERE - n * HOUR_MS, key=("", "k1")[n % 2], profile=("tiers", "study")[n % 5 == 0])
        for n in range(72)
    ]
    others = [decision(900 + n, HERE - n * HOUR_MS, tenant="acme") for n in range(9)]
    ends = [answer(row, again=n % 10 == 0) for n, row in enumerate(rows) if n % 4 == 0]
    store.backend.write([*rows, *others, *ends])
    return rows


def look(store: Store, **only: str) -> Traffic:
    return store.records().traffic(span=TimeSpan(since_ms=HERE - 100 * HOUR_MS), bucket_ms=DAY_MS, **only)  # type: ignore[arg-type]


def count_all(store: Store) -> int:
    counted = 0
    while store.count_hour():
        counted += 1
    return counted


@pytest.mark.parametrize("only", [{}, {"key": "k1"}, {"profile": "study"}, {"profile": "tiers", "key": "k1"}])
def test_counted_hours_say_what_the_log_says(store: Store, only: dict[str, str]) -> None:
    rows = fill(store)
    before = look(store, **only)
    assert count_all(store) >= 71
    after = look(store, **only)
    wanted = [row for row in rows if only.get("key", row.key_id) == row.key_id]
    wanted = [row for row in wanted if only.get("profile", row.profile) == row.profile]
    assert after.stats.decisions == len(wanted)
    assert after.stats.layers == Counter(row.decided_by for row in wanted)
    for field in ("routes", "checked", "right", "wrong", "answered", "regretted", "keys"):
        assert getattr(after, field) == getattr(before, field), field
    for field in ("layers", "outcomes", "profiles", "routes", "model_share", "buckets", "spent"):
        assert getattr(after.stats, field) == getattr(before.stats, field), field
    for name, us in before.stats.latency_us.items():
        assert after.stats.latency_us[name] == pytest.approx(us, rel=0.3), name


def test_regret_is_counted_by_profile(store: Store) -> None:
    fill(store)
    assert look(store).regretted == {"study": 4}
    count_all(store)
    assert look(store).regretted == {"study": 4}


def test_what_comes_late_is_counted_again(store: Store) -> None:
    rows = fill(store)
    count_all(store)
    late = decision(500, HERE - 30 * HOUR_MS + 5)
    store.backend.write([late, answer(rows[1])])
    assert look(store).stats.decisions == 73
    assert sum(one.answers for one in look(store).stats.spent) == 19
    assert count_all(store) == 2
    assert look(store).stats.decisions == 73
    assert sum(one.answers for one in look(store).stats.spent) == 19


def test_what_retention_deletes_is_counted_no_longer(store: Store, store_url: str) -> None:
    fill(store)
    count_all(store)
    prune(store.backend, keep_days=1, text_days=0)
    left = look(store).stats.decisions
    assert left < 30
    count_all(store)
    assert look(store).stats.decisions == left
    (oldest,) = select(store_url, "select min(hour_ms) from traffic_hours")
    assert oldest[0] >= hour_of(NOW_MS - DAY_MS)


def test_what_keys_were_used_for(store: Store) -> None:
    fill(store)
    before = store.keys.recent_use(HERE - 100 * HOUR_MS, NOW_MS)
    assert before["k1"][0] == 36
    count_all(store)
    after = store.keys.recent_use(HERE - 100 * HOUR_MS, NOW_MS)
    assert {key: decisions for key, (decisions, _) in after.items()} == {"": 45, "k1": 36}


def test_an_hour_that_is_not_over_is_not_counted(store: Store) -> None:
    store.backend.write([decision(1, NOW_MS)])
    assert not count_hour(store.backend, NOW_MS)
    assert look(store).stats.decisions == 1


def test_rows_of_this_hour_are_not_late() -> None:
    now = decision(1, time.time_ns() // 1_000_000)
    old = decision(2, HERE - 3 * HOUR_MS + 7)
    assert late_hours(map(record, [now, old, answer(old)])) == [HERE - 3 * HOUR_MS]


@given(st.sets(st.integers(0, 40)), st.integers(0, 40 * HOUR_MS), st.integers(0, 40 * HOUR_MS))
def test_ranges_cover_a_span_without_a_gap(hours: set[int], one: int, other: int) -> None:
    since, until = sorted((one, other))
    found = ranges((hour * HOUR_MS for hour in hours), since, until)
    ends = [since, *(part.to_ms for part in found)]
    assert [part.from_ms for part in found] == ends[:-1]
    assert ends[-1] == until
    assert all(part.from_ms // HOUR_MS in hours for part in found if part.counted)


@given(st.lists(st.integers(1, 9_000_000), min_size=1), st.sampled_from([50, 90, 99]))
def test_a_percentile_is_between_the_edges_of_the_true_one(taken: list[int], percent: int) -> None:
    found = percentiles(Counter(map(edges_of, taken)), (percent,))[f"p{percent}"]
    true = sorted(taken)[-(-len(taken) * percent // 100) - 1]
    low, high = edges_of(true)
    assert low <= found <= high
    assert high <= EDGES[-1]
