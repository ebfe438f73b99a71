"""Rules a profile keeps whatever its classifier says: on policies at load, on what really happened afterwards."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from turnout import ConfigError, Policy, Violation, load
from turnout.core.contract import Rule, When, violations
from turnout.testing import make_router

TALK = When(("talk",))


class Case(NamedTuple):
    id: str
    rule: Rule
    facts: dict[str, Any]
    broken: list[tuple[str, Any, str]]
    routes: tuple[str, ...] = ("talk",)


CASES = [
    Case(
        "never, true", Rule("R", TALK, never="retrieval"), {"retrieval": True}, [("retrieval", True, "never be true")]
    ),
    Case("never, false", Rule("R", TALK, never="retrieval"), {"retrieval": False}, []),
    Case("never, absent", Rule("R", TALK, never="retrieval"), {}, []),
    Case("never, none", Rule("R", TALK, never="retrieval"), {"retrieval": None}, []),
    Case("never, zero", Rule("R", TALK, never="cost"), {"cost": 0.0}, []),
    Case("never, a number", Rule("R", TALK, never="cost"), {"cost": 0.01}, [("cost", 0.01, "never be true")]),
    Case("never, a name", Rule("R", TALK, never="model"), {"model": "m"}, [("model", "m", "never be true")]),
    Case(
        "never, several",
        Rule("R", TALK, never=("image", "notes", "memory")),
        {"image": True, "notes": False, "memory": True},
        [("image", True, "never"), ("memory", True, "never")],
    ),
    Case("must, same", Rule("R", TALK, must={"model": "small"}), {"model": "small"}, []),
    Case(
        "must, other", Rule("R", TALK, must={"model": "small"}), {"model": "big"}, [("model", "big", "must be 'small'")]
    ),
    Case("must, absent", Rule("R", TALK, must={"model": "small"}), {}, []),
    Case("must, false", Rule("R", TALK, must={"image": True}), {"image": False}, [("image", False, "must be True")]),
    Case("at most, below", Rule("R", TALK, at_most={"turns": 3}), {"turns": 2}, []),
    Case("at most, equal", Rule("R", TALK, at_most={"turns": 3}), {"turns": 3}, []),
    Case("at most, above", Rule("R", TALK, at_most={"turns": 3}), {"turns": 4}, [("turns", 4, "at most 3")]),
    Case(
        "at most, a fraction", Rule("R", TALK, at_most={"cost": 0.5}), {"cost": 0.51}, [("cost", 0.51, "at most 0.5")]
    ),
    Case("at most, a word", Rule("R", TALK, at_most={"turns": 3}), {"turns": "many"}, []),
    Case("another route", Rule("R", TALK, never="image"), {"image": True}, [], ("work",)),
    Case(
        "one of several routes",
        Rule("R", TALK, never="image"),
        {"image": True},
        [("image", True, "")],
        ("work", "talk"),
    ),
    Case("every route", Rule("R", never="image"), {"image": True}, [("image", True, "for work")], ("work",)),
    Case(
        "all three kinds",
        Rule("R", TALK, never="image", must={"model": "m"}, at_most={"turns": 1}),
        {"image": 1, "model": "n", "turns": 2},
        [("image", 1, "never"), ("model", "n", "must be"), ("turns", 2, "at most")],
    ),
    Case("says nothing", Rule("R", TALK), {"image": True}, []),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_facts_are_held_against_a_rule(case: Case) -> None:
    found = list(violations([case.rule], case.routes, case.facts))
    assert [(violation.rule, violation.fact, violation.found) for violation in found] == [
        ("R", fact, value) for fact, value, _ in case.broken
    ]
    for violation, (fact, _, text) in zip(found, case.broken, strict=True):
        assert text in violation.text
        assert violation.text.startswith(fact)


def test_every_broken_rule_is_reported_in_order() -> None:
    rules = [Rule("A", never="image"), Rule("B", at_most={"turns": 1}), Rule("C", never="notes")]
    found = list(violations(rules, ("talk",), {"image": True, "turns": 9, "notes": True}))
    assert [violation.rule for violation in found] == ["A", "B", "C"]
    assert found[0] == Violation("A", "image", True, "image must never be true for talk")


def test_what_really_happened_is_held_against_the_profile_of_a_decision() -> None:
    router = make_router(routes=("talk", "work"), contract=(Rule("RC-04", TALK, never="retrieval"),))
    decision = router.route_sync("hello")
    assert list(violations(decision.profile.contract, decision.routes, {"retrieval": False})) == []
    (broken,) = violations(decision.profile.contract, decision.routes, {"retrieval": True})
    assert broken.rule == "RC-04"


PROFILE = """\
name = "toy"
routes = ["talk", "work"]
fallback = { route = "talk" }

[[layers]]
kind = "rules.v1"
rules = [{ id = "r", route = "work", when = { any = ["work"] } }]

[policy.talk]
retrieval = false
max_sentences = 3

[policy.work]
retrieval = true
model = "big"
sources = ["web"]

[[contract]]
id = "RC-04"
"""


class Load(NamedTuple):
    id: str
    contract: str
    problems: list[str]


LOADS = [
    Load("kept", 'when = { route = ["talk"] }\nnever = "retrieval"', []),
    Load(
        "never",
        'when = { route = ["work"] }\nnever = "retrieval"',
        ["toy.toml:14 policy.work.retrieval: breaks RC-04: retrieval must never be true for work"],
    ),
    Load(
        "never, all routes",
        'never = ["retrieval", "sources"]',
        ["toy.toml:14 policy.work.retrieval", "policy.work.sources"],
    ),
    Load("must", 'must = { model = "small" }', ["toy.toml:15 policy.work.model: breaks RC-04: model must be 'small'"]),
    Load("at most", "at_most = { max_sentences = 2 }", ["toy.toml:11 policy.talk.max_sentences: breaks RC-04"]),
    Load(
        "unknown route", 'when = { route = ["tolk"] }\nnever = "image"', ["'tolk' is not a route, did you mean 'talk'?"]
    ),
    Load("unknown key", 'nevre = "image"', ["toy.toml:20 contract[0].nevre: unknown key, did you mean 'never'?"]),
    Load("wrong type", "at_most = { max_sentences = 'two' }", ["contract[0].at_most.max_sentences: must be a number"]),
]


@pytest.mark.parametrize("case", LOADS, ids=lambda case: case.id)
def test_policies_are_held_against_the_contract_at_load(case: Load, tmp_path: Path) -> None:
    path = tmp_path / "toy.toml"
    path.write_text(PROFILE + case.contract)
    if not case.problems:
        assert load(path, config="").profile.contract[0].id == "RC-04"
        return
    with pytest.raises(ConfigError) as caught:
        load(path, config="")
    assert len(caught.value.problems) == len(case.problems)
    for problem, expected in zip(caught.value.problems, case.problems, strict=True):
        assert expected in str(problem)


def test_a_policy_says_nothing_about_what_it_does_not_name() -> None:
    assert Policy().image is None
    assert Policy(extra={"tone": "dry"}).extra == {"tone": "dry"}
