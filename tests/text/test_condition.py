"""Leading conditions: what is one and how it is taken apart, what only looks like one, properties, hostile input."""

from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from timing import is_within
from turnout.text.clause import Mood, judge
from turnout.text.condition import LISTS, Conditional, read_condition
from turnout.text.match import Matcher, Phrase
from turnout.text.split import WINDOW, triggers

hits = triggers(Matcher([Phrase(("weather", "news", "rain", "door locked", "lights on", "noticias"))]))


class Case(NamedTuple):
    id: str
    text: str
    condition: str
    consequence: str
    remainder: str = ""


CASES = [
    Case("if", "if it rains, close the window", "it rains", "close the window"),
    Case("case-kept", "If Anna IS home, call Ben", "Anna IS home", "call Ben"),
    Case("shouted", "IF IT RAINS, CALL BEN AND CHECK THE NEWS", "IT RAINS", "CALL BEN", "CHECK THE NEWS"),
    Case("greeted", "Hey, if it rains, close the window", "it rains", "close the window"),
    Case("and-if", "and if the gate is open close it", "the gate is open", "close it"),
    Case("only-if", "only if it rains, close the window", "it rains", "close the window"),
    Case("provided", "provided that it rains, close the window", "it rains", "close the window"),
    Case("then-without-comma", "if it rains then close the window", "it rains", "close the window"),
    Case("noun-is", "if the dryer's done send me a message", "the dryer's done", "send me a message"),
    Case("show-me", "if it is plugged in show me the level", "it is plugged in", "show me the level"),
    Case("has-been", "if the door has been open for an hour, call me", "the door has been open for an hour", "call me"),
    Case("should", "should it snow, cancel the picnic", "it snow", "cancel the picnic"),
    Case("should-you", "Should you see Ann, say hello", "you see Ann", "say hello"),
    Case("in-case", "in case the door is open, close it", "the door is open", "close it"),
    Case("in-case-of", "In case of rain, stay at home", "rain", "stay at home"),
    Case("remainder", "if it rains, call Ben and check the news", "it rains", "call Ben", "check the news"),
    Case(
        "remainder-question",
        "if it rains, call Ben and is the door locked?",
        "it rains",
        "call Ben",
        "is the door locked?",
    ),
    Case(
        "remainder-comma", "if it rains, close it, and what's the weather", "it rains", "close it", "what's the weather"
    ),
    Case("remainder-also", "if it rains, I stay in, also any news", "it rains", "I stay in", "any news"),
    Case("remainder-plus", "if it rains, let me know plus what's a quark", "it rains", "let me know", "what's a quark"),
    Case("remainder-statement", "if it rains, I stay in and find my keys", "it rains", "I stay in", "find my keys"),
    Case(
        "remainder-compound",
        "if it rains, wait there and call Ann and call Ben",
        "it rains",
        "wait there",
        "call Ann and call Ben",
    ),
    Case("pair-is-no-remainder", "if it rains, feed the cats and dogs", "it rains", "feed the cats and dogs"),
    Case("pointer-is-no-remainder", "if it is open, close it and lock it", "it is open", "close it and lock it"),
    Case("comparison", "if it rains, compare tea and coffee", "it rains", "compare tea and coffee"),
    Case("then", "if it rains, then close the window", "it rains", "close the window"),
    Case("list", "If Anna, Ben and Carl are home, call Dan", "Anna, Ben and Carl are home", "call Dan"),
    Case("list-oxford", "if Anna, Ben, and Carl are out, call Dan", "Anna, Ben, and Carl are out", "call Dan"),
    Case(
        "list-at-the-end", "if it rains today, tomorrow or Monday, wait", "it rains today, tomorrow or Monday", "wait"
    ),
    Case("list-of-verbs", "if it rains, snows or hails, call Ben", "it rains, snows or hails", "call Ben"),
    Case("list-with-a-verb-for-a-name", "if Ann, Google or Ben calls, wait", "Ann, Google or Ben calls", "wait"),
    Case(
        "list-no-comma",
        "if the fan, the tv and the lamp are on turn them off",
        "the fan, the tv and the lamp are on",
        "turn them off",
    ),
    Case("list-is-what-follows", "if it rains, tea and coffee", "it rains", "tea and coffee"),
    Case("no-comma-command", "if any lights are on turn them off", "any lights are on", "turn them off"),
    Case("no-comma-please", "if the door is open please close it", "the door is open", "please close it"),
    Case("no-comma-remainder", "if it is open close it and check the news", "it is open", "close it", "check the news"),
    Case(
        "no-comma-later-comma",
        "if it's raining close the door, and any news",
        "it's raining",
        "close the door",
        "any news",
    ),
    Case("not-unreal", "if the lamp was on, would you check the news", "the lamp was on", "would you check the news"),
    Case("comma-in-number", "if it costs 1,000 dollars, buy it", "it costs 1,000 dollars", "buy it"),
    Case("abbreviation", "if it rains at 5 p.m. today, call Ben", "it rains at 5 p.m. today", "call Ben"),
    Case("conjunction-inside", "if it rains and snows, call Ben", "it rains and snows", "call Ben"),
    Case("question", "if it rains, who wins?", "it rains", "who wins?"),
    Case("quote", "“if it rains, call Ben", "it rains", "call Ben"),
    Case("space", "\n if \u00a0it rains ,  call Ben ", "it rains", "call Ben"),
    Case("invisible", "i\u200bf it rains, call Ben", "it rains", "call Ben"),
    Case("wide", "ｉｆ it rains，call Ben", "it rains", "call Ben"),
    Case("spanish", "si llueve, cierra las ventanas", "llueve", "cierra las ventanas"),
    Case("spanish-remainder", "Si llueve, avísame y dime las noticias", "llueve", "avísame", "dime las noticias"),
    Case("spanish-in-case", "en caso de que nieve, avísame", "nieve", "avísame"),
    Case("spanish-in-case-of", "en caso de lluvia, avísame", "lluvia", "avísame"),
    Case("spanish-then", "si está abierta, entonces cierra la puerta", "está abierta", "cierra la puerta"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_condition(case: Case) -> None:
    assert read_condition(case.text, hits) == Conditional(case.condition, case.consequence, case.remainder)


class Plain(NamedTuple):
    id: str
    text: str


PLAIN = [
    Plain("blank", ""),
    Plain("no-opener", "when it rains, call Ben"),
    Plain("no-comma", "if it rains who wins"),
    Plain("no-comma-noun", "if the play button is off what then"),
    Plain("no-comma-infinitive", "if it is possible to turn them off"),
    Plain("no-comma-subject", "if you turn them off it is dark"),
    Plain("no-comma-other-sentence", "If it is open. Close it now"),
    Plain("unreal", "If Napoleon had won at Waterloo, who would have ruled?"),
    Plain("unreal-past", "if it rained less, what would grow"),
    Plain("unreal-aside", "if the bridge, a wooden one, had held, what would have happened"),
    Plain("unreal-spanish", "si hubiera llovido en Graz, quién habría ganado"),
    Plain("trailing-if", "call Ben if it rains"),
    Plain("trailing-if-comma", "call Ben, if it rains"),
    Plain("let-me-know", "let me know if it rains, please"),
    Plain("even-if", "even if it rains, call Ben"),
    Plain("should-i", "should I bring a coat, or not"),
    Plain("should-i-curly", "Should I’ve called, what then"),
    Plain("should-we", "should we leave now, since it rains"),
    Plain("should-or", "should cats drink milk, or is it bad for them"),
    Plain("longer-word", "iffy weather, call Ben"),
    Plain("in-casement", "in cases like this, call Ben"),
    Plain("opener-only", "if"),
    Plain("empty-condition", "if, call Ben"),
    Plain("hollow-condition", "if - , call Ben"),
    Plain("empty-consequence", "if it rains,"),
    Plain("empty-after-then", "if it rains, then"),
    Plain("marks-only", "if it rains, ..."),
    Plain("courtesy", "If possible, what's the weather"),
    Plain("courtesy-mind", "if you don’t mind, check the news"),
    Plain("courtesy-so", "if so, how many"),
    Plain("in-case-you-missed-it", "in case you missed it, who won"),
    Plain("other-sentence", "If it rains? Well, who knows"),
    Plain("number-only", "if 1,000"),
    Plain("spanish-yes", "si, claro"),
    Plain("spanish-accent", "sí llueve, dime"),
    Plain("units", "SI units, explained"),
    Plain("name", "Si Robertson, who is he"),
    Plain("spanish-courtesy", "si puedes, dime las noticias"),
    Plain("far-comma", "if " + "word " * WINDOW + ", call Ben"),
]


@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case.id)
def test_no_condition(case: Plain) -> None:
    assert read_condition(case.text, hits) is None


def test_a_trigger_phrase_is_a_remainder_only_for_those_who_know_it() -> None:
    text = "if it rains, call Ben and the news"
    assert read_condition(text, hits) == Conditional("it rains", "call Ben", "the news")
    assert read_condition(text) == Conditional("it rains", "call Ben and the news")


PIECES = [
    *(
        "if",
        "If",
        "should",
        "in case",
        "in case of",
        "si",
        "en caso de que",
        "i",
        "it",
        "rains",
        "door",
        "está",
        "then",
    ),
    *("find my keys", "is it raining", "the news", "and", "also", ",", ",", "1,000", "or", ".", "?", "“", "-", "\n"),
    *("let me know", "please", "vs", "\u200b", "é", "，", "😀"),
]
salads = st.lists(
    st.tuples(st.sampled_from(PIECES), st.sampled_from([" ", " ", " ", "", "\n"])).map("".join), max_size=16
)
openers = st.sampled_from(sorted(LISTS.openers))
texts = st.tuples(openers, salads.map("".join)).map(" ".join) | salads.map("".join) | st.text(max_size=40)


@given(texts)
@example("if if, if")
def test_the_pieces_lie_in_the_text_in_order(text: str) -> None:
    found = read_condition(text, hits)
    if found is None:
        return
    at = 0
    for piece in (found.condition, found.consequence, found.remainder):
        assert piece == piece.strip()
        at = text.index(piece, at) + len(piece)
    assert found.condition
    assert found.consequence


@given(texts)
def test_without_a_comma_only_a_command_can_follow(text: str) -> None:
    found = read_condition(text.replace(",", " ").replace("，", " "), hits)
    assert found is None or judge(found.consequence.lower().split()) is Mood.COMMAND


HOSTILE = [
    "if ",
    "if, ",
    "if a, ",
    "if a, b and ",
    "should ",
    "si ",
    ", ",
    "in case ",
    "if a. ",
    "1,",
    "if a, then ",
    "é, ",
]
# The promise for a megabyte, in seconds. A busy runner may be this much slower.
LIMIT = 0.2
SLACK = 3


@pytest.mark.parametrize("opener", ["", "if a, ", "if "], ids=repr)
@pytest.mark.parametrize("unit", HOSTILE, ids=repr)
def test_a_hostile_megabyte_is_read_at_once(unit: str, opener: str) -> None:
    text = opener + unit * (1_000_000 // len(unit))
    assert is_within(LIMIT * SLACK, lambda: read_condition(text, hits))


@pytest.mark.parametrize("hidden", ["\u200b", "\u2060", "\U000e0041"], ids=ascii)
def test_an_opener_is_found_however_much_hides_in_it(hidden: str) -> None:
    said = "If it rains tomorrow, close the windows."
    for disguised in (hidden * 300 + said, f"I{hidden * 300}{said[1:]}", "–" * 300 + said):
        assert read_condition(disguised) == read_condition(said)
