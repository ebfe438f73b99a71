"""What the profiles sources, claims and assist promise beyond single questions: refusals, precedence, the contract."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import turnout
from corpora.measure import router
from toml_router import unlearnt
from turnout import ConfigError, Query, QueryError, Turn
from turnout.config.load import shipped_file

PLATFORM = "you are a direct and concise assistant"


class RefusedCase(NamedTuple):
    profile: str
    declared: str
    hint: str


REFUSED = [
    RefusedCase("sources", "wikipedia", "'wikipedia'"),
    RefusedCase("sources", "kiwi", "did you mean 'kiwix'?"),
    RefusedCase("sources", "fusion", "'fusion'"),
    RefusedCase("sources", "", "''"),
    RefusedCase("claims", "exact", "'exact'"),
    RefusedCase("claims", "novel", "'novel'"),
    RefusedCase("assist", "PLATFROM", "did you mean 'PLATFORM'?"),
    RefusedCase("assist", "CODE", "'CODE'"),
    RefusedCase("assist", "RETRIEVAL CODE_GENERATION", "'RETRIEVAL CODE_GENERATION'"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case.profile}-{case.declared}")
def test_an_unknown_declaration_is_refused(case: RefusedCase) -> None:
    with pytest.raises(QueryError) as caught:
        router(case.profile).route_sync(Query("show my quota", declared=case.declared))
    assert case.hint in str(caught.value)


@pytest.mark.parametrize("profile", ["sources", "claims", "assist"])
@pytest.mark.parametrize("spell", [str, str.upper, str.lower, str.title, "  {}\n".format])
def test_a_declared_route_in_any_case(profile: str, spell: Callable[[str], str]) -> None:
    one = router(profile)
    for route in one.profile.routes:
        decision = one.route_sync(Query("show my quota and the news", declared=spell(route)))
        assert (decision.routes, decision.outcome, decision.parts) == ((route,), "D-", ())


class Rank(NamedTuple):
    id: str
    query: Query
    by: str
    code: str


BOTH = f"{PLATFORM}: usage is at 20 % of your plan"
RANKS = [
    Rank("declared before RC-01", Query(BOTH, declared="retrieval"), "declared", "declared.route"),
    Rank("RC-01 before RC-02", Query(BOTH), "rules", "rule.rc-01"),
    Rank("RC-02 before the fallback", Query("usage is at 20 % of your plan"), "rules", "rule.rc-02"),
    Rank("the fallback", Query("zxqv brmpf"), "fallback", "fallback.low_conf"),
]


@pytest.mark.parametrize("case", RANKS, ids=lambda case: case.id)
def test_precedence(case: Rank) -> None:
    decision = unlearnt("assist").route_sync(case.query)
    assert (decision.by, decision.reasons[0].code) == (case.by, case.code)


@pytest.mark.parametrize("text", [PLATFORM, "show my quota"])
def test_a_rule_decides_before_any_classifier_is_asked(text: str) -> None:
    decision = router("assist").route_sync(text)
    assert [step.place.id for step in decision.steps] == ["declared", "rules"]


def test_a_rule_holds_whatever_is_asked_around_it() -> None:
    one = router("assist")
    turns = (Turn("user", "write a parser"), Turn("assistant", "def parse(): ..."), Turn("user", f"hm. {PLATFORM}"))
    assert one.route_sync(Query(turns=turns)).policy.retrieval is False
    assert one.route_sync(Query(turns=turns)).policy.model == "conversational"


def test_the_taxonomy() -> None:
    policies = router("assist").profile.policies
    assert {route: (policy.retrieval, policy.model) for route, policy in policies.items()} == {
        "RETRIEVAL": (True, "main"),
        "CODE_GENERATION": (True, "main"),
        "CONVERSATIONAL": (False, "conversational"),
        "PLATFORM": (False, "conversational"),
    }


def test_every_rule_of_the_contract_is_declared() -> None:
    rules = [rule.id for rule in router("assist").profile.contract]
    assert rules == ["RC-01", "RC-02", "RC-03", "RC-04", "RC-05", "RC-05b", "RC-06"]
    assert all(rule.text for rule in router("assist").profile.contract)


class BrokenCase(NamedTuple):
    id: str
    old: str
    new: str
    rules: tuple[str, ...]


BROKEN = [
    BrokenCase("PLATFORM retrieves", "[policy.PLATFORM]\nretrieval = false",
           "[policy.PLATFORM]\nretrieval = true", ("RC-04",)),
    BrokenCase("CONVERSATIONAL retrieves", "[policy.CONVERSATIONAL]\nretrieval = false",
           "[policy.CONVERSATIONAL]\nretrieval = true", ("RC-04",)),
    BrokenCase("RETRIEVAL by the small model", '[policy.RETRIEVAL]\nretrieval = true\nmodel = "main"',
           '[policy.RETRIEVAL]\nretrieval = true\nmodel = "conversational"', ("RC-05",)),
    BrokenCase("CODE_GENERATION by another model", '[policy.CODE_GENERATION]\nretrieval = true\nmodel = "main"',
           '[policy.CODE_GENERATION]\nretrieval = true\nmodel = "tiny"', ("RC-05",)),
    BrokenCase("PLATFORM by the main model", '[policy.PLATFORM]\nretrieval = false\nmodel = "conversational"',
           '[policy.PLATFORM]\nretrieval = false\nmodel = "main"', ("RC-05b",)),
    BrokenCase("both at once", '[policy.PLATFORM]\nretrieval = false\nmodel = "conversational"',
           '[policy.PLATFORM]\nretrieval = true\nmodel = "main"', ("RC-04", "RC-05b")),
]  # fmt: skip


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.id)
def test_a_policy_that_breaks_the_contract_does_not_load(case: BrokenCase, tmp_path: Path) -> None:
    source = shipped_file("assist").read_text(encoding="utf-8")
    assert source.count(case.old) == 1
    copy = tmp_path / "assist.toml"
    copy.write_text(source.replace(case.old, case.new), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        turnout.load(copy, config="")
    for rule in case.rules:
        assert rule in str(caught.value)
    assert len(caught.value.problems) == len(case.rules)


def test_the_copy_loads_while_it_keeps_the_contract(tmp_path: Path) -> None:
    copy = tmp_path / "assist.toml"
    copy.write_text(shipped_file("assist").read_text(encoding="utf-8"), encoding="utf-8")
    assert turnout.load(copy, config="").profile.hash == router("assist").profile.hash


def test_every_source_has_its_policy() -> None:
    policies = router("sources").profile.policies
    assert {route: policy.sources for route, policy in policies.items()} == {route: (route,) for route in policies}


def test_what_each_mode_answers_with() -> None:
    policies = router("claims").profile.policies
    assert {route: policy.respond for route, policy in policies.items()} == {
        "exact_match": "card",
        "contextual": "synthesis",
        "novel_claim": "pipeline",
    }


@pytest.mark.parametrize("profile", ["sources", "claims", "assist"])
@pytest.mark.parametrize(
    "text", ["", "What is a quark?", "compare them", "weather and news", "show my quota", "x" * 5000]
)
def test_every_decision_says_why(profile: str, text: str) -> None:
    decision = router(profile).route_sync(text)
    assert all(whole.reasons and all(reason.text for reason in whole.reasons) for whole in (decision, *decision.parts))


@pytest.mark.parametrize(
    ("text", "route"),
    [("which newsletters are worth it", "news"), ("weathered oak", "forecast"), ("write this down for me", "uptime")],
)
def test_substring_matching_is_an_option(text: str, route: str, tmp_path: Path) -> None:
    heir = tmp_path / "mine.toml"
    unlearn = '[[layers]]\nid = "student"\ndrop = true\n'
    heir.write_text(f'name = "mine"\nextends = "sources"\n{unlearn}[[layers]]\nid = "keywords"\nmatch = "substring"\n')
    assert turnout.load(heir, config="").route_sync(text).route == route
    assert unlearnt("sources").route_sync(text).route == "kiwix"
