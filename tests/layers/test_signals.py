"""`signals.v1`: levels, sums, bands, overrides and rankings, each on a small profile; then the numbers study states."""

import math
from typing import NamedTuple

import pytest

from toml_router import layer_router, unlearnt
from turnout import Decision, Query, load
from turnout.testing import check_layer


def sigmoid(x: float, steepness: float = 12.0) -> float:
    return 1.0 / (1.0 + math.exp(-steepness * x))


BANDS = """\
kind = "signals.v1"
accept = { confidence = 0.7 }
no_signal_confidence = 0.34

[[layers.signals]]
id = "length"
weight = 0.2
measure = "tokens"
neutral = true
levels = [
  { at_most = 4, score = -1.0, label = "short ({n} tokens)" },
  { at_least = 20, score = 1.0, label = "long ({n} tokens)" },
]

[[layers.signals]]
id = "insects"
label = "bugs"
weight = 0.5
words = ["bee|bees", "wasp", "ant", "fly"]
levels = [{ at_least = 1, score = 0.5 }, { at_least = 2, score = 1.0, show = 2 }, { at_least = 4, score = 0.8 }]

[[layers.signals]]
id = "asking"
weight = 0.3
measure = "questions"
levels = [{ at_least = 2, score = 0.5, label = "{n} questions" }]

[[layers.signals]]
id = "size"
weight = 0.0
measure = "characters"
neutral = true
hidden = true
levels = [{ at_least = 60, score = 0.0 }]

[layers.bands]
edges = [0.0, 0.3]
routes = ["a", "b", "c"]
steepness = 12.0

[[layers.overrides]]
id = "swarm"
route = "c"
confidence = 0.85
at_least = true
all = [{ sum = ["insects"], at_least = 3 }]
any = [{ sum = ["size"], at_least = 60 }, { sum = ["asking"], at_least = 2 }]
text = "a swarm ({n} kinds)"
"""


def decide(text: str, layer: str = BANDS) -> Decision:
    return layer_router(layer).route_sync(text)


def reasons(decision: Decision) -> list[tuple[str, str]]:
    return [(reason.code.removeprefix("signals."), reason.text) for reason in decision.steps[0].reasons]


def pad(text: str, tokens: int) -> str:
    return text + "." * (tokens * 4 - len(text))


class Band(NamedTuple):
    id: str
    text: str
    score: float
    route: str
    confidence: float
    reasons: list[tuple[str, str]]


SHORT = ("length", "short (1 tokens)")
NOTHING = ("no_signal", "no_signal: nothing in the text speaks for a route")
BAND_CASES = [
    Band("nothing", "ok.....", -0.2, "a", 0.34, [SHORT, NOTHING]),
    Band("one", "bee....", 0.05, "b", sigmoid(0.05), [SHORT, ("insects", "bugs (bee)")]),
    Band(
        "forms are one phrase",
        "bee bees",
        0.05,
        "b",
        sigmoid(0.05),
        [("length", "short (2 tokens)"), ("insects", "bugs (bee)")],
    ),
    Band(
        "repeats count once",
        "bee bee bee",
        0.05,
        "b",
        sigmoid(0.05),
        [("length", "short (2 tokens)"), ("insects", "bugs (bee)")],
    ),
    Band("two", pad("bee wasp", 10), 0.5, "c", sigmoid(0.2), [("insects", "bugs (bee, wasp)")]),
    Band(
        "no more than two are named", pad("wasp ant bee", 10), 0.5, "c", sigmoid(0.2), [("insects", "bugs (bee, wasp)")]
    ),
    Band(
        "the last level reached counts",
        pad("bee wasp ant fly", 10),
        0.4,
        "c",
        sigmoid(0.1),
        [("insects", "bugs (bee, wasp, ant)")],
    ),
    Band("between levels", pad("ok", 10), 0.0, "b", 0.34, [NOTHING]),
    Band("long", pad("ok", 20), 0.2, "b", 0.34, [("length", "long (20 tokens)"), NOTHING]),
    Band("questions", pad("? ? ?", 10), 0.15, "b", sigmoid(0.15), [("asking", "3 questions")]),
    Band("one question is none", pad("?", 10), 0.0, "b", 0.34, [NOTHING]),
]


