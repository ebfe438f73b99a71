"""`rules.v1` with several conditions, of which one is enough, and with an exception that keeps a rule from applying."""

from typing import NamedTuple

import pytest

from toml_router import layer_router
from turnout import ConfigError

RULES = """\
kind = "rules.v1"

[[layers.rules]]
id = "one"
route = "b"
text = "one or the other"

[[layers.rules.when]]
any = ["bee"]

[[layers.rules.when]]
all = [["hive"], ["honey", "wax"]]

[layers.rules.unless]
any = ["wasp"]
patterns = ['\\d{3}']

[[layers.rules]]
id = "two"
route = "c"
when = { any = ["bee", "hive"] }
unless = { whole = ["bee", "wasp"] }
"""


class Case(NamedTuple):
    text: str
    route: str
    reason: str


CASES = [
    Case("a bee", "b", "rule.one"),
    Case("wax in the hive", "b", "rule.one"),
    Case("a bee in a hive with honey", "b", "rule.one"),
    Case("an empty hive", "c", "rule.two"),
    Case("honey and wax", "a", "fallback.low_conf"),
    Case("a bee and a wasp", "b", "rule.one"),
    Case("a bee and 100 ants", "b", "rule.one"),
    Case("a bee and a wasp and 100 ants", "c", "rule.two"),
    Case("hive honey wasp 100", "c", "rule.two"),
    Case("wasp 100", "a", "fallback.low_conf"),
    Case("bee wasp", "b", "rule.one"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text)
def test_one_condition_is_enough_and_the_exception_wins(case: Case) -> None:
    decision = layer_router(RULES).route_sync(case.text)
    assert decision.route == case.route
    assert decision.reasons[0].code == case.reason


def test_an_exception_holds_only_as_a_whole() -> None:
    """Its fields are joined like any condition's: a wasp alone, or a number alone, keeps nothing from applying."""
    router = layer_router(RULES)
    routes = [router.route_sync(text).route for text in ("bee wasp", "bee 123", "bee wasp 123")]
    assert routes == ["b", "b", "c"]


def test_what_would_be_without_the_rule() -> None:
    router = layer_router(RULES)
    (found,) = router.counterfactuals(router.route_sync("a bee"))
    assert (found.signal, found.route) == ("rule.one", "c")


def rule(id: str, when: str, unless: str = "") -> str:
    exception = f", unless = {{ {unless} }}" if unless else ""
    return f'{{ id = "{id}", route = "{"b" if id == "one" else "c"}", when = {when}{exception} }}'


class Reach(NamedTuple):
    id: str
    first: str
    second: str
    is_reachable: bool


REACH = [
    Reach("every alternative is covered", '[{ any = ["x", "y"] }]', '[{ any = ["x"] }, { any = ["y"] }]', False),
    Reach("each by another one", '[{ any = ["x"] }, { any = ["y"] }]', '[{ any = ["y"] }, { any = ["x"] }]', False),
    Reach("one is not", '[{ any = ["x"] }]', '[{ any = ["x"] }, { any = ["y"] }]', True),
    Reach("by one of several", '[{ any = ["z"] }, { any = ["x"] }]', '{ any = ["x"] }', False),
]


@pytest.mark.parametrize("case", REACH, ids=lambda case: case.id)
def test_a_rule_that_can_never_win_is_a_mistake(case: Reach) -> None:
    layer = f'kind = "rules.v1"\nrules = [{rule("one", case.first)}, {rule("two", case.second)}]'
    if case.is_reachable:
        layer_router(layer)
    else:
        with pytest.raises(ConfigError, match=r"rules\[1\]: unreachable: rules\[0\] \(one\)"):
            layer_router(layer)


def test_a_rule_with_an_exception_covers_nothing() -> None:
    first, second = rule("one", '{ any = ["x"] }', 'any = ["y"]'), rule("two", '{ any = ["x"] }')
    router = layer_router(f'kind = "rules.v1"\nrules = [{first}, {second}]')
    assert [router.route_sync(text).route for text in ("x", "x y")] == ["b", "c"]


class Mistake(NamedTuple):
    id: str
    rule: str
    problem: str


MISTAKES = [
    Mistake("no condition", rule("one", "[]"), "rules[0].when: is empty: the rule would never apply"),
    Mistake("an empty condition", rule("one", "{}"), "rules[0].when: is empty: it would hold for every question"),
    Mistake("an empty alternative", rule("one", '[{ any = ["x"] }, {}]'), "rules[0].when[1]: is empty"),
    Mistake("an empty word", rule("one", '[{ any = ["x"] }, { any = [" "] }]'), "rules[0].when[1]: ' ' is an empty"),
    Mistake("an empty exception", rule("one", '{ any = ["x"] }')[:-1] + ", unless = {} }", "rules[0].unless: is empty"),
    Mistake("an exception's empty word", rule("one", '{ any = ["x"] }', 'all = [["y|"]]'), "rules[0].unless: 'y|'"),
    Mistake("an exception's key", rule("one", '{ any = ["x"] }', 'ani = ["y"]'), "did you mean 'any'?"),
    Mistake("an alternative's key", rule("one", '[{ any = ["x"] }, { ani = ["y"] }]'), "ani"),
    Mistake("a pattern that is none", rule("one", '{ any = ["x"] }', "patterns = ['(']"), "rules[0].unless"),
]


@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: case.id)
def test_mistakes_at_load(case: Mistake) -> None:
    with pytest.raises(ConfigError) as caught:
        layer_router(f'kind = "rules.v1"\nrules = [{case.rule}]')
    assert case.problem in str(caught.value)
