"""The contract monitor: what happened is held against the rules of `assist`, on decisions and on outcomes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from stored_decisions import ask, select, with_model
from turnout import Decision, Verdict
from turnout.core.verdict import Fault
from turnout.store import BreachRow, Checked, Outcome, RuleCount, Store, TimeSpan

PHRASE = "You are a direct and concise assistant"
Broken = tuple[str, str, str]
"""Rule, fact, what was found as JSON."""


def platform() -> Decision:
    decision = ask(PHRASE, "assist")
    assert (decision.route, decision.by) == ("PLATFORM", "rules")
    return decision


def declared(route: str) -> Callable[[], Decision]:
    return lambda: ask("Explain this", "assist", declared=route)


def modelled(verdict: Verdict | None = None, fault: Fault | None = None) -> Callable[[], Decision]:
    return lambda: with_model(platform(), verdict=verdict, fault=fault)


class Case(NamedTuple):
    id: str
    decision: Callable[[], Decision]
    outcome: Outcome | None
    broken: set[Broken]


CALLED = {("RC-01", "classifier_called", "true"), ("RC-02", "classifier_called", "true")}
CASES = [
    Case("a platform phrase, no model", platform, None, set()),
    Case("a platform phrase, a model called", modelled(Verdict(("RETRIEVAL",), 0.9)), None, CALLED),
    Case("a platform phrase, a model that passed", modelled(), None, CALLED),
    Case("a platform phrase, a model that timed out", modelled(fault=Fault("timeout", "late")), None, CALLED),
    Case("a platform phrase, a model that failed", modelled(fault=Fault("error", "oh")), None, CALLED),
    Case("a platform phrase, a model left out", modelled(fault=Fault("skipped", "sync")), None, set()),
    Case("a platform phrase, an open breaker", modelled(fault=Fault("breaker", "open")), None, set()),
    Case("a model called elsewhere", lambda: with_model(declared("RETRIEVAL")(), fault=None), None, set()),
    Case("retrieval for PLATFORM", platform, Outcome(retrieval=True), {("RC-04", "retrieval", "true")}),
    Case(
        "retrieval for CONVERSATIONAL",
        declared("CONVERSATIONAL"),
        Outcome(retrieval=True),
        {("RC-04", "retrieval", "true")},
    ),
    Case("no retrieval for PLATFORM", platform, Outcome(retrieval=False), set()),
    Case("retrieval for RETRIEVAL", declared("RETRIEVAL"), Outcome(retrieval=True, slot="main"), set()),
    Case("nobody knows", platform, Outcome(), set()),
    Case(
        "small model for RETRIEVAL",
        declared("RETRIEVAL"),
        Outcome(slot="conversational"),
        {("RC-05", "model", '"conversational"')},
    ),
    Case(
        "small model for CODE_GENERATION",
        declared("CODE_GENERATION"),
        Outcome(slot="tiny"),
        {("RC-05", "model", '"tiny"')},
    ),
    Case("main model for CODE_GENERATION", declared("CODE_GENERATION"), Outcome(slot="main"), set()),
    Case("main model for PLATFORM", platform, Outcome(slot="main"), {("RC-05b", "model", '"main"')}),
    Case(
        "main model for CONVERSATIONAL",
        declared("CONVERSATIONAL"),
        Outcome(slot="main"),
        {("RC-05b", "model", '"main"')},
    ),
    Case("its own model for PLATFORM", platform, Outcome(slot="conversational"), set()),
    # A contract speaks of slots: the name a provider gives its model says nothing.
    Case("a model's name", platform, Outcome(model="main"), set()),
    Case("a history of six", declared("RETRIEVAL"), Outcome(extra={"classifier_history": 6}), set()),
    Case(
        "a history of seven",
        declared("RETRIEVAL"),
        Outcome(extra={"classifier_history": 7}),
        {("RC-06", "classifier_history", "7")},
    ),
    Case(
        "flipped by history",
        platform,
        Outcome(extra={"flipped_by_history": True}),
        {("RC-03", "flipped_by_history", "true")},
    ),
    Case(
        "what an application adds is no fact of ours",
        platform,
        Outcome(retrieval=False, extra={"retrieval": True}),
        set(),
    ),
    Case("a classifier called, told afterwards", platform, Outcome(extra={"classifier_called": True}), CALLED),
    Case(
        "several at once",
        platform,
        Outcome(slot="main", retrieval=True),
        {("RC-04", "retrieval", "true"), ("RC-05b", "model", '"main"')},
    ),
    Case("a profile without a contract", lambda: ask("Define entropy"), Outcome(retrieval=True, slot="main"), set()),
]


def broken(rows: list[BreachRow]) -> set[Broken]:
    return {(row.rule, row.fact, row.found) for row in rows}


@pytest.mark.parametrize("by_id", [False, True], ids=["by decision", "by id"])
def test_every_rule(store: Store, by_id: bool) -> None:
    """Named by its id, a decision is held against the profile it was made with, as it was stored."""
    made = {case.id: case.decision() for case in CASES}
    for case in CASES:
        store.record(made[case.id])
    for case in CASES:
        if case.outcome is not None:
            store.settle(made[case.id].id if by_id else made[case.id], case.outcome)
    found = {case.id: store.records().breaches(decision=made[case.id].id) for case in CASES}
    assert {name: broken(rows) for name, rows in found.items()} == {case.id: case.broken for case in CASES}
    for case in CASES:
        phase = "decision" if case.outcome is None else "outcome"
        assert {(row.phase, row.profile, row.tenant) for row in found[case.id]} <= {(phase, "assist", "")}, case.id
    assert store.counts().rejected == 0


def test_the_explanation_is_a_sentence(store: Store) -> None:
    store.record(decision := platform())
    store.settle(decision, Outcome(slot="main", retrieval=True))
    assert {row.rule: row.explanation for row in store.records().breaches()} == {
        "RC-04": "retrieval must never be true for PLATFORM",
        "RC-05b": "model must be 'conversational' for PLATFORM",
    }


def test_a_breach_is_written_once(store: Store, store_url: str) -> None:
    decision = modelled(Verdict(("RETRIEVAL",), 0.9))()
    for _ in range(3):
        store.record(decision)
        store.settle(decision, Outcome(retrieval=True))
        store.settle(decision.id, Outcome(retrieval=True, slot="main"))
        store.flush()
    # The second outcome does not stand, but what it broke has been broken.
    assert select(store_url, "select rule, phase from breaches order by 1, 2") == [
        ("RC-01", "decision"),
        ("RC-02", "decision"),
        ("RC-04", "outcome"),
        ("RC-05b", "outcome"),
    ]


def test_parts_are_held_against_it_too(store: Store) -> None:
    """No shipped profile has both; a decision with parts is made up of one that has a contract."""
    part = modelled(Verdict(("RETRIEVAL",), 0.9))()
    whole = replace(platform(), profile=part.profile, parts=(part,))
    store.record(whole)
    assert store.records().breaches(decision=whole.id) == []
    assert broken(store.records().breaches(decision=part.id)) == CALLED


class TestReading:
    @pytest.fixture
    def made(self, store: Store) -> list[Decision]:
        made = [
            platform(),
            declared("RETRIEVAL")(),
            platform(),
            ask(PHRASE, "assist", tenant="acme"),
            ask("Define entropy"),
        ]
        for decision in made:
            store.record(decision)
            store.settle(decision, Outcome(slot="main", retrieval=True))
            store.flush()
        store.record(platform())
        return made

    def test_newest_first(self, store: Store, made: list[Decision]) -> None:
        found = [(row.decision_id, row.rule) for row in store.records().breaches()]
        newest, _, oldest = made[2].id, made[1].id, made[0].id
        assert found == [(newest, "RC-04"), (newest, "RC-05b"), (oldest, "RC-04"), (oldest, "RC-05b")]

    @pytest.mark.usefixtures("made")
    def test_filters(self, store: Store) -> None:
        records = store.records()
        counted = {
            "rule": len(records.breaches(rule="RC-04")),
            "profile": len(records.breaches(profile="assist")),
            "other profile": len(records.breaches(profile="study")),
            "future": len(records.breaches(span=TimeSpan(4_000_000_000_000))),
            "most": len(records.breaches(most=3)),
            "none": len(records.breaches(most=0)),
            "less than none": len(records.breaches(most=-1)),
            "unknown": len(records.breaches(decision="01ZZ")),
            "tenant": len(store.records("acme").breaches()),
        }
        assert counted == {
            "rule": 2,
            "profile": 4,
            "other profile": 0,
            "future": 0,
            "most": 3,
            "none": 0,
            "less than none": 0,
            "unknown": 0,
            "tenant": 2,
        }

    def test_counts(self, store: Store, made: list[Decision]) -> None:
        records = store.records()
        counts = records.rule_counts()
        assert [(one.profile, one.rule, one.phase, one.count) for one in counts] == [
            ("assist", "RC-04", "outcome", 2),
            ("assist", "RC-05b", "outcome", 2),
        ]
        seen = sorted(row.created_ms for row in records.breaches(rule="RC-04"))
        assert counts[0] == RuleCount("assist", "RC-04", "outcome", 2, seen[0], seen[-1])
        assert records.rule_counts(profile="study") == []
        assert records.rule_counts(span=TimeSpan(0, 1)) == []
        assert records.checked() == [
            Checked("assist", made[0].profile.hash, 4, 3),
            Checked("study", made[4].profile.hash, 1, 1),
        ]
        assert records.checked(profile="tiers") == []
        assert store.records("acme").checked() == [Checked("assist", made[0].profile.hash, 1, 1)]
