"""The flow of the specification, row by row: who is meant, who is asked instead, what is said of it."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from apps.sources.asked import ALL, ask, scripted, words_alone
from apps.sources.timeless import run_timeless
from turnout import Query
from turnout.apps.sources.plan import make_plan
from turnout.apps.sources.source import Cause, Empty, EntityState, Failure, SourceAnswer
from turnout.testing import Stall
from turnout.testing.scripted_source import HANG

OPEN = SourceAnswer("Front door: open", facts=(EntityState("cover.front", "Front door", "open"),))
SHUT = SourceAnswer("Front door: closed", facts=(EntityState("cover.front", "Front door", "closed"),))
DOWN = Failure(Cause.UNREACHABLE, "nobody there")


class Plan(NamedTuple):
    id: str
    question: str
    parts: list[tuple[str, str, tuple[str, ...]]]
    configured: tuple[str, ...] = ALL


PLANS = [
    Plan("one keyword", "weather", [("whole", "weather", ("forecast",))]),
    Plan(
        "keywords of two sources are fused",
        "rss feeds about precipitation",
        [("whole", "rss feeds about precipitation", ("forecast", "news"))],
    ),
    Plan(
        "golden: three parts, names stay together",
        "check the weather, and Iran and Israel news, and is the door locked",
        [
            ("part", "check the weather", ("forecast",)),
            ("part", "Iran and Israel news", ("news",)),
            ("part", "is the door locked", ("ha",)),
        ],
    ),
    Plan(
        "golden: two parts, nothing matched",
        "what's happening in Texas, plus I need help with my router",
        [
            ("part", "what's happening in Texas", ("kiwix",)),
            ("part", "I need help with my router", ("kiwix",)),
        ],
    ),
    Plan(
        "golden: framing",
        "what's the deal with that whole mercury retrograde thing everyone keeps talking about",
        [
            (
                "whole",
                "what's the deal with that whole mercury retrograde thing everyone keeps talking about",
                ("kiwix",),
            )
        ],
    ),
    Plan(
        "framing adds the encyclopedia to a keyword's choice",
        "everyone keeps talking about black holes rss",
        [("whole", "everyone keeps talking about black holes rss", ("news", "kiwix"))],
    ),
    Plan(
        "no dangling words",
        "check the weather and also are the lights on",
        [("part", "check the weather", ("forecast",)), ("part", "are the lights on", ("ha",))],
    ),
    Plan("whole phrases: down", "write this down for me", [("whole", "write this down for me", ("kiwix",))]),
    Plan(
        "names are not split",
        "weather in Phoenix and Kingman",
        [("whole", "weather in Phoenix and Kingman", ("forecast",))],
    ),
    Plan(
        "a condition, its consequence and the remainder",
        "if the garage door is open, close it and check the news",
        [("condition", "the garage door is open", ("ha",)), ("remainder", "check the news", ("news",))],
    ),
    Plan(
        "should I is a question",
        "should I bring a coat, weather wise",
        [("whole", "should I bring a coat, weather wise", ("forecast",))],
    ),
    Plan(
        "a condition nobody can judge is one question",
        "If Napoleon had won at Waterloo, who would rule Europe?",
        [("whole", "If Napoleon had won at Waterloo, who would rule Europe?", ("kiwix",))],
    ),
    Plan(
        "nothing matched: the first configured",
        "who was Ada Lovelace",
        [("whole", "who was Ada Lovelace", ("files",))],
        ("web", "files"),
    ),
    Plan(
        "nothing matched, the web alone",
        "who was Ada Lovelace",
        [("whole", "who was Ada Lovelace", ("web",))],
        ("web",),
    ),
    Plan("nothing configured: the seed's", "who was Ada Lovelace", [("whole", "who was Ada Lovelace", ("kiwix",))], ()),
    Plan(
        "files stand in for the encyclopedia in a fusion",
        "everyone keeps talking about black holes rss",
        [("whole", "everyone keeps talking about black holes rss", ("news", "files"))],
        ("files", "news"),
    ),
]


@pytest.mark.parametrize("case", PLANS, ids=lambda case: case.id)
def test_plan(case: Plan) -> None:
    plan = make_plan(words_alone().route_sync(Query(case.question)), case.question, case.configured)
    assert [(part.role, part.text, part.names) for part in plan.parts] == case.parts
    assert plan.standalone == ""
    assert all(part.decision and part.by for part in plan.parts)


class Case(NamedTuple):
    id: str
    question: str
    scripts: dict[str, object]
    source_used: str
    success: bool = True
    fallback: bool = False
    says: tuple[str, ...] = ()
    parts: tuple[tuple[str, str, bool], ...] = ()
    """(intended, used, fallback) of each, where there are several."""


def test_a_source_that_is_named_is_the_one_that_is_asked() -> None:
    """Nobody stands in for it, even where it is not configured."""
    router = words_alone()
    decision = router.route_sync(Query("who was Ada Lovelace", declared="kiwix"))
    plan = make_plan(decision, "who was Ada Lovelace", ("files", "web"))
    assert [(source.name, source.fallback, source.configured) for source in plan.parts[0].sources] == [
        ("kiwix", "web", False)
    ]


CASES = [
    Case("its source", "weather", {"forecast": "Sunny."}, "forecast", says=("Sunny.",)),
    Case(
        "kiwix empty: the web",
        "who was Ada",
        {"kiwix": Empty(), "web": "W."},
        "web",
        fallback=True,
        says=("W.", "kiwix has nothing"),
    ),
    Case("news empty: the web", "headlines", {"news": Empty(), "web": "W."}, "web", fallback=True),
    Case(
        "kiwix unreachable",
        "who was Ada",
        {"kiwix": DOWN, "web": "W."},
        "web",
        fallback=True,
        says=("cannot be reached",),
    ),
    Case("kiwix not configured", "kiwix?", {"web": "W.", "news": "N."}, "web", says=("W.",)),
    Case("no web search: one's own papers", "who was Ada", {"kiwix": Empty(), "files": "F."}, "files", fallback=True),
    Case("news not configured", "headlines", {"web": "W."}, "web", fallback=True, says=("not configured",)),
    Case("kiwix raises", "who was Ada", {"kiwix": RuntimeError("boom"), "web": "W."}, "web", fallback=True),
    Case("kiwix returns rubbish", "who was Ada", {"kiwix": 7, "web": "W."}, "web", fallback=True),
    Case("kiwix blank", "who was Ada", {"kiwix": SourceAnswer("  \n"), "web": "W."}, "web", fallback=True),
    Case(
        "kiwix hangs",
        "who was Ada",
        {"kiwix": HANG, "web": "W."},
        "web",
        fallback=True,
        says=("did not answer in time",),
    ),
    Case("kiwix late, in time", "who was Ada", {"kiwix": Stall(7, "K."), "web": "W."}, "kiwix", says=("K.",)),
    Case(
        "the web empty too: every source that was tried is named",
        "who was Ada",
        {"kiwix": Empty(), "web": Empty()},
        "web",
        success=False,
        fallback=True,
        says=("kiwix has nothing", "web has nothing"),
    ),
    Case(
        "no fallback for the home",
        "lights status",
        {"ha": DOWN, "web": "W."},
        "ha",
        success=False,
        says=("ha cannot be reached",),
    ),
    Case("no fallback for the weather", "weather", {"forecast": Empty(), "web": "W."}, "forecast", success=False),
    Case(
        "fusion",
        "everyone keeps talking about black holes rss",
        {"news": "New image.", "kiwix": "A black hole is."},
        "fusion",
        says=("[1] news\nNew image.", "[2] kiwix\nA black hole is."),
    ),
    Case(
        "fusion, one left: its text, its name",
        "rss feeds about precipitation",
        {"news": "Rain in the news.", "forecast": DOWN},
        "news",
        says=("Rain in the news.", "forecast cannot be reached"),
    ),
    Case(
        "fusion, none left",
        "rss feeds about precipitation",
        {"news": Empty(), "forecast": DOWN, "web": Empty()},
        "fusion",
        success=False,
        fallback=True,
    ),
    Case(
        "fallback inside fusion",
        "everyone keeps talking about black holes rss",
        {"news": "N.", "kiwix": Empty(), "web": "W."},
        "fusion",
        fallback=True,
        says=("[1] news\nN.", "[2] web\nW."),
    ),
    Case(
        "fallback inside fusion, for both",
        "everyone keeps talking about black holes rss",
        {"news": Empty(), "kiwix": Empty(), "web": "W."},
        "web",
        fallback=True,
    ),
    Case(
        "fallback inside a split question",
        "check the weather and also are there headlines",
        {"forecast": "Sunny.", "news": Empty(), "web": "W."},
        "fusion",
        fallback=True,
        says=("Sunny.", "W."),
        parts=(("forecast", "forecast", False), ("news", "web", True)),
    ),
    Case(
        "a part without an answer does not take the others down",
        "check the weather and also are the lights on",
        {"forecast": "Sunny.", "ha": DOWN},
        "fusion",
        says=("Sunny.", "ha cannot be reached"),
        parts=(("forecast", "forecast", False), ("ha", "ha", False)),
    ),
    Case(
        "it is the case",
        "if the garage door is open, close it",
        {"ha": OPEN},
        "ha",
        says=("It is the case: the garage door is open. So: close it.", "Front door: open"),
    ),
    Case(
        "it is not",
        "if the garage door is open, close it",
        {"ha": SHUT},
        "ha",
        says=("It is not the case", "Front door: closed"),
    ),
    Case(
        "cannot be judged",
        "if the garage door is open, close it",
        {"ha": "Some words: open."},
        "ha",
        says=("cannot be judged", "Some words: open."),
    ),
    Case(
        "nothing to judge by",
        "if the garage door is open, close it",
        {"ha": DOWN},
        "ha",
        success=False,
        says=("cannot be judged", "ha cannot be reached"),
    ),
    Case(
        "the remainder runs whatever the verdict",
        "if the garage door is open, close it and check the news",
        {"ha": SHUT, "news": "N."},
        "fusion",
        says=("It is not the case", "N."),
        parts=(("ha", "ha", False), ("news", "news", False)),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_flow(case: Case) -> None:
    result = run_timeless(ask(case.question, scripted(**case.scripts))).result
    told = (result.source_used, result.success, result.fallback_occurred)
    assert told == (case.source_used, case.success, case.fallback), result
    assert all(words in result.result for words in case.says), result.result
    assert (result.error is None) == all(part.success for part in result.parts)
    if case.parts:
        found = [(part.intended_source, part.source_used, part.fallback_occurred) for part in result.parts]
        assert found == list(case.parts)