@pytest.mark.parametrize("case", BAND_CASES, ids=lambda case: case.id)
def test_bands(case: Band) -> None:
    decision = decide(case.text)
    step = decision.steps[0]
    assert step.verdict is not None
    assert step.verdict.scores["score"] == pytest.approx(case.score, abs=1e-12)
    assert step.verdict.routes == (case.route,)
    assert step.verdict.confidence == pytest.approx(case.confidence, abs=1e-12)
    assert step.verdict.margin == pytest.approx(min(abs(case.score), abs(case.score - 0.3)), abs=1e-12)
    shown = reasons(decision)
    assert shown[: len(case.reasons)] == case.reasons
    assert step.ended == ("accepted" if case.confidence >= 0.7 else "held")


@pytest.mark.parametrize(
    ("tokens", "level"),
    [(0, "short"), (4, "short"), (5, ""), (19, ""), (20, "long"), (1000, "long")],
)
def test_both_ends_of_a_level_are_inside_it(tokens: int, level: str) -> None:
    found = [text for code, text in reasons(decide("." * (tokens * 4 + 3))) if code == "length"]
    assert found == ([f"{level} ({tokens} tokens)"] if level else [])


def test_a_band_begins_at_its_edge() -> None:
    layer = """\
kind = "signals.v1"
bands = { edges = [0.25, 0.5], routes = ["a", "b", "c"], steepness = 1.0 }
signals = [
  { id = "x", weight = 0.25, words = ["x"] },
  { id = "y", weight = 0.25, words = ["y"] },
  { id = "z", weight = 0.5, words = ["z"] },
]"""
    router = layer_router(layer)
    found = {text: router.route_sync(text) for text in ("q", "x", "y", "x y", "z", "x y z")}
    assert {text: decision.route for text, decision in found.items()} == {
        "q": "a",
        "x": "b",
        "y": "b",
        "x y": "c",
        "z": "c",
        "x y z": "c",
    }
    assert found["x"].margin == 0.0
    assert found["x"].confidence == 0.5
    assert found["x y z"].margin == 0.5


class Override(NamedTuple):
    id: str
    text: str
    holds: bool


OVERRIDES = [
    Override("enough and long", pad("bee wasp ant", 15), True),
    Override("enough and asking", "bee? wasp? ant", True),
    Override("enough, neither long nor asking", "bee wasp ant", False),
    Override("too few", pad("bee wasp", 40), False),
    Override("all four", pad("bee wasp ant fly", 15), True),
]


@pytest.mark.parametrize("case", OVERRIDES, ids=lambda case: case.id)
def test_an_override_decides_whatever_the_sum_and_the_gate_say(case: Override) -> None:
    decision = decide(case.text, BANDS.replace("confidence = 0.7", "confidence = 1.0"))
    codes = [reason.code for reason in decision.reasons]
    assert ("override.swarm" in codes) is case.holds
    if case.holds:
        assert (decision.route, decision.outcome, codes[0]) == ("c", "S-", "override.swarm")
        kinds = sum(word in case.text for word in ("bee", "wasp", "ant", "fly"))
        assert decision.reasons[0].text == f"a swarm ({kinds} kinds)"


def test_an_overrides_confidence_may_be_lifted_by_the_score_or_not() -> None:
    text = pad("bee wasp ant", 15)
    lifted = decide(text).confidence
    assert lifted == pytest.approx(max(0.85, sigmoid(0.5)), abs=1e-12)
    assert lifted > 0.85
    assert decide(text, BANDS.replace("at_least = true\n", "")).confidence == 0.85


def test_the_first_override_wins() -> None:
    tests = '[{{ sum = ["insects"], at_least = 1 }}]'
    second = f'[[layers.overrides]]\nid = "{{}}"\nroute = "{{}}"\nconfidence = 0.9\nall = {tests}\n'
    layer = BANDS[: BANDS.index("[[layers.overrides]]")] + second.format("one", "b") + second.format("two", "a")
    assert decide("bee", layer).reasons[0].code == "override.one"


