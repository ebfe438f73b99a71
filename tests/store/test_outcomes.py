"""What happened after a decision: said once, read as it was said, and what nobody said is unknown."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from stored_decisions import ask, select
from turnout.core.errors import UnknownDecision
from turnout.store import Outcome, Store

FULL = Outcome(
    ended="failed",
    slot="main",
    model="qwen3:1.7b",
    attempts=3,
    input_tokens=1234,
    output_tokens=0,
    cost_usd=0.00123,
    baseline_usd=1.5,
    classifier_usd=0.0,
    retrieval=False,
    fallback="timeout: 100% of ?s, :so %s",
    cap_reached="sentences",
    elapsed_ms=12.5,
    sources=("web", "notes"),
    extra={"reformulated_question": "What?", "search_candidates": [{"id": 7, "score": 0.5}], "none": None},
)
# Zero is a value: each of these must come back as it is, and nothing else with it.
ZEROS = ("attempts", "input_tokens", "output_tokens", "cost_usd", "baseline_usd", "classifier_usd", "elapsed_ms")


class Case(NamedTuple):
    id: str
    outcome: Outcome
    read: Outcome | None = None
    """What is read, where that is something else."""


CASES = [
    Case("nothing said", Outcome()),
    Case("everything said", FULL),
    *(Case(f"no {name}", Outcome(**{name: 0})) for name in ZEROS),
    *(Case(f"retrieval {value}", Outcome(retrieval=value)) for value in (True, False)),
    *(Case(ended, Outcome(ended=ended)) for ended in ("answered", "refused", "failed", "cancelled")),
    Case("no sources used", Outcome(sources=())),
    Case("large numbers", Outcome(input_tokens=2**62, cost_usd=1e12)),
    Case("empty texts", Outcome(slot="", model="", fallback="")),
    Case(
        "hostile",
        Outcome(model="m\0'\ud800", fallback="\0", sources=("a\0", "\udfff"), extra={"k\0": "v\0\ud800", "l": ["\0"]}),
        Outcome(
            model="m\ufffd'\ufffd",
            fallback="\ufffd",
            sources=("a\ufffd", "\ufffd"),
            extra={"k\ufffd": "v\ufffd\ufffd", "l": ["\ufffd"]},
        ),
    ),
    Case("not a number", Outcome(cost_usd=float("nan"), elapsed_ms=float("inf")), Outcome()),
]


def test_every_outcome_comes_back(store: Store) -> None:
    made = {case.id: ask(tenant="acme") for case in CASES}
    for case in CASES:
        store.record(made[case.id])
        store.settle(made[case.id], case.outcome)
    records = store.records("acme")
    found = {case.id: records.outcome(made[case.id].id) for case in CASES}
    assert found == {case.id: case.read or case.outcome for case in CASES}
    assert (store.counts().rejected, store.counts().repeated) == (0, 0)


def test_unknown_is_not_zero(store: Store, store_url: str) -> None:
    store.record(decision := ask())
    store.settle(decision, Outcome())
    store.flush()
    columns = ", ".join(sorted({*Outcome.__struct_fields__} - {"ended"}))
    (row,) = select(store_url, f"select {columns} from outcomes")  # noqa: S608
    assert set(row) == {None}
    (spent,) = store.records().stats().spent
    assert (spent.answers, spent.cost_usd, spent.input_tokens, spent.attempts) == (1, None, None, None)


def test_no_outcome_is_none(store: Store) -> None:
    store.record(decision := ask())
    assert store.records().outcome(decision.id) is None
    assert store.records().outcome("01AAAAAAAA0000000000000001") is None


class TestOnce:
    @pytest.mark.parametrize(
        "second", [Outcome(slot="main", cost_usd=1.0), Outcome(ended="failed")], ids=["same", "other"]
    )
    @pytest.mark.parametrize("by_id", [False, True])
    def test_the_first_stands(self, store: Store, second: Outcome, by_id: bool) -> None:
        first = Outcome(slot="main", cost_usd=1.0)
        store.record(decision := ask(tenant="acme"))
        store.settle(decision, first)
        store.flush()
        store.settle(decision.id if by_id else decision, second, tenant="acme")
        assert store.records("acme").outcome(decision.id) == first
        assert store.counts().repeated == 1

    def test_twice_in_one_group(self, store: Store, store_url: str) -> None:
        store.record(decision := ask())
        for number in range(20):
            store.settle(decision, Outcome(attempts=number))
        outcome = store.records().outcome(decision.id)
        assert outcome == Outcome(attempts=0)
        assert store.counts().repeated == 19
        assert select(store_url, "select count(*) from outcomes") == [(1,)]


class TestNaming:
    def test_before_the_decision_is_written(self, store: Store) -> None:
        """Rows may come in any order: a worker settles what another has recorded."""
        decision = ask(tenant="acme")
        store.settle(decision, Outcome(slot="main"))
        store.flush()
        store.record(decision)
        assert store.records("acme").outcome(decision.id) == Outcome(slot="main")

    def test_by_the_beginning_of_an_id(self, store: Store) -> None:
        store.record(decision := ask(tenant="acme"))
        store.settle(decision.id[:20], Outcome(), tenant="acme")
        assert store.records("acme").outcome(decision.id) == Outcome()

    def test_another_tenant_cannot(self, store: Store) -> None:
        store.record(decision := ask(tenant="acme"))
        for tenant in ("", "other", "ACME"):
            with pytest.raises(UnknownDecision):
                store.settle(decision.id, Outcome(), tenant=tenant)
        assert store.records("acme").outcome(decision.id) is None

    def test_unknown(self, store: Store) -> None:
        with pytest.raises(UnknownDecision, match="no decision '01ZZZZZZ'"):
            store.settle("01ZZZZZZ", Outcome())

    def test_a_tenant_of_any_name(self, store: Store) -> None:
        for tenant in ("\ud800", "a\0", "x" * 5000):
            store.record(one := ask(tenant=tenant))
            store.record(two := ask(tenant=tenant))
            store.settle(one, Outcome(attempts=1))
            store.settle(two.id, Outcome(attempts=2), tenant=tenant)
            found = [store.records(tenant).outcome(decision.id) for decision in (one, two)]
            assert found == [Outcome(attempts=1), Outcome(attempts=2)], tenant


@pytest.mark.parametrize("extra", [{"x": object()}, {"x": 1j}])
def test_what_is_not_json_is_the_callers_mistake(store: Store, extra: dict[str, Any]) -> None:
    store.record(decision := ask())
    with pytest.raises(TypeError):
        store.settle(decision, Outcome(extra=extra))
