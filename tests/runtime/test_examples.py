"""`Router.from_examples`: a router of a few texts a route, in memory, and a fallback for what it does not know."""

import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import turnout
from small_student import Words
from turnout import Policy, Router
from turnout.config.champion import champion_file
from turnout.core.errors import LearnError, TooFewExamples
from turnout.learn.dataset import Example
from turnout.learn.stranger import find_strangers

EXAMPLES = {
    "refund": [
        "I want my money back",
        "How do I get a refund?",
        "Please refund my order",
        "The refund has not arrived",
        "Can I return this and get my money?",
    ],
    "parcel": [
        "Where is my parcel?",
        "Track my delivery",
        "My parcel is late",
        "When does the courier come?",
        "The delivery never came",
    ],
}


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings and no shelf of whoever runs the tests."""
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.delenv("TURNOUT_CONFIG", raising=False)


def learn(examples: Any = EXAMPLES, **options: Any) -> Router:
    return Router.from_examples(examples, **{"embedder": "none"} | options)


def test_it_routes_at_once_and_keeps_nothing(tmp_path: Path) -> None:
    router = learn()
    assert isinstance(router, turnout.Router)
    decision = router.route_sync("a refund of my money please")
    assert (decision.route, decision.by, decision.outcome) == ("refund", "student", "E-")
    assert router.route_sync("where is the parcel, courier?").route == "parcel"
    assert router.route_sync("ζηθ ωξψ 今天天气怎么样").route == "other"
    assert router.route_sync("ζηθ ωξψ 今天天气怎么样").outcome == "Fl"
    assert router.replay(decision) == decision
    assert any(reason.code == "student.label" for reason in decision.reasons)
    assert list(tmp_path.iterdir()) == []


def test_the_same_examples_make_the_same_router() -> None:
    one, other = learn(), learn({route: texts[::-1] for route, texts in EXAMPLES.items()})
    assert one.profile.hash == other.profile.hash
    assert learn(gate=0.9).profile.hash != one.profile.hash


def test_options() -> None:
    router = learn(
        fallback="person", policies={"refund": Policy(model="large"), "person": {"respond": "wait"}}, name="shop"
    )
    assert router.profile.name == "shop"
    assert router.route_sync("refund my money").policy.model == "large"
    unknown = router.route_sync("ζηθ ωξψ")
    assert (unknown.route, unknown.policy.respond) == ("person", "wait")
    assert learn(fallback="refund").profile.routes == ("refund", "parcel")
    assert learn(gate=1.0).route_sync("a refund of my money please").route == "other"
    vectors = learn(embedder=Words())
    assert vectors.route_sync("a refund of my money please").route == "refund"


def test_a_student_of_that_name_on_the_shelf_is_not_its_business() -> None:
    """Read, it would be one of other routes; served, the wrong one."""
    shelf = champion_file("shop", "student")
    shelf.parent.mkdir(parents=True)
    shelf.write_text("0123456789abcdef")
    assert learn(name="shop").route_sync("a refund of my money please").route == "refund"


def test_strangers_of_ones_own() -> None:
    others = [f"{word} of the year" for word in ("song", "film", "word", "car", "man", "town")]
    assert learn({**EXAMPLES, "oos": others}).profile.routes == ("refund", "parcel", "other")
    rows = [Example(text, route) for route, texts in EXAMPLES.items() for text in texts]
    asked = [row.text for row in find_strangers(rows, "other")]
    assert len(asked) > 60
    assert find_strangers(rows, "refund") == [], "the fallback is a label like any other"
    assert find_strangers([*rows, Example("song", "oos")], "other") == []
    chat = [Example("lovely weather, tell me a joke", "chat"), Example("hello", "chat")]
    left = [row.text for row in find_strangers([*rows, *chat], "other")]
    gone = {*asked} - {*left}
    assert {"tell me a joke", "hello, how are you doing", "what's the weather like in Lisbon"} <= gone
    assert len(gone) < 10, "what a label is about is no stranger there; the rest still is"


class RefusedCase(NamedTuple):
    id: str
    examples: Any
    said: str
    options: Any = ()


REFUSED = [
    RefusedCase("no mapping", [("refund", "a")], "texts by their route"),
    RefusedCase("one text for a list", {"a": "text", "b": ["x"]}, "the examples of 'a' must be a list of texts"),
    RefusedCase("no text", {"a": ["x", 3], "b": ["x"]}, "an example of 'a' must be a text, found 3"),
    RefusedCase("a blank text", {"a": ["x", " "], "b": ["x"]}, "an example of 'a' must be a text"),
    RefusedCase("no route", {" ": ["x"], "b": ["x"]}, "' ' is not a name for a route"),
    RefusedCase("too few", {"a": ["x y"], "b": ["z w"]}, "a student needs at least 10 of at least 2"),
    RefusedCase("one route", {"a": [f"text {number}" for number in range(20)]}, "of 1 labels"),
    RefusedCase("another policy", EXAMPLES, "policies 'refnd' is not a route", {"policies": {"refnd": {}}}),
    RefusedCase("a wrong policy", EXAMPLES, "unknown key", {"policies": {"refund": {"modle": "x"}}}),
    RefusedCase("a gate", EXAMPLES, "between 0 and 1", {"gate": 60}),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_refused(case: RefusedCase) -> None:
    with pytest.raises(turnout.TurnoutError) as caught:
        learn(case.examples, **dict(case.options))
    assert case.said in str(caught.value)
    assert "turnout feedback" not in str(caught.value), "a program, not the command line"


def test_errors_have_names() -> None:
    with pytest.raises(TooFewExamples):
        learn({"a": ["x y"], "b": ["z w"]})


def test_without_the_extra_a_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "turnout.learn.begin", None)
    monkeypatch.delattr("turnout.learn.begin", raising=False)
    with pytest.raises(LearnError, match=r"pip install 'turnout\[learn\]'"):
        learn()
