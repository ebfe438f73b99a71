"""Plans: the parts of compound and conditional questions, their roles, and the decisions and JSON made of them."""

from typing import NamedTuple

import pytest

from timing import is_within
from toml_router import router_of
from turnout import Query, Router, Turn
from turnout.core.query import Reading
from turnout.testing import make_reading
from turnout.text.match import Matcher, Phrase
from turnout.text.plan import planner
from turnout.text.split import MOST

MATCHER = Matcher([Phrase(("weather", "rain", "snow")), Phrase(("news",)), Phrase(("door", "garage"))])
plan = planner(MATCHER, triggering=None, compound=True, conditions=True)


def pieces(text: str) -> list[tuple[str, ...]]:
    """Role and text of each part, and what a condition leads to."""
    parts = plan(make_reading(text))
    return [(part.role, part.query.text, *([part.then] if part.then else [])) for part in parts]


class Case(NamedTuple):
    id: str
    text: str
    parts: list[tuple[str, ...]]


CASES = [
    Case("one question", "what is a quark", []),
    Case("blank", "", []),
    Case("spaces", "  \n ", []),
    Case("two", "weather and news", [("part", "weather"), ("part", "news")]),
    Case("three", "weather, news and is the door open", [
        ("part", "weather"), ("part", "news"), ("part", "is the door open")]),
    Case("a comparison", "compare the weather and the news", []),
    Case("names", "weather in Graz and Linz", []),
    Case("a condition alone", "if it will rain, call Ada", [("condition", "it will rain", "call Ada")]),
    Case("and a remainder", "if it will rain, call Ada and check the news", [
        ("condition", "it will rain", "call Ada"), ("remainder", "check the news")]),
    Case("a remainder in parts", "if it will rain, call Ada and check the news and who was Hypatia", [
        ("condition", "it will rain", "call Ada"), ("remainder", "check the news"), ("remainder", "who was Hypatia")]),
    Case("a condition in a part", "check the news, and if it will rain, call Ada", [
        ("part", "check the news"), ("condition", "it will rain", "call Ada")]),
    Case("a condition in the remainder", "if it will rain, call Ada and if the door is open, shut it", [
        ("condition", "it will rain", "call Ada"), ("condition", "the door is open", "shut it")]),
    Case("and what remains of that", "if it will rain, call Ada and if it will snow, call Ben and check the news", [
        ("condition", "it will rain", "call Ada"), ("condition", "it will snow", "call Ben"),
        ("remainder", "check the news")]),
    Case("a consequence with a trigger is not asked", "if the door is open, check the weather", [
        ("condition", "the door is open", "check the weather")]),
    Case("should", "should it snow, wake me", [("condition", "it snow", "wake me")]),
    Case("in case", "in case it will rain, wake me", [("condition", "it will rain", "wake me")]),
    Case("should I", "should I worry about the rain", []),
    Case("should we", "Should we expect snow, or not?", []),
    Case("a trailing if", "call Ada, if it will rain", []),
    Case("let me know if", "let me know if it will rain", []),
    Case("no comma", "if it will rain call Ada", []),
    Case("case and marks are kept", "If the DOOR is open, Call Ada! And check the News?", [
        ("condition", "the DOOR is open", "Call Ada!"), ("remainder", "check the News?")]),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_parts_of_a_question(case: Case) -> None:
    assert pieces(case.text) == case.parts


KNOWN = planner(MATCHER, triggering=None, compound=True, conditions=True, knows=lambda text: "unknown" not in text)

QUESTIONS = [
    Case("two questions", "Is the door locked? What's the weather?", [
        ("part", "Is the door locked?"), ("part", "What's the weather?")]),
    Case("no dangling words", "What's the weather? And also, is the door locked?", [
        ("part", "What's the weather?"), ("part", "is the door locked?")]),
    Case("a remark goes with the question before it", "Is the garage open? I left in a hurry. Any news?", [
        ("part", "Is the garage open? I left in a hurry."), ("part", "Any news?")]),
    Case("a story goes with the first", "I am off to work. Who wrote Dune? Who painted Guernica?", [
        ("part", "I am off to work. Who wrote Dune?"), ("part", "Who painted Guernica?")]),
    Case("and a conjunction in one of them", "Who wrote Dune? Is the door locked and any news?", [
        ("part", "Who wrote Dune?"), ("part", "Is the door locked"), ("part", "any news?")]),
    Case("one part is unknown", "Is the door locked? What is unknown?", []),
    Case("the second leans on the first", "Who wrote Dune? When was it published?", []),
    Case("a tag", "It will rain, right? Is that so?", []),
    Case("only one asks", "I lost my card? Help. Thanks.", []),
    Case("quoted", 'What does "who? what? where?" mean in the news', []),
    Case("a comma goes on", "Is the door locked?, he asked", []),
    Case("spanish", "¿Quién pintó Guernica? ¿Dónde está el Museo del Prado?", [
        ("part", "¿Quién pintó Guernica?"), ("part", "¿Dónde está el Museo del Prado?")]),
    Case("two in a row", "weather?? news??", [("part", "weather??"), ("part", "news??")]),
]  # fmt: skip


@pytest.mark.parametrize("case", QUESTIONS, ids=lambda case: case.id)
def test_sentences_that_ask_are_parts_if_each_has_an_answer(case: Case) -> None:
    parts = KNOWN(make_reading(case.text))
    assert [(part.role, part.query.text) for part in parts] == case.parts


def test_sentences_stay_together_where_nobody_knows_the_answers() -> None:
    assert pieces("Is the door locked? What's the weather?") == []


def test_a_question_mark_cuts_where_every_part_routes_by_itself() -> None:
    router = router_of(QUIZ)
    decision = router.route_sync("Is the tap dripping? Is the lamp on?")
    assert [(part.query.text, part.routes) for part in decision.parts] == [
        ("Is the tap dripping?", ("water",)),
        ("Is the lamp on?", ("power",)),
    ]
    whole = router.route_sync("Is the tap dripping? Is the cat asleep?")
    assert (whole.parts, whole.routes) == ((), ("water",))
    assert router.replay(decision).parts[1].routes == ("power",)


def test_many_questions_make_at_most_so_many_parts() -> None:
    parts = KNOWN(make_reading("Who wrote Dune? " * 40))
    assert len(parts) == MOST
    assert sum(part.query.text.count("?") for part in parts) == 40


def test_hostile_question_marks_take_no_time() -> None:
    for unit in ("?", "? ", "a? ", "Is it? And ", "who? ", "？", "what?\n"):
        text = unit * (500_000 // len(unit))
        assert is_within(1.0, lambda text=text: KNOWN(make_reading(text)))


QUIZ = """
name = "mine"
routes = ["water", "power"]
fallback = { route = "water" }
split = { compound = true }
[[layers]]
kind = "keywords.v1"
[layers.phrases]
water = ["tap"]
power = ["lamp"]
[policy.water]
[policy.power]
"""


def test_a_conditional_part_keeps_a_consequence_that_asks() -> None:
    assert pieces("check the news and if the door is open, tell me the weather") == [
        ("part", "check the news"),
        ("condition", "the door is open", "tell me the weather"),
    ]


class SwitchedCase(NamedTuple):
    compound: bool
    conditions: bool
    roles: list[str]


TEXT = "if it will rain, call Ada and check the news"
SWITCHED = [
    SwitchedCase(True, True, ["condition", "remainder"]),
    SwitchedCase(False, True, ["condition", "remainder"]),
    SwitchedCase(False, False, []),
]


@pytest.mark.parametrize("case", SWITCHED, ids=str)
def test_each_half_can_be_switched_off(case: SwitchedCase) -> None:
    half = planner(MATCHER, triggering=None, compound=case.compound, conditions=case.conditions)
    assert [part.role for part in half(make_reading(TEXT))] == case.roles


def test_without_compound_a_remainder_stays_one() -> None:
    half = planner(MATCHER, triggering=None, compound=False, conditions=True)
    parts = half(make_reading("if it will rain, call Ada and check the news and who was Hypatia"))
    assert [part.query.text for part in parts] == ["it will rain", "check the news and who was Hypatia"]
    assert half(make_reading("weather and news")) == ()


def test_only_the_named_patterns_trigger() -> None:
    some = planner(MATCHER, triggering={1}, compound=True, conditions=False)
    assert some(make_reading("weather and the garage")) == ()
    assert len(plan(make_reading("weather and the garage"))) == 2


def test_a_declared_route_is_not_taken_apart() -> None:
    assert plan(make_reading(Query("weather and news", declared="x"))) == ()


def test_a_part_keeps_who_asked_and_leaves_the_conversation() -> None:
    query = Query("weather and news", (Turn("user", "hi"),), ("image/png",), ceiling="b", session="s", tenant="t")
    for part in plan(make_reading(query)):
        assert part.query == Query(part.query.text, (), ("image/png",), ceiling="b", session="s", tenant="t")


def test_turns_are_planned_by_the_last_question() -> None:
    query = Query(turns=(Turn("user", "a and b"), Turn("assistant", "if c, d"), Turn("user", "weather and news")))
    assert [part.query.text for part in plan(make_reading(query))] == ["weather", "news"]


def test_no_more_parts_than_anybody_asks() -> None:
    parts = plan(make_reading(" and ".join(["check the news"] * 40)))
    assert len(parts) == MOST
    assert parts[-1].query.text == " and ".join(["check the news"] * (40 - MOST + 1))


PROFILE = """\
name = "planned"
routes = ["other", "weather", "news", "house"]
fallback = { route = "other", confidence = 0.4 }
split = { compound = true, conditions = true }

[[layers]]
kind = "declared.v1"

[[layers]]
kind = "keywords.v1"
phrases = { weather = ["weather", "rain"], news = ["news"], house = ["door"] }

[policy.other]
[policy.weather]
[policy.news]
[policy.house]
"""


@pytest.fixture(scope="module")
def router() -> Router:
    return router_of(PROFILE)


class Whole(NamedTuple):
    text: str
    routes: tuple[str, ...]
    outcome: str
    confidence: float


WHOLES = [
    Whole("news and weather", ("news", "weather"), "K-", 1.0),
    Whole("check the weather and will it rain", ("weather",), "K-", 1.0),
    Whole("who was Hypatia and check the news", ("other", "news"), "F-", 0.4),
    Whole("if it will rain, call Ada", ("weather",), "K-", 1.0),
    Whole("if the door is open, call Ada and check the news and weather", ("house", "news", "weather"), "K-", 1.0),
    Whole("who was Hypatia and who was Ada Lovelace", ("other",), "F-", 0.4),
]


@pytest.mark.parametrize("case", WHOLES, ids=lambda case: case.text)
def test_the_whole_is_as_sure_as_its_least_sure_part(router: Router, case: Whole) -> None:
    decision = router.route_sync(case.text)
    assert (decision.routes, decision.outcome, decision.confidence) == (case.routes, case.outcome, case.confidence)
    assert decision.by == "parts"
    assert decision.reasons[0].code == "split.parts"
    assert router.replay(decision) == decision
    assert [router.replay(part) for part in decision.parts] == list(decision.parts)


def test_json_says_what_a_part_is(router: Router) -> None:
    data = router.route_sync("if it will rain, call Ada and check the news and is the door open").to_dict()
    told = [{key: part.get(key) for key in ("role", "text", "then", "routes")} for part in data["parts"]]
    assert told == [
        {"role": "condition", "text": "it will rain", "then": "call Ada", "routes": ["weather"]},
        {"role": "remainder", "text": "check the news", "then": None, "routes": ["news"]},
        {"role": "remainder", "text": "is the door open", "then": None, "routes": ["house"]},
    ]
    assert {"role", "text", "then"}.isdisjoint(data)
    assert all("then" not in part for part in data["parts"][1:])
    assert all(part["parts"] == [] for part in data["parts"])


def test_a_declared_route_answers_the_whole(router: Router) -> None:
    decision = router.route_sync(Query("weather and news", declared="house"))
    assert (decision.routes, decision.by, decision.parts) == (("house",), "declared", ())


def test_two_readings_of_one_text_agree(router: Router) -> None:
    text = "news and weather, and if the door is open, call Ada"
    assert router.route_sync(text) == router.route_sync(text)
    turns = router.route_sync(Query(turns=(Turn("user", text),)))
    assert [part.query for part in turns.parts] == [part.query for part in router.route_sync(text).parts]


def test_what_would_be_without_a_keyword(router: Router) -> None:
    found = {one.signal: one.route for one in router.counterfactuals(router.route_sync("news and weather"))}
    assert found["keyword.news"] in {"other", "weather"}


MEGABYTE = 1_000_000
FAST = [
    *("a", " ", ",", "and ", ", and ", "if ", "if x, ", "if x, y and ", "éy ", '"and" ', "и, and ", "\n", "? ", "､"),
    "everyone keeps talking about and ",
]
# Every one of these is a part of its own.
MANY = ["weather and ", "check the news, ", "should it rain, ", "if rain, news and "]


@pytest.mark.parametrize("unit", [*FAST, *(pytest.param(unit) for unit in MANY)], ids=repr)
def test_a_hostile_megabyte_is_planned_at_once(unit: str) -> None:
    reading = make_reading(unit * (MEGABYTE // len(unit)))
    assert is_within(0.3, lambda: plan(reading))
    assert len(plan(reading)) <= MOST


def test_planning_takes_nothing_but_the_reading() -> None:
    reading: Reading = make_reading("weather and news")
    assert plan(reading) == plan(reading)
