"""A human's word on a decision: right, wrong, or what it should have been; kept apart from what a teacher said."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from stored_decisions import ask, taught
from turnout import Router, Verdict
from turnout.core.errors import StoreError, UnknownDecision
from turnout.store import Label, Outcome, Store
from turnout.testing import ScriptedLayer, make_profile, place


def label(store: Store) -> Label:
    (found,) = store.records().labels()
    return found


class Case(NamedTuple):
    id: str
    words: list[tuple[str, str | None]]
    """Verdict, and what it should be, one after the other."""
    human: str | None
    label: str | None
    """Of a decision for `second`, which is what the teacher said."""


CASES = [
    Case("nobody said anything", [], None, "second"),
    Case("right", [("right", None)], "second", "second"),
    Case("right, and named", [("right", "second")], "second", "second"),
    Case("wrong", [("wrong", None)], None, None),
    Case("should be", [("wrong", "third")], "third", "third"),
    Case("the last word wins", [("right", None), ("wrong", "third")], "third", "third"),
    Case("taken back", [("wrong", "third"), ("right", None)], "second", "second"),
    Case("the last word is no name", [("wrong", "third"), ("wrong", None)], None, None),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_labels(store: Store, case: Case) -> None:
    store.record(decision := taught("second"))
    for number, (verdict, should_be) in enumerate(case.words):
        store.records().judge(decision.id, verdict, should_be=should_be, by=f"human {number}")
    found = label(store)
    assert (found.route, found.teacher, found.human, found.label) == ("second", "second", case.human, case.label)
    judged = store.records().judged(found.profile, most=10)
    assert [(one.text, one.route, one.right) for one in judged] == [(found.text, "second", case.human)] * bool(
        case.words
    )
    assert not store.records("another").judged(found.profile, most=10)
    assert found.human_by == (f"human {len(case.words) - 1}" if case.words else None)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_decisions_are_found_by_the_last_word(store: Store, case: Case) -> None:
    store.record(decision := taught("second"))
    store.record(taught("second"))  # nobody's word
    for verdict, should_be in case.words:
        store.records().judge(decision.id, verdict, should_be=should_be, by="me")
    last = case.words[-1][0] if case.words else None
    for verdict in ("right", "wrong"):
        found = [row.id for row in store.records().decisions(verdict=verdict)]
        assert found == ([decision.id] if verdict == last else [])
        assert [row.id for row in store.all_records().decisions(verdict=verdict, oldest_first=True)] == found
    assert len(list(store.records().decisions())) == 2


def test_a_teacher_who_disagrees_is_heard_where_a_human_only_says_no(store: Store) -> None:
    """Rules decided one route and the model said another: `wrong` speaks against the first."""
    store.record(decision := replace(taught("third"), routes=("first",)))
    store.records().judge(decision.id, "wrong", by="me")
    found = label(store)
    assert (found.route, found.teacher, found.human, found.label) == ("first", "third", None, "third")


def test_no_teacher_no_human(store: Store) -> None:
    store.record(ask())
    assert (label(store).teacher, label(store).human, label(store).label) == (None, None, None)


def test_every_word_is_kept_in_order(store: Store) -> None:
    store.record(decision := ask("Define entropy", "tiers"))
    records = store.records()
    said = [
        records.judge(decision.id, "right", by="ann"),
        records.judge(decision.id[:20], "wrong", should_be="COMPLEX", by="bob", note="100% ?s :x %s 'quoted'"),
        records.judge("last", "wrong", by="a\0b", note="\ud800\0"),
    ]
    assert records.feedback(decision.id) == said
    assert said[1].should_be == "COMPLEX"
    assert said[1].note == "100% ?s :x %s 'quoted'"
    assert (said[2].by, said[2].note) == ("a\ufffdb", "\ufffd\ufffd")
    assert records.feedback("01ZZ") == []


def test_a_label_says_what_came_of_it(store: Store) -> None:
    store.record(decision := ask("Define entropy", "tiers", session="s"))
    store.settle(decision, Outcome(slot="simple", model="m", cost_usd=0.5))
    found = label(store)
    assert (found.id, found.session, found.profile, found.text) == (decision.id, "s", "tiers", "Define entropy")
    assert (found.ended, found.slot, found.model, found.cost_usd) == ("answered", "simple", "m", 0.5)


def test_parts_are_examples_of_their_own(store: Store) -> None:
    store.record(whole := ask("What is the weather tomorrow and who won the match yesterday?", "sources"))
    records = store.records()
    records.judge(whole.parts[0].id, "wrong", should_be="web", by="me")
    found = {one.id: (one.text, one.human) for one in records.labels()}
    assert found == {
        whole.id: (whole.query.text, None),
        whole.parts[0].id: (whole.parts[0].query.text, "web"),
        whole.parts[1].id: (whole.parts[1].query.text, None),
    }


class RefusedCase(NamedTuple):
    id: str
    verdict: str
    should_be: str | None
    message: str


REFUSED = [
    RefusedCase(
        "misspelt",
        "wrong",
        "REASONNG",
        "'REASONNG' is not a route of profile 'tiers', did you mean 'REASONING'?: SIMPLE, MEDIUM, COMPLEX, REASONING",
    ),
    RefusedCase(
        "case", "wrong", "simple", "'simple' is not a route of profile 'tiers', did you mean 'SIMPLE'?: SIMPLE, MEDIUM"
    ),
    RefusedCase(
        "unlike any", "wrong", "zebra", "'zebra' is not a route of profile 'tiers': SIMPLE, MEDIUM, COMPLEX, REASONING"
    ),
    RefusedCase("empty", "wrong", "", "'' is not a route of profile 'tiers'"),
    RefusedCase("endless", "wrong", "x" * 10_000, "'" + "x" * 80 + "' is not a route"),
    RefusedCase(
        "right and something else", "right", "COMPLEX", "SIMPLE cannot be right and should be COMPLEX: say wrong"
    ),
    RefusedCase("no verdict", "maybe", None, "a decision is right or wrong, not 'maybe'"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_what_cannot_be_is_refused(store: Store, case: RefusedCase) -> None:
    store.record(decision := ask("hello", "tiers"))
    assert decision.route == "SIMPLE"
    with pytest.raises(StoreError) as caught:
        store.records().judge(decision.id, case.verdict, should_be=case.should_be, by="me")
    assert str(caught.value).startswith(case.message)
    assert store.records().feedback(decision.id) == []


def test_of_a_decision_that_is_not_ours(store: Store) -> None:
    store.record(decision := ask(tenant="acme"))
    with pytest.raises(UnknownDecision):
        store.records("other").judge(decision.id, "right", by="me")
    assert store.records("acme").feedback(decision.id) == []


def test_a_model_that_comes_later_is_a_teacher_as_well(store: Store) -> None:
    """A classifier may be named while a server runs: the profile and its hash stay what they are."""
    verdict = Verdict(("second",), 0.9)
    asking = make_profile([place(ScriptedLayer([verdict]), "model", cost="network")])
    unasked = replace(asking, layers=(place(None, "model"),))
    for profile in (unasked, asking):
        store.record(asyncio.run(Router(profile).route("hello")))
    assert unasked.hash == asking.hash
    assert [row.teacher for row in store.records().decisions()] == ["second", None]
