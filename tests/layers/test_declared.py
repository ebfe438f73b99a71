"""`declared.v1`: which spellings name a route, and what happens to those that do not."""

from typing import Any, NamedTuple

import pytest

from toml_router import layer_router, router_of, unlearnt
from turnout import ConfigError, Query, QueryError, Reason, UnknownRoute, load
from turnout.testing import check_layer

LAYER = """\
kind = "declared.v1"
prefixes = ["turnout/", "T:"]
aliases = { cheap = "a", "Dear One" = "c" }
"""


class Case(NamedTuple):
    declared: str
    route: str | None


CASES = [
    Case("a", "a"),
    Case("A", "a"),
    Case("  b\n", "b"),
    Case("cheap", "a"),
    Case("CHEAP", "a"),
    Case("dear one", "c"),
    Case("turnout/b", "b"),
    Case("Turnout/B", "b"),
    Case("turnout/cheap", "a"),
    Case("t:c", "c"),
    Case("turnout/t:c", None),
    Case("turnout/", None),
    Case("b/turnout", None),
    Case("d", None),
    Case("", None),
    Case("a b", None),
    Case("a\0", None),
    Case("\ud800", None),
    Case("x" * 100_000, None),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: ascii(case.declared[:20]))
def test_a_name_is_honoured_or_refused(case: Case) -> None:
    router = layer_router(LAYER)
    query = Query("whatever", declared=case.declared)
    if case.route is None:
        with pytest.raises(UnknownRoute) as caught:
            router.route_sync(query)
        assert "a, b, c" in str(caught.value)
    else:
        decision = router.route_sync(query)
        assert (decision.route, decision.confidence, decision.outcome) == (case.route, 1.0, "D-")
        assert [reason.code for reason in decision.reasons] == ["declared.route"]
        assert case.declared.strip() in decision.reasons[0].text


@pytest.mark.parametrize("case", CASES, ids=lambda case: ascii(case.declared[:20]))
def test_a_profile_may_classify_what_it_does_not_know(case: Case) -> None:
    decision = layer_router(LAYER + 'unknown = "classify"').route_sync(Query("whatever", declared=case.declared))
    assert decision.by == ("fallback" if case.route is None else "declared")


def test_without_a_declared_route_it_passes() -> None:
    decision = layer_router(LAYER).route_sync("a")
    assert decision.steps[0].ended == "passed"
    assert decision.by == "fallback"


def test_nothing_in_the_text_is_a_declaration() -> None:
    assert load("tiers", config="").route_sync("turnout/REASONING").by != "declared"


def test_the_names_of_shipped_profiles() -> None:
    tiers, study = unlearnt("tiers"), load("study", config="")
    for declared in ("simple", "turnout/SIMPLE", "claw-llm-router/simple"):
        assert tiers.route_sync(Query("x", declared=declared)).route == "SIMPLE"
    assert tiers.route_sync(Query("hello", declared="gpt-4o")).by == "signals"
    for declared in ("standalone", "definition", "standalone_definition"):
        assert study.route_sync(Query("x", declared=declared)).route == "standalone_definition"
    with pytest.raises(UnknownRoute, match="did you mean 'general_contextual'"):
        study.route_sync(Query("x", declared="general_contextal"))


def test_a_contract_and_a_ceiling_still_bind() -> None:
    decision = layer_router(LAYER).route_sync(Query("x", declared="c", ceiling="b"))
    assert (decision.route, decision.outcome) == ("b", "Dk")
    assert [reason.code for reason in decision.reasons] == ["declared.route", "clamp.ceiling"]


def test_a_profile_without_the_layer_takes_none() -> None:
    router = layer_router('kind = "rules.v1"\nrules = []')
    with pytest.raises(QueryError, match=r"takes none"):
        router.route_sync(Query("x", declared="a"))


def test_it_conforms() -> None:
    check_layer("declared.v1", {"prefixes": ["x/"], "aliases": {"one": "first"}, "unknown": "classify"})


class Mistake(NamedTuple):
    id: str
    layer: str
    problem: str


MISTAKES = [
    Mistake("alias to nowhere", 'aliases = { x = "d" }', "layers[0].aliases.x: 'd' is not a route"),
    Mistake("unknown word", 'unknown = "rejct"', "'rejct' is not allowed, did you mean 'reject'?"),
    Mistake("prefixes", 'prefixes = "x/"', "layers[0].prefixes: must be a list"),
    Mistake("unknown key", "prefix = []", "layers[0].prefix: unknown key, did you mean 'prefixes'?"),
]


@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: case.id)
def test_mistakes_at_load(case: Mistake) -> None:
    with pytest.raises(ConfigError) as caught:
        layer_router(f'kind = "declared.v1"\n{case.layer}')
    assert case.problem in str(caught.value)


AMBIGUOUS: dict[str, Any] = {
    "an alias that is a route": ('aliases = { a = "b" }', '["a", "b", "c"]'),
    "two routes that differ in case": ("", '["a", "A", "c"]'),
}


@pytest.mark.parametrize(("layer", "routes"), AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_a_name_for_two_routes_is_a_mistake(layer: str, routes: str) -> None:
    with pytest.raises(ConfigError):
        layer_router(f'kind = "declared.v1"\n{layer}', routes)


def test_what_was_declared_is_not_echoed_without_end() -> None:
    decision = layer_router(LAYER).route_sync(Query("x", declared=" " * 100_000 + "a"))
    assert len(decision.reasons[0].text) < 1000


def test_two_layers_may_take_declarations() -> None:
    head = 'name = "t"\nroutes = ["a", "b"]\nfallback = { route = "a" }\n'
    one = '[[layers]]\nid = "one"\nkind = "declared.v1"\nunknown = "classify"\naliases = { x = "a" }\n'
    two = '[[layers]]\nid = "two"\nkind = "declared.v1"\nunknown = "classify"\naliases = { y = "b" }\n'
    any_layer = '[[layers]]\nkind = "other.v1"\noptional = true\n'
    router = router_of(f"{head}{one}{two}{any_layer}[policy.a]\n[policy.b]\n")
    decision = router.route_sync(Query("q", declared="y"))
    assert (decision.by, decision.route) == ("two", "b")
    assert decision.reasons == (Reason("declared.route", "the caller declared y"),)
