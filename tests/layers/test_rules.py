"""`rules.v1`: when each kind of condition holds, which rule wins, and what its verdict says."""

from typing import NamedTuple

import pytest

from toml_router import layer_router
from turnout import ConfigError, Query, Turn
from turnout.testing import check_layer


class Case(NamedTuple):
    id: str
    when: str
    yes: tuple[str, ...]
    no: tuple[str, ...]


CASES = [
    Case(
        "any", 'any = ["bee", "queen bee"]', ("a bee", "BEE!", "the queen bee", "bee"), ("beer", "been", "", "frisbee")
    ),
    Case("forms of one word", 'any = ["bee|bees"]', ("bee", "bees"), ("beess", "beehive")),
    Case(
        "a phrase of words", 'any = ["make sure"]', ("make sure it", "Make  Sure", "make\u00a0sure"), ("make it sure",)
    ),
    Case("an apostrophe", 'any = ["don\'t"]', ("I don't", "I don\u2019t"), ("dont", "don")),
    Case("punctuation", 'any = ["c++", "```"]', ("use c++ now", "in c++.", "```py"), ("c+", "``")),
    Case("other scripts", 'any = ["éclair", "пчела"]', ("un éclair", "ÉCLAIR", "Пчела"), ("éclairs", "пчелами")),
    Case("beside unspaced scripts", 'any = ["api"]', ("使用api吗", "api。"), ("rapid", "apis")),
    Case(
        "all", 'all = [["bee", "wasp"], ["hive"]]', ("the bee in the hive", "hive wasp"), ("bee", "hive", "wasps hive")
    ),
    Case("none", 'none = ["bee"]', ("a wasp", "", "beer"), ("a bee",)),
    Case("any but none", 'any = ["hive"], none = ["bee"]', ("a hive",), ("a bee hive", "x")),
    Case(
        "ordered",
        'ordered = [["what does", "mean"]]',
        ("what does it mean?", "so what does x y mean"),
        ("what does it\nmean", "mean what does", "what does mean", "what doesmean"),
    ),
    Case(
        "whole",
        'whole = ["hi", "good morning", "there"]',
        ("hi", " Hi!! ", "hi there", "good morning, hi..."),
        ("hi Bob", "", "...", "history", "good"),
    ),
    Case("patterns", "patterns = ['^step \\d+$', 'x{3}']", ("step 12", "axxxb"), ("step x", "a step 1", "xx")),
    Case("none_patterns", "any = ['bee'], none_patterns = ['\\d']", ("a bee",), ("1 bee", "wasp")),
    Case("patterns see folded text", "patterns = ['é']", ("É", "e\u0301", "xéy"), ("e",)),
    Case("word class in patterns", "patterns = ['^\\w+$']", ("naïve", "пчела", "bee_1"), ("a b", "-")),
    Case(
        "everything at once",
        "any = ['bee'], all = [['hive']], none = ['wasp'], patterns = ['\\?$']",
        ("is the bee in the hive?",),
        ("is the bee in the hive", "bee?", "bee hive wasp?"),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_when_a_condition_holds(case: Case) -> None:
    router = layer_router(f'kind = "rules.v1"\nrules = [{{ id = "r", route = "b", when = {{ {case.when} }} }}]')
    for text in case.yes:
        assert router.route_sync(text).route == "b", text
    for text in case.no:
        assert router.route_sync(text).route == "a", text


RULES = """\
kind = "rules.v1"
accept = { confidence = 1.0, margin = 1.0 }

[[layers.rules]]
id = "RC-01"
route = "b"
when = { any = ["bee"], none = ["wasp"] }
confidence = 0.6
text = "bees go to b"

[[layers.rules]]
id = "rc-02"
route = ["c", "b"]
when = { any = ["bee", "ant"] }

[[layers.rules]]
id = "rc-03"
route = "a"
when = { any = ["wasp"] }
"""


class Verdicts(NamedTuple):
    text: str
    routes: tuple[str, ...]
    confidence: float
    reason: tuple[str, str]


VERDICTS = [
    Verdicts("a bee", ("b",), 0.6, ("rule.RC-01", "bees go to b")),
    Verdicts("a bee and a wasp", ("c", "b"), 1.0, ("rule.rc-02", "rule rc-02 applies")),
    Verdicts("ant", ("c", "b"), 1.0, ("rule.rc-02", "rule rc-02 applies")),
    Verdicts("wasp", ("a",), 1.0, ("rule.rc-03", "rule rc-03 applies")),
]


@pytest.mark.parametrize("case", VERDICTS, ids=lambda case: case.text)
def test_the_first_rule_that_holds_decides_whatever_the_gate(case: Verdicts) -> None:
    decision = layer_router(RULES).route_sync(case.text)
    assert (decision.routes, decision.confidence, decision.outcome) == (case.routes, case.confidence, "R-")
    assert [(reason.code, reason.text) for reason in decision.reasons] == [case.reason]


def test_no_rule_no_verdict() -> None:
    decision = layer_router(RULES).route_sync("a fly")
    assert (decision.by, decision.steps[0].ended) == ("fallback", "passed")


def test_what_would_be_without_a_rule() -> None:
    router = layer_router(RULES)
    (found,) = router.counterfactuals(router.route_sync("a bee"))
    assert (found.signal, found.route) == ("rule.RC-01", "c")
    assert found.text == "would be c + b (1.00) without rule.RC-01"


def test_a_rule_on_what_reading_took() -> None:
    layer = 'kind = "rules.v1"\nrules = [{ id = "packed", route = "b", when = { note = "extract.packed_empty" } }]'
    router = layer_router(layer)
    assert router.route_sync("hello").route == "a"
    packed = Query(turns=(Turn("user", "[Chat messages since your last reply]\nBob: hi"),))
    assert router.route_sync(packed).route == "a", "this profile does not unwrap"


def test_the_same_phrase_in_two_rules() -> None:
    layer = """\
kind = "rules.v1"
rules = [
  { id = "one", route = "b", when = { all = [["bee"], ["hive"]] } },
  { id = "two", route = "c", when = { any = ["bee"] } },
]"""
    router = layer_router(layer)
    assert [router.route_sync(text).route for text in ("bee hive", "bee", "hive")] == ["b", "c", "a"]


def test_it_conforms() -> None:
    check_layer("rules.v1", {"rules": []})
    check_layer("rules.v1", {"rules": [{"id": "r", "route": "first", "when": {"none": ["hello"]}, "confidence": 0.0}]})


class Unreachable(NamedTuple):
    id: str
    first: str
    second: str
    is_reachable: bool


REACHABLE = [
    Unreachable("the same", 'any = ["x"]', 'any = ["x"]', False),
    Unreachable("fewer words", 'any = ["x", "y"]', 'any = ["y"]', False),
    Unreachable("in a group", 'any = ["x", "y"]', 'all = [["x"], ["z"]]', False),
    Unreachable("the same words and more", 'any = ["x", "y"]', 'any = ["x"], none = ["z"]', False),
    Unreachable("the same pattern", "patterns = ['x']", "patterns = ['x']", False),
    Unreachable("more words", 'any = ["x"]', 'any = ["x", "y"]', True),
    Unreachable("other words", 'any = ["x"]', 'any = ["y"]', True),
    Unreachable("the first asks for more", 'any = ["x"], none = ["z"]', 'any = ["x"]', True),
    Unreachable("a pattern is not judged", "patterns = ['x|y']", "patterns = ['x']", True),
]


@pytest.mark.parametrize("case", REACHABLE, ids=lambda case: case.id)
def test_a_rule_that_can_never_win_is_a_mistake(case: Unreachable) -> None:
    layer = f"""\
kind = "rules.v1"
rules = [
  {{ id = "one", route = "b", when = {{ {case.first} }} }},
  {{ id = "two", route = "c", when = {{ {case.second} }} }},
]"""
    if case.is_reachable:
        layer_router(layer)
    else:
        with pytest.raises(ConfigError, match=r"rules\[1\]: unreachable: rules\[0\] \(one\) applies whenever it does"):
            layer_router(layer)


@pytest.mark.parametrize("id", ["", "a b", "a\\n"])
def test_an_id_that_makes_no_code_is_a_mistake(id: str) -> None:
    with pytest.raises(ConfigError):
        layer_router(f'kind = "rules.v1"\nrules = [{{ id = "{id}", route = "b", when = {{ any = ["x"] }} }}]')
