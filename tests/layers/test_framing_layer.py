"""`framing.v1`, the adjustment: adds its route once and last, whoever chose the others, and says so."""

from typing import NamedTuple

import pytest

from toml_router import router_of
from turnout import ConfigError, Query, Reason, Router
from turnout.text.framing import phrases

PROFILE = """\
name = "framed"
routes = ["known", "a", "b"]
fallback = { route = "a" }

[[layers]]
kind = "declared.v1"

[[layers]]
kind = "keywords.v1"
phrases = { b = ["bee"], a = ["ant"], known = ["lexicon"] }

[[adjust]]
kind = "framing.v1"
route = "known"

[policy.known]
[policy.a]
[policy.b]
"""


@pytest.fixture(scope="module")
def router() -> Router:
    return router_of(PROFILE)


class Case(NamedTuple):
    id: str
    text: str
    routes: tuple[str, ...]
    outcome: str = "K-"
    added: bool = True


CASES = [
    Case("to one", "the bee everyone is talking about", ("b", "known")),
    Case("last, after several", "ant or bee, everyone's obsessed with it", ("b", "a", "known")),
    Case("to the fallback", "the fly everyone keeps talking about", ("a", "known"), "F-"),
    Case("once, for several phrases", "bee everyone is talking about, everyone's obsessed with", ("b", "known")),
    Case("not again, alone", "the lexicon everyone is talking about", ("known",), added=False),
    Case("not again, among others", "bee lexicon everyone is talking about", ("b", "known"), added=False),
    Case("nothing framed", "a bee", ("b",), added=False),
    Case("someone", "the bee someone keeps talking about", ("b",), added=False),
    Case("part of a word", "the bee not everyone keeps talkinga", ("b",), added=False),
    Case("curly", "the bee everyone’s talking about", ("b", "known")),
    Case("shouted", "THE BEE EVERYONE KEEPS TALKING ABOUT", ("b", "known")),
    Case("invisible", "the bee every\u200bone is talking about", ("b", "known")),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_its_route_is_added_once_and_last(router: Router, case: Case) -> None:
    decision = router.route_sync(case.text)
    assert (decision.routes, decision.outcome) == (case.routes, case.outcome)
    assert [reason.code for reason in decision.reasons].count("framing.added") == case.added
    assert router.replay(decision) == decision


@pytest.mark.parametrize("phrase", phrases())
def test_every_phrase_of_the_one_list_counts(router: Router, phrase: str) -> None:
    decision = router.route_sync(f"bee {phrase} it")
    assert decision.routes == ("b", "known")
    assert decision.reasons[-1].code == "framing.added"
    # A phrase that begins with another is found as that one, too; the longer is the one shown.
    assert f"{phrase!r}: known is asked too" == decision.reasons[-1].text


def test_the_decision_is_otherwise_as_it_was(router: Router) -> None:
    plain, framed = router.route_sync("a bee"), router.route_sync("a bee everyone is talking about")
    assert (framed.by, framed.confidence, framed.margin) == (plain.by, plain.confidence, plain.margin)
    assert framed.policy == plain.policy
    assert framed.reasons[:-1] == plain.reasons == (Reason("keyword.b", "b (bee)"),)


def test_without_it_nothing_is_added() -> None:
    bare = router_of(PROFILE.replace('[[adjust]]\nkind = "framing.v1"\nroute = "known"\n', ""))
    assert bare.route_sync("bee everyone is talking about").routes == ("b",)


def test_a_declared_route_is_left_alone(router: Router) -> None:
    assert router.route_sync(Query("black holes everyone is talking about", declared="b")).routes == ("b",)


def test_a_route_that_does_not_exist_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match=r"adjust\[0\]\.route: 'knwon' is not a route, did you mean 'known'\?"):
        router_of(PROFILE.replace('route = "known"\n\n[policy', 'route = "knwon"\n\n[policy'))
