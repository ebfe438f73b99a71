"""The report on a contract: every rule, kept or broken, with what was checked and the evidence."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from random_text import router
from stored_decisions import ask
from turnout.core.contract import Rule
from turnout.store import Outcome, Store, TimeSpan
from turnout.store.report import EXAMPLES, RuleReport, report

ASSIST = [rule.id for rule in router("assist").profile.contract]
FAR = 1 << 50


def by_rule(found: list[RuleReport]) -> dict[str, RuleReport]:
    assert len({one.rule for one in found}) == len(found)
    return {one.rule: one for one in found}


def test_nothing_was_decided(store: Store) -> None:
    assert report(store.records()) == []


def test_a_profile_without_a_contract_has_no_rules(store: Store) -> None:
    store.record(ask("Define entropy", "study"))
    assert report(store.records()) == []


def test_rules_that_were_kept_are_listed(store: Store) -> None:
    platform, other = ask("show my quota", "assist"), ask("What is addVar?", "assist")
    for decision in (platform, other):
        store.record(decision)
    store.settle(platform, Outcome(slot="conversational", retrieval=False))
    found = by_rule(report(store.records()))
    assert sorted(found) == sorted(ASSIST)
    assert all(one.violations == 0 and one.last_ms is None and one.examples == () for one in found.values())
    assert found["RC-01"].decisions == 2
    assert (found["RC-04"].decisions, found["RC-04"].outcomes) == (0, 1)
    assert found["RC-03"].phases == ("replay",)
    assert found["RC-04"].says == "PLATFORM and CONVERSATIONAL never trigger retrieval"


def test_broken_rules_come_with_evidence(store: Store) -> None:
    for number in range(EXAMPLES + 2):
        decision = ask(f"show my quota {number}", "assist")
        store.record(decision)
        store.settle(decision, Outcome(slot="main", retrieval=True, extra={"classifier_history": 7}))
    found = by_rule(report(store.records()))
    assert {name for name, one in found.items() if one.violations} == {"RC-04", "RC-05b", "RC-06"}
    broken = found["RC-04"]
    assert (broken.violations, broken.outcomes) == (EXAMPLES + 2, EXAMPLES + 2)
    assert len(broken.examples) == EXAMPLES
    assert broken.last_ms == broken.examples[0].created_ms
    example = broken.examples[0]
    assert (example.fact, example.found, example.phase, example.routes) == ("retrieval", True, "outcome", ("PLATFORM",))
    assert example.question == store.records().get(example.decision_id).question
    assert found["RC-06"].examples[0].found == 7


def test_each_tenant_sees_its_own(store: Store) -> None:
    decision = ask("show my quota", "assist", tenant="acme")
    store.record(decision)
    store.settle(decision, Outcome(slot="main"))
    assert report(store.records()) == []
    assert by_rule(report(store.records("acme")))["RC-05b"].violations == 1


def test_a_span_and_a_profile(store: Store) -> None:
    decision = ask("show my quota", "assist")
    store.record(decision)
    store.settle(decision, Outcome(slot="main"))
    assert report(store.records(), span=TimeSpan(FAR, FAR + 1)) == []
    assert report(store.records(), profile="tiers") == []
    assert len(report(store.records(), profile="assist")) == len(ASSIST)


def test_a_rule_that_was_dropped_since_is_still_listed(store: Store) -> None:
    """Two versions of a profile: what the first one broke is not forgotten, and what both have is counted together."""
    decision = ask("show my quota", "assist")
    profile = decision.profile
    rules = (Rule("RC-05b", must={"model": "conversational"}, text="as before"), Rule("OLD", must={"model": "none"}))
    resolved = {**profile.resolved, "contract": rules}
    older = replace(decision, profile=replace(profile, hash="0" * 16, contract=rules, resolved=resolved))
    store.record(replace(older, id="0" + decision.id[1:]))
    store.settle("0" + decision.id[1:], Outcome(slot="main"))
    for number in range(2):
        store.record(ask(f"show my quota {number}", "assist"))
    found = by_rule(report(store.records()))
    assert sorted(found) == sorted([*ASSIST, "OLD"])
    assert (found["OLD"].violations, found["OLD"].says) == (1, "model must be none")
    assert found["RC-05b"].says != "as before", "the version that decided most has the word"
    assert found["RC-05b"].outcomes == 1
    assert found["RC-04"].outcomes == 0


def test_evidence_of_a_decision_that_is_not_there(store: Store) -> None:
    """An outcome may be committed by one worker before its decision is by another."""
    decision = ask("show my quota", "assist")
    store.settle(decision, Outcome(slot="main"))
    (broken,) = report(store.records())
    assert (broken.rule, broken.violations, broken.says) == ("RC-05b", 1, "")
    assert broken.examples[0].question is None


@pytest.mark.parametrize("level", ["off", "hash"])
def test_text_that_was_not_kept_is_not_quoted(opened: Callable[..., Store], level: str) -> None:
    store = opened(text=level)
    decision = ask("show my quota", "assist")
    store.record(decision)
    store.settle(decision, Outcome(slot="main"))
    assert by_rule(report(store.records()))["RC-05b"].examples[0].question is None
