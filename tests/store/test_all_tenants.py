"""What the operator reads of all tenants: everything that each tenant sees, and no more; never by accident."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from stored_decisions import ask
from turnout import Decision
from turnout.core.errors import StoreError, UnknownDecision
from turnout.store import Outcome, Records, Store, sql

TENANTS = ("", "ada", "bob")
TEXTS = ("Define entropy", "What is the weather tomorrow and who won the match yesterday?")


@pytest.fixture
def made(store: Store) -> dict[str, list[Decision]]:
    """Two decisions of each of three tenants, in turns, with an outcome each."""
    decisions: dict[str, list[Decision]] = {tenant: [] for tenant in TENANTS}
    for text in TEXTS:
        for tenant in TENANTS:
            decision = ask(text, profile="sources", tenant=tenant or None, session="s")
            store.record(decision)
            store.settle(decision, Outcome(slot="simple", model="m", cost_usd=0.25))
            decisions[tenant].append(decision)
    return decisions


def test_decisions_are_those_of_every_tenant_in_order(store: Store, made: dict[str, list[Decision]]) -> None:
    every = sorted(decision.id for decisions in made.values() for decision in decisions)
    records = store.all_records()
    assert [row.id for row in records.decisions(oldest_first=True)] == every
    assert [row.id for row in records.decisions()] == every[::-1]
    assert {row.tenant for row in records.decisions()} == set(TENANTS)
    assert [row.id for row in records.decisions(session="s", contains="entropy", above=every[0])] == every[2:0:-1]


def test_a_decision_is_found_whosever_it_is(store: Store, made: dict[str, list[Decision]]) -> None:
    records = store.all_records()
    for tenant, decisions in made.items():
        for decision in decisions:
            assert records.get(decision.id) == store.records(tenant).get(decision.id)
            assert records.get(decision.id[-8:]).tenant == tenant
    assert records.get("last").id == max(decision.id for decisions in made.values() for decision in decisions)
    with pytest.raises(UnknownDecision):
        records.get("0" * 26)


def test_stats_are_the_sum_of_the_tenants(store: Store, made: dict[str, list[Decision]]) -> None:
    total, each = store.all_records().stats(), [store.records(tenant).stats() for tenant in TENANTS]
    assert total.decisions == sum(one.decisions for one in each) == 6
    assert total.routes == {route: count * 3 for route, count in each[0].routes.items()}
    assert total.latency_us["max"] == max(one.latency_us["max"] for one in each)
    assert [(spent.answers, spent.cost_usd) for spent in total.spent] == [(6, 1.5)]


class RefusedCase(NamedTuple):
    id: str
    read: Callable[[Records], Any]


REFUSED = [
    RefusedCase("parts", lambda records: records.parts(records.get("last").id)),
    RefusedCase("outcome", lambda records: records.outcome(records.get("last").id)),
    RefusedCase("feedback", lambda records: records.feedback(records.get("last").id)),
    RefusedCase("judge", lambda records: records.judge("last", "right", by="operator")),
    RefusedCase("breaches of one", lambda records: records.breaches(decision=records.get("last").id)),
    RefusedCase("profile", lambda records: records.profile(records.get("last").profile_hash)),
    RefusedCase("sessions", lambda records: records.sessions()),
    RefusedCase("turns", lambda records: records.turns("s")),
    RefusedCase("intents", lambda records: records.intents("s")),
    RefusedCase("breaches", lambda records: records.breaches()),
    RefusedCase("rule counts", lambda records: records.rule_counts()),
    RefusedCase("checked", lambda records: records.checked()),
    RefusedCase("labels", lambda records: list(records.labels())),
]


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_what_belongs_to_one_tenant_is_refused(store: Store, case: RefusedCase) -> None:
    """Two tenants may have a session of one name: together they would be one conversation."""
    with pytest.raises(StoreError, match="name the tenant"):
        case.read(store.all_records())


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("name", ["*", "%", "all", "None", "ada' or '1'='1", "ada%"])
def test_no_name_of_a_tenant_means_all(store: Store, name: str) -> None:
    assert list(store.records(name).decisions()) == []
    assert store.records(name).stats().decisions == 0


def test_nothing_but_the_tenant_is_left_out() -> None:
    names = {text: name for name, text in vars(sql).items() if isinstance(text, str)}
    for one, every in sql.ALL_TENANTS.items():
        assert ":tenant" not in every, names[one]
        assert re.sub(r"\btenant is not null", "tenant = :tenant", every) == one, names[one]