def test_what_would_be_without_each_signal() -> None:
    router = layer_router(BANDS.replace("confidence = 0.7", "confidence = 0.0"))
    decision = router.route_sync(pad("bee wasp", 10))
    assert {found.signal: found.route for found in router.counterfactuals(decision)} == {"signals.insects": "b"}


def test_what_would_be_without_an_override() -> None:
    router = layer_router(BANDS.replace("confidence = 0.7", "confidence = 0.0").replace('route = "c"', 'route = "a"'))
    decision = router.route_sync(pad("bee wasp ant", 15))
    assert decision.route == "a"
    assert {found.signal: found.route for found in router.counterfactuals(decision)}["override.swarm"] == "c"


def test_what_would_be_without_a_measure() -> None:
    router = layer_router(BANDS.replace("confidence = 0.7", "confidence = 0.0"))
    decision = router.route_sync("ok")
    assert decision.route == "a"
    assert {found.signal: found.route for found in router.counterfactuals(decision)} == {"signals.length": "b"}


class Match(NamedTuple):
    id: str
    signal: str
    yes: tuple[str, ...]
    no: tuple[str, ...]


MATCHES = [
    Match("words", 'words = ["def", "what is"]', ("def f", "What  is x"), ("define", "what", "is what")),
    Match(
        "ordered", 'ordered = [["what does", "mean"]]', ("what does it mean",), ("mean what does", "what does\nit mean")
    ),
    Match("whole", 'whole = ["hi", "there"]', ("hi", "Hi there!"), ("hi Bob", "")),
    Match("patterns", "patterns = ['^\\d+$']", ("42", "7"), ("4 2", "x")),
    Match(
        "all kinds at once", "words = ['x'], whole = ['hi'], patterns = ['z{2}']", ("x", "hi", "azz"), ("xx", "hi z")
    ),
]


@pytest.mark.parametrize("case", MATCHES, ids=lambda case: case.id)
def test_what_a_signal_looks_for(case: Match) -> None:
    layer = f"""\
kind = "signals.v1"
bands = {{ edges = [0.5], routes = ["a", "b"], steepness = 12.0 }}
signals = [{{ id = "s", weight = 1.0, {case.signal} }}]"""
    router = layer_router(layer)
    for text in case.yes:
        assert router.route_sync(text).route == "b", text
    for text in case.no:
        assert router.route_sync(text).route == "a", text


def test_inside_words_only_where_the_profile_says_so() -> None:
    layer = """\
kind = "signals.v1"
match = "{}"
bands = {{ edges = [0.5], routes = ["a", "b"], steepness = 12.0 }}
signals = [{{ id = "s", weight = 1.0, words = ["prove"] }}]"""
    assert layer_router(layer.format("substring")).route_sync("improved").route == "b"
    assert layer_router(layer.format("word")).route_sync("improved").route == "a"


def test_a_label_may_name_the_number_of_phrases() -> None:
    layer = """\
kind = "signals.v1"
bands = { edges = [0.5], routes = ["a", "b"], steepness = 12.0 }
[[layers.signals]]
id = "s"
weight = 1.0
words = ["x", "y", "z"]
levels = [{ at_least = 1, score = 1.0, label = "{n} letters" }]
"""
    decision = layer_router(layer).route_sync("x and z")
    assert [reason.text for reason in decision.reasons] == ["2 letters"]


def test_a_whole_message_is_shown_under_its_label() -> None:
    layer = """\
kind = "signals.v1"
bands = { edges = [0.5], routes = ["a", "b"], steepness = 12.0 }
signals = [{ id = "s", weight = 1.0, words = ["hello"], whole = ["hi", "there"], whole_label = "small talk" }]"""
    router = layer_router(layer)
    assert router.route_sync("hi there").reasons[0].text == "s (small talk)"
    assert router.route_sync("hello world").reasons[0].text == "s (hello)"


