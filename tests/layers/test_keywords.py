"""`keywords.v1`: which phrases are found, in which order routes come, what muting does, and mistakes at load."""

from typing import NamedTuple

import pytest

from toml_router import layer_router
from turnout import ConfigError
from turnout.testing import check_layer

LAYER = """\
kind = "keywords.v1"

[layers.phrases]
c = ["bee|bees", "queen bee"]
a = ["hive", "what's new"]
b = ["wasp", "hive tool"]
"""
SUBSTRING = LAYER.replace('"keywords.v1"\n', '"keywords.v1"\nmatch = "substring"\n')


class Case(NamedTuple):
    id: str
    text: str
    routes: tuple[str, ...]


FOUND = [
    Case("one", "a bee", ("c",)),
    Case("another form", "two bees", ("c",)),
    Case("two phrases, one route", "the queen bee of bees", ("c",)),
    Case("two routes", "bee and wasp", ("c", "b")),
    Case("the order of the profile, not of the words", "wasp hive bee", ("c", "a", "b")),
    Case("one phrase inside another", "a hive tool", ("a", "b")),
    Case("case and marks", "BEE?!", ("c",)),
    Case("typography", "What’s new?", ("a",)),
    Case("runs of spaces", "queen \u00a0 bee", ("c",)),
    Case("look-alikes", "b\u0435e", ("c",)),
    Case("invisible", "wa\u200bsp", ("b",)),
    Case("full width", "ｈｉｖｅ", ("a",)),
]
NOT_FOUND = ["", "beer", "beehive", "frisbee", "waspish", "hives", "whats new", "what is new", "queen", "bée"]


@pytest.mark.parametrize("case", FOUND, ids=lambda case: case.id)
def test_every_route_whose_phrase_occurs_is_chosen(case: Case) -> None:
    decision = layer_router(LAYER).route_sync(case.text)
    assert decision.routes == case.routes
    assert (decision.by, decision.outcome, decision.confidence) == ("keywords", "K-", 1.0)
    assert [reason.code for reason in decision.reasons] == [f"keyword.{route}" for route in case.routes]


@pytest.mark.parametrize("text", NOT_FOUND)
def test_nothing_found_passes(text: str) -> None:
    decision = layer_router(LAYER).route_sync(text)
    assert (decision.by, decision.steps[0].ended) == ("fallback", "passed")


SUBSTRINGS = [
    Case("inside a word", "beer", ("c",)),
    Case("only the first form", "frisbees", ("c",)),
    Case("across words", "the hives", ("a",)),
    Case("several", "waspish beehives", ("c", "a", "b")),
    Case("case", "BEEHIVE", ("c", "a")),
]


@pytest.mark.parametrize("case", SUBSTRINGS, ids=lambda case: case.id)
def test_substrings_where_a_profile_asks_for_them(case: Case) -> None:
    assert layer_router(SUBSTRING).route_sync(case.text).routes == case.routes


def test_substring_finds_all_that_whole_phrases_find() -> None:
    whole, parts = layer_router(LAYER), layer_router(SUBSTRING)
    for case in FOUND:
        assert set(whole.route_sync(case.text).routes) <= set(parts.route_sync(case.text).routes), case.id


def test_the_words_are_shown() -> None:
    decision = layer_router(LAYER).route_sync("two bees, a queen bee and a hive tool")
    assert [reason.text for reason in decision.reasons] == ["c (bee, queen bee)", "a (hive)", "b (hive tool)"]


class Without(NamedTuple):
    id: str
    text: str
    muted: str
    routes: tuple[str, ...]
    by: str = "keywords"


WITHOUT = [
    Without("one of two", "bee wasp", "keyword.c", ("b",)),
    Without("the only one", "bee", "keyword.c", ("a",), "fallback"),
    Without("one that did not fire", "bee", "keyword.b", ("c",)),
]


@pytest.mark.parametrize("case", WITHOUT, ids=lambda case: case.id)
def test_muted_phrases_count_for_nothing(case: Without) -> None:
    profile = layer_router(LAYER).profile
    reading = profile.mute(profile.read(layer_router(LAYER).route_sync(case.text).query), frozenset((case.muted,)))
    verdict = profile.layers[0].call(reading)  # type: ignore[misc]
    found = verdict.routes if verdict is not None else (profile.fallback.route,)  # type: ignore[union-attr]
    assert (found, "keywords" if verdict is not None else "fallback") == (case.routes, case.by)


def test_what_would_be_without_a_keyword() -> None:
    router = layer_router(LAYER)
    found = list(router.counterfactuals(router.route_sync("a bee and a wasp")))
    assert [(one.signal, one.route) for one in found] == [("keyword.c", "b"), ("keyword.b", "c")]


def test_replay() -> None:
    router = layer_router(LAYER)
    decision = router.route_sync("wasp hive bee")
    assert router.replay(decision) == decision


class Mistake(NamedTuple):
    id: str
    layer: str
    problems: tuple[str, ...]


MISTAKES = [
    Mistake("no such route", 'phrases = { bb = ["x"] }', ("layers[0].phrases.bb: 'bb' is not a route",)),
    Mistake("an empty list", "phrases = { a = [] }", ("phrases.a: is empty: the route could never be chosen",)),
    Mistake("an empty phrase", 'phrases = { a = ["x", " "] }', ("phrases.a[1]: an empty phrase",)),
    Mistake("an empty form", 'phrases = { a = ["x|"] }', ("phrases.a[0]: an empty phrase",)),
    Mistake("a phrase of two routes", 'phrases = { a = ["x"], b = ["x"] }', ("phrases.b[0]: 'x' names 'a' already",)),
    Mistake("another way to match", 'phrases = { a = ["x"] }\nmatch = "fuzzy"', ("layers[0].match",)),
    Mistake("a misspelt key", 'phrases = { a = ["x"] }\nmach = "word"', ("mach: unknown key, did you mean 'match'?",)),
    Mistake("no phrases", "", ("phrases",)),
    Mistake("all at once", 'phrases = { d = [], a = ["", "y"], b = ["y"] }', (
        "'d' is not a route", "phrases.d: is empty", "phrases.a[0]: an empty phrase", "'y' names 'a' already")),
]  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: case.id)
def test_mistakes_at_load(case: Mistake) -> None:
    with pytest.raises(ConfigError) as caught:
        layer_router(f'kind = "keywords.v1"\n{case.layer}')
    for problem in case.problems:
        assert problem in str(caught.value)


def test_the_same_phrase_twice_in_one_list_is_no_mistake() -> None:
    layer = 'kind = "keywords.v1"\nphrases = { b = ["x", "x"], c = ["z"] }'
    assert layer_router(layer).route_sync("x").routes == ("b",)


def test_it_conforms() -> None:
    check_layer("keywords.v1", {"phrases": {"second": ["hello", "define"], "first": ["page"]}})
    check_layer("keywords.v1", {"phrases": {"third": ["e"]}, "match": "substring"})