RANKING = """\
kind = "signals.v1"

[[layers.signals]]
id = "x"
words = ["x", "xx"]
[[layers.signals]]
id = "y"
words = ["y"]
[[layers.signals]]
id = "z"
words = ["z"]

[layers.ranking.sums]
one = { x = 0.5, y = 0.25 }
two = { z = 0.4 }

[layers.ranking.base]
two = 0.1

[layers.ranking.routes]
a = [{ add = 1.0, of = "one" }, { add = -1.0, of = "two" }]
b = [{ add = 1.0, of = "two" }, { add = 0.2, when = ["x", "z"] }]
c = [{ add = 2.0, of = "one", above = 0.5 }, { add = 0.3, when_sum = { one = 0.75, two = 0.5 } }]

[[layers.ranking.floors]]
route = "a"
when = ["x", "y"]
confidence = 0.97
"""


class Rank(NamedTuple):
    text: str
    scores: tuple[float, float, float]
    route: str


RANKS = [
    Rank("nothing", (0.0, 0.1, 0.0), "b"),
    Rank("x", (0.4, 0.1, 0.0), "a"),
    Rank("x xx", (0.4, 0.1, 0.0), "a"),
    Rank("y", (0.15, 0.1, 0.0), "a"),
    Rank("z", (0.0, 0.5, 0.0), "b"),
    Rank("x y", (0.65, 0.1, 0.5), "a"),
    Rank("x z", (0.0, 0.7, 0.0), "b"),
    Rank("x y z", (0.25, 0.7, 0.8), "c"),
]


@pytest.mark.parametrize("case", RANKS, ids=lambda case: case.text)
def test_ranking(case: Rank) -> None:
    decision = layer_router(RANKING).route_sync(case.text)
    assert decision.route == case.route
    assert [decision.scores[route] for route in "abc"] == pytest.approx(case.scores, abs=1e-12)
    top, second = sorted(case.scores, reverse=True)[:2]
    share = 0.99 if second <= 0 else min(0.99, max(0.0, 0.5 + (top - second) / (top + second + 1e-6)))
    if case.route == "a" and case.text == "x y":
        share = max(share, 0.97)
    assert decision.confidence == pytest.approx(share, abs=1e-9)
    assert decision.margin == pytest.approx(top - second, abs=1e-12)


def test_a_tie_goes_to_the_route_listed_first_and_nothing_is_not_sure() -> None:
    layer = """\
kind = "signals.v1"
signals = [{ id = "x", words = ["x"] }]
ranking = { sums = { s = { x = 1.0 } }, routes = { b = [{ add = 1.0, of = "s" }], a = [{ add = 1.0, of = "s" }] } }"""
    router = layer_router(layer)
    tie, nothing = router.route_sync("x"), router.route_sync("q")
    assert (tie.route, tie.margin) == ("b", 0.0)
    assert tie.confidence == pytest.approx(0.5)
    assert (nothing.route, nothing.confidence, nothing.margin) == ("b", 0.34, 0.0)
    assert nothing.reasons[0].code == "signals.no_signal"


def test_where_nothing_speaks_a_ranking_is_as_sure_as_it_may_be() -> None:
    unsure = RANKING.replace('kind = "signals.v1"\n', 'kind = "signals.v1"\nno_signal_confidence = 0.2\n', 1)
    assert layer_router(RANKING).route_sync("nothing").confidence == 0.99
    assert layer_router(unsure).route_sync("nothing").confidence == 0.2
    assert layer_router(unsure).route_sync("z").confidence == 0.99


def test_study_is_not_sure_where_nothing_speaks() -> None:
    decision = unlearnt("study").route_sync("What are mitochondria?")
    assert (decision.route, decision.outcome) == (CONTEXT, "Fl")
    assert next(step.verdict for step in decision.steps if step.place.id == "local").confidence == 0.34


class Study(NamedTuple):
    question: str
    scores: tuple[float, float, float]
    confidence: float
    margin: float
    outcome: str
    route: str


STANDALONE, PAGE, CONTEXT = "standalone_definition", "page_grounded_definition", "general_contextual"

# The computed table of the study spec.
STUDY = [
    Study("Define macroeconomics very concisely", (0.8752, 0.1375, 0.24), 0.99, 0.6352, "S-", STANDALONE),
    Study(
        "Explain what complexity means in the definition on the far right",
        (0.2804, 1.1725, 0.893),
        0.86,
        0.2795,
        "S-",
        PAGE,
    ),
    Study("What does this section mean?", (0.2624, 0.52, 1.304), 0.9298, 0.784, "S-", CONTEXT),
    Study("Is that important?", (0, 0.22, 0.554), 0.9315, 0.334, "S-", CONTEXT),
    Study("What is complexity in this context?", (0.4664, 0.22, 0.554), 0.586, 0.088, "Fl", STANDALONE),
    Study("What does the term on the far right mean?", (0.2828, 0.49, 0.583), 0.587, 0.093, "Fl", STANDALONE),
    Study("Define macroeconomics", (0.616, 0, 0.24), 0.939, 0.376, "S-", STANDALONE),
    Study("What is quantum entanglement?", (0.616, 0, 0.24), 0.939, 0.376, "S-", STANDALONE),
    Study("Explain photosynthesis very concisely", (0.4608, 0, 0.24), 0.815, 0.2208, "S-", STANDALONE),
    Study("Explain the definition in the top left", (0.2804, 1.1725, 0.893), 0.86, 0.2795, "S-", PAGE),
    Study("How does this relate to the previous chapter?", (0, 0.22, 0.554), 0.9315, 0.334, "S-", CONTEXT),
    Study("Summarize the main argument", (0, 0, 0.68), 0.99, 0.68, "S-", CONTEXT),
    Study("Why?", (0, 0, 0.24), 0.99, 0.24, "S-", CONTEXT),
]


@pytest.mark.parametrize("case", STUDY, ids=lambda case: case.question)
def test_the_numbers_study_states(case: Study) -> None:
    decision = load("study-seed", config="").route_sync(case.question)
    assert [decision.scores[route] for route in (STANDALONE, PAGE, CONTEXT)] == pytest.approx(case.scores, abs=5e-5)
    local = next(step.verdict for step in decision.steps if step.place.id == "local")
    assert local is not None
    assert local.confidence == pytest.approx(case.confidence, abs=5e-4)
    assert local.margin == pytest.approx(case.margin, abs=5e-4)
    assert (decision.route, decision.outcome) == (case.route, case.outcome)


def test_study_says_when_nothing_speaks() -> None:
    decision = load("study-seed", config="").route_sync("Why?")
    assert [reason.code for reason in decision.reasons] == ["signals.no_signal"]


def test_lengths_are_utf16_units_four_to_a_token() -> None:
    router = load("tiers-seed", config="")
    for text in ("a" * 400, "é" * 400, "🙂" * 200):
        reason = next(reason for reason in router.route_sync(text + "a" * 1700).steps[-2].reasons)
        assert reason.text == "long (525 tokens)"


@pytest.mark.parametrize("text", ["define\u200b entropy", "DEFINE entropy", "ｄｅｆｉｎｅ entropy", "dеfine entropy"])
def test_disguises_change_nothing(text: str) -> None:
    plain = load("study-seed", config="").route_sync("define entropy")
    assert load("study-seed", config="").route_sync(text).routes == plain.routes


def test_a_question_and_its_turns_are_judged_alike() -> None:
    from turnout import Turn

    router = load("study-seed", config="")
    asked = Query(turns=(Turn("user", "hi"), Turn("assistant", "yes?"), Turn("user", "Define macroeconomics")))
    assert router.route_sync(asked).scores == router.route_sync("Define macroeconomics").scores


def test_it_conforms() -> None:
    signals = [{"id": "s", "weight": 1.0, "words": ["define", "page", "?"]}]
    for edges, routes in (([0.5], ["first", "third"]), ([-1.0, 2.0], ["second", "first", "third"])):
        bands = {"edges": edges, "routes": routes, "steepness": 3}
        check_layer("signals.v1", {"signals": signals, "bands": bands, "match": "substring"})
