"""Compound questions: tables of what is and is not parted, with and without triggers; properties; hostile input."""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from timing import is_linear, is_within
from turnout.text.fold import fold
from turnout.text.match import Matcher, Phrase
from turnout.text.split import MOST, WINDOW, split, split_off, triggers

TRIGGERS = (
    *("weather", "forecast", "tomorrow", "is it raining", "will it rain", "going to rain"),
    *("news", "headlines", "rss", "google", "who won", "what's new"),
    *("lights on", "door locked", "doors locked", "garage", "is down", "is it up", "uptime", "noticias", "clima"),
)
hits = triggers(Matcher([Phrase(TRIGGERS)]))


class Case(NamedTuple):
    id: str
    marked: str  # the text with "‖" around whatever lies between two parts

    @property
    def text(self) -> str:
        return self.marked.replace("‖", "")

    @property
    def parts(self) -> list[str]:
        return self.marked.split("‖")[::2]


# A noun that a trigger knows may be one of a list.
LISTED = [
    Case("list-end", "What is the price, speed, and availability for tomorrow"),
    Case("list-of-intents", "check the weather‖, ‖the headlines‖, and ‖any news"),
    Case("own-article", "What are the latest statistics‖ and ‖any news about Iran"),
]

GOLDEN = [
    Case("three", "check the weather‖, and ‖Iran and Israel news‖, and ‖is the door locked"),
    Case("plus", "what's happening in Texas‖, plus ‖I need help with my router"),
    Case("no-dangling-words", "check the weather‖ and also ‖are the lights on"),
    Case("two-names", "weather in Phoenix and Kingman"),
    Case("noun-pair", "cats and dogs"),
    Case("one-topic", "rock and roll history"),
    Case("framed", "everyone keeps talking about black holes‖ and ‖rss headlines"),
    Case("framed-question", "what's the deal with that retrograde thing everyone keeps talking about‖ and ‖any news"),
]

WITH_TRIGGERS = [
    Case("bare-nouns", "weather‖ and ‖news"),
    Case("question-and-noun", "what's the weather‖ and ‖news"),
    Case("lower-case-names", "check the weather‖, and ‖iran and israel news‖, and ‖is the door locked"),
    Case("shared-head", "show me iran and israel news"),
    Case("shared-head-names", "Google and Apple news"),
    Case("own-head", "tell me about black holes‖ and ‖any news"),
    Case("no-shared-head", "show me the headlines‖ as well as ‖the forecast"),
    Case("one-hit", "cats and dogs news"),
    Case("noun-without-trigger", "songs by Simon and Garfunkel and the news"),
    Case("comma-between-hits", "what's new‖, ‖forecast for Rome"),
    Case("series", "what's new‖, ‖is it raining‖ and ‖are the doors locked"),
    Case("hollow-but-trigger", "what's the forecast‖ and ‖is it up"),
    Case("trigger-that-hangs-on", "check the server and let me know if it is down"),
    Case("statement-with-trigger", "the garage is open‖ and ‖the weather is bad"),
    Case("then", "check uptime‖ then ‖check the news‖ then ‖the weather"),
    Case("in-addition-to", "show the news‖ in addition to ‖the weather"),
    Case("leading-conjunction", "‖In addition to ‖the news‖, ‖check the weather"),
    Case("spanish", "dime el clima‖ y ‖las noticias"),
    Case("shouted", "CHECK THE WEATHER‖ AND ‖NEWS"),
    Case("compared", "weather versus news and what's new"),
    Case("news-and-latest", "the weather‖ and ‖the latest news"),
    Case("trigger-far-behind", "the news and market data for a company with bad weather"),
]

CASES = [
    Case("commands", "turn off the lights‖ and ‖lock the door"),
    Case("commands-then", "explain photosynthesis‖ and then ‖summarise the French Revolution"),
    Case("questions", "how tall is Everest‖ and ‖how deep is the Mariana Trench"),
    Case("inverted", "is it safe to swim there‖ and ‖are dogs allowed on the beach"),
    Case("question-and-command", "who wrote Emma‖ and ‖find me a film of the book"),
    Case("question-mark", "What is a quark?‖ And ‖who found the first?"),
    Case("also-opens", "Find a plumber.‖ Also ‖what is the boiling point of tin"),
    Case("in-addition", "book a table for two‖, in addition ‖call my sister"),
    Case("as-well-as", "call my sister‖ as well as ‖book a table for two"),
    Case("command-and-wish", "play some jazz‖ and ‖I'd like a taxi to the station"),
    Case("wish-and-command", "I need a table for four‖ and ‖play a waltz"),
    Case("wish-of-others", "my parents need a room for two nights‖ and ‖find a babysitter"),
    Case("noun-and-command", "cheap flights to Oslo in May‖ and ‖find my keys"),
    Case("command-in-front", "call Ann‖ and ‖at seven turn on the radio"),
    Case("closed-series", "find a train to Bonn‖, ‖book a hotel‖ and ‖call my boss"),
    Case("closed-series-mixed", "I need a taxi at nine‖, ‖what is the fastest road to Bonn‖ and ‖call my boss"),
    Case("alike-without-conjunction", "who wrote Emma‖, ‖when did Austen die"),
    Case("commas-everywhere", "find a train to Bonn‖, and, also, ‖call my boss"),
    Case("unknown-verb-me", "sketch me a lighthouse‖ and ‖hum me a tune"),
    Case("statement-plus-question", "my router is broken‖, plus ‖what is the capital of Peru"),
    Case("title-case", "Turn Off The Lights‖ And ‖Lock The Door"),
    Case("curly", "what’s a quark‖ and ‖who’s the pope"),
    Case("no-break-space", "what is a quark‖\u00a0and\u00a0‖who is the pope"),
    Case("invisible", "what is a quark‖ a\u200bnd ‖who is the pope"),
    Case("additionally", "Who wrote Emma?‖ Additionally, ‖can you book a table for two?"),
    Case("furthermore", "I need a taxi at nine.‖ Furthermore, ‖could you call my boss?"),
    Case("relative", "find a tool that can sort my mail and remind me of deadlines"),
    Case("relative-series", "I need a coach who can write a plan, call me daily and track my runs"),
    Case("fit", "find a chair designed to ease the pain and keep me upright"),
    Case("told-by-which", "what is the supply of tin, which includes all mines"),
    Case("outcome", "can you analyze this text and provide key insights"),
    Case("outcome-for-me", "can you read this page and give me a summary"),
    Case("no-outcome", "can you find a course on tin‖ and ‖suggest me some hotels in Bonn"),
    Case("written-step", "Could you check the spelling and correct the grammar of my letter?"),
    Case("written-something-new", "Could you check the spelling‖ and ‖suggest some hotels in Bonn?"),
    Case("written-given", "Read these notes and make the list shorter."),
    Case("written-wish-goes-on", "I want a phone with a good camera and I need a lot of storage."),
    Case("listed-steps", "do these steps: find my keys, call Ann and book a table"),
    Case("adverb-before-verbs", "please carefully check and correct the letter"),
    Case("verbs-share", "could you decode and explain the genome"),
    Case("same-wisher", "I'm looking for a change and want to explore Peru"),
    Case("appreciated", "I need a taxi at nine. Also, I would appreciate a receipt"),
    Case("its", "what is the price of tin and what are its uses"),
    Case("dash", "find my keys‖ — and ‖call Ann"),
    Case("quoted-stays", 'translate "find eggs and call Ann" to Greek‖ and ‖call Ben'),
    Case("quoted-comma", 'what does "stop, look and listen" mean'),
    Case("apostrophe-opens", "find 'em fast‖ and ‖call Ann"),
    Case("spanish", "qué tiempo hace en Lima‖ y ‖está la puerta cerrada"),
    Case("spanish-commands", "busca un hotel en Lima‖ y también ‖enciende las luces"),
    Case("spanish-marks", "¿Quién pintó Guernica‖ y ‖dónde está el cuadro?"),
    Case("spanish-verb-pair", "busca y reproduce un vals"),
    Case("spanish-whole-verb", "avísame‖ y ‖busca un hotel en Lima"),
    Case("spanish-wish", "necesito un taxi para las ocho‖, además ‖dime la hora"),
    # One question, for one reason each.
    Case("list", "find flights to Rome, Paris and Berlin"),
    Case("list-of-nouns", "I need eggs, milk and bread"),
    Case("object-pair", "explain photosynthesis and cellular respiration"),
    Case("subject-pair", "how do plants and animals interact"),
    Case("noun-verbs", "how much are my gas and phone bills"),
    Case("fixed-pair", "teach me how to copy and paste the text"),
    Case("pros", "what are the pros and cons of solar power"),
    Case("story", "I lost my card and I need a new one"),
    Case("story-comma", "my card was stolen, what should I do"),
    Case("story-question", "the dog chewed up my card and how do I get a replacement"),
    Case("story-sentences", "Can you help? I lost my card and need a replacement."),
    Case("two-statements", "I went home and I ate dinner"),
    Case("greeting", "hey computer, find my keys"),
    Case("courtesy", "find my keys, please"),
    Case("fronted", "in Paris, find me a hotel"),
    Case("fronted-series", "for dinner, I like fish and rice"),
    Case("topic", "my holiday, has it been approved"),
    Case("points-back-him", "call Josh and tell him I am late"),
    Case("points-back-it", "find my order and cancel it"),
    Case("points-back-one", "what is a virtual card and how can I get one"),
    Case("points-back-when", "who wrote Emma and when was it written"),
    Case("hollow", "my phone is dead, can you help"),
    Case("hollow-why", "find out what it costs and why"),
    Case("hangs-on", "tell me what it is and how I can get there"),
    Case("if-so", "do you hold cash and if so, what is the limit"),
    Case("serial", "go to the shop and buy milk"),
    Case("go-ahead", "go ahead and change the pin"),
    Case("verb-pair", "how can I hold and exchange money"),
    Case("how-to", "how do I open the app and change my name"),
    Case("second-verb", "which card is free and is not declined abroad"),
    Case("second-verb-have", "when should I go in and have my tires changed"),
    Case("also-inside", "does the bank also offer loans"),
    Case("also-wish", "I would also like some tea"),
    Case("unfinished", "what is the and find gate"),
    Case("names", "who are Simon and Garfunkel"),
    Case("names-like-verbs", "what did Mark and Will Smith do"),
    Case("name-google", "what do Microsoft and Google have in common"),
    Case("name-lower", "find films with jada and will smith"),
    Case("number", "convert 1,000 dollars to yen"),
    Case("compare", "compare tea and coffee and find my keys"),
    Case("difference", "what is the difference between tea and coffee, and who drinks more"),
    Case("versus", "cats vs dogs and who wins"),
    Case("both", "do both and call Ann"),
    Case("letter-y", "solve for x and y"),
    Case("letter-y-series", "what are x, y and z"),
    Case("spanish-pair", "háblame de pan y mantequilla"),
    Case("spanish-comparison", "cuál es la diferencia entre perros y gatos y quién gana"),
    Case("same-matter", "Which team won the last race and what was the final score?"),
    Case("same-asker", "What are the best routes to Rome and where should I stop for the night?"),
    Case("same-matter-also", "I am curious about the station. Also, who are the people on board?"),
    Case("of-what-was-said", "I want to see the station. Additionally, could you give me the names of its crew?"),
    Case("something-new", "Where can I see a comet?‖ Also, ‖could you give me the score of the game?"),
    Case("own-matter", "What is a comet‖ and ‖when was the boiler serviced?"),
    Case("own-name", "Who wrote Emma‖ and ‖what is the capital of France?"),
    Case("own-words", "How are loans repaid‖, and ‖what are the top songs in the music industry right now?"),
    Case("asked-verb-told", "Should I ignore the warning?‖ And ‖activate the alarm."),
    Case("indirect-and-direct", "Show how a lock works‖ and ‖what is the capital of France?"),
    Case("who-want", "Find shoes for people who run a lot and want to stay dry."),
    Case("please-also", "Play some jazz.‖ ‖Please also call Ann."),
    Case("only-conjunction", "and"),
    Case("trailing-conjunction", "find my keys and"),
    Case("leading-conjunction", "and find my keys"),
]


@pytest.mark.parametrize("case", GOLDEN + LISTED + WITH_TRIGGERS, ids=lambda case: case.id)
def test_parts_with_triggers(case: Case) -> None:
    assert split(case.text, hits) == [part for part in case.parts if part]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_parts_without_triggers(case: Case) -> None:
    assert split(case.text) == case.parts


def test_a_letter_y_is_not_lost_before_a_cut() -> None:
    assert split("solve for x and y and call Ann") == ["solve for x and y", "call Ann"]


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u00a0", "\u200b"])
def test_a_blank_text_has_no_parts(text: str) -> None:
    assert split(text) == []
    assert split_off(text) == ("", "")


def test_a_single_question_is_untouched_but_for_the_space_around_it() -> None:
    assert split("  and also, find my keys,\n") == ["and also, find my keys,"]


def test_the_rest_stays_with_the_last_part() -> None:
    names = [f"call Ann{number}" for number in range(20)]
    parts = split(" and ".join(names))
    assert parts[:-1] == names[: MOST - 1]
    assert parts[-1] == " and ".join(names[MOST - 1 :])
    assert split(" and ".join(names), most=1) == [" and ".join(names)]
    assert split(" and ".join(names), most=2) == ["call Ann0", " and ".join(names[1:])]


def test_what_lies_beyond_the_window_stays_with_the_last_part() -> None:
    tail = "word " * WINDOW + "and find my keys"
    assert split(f"call Ann and find the {tail}") == ["call Ann", f"find the {tail}"]


class Off(NamedTuple):
    id: str
    text: str
    first: str
    rest: str


@pytest.mark.parametrize(
    "case",
    [
        Off("asks", "close the window and find my keys", "close the window", "find my keys"),
        Off("tells", "I stay at home and find my keys", "I stay at home", "find my keys"),
        Off("first-of-many", "go, call Ann and call Ben", "go", "call Ann and call Ben"),
        Off("nothing-asked", "I stay at home and read", "I stay at home and read", ""),
        Off("noun-pair", "feed the cats and dogs", "feed the cats and dogs", ""),
        Off("trigger", "I stay at home and the news", "I stay at home", "the news"),
        Off("points-back", "close the door and lock it", "close the door and lock it", ""),
    ],
    ids=lambda case: case.id,
)
def test_split_off(case: Off) -> None:
    assert split_off(case.text, hits) == (case.first, case.rest)


def test_triggers_may_be_some_patterns_of_a_larger_set() -> None:
    matcher = Matcher([Phrase(("thank you",)), Phrase(("weather",)), Phrase(("news",))])
    assert split("WEATHER and news", triggers(matcher, {1, 2})) == ["WEATHER", "news"]
    assert split("weather and thank you", triggers(matcher, {1, 2})) == ["weather and thank you"]
    assert split("weather and thank you", triggers(matcher)) == ["weather", "thank you"]


def test_each_stretch_is_scanned_for_triggers_once() -> None:
    seen: list[str] = []

    def spy(text: str) -> bool:
        seen.append(text)
        return False

    split("find my keys and call Ann, then the end", spy)
    assert seen == ["find my keys", "call Ann", "the end"]


PIECES = [
    *("weather", "news", "Iran", "Israel", "Will", "I", "me", "it", "the", "cats", "x", "y", "e", "1,000", "is", "are"),
    *("find", "play", "call", "Find", "check the weather", "is it raining", "what is", "who won", "I need", "tell him"),
    *("and", "and", "and", "also", "plus", "then", "as well as", "in addition", "in addition to", ",", ",", "And"),
    *("AND", "también", "además", "luego", "qué", "está la luz", "dime", "quiero", "if", "please", "go", "vs"),
    *("everyone", "everyone keeps talking about", '"', "'", "“", "”", "?", ".", "!", "...", "\n\n", "- ", "1. ", "—"),
    *("(", ";", "é", "a\u200bnd", "，", "和", "\u0301", "😀", "\x00", "\ud800"),
]
joints = st.sampled_from([" ", " ", " ", " ", "  ", "", "\n", "\u00a0"])
salads = st.lists(st.tuples(st.sampled_from(PIECES), joints).map("".join), max_size=24).map("".join)
texts = salads | st.text(max_size=60)
tests = st.sampled_from([None, hits, lambda text: True, lambda text: "e" in text])
Hits = Callable[[str], bool] | None

# What may be lost between two parts: conjunctions, punctuation, white space.
LOST = {"and", "also", "plus", "then", "as", "well", "in", "addition", "to", "y", "también", "además", "luego"}


def lost_words(between: str) -> set[str]:
    stripped = "".join(one if one.isalnum() or one == "\u0301" else " " for one in fold(between).text)
    return set(stripped.split()) - LOST


def lie_in(text: str, parts: list[str]) -> bool:
    """Whether the parts can be found in the text in order, with nothing lost but what may be."""
    if not parts:
        return not lost_words(text)
    at = text.find(parts[0])
    while at >= 0:
        if not lost_words(text[:at]) and lie_in(text[at + len(parts[0]) :], parts[1:]):
            return True
        at = text.find(parts[0], at + 1)
    return False


@given(texts, tests)
def test_parts_lie_in_the_text_in_order_and_little_between_them(text: str, test: Hits) -> None:
    parts = split(text, test)
    assert bool(parts) is bool(fold(text).text)
    assert len(parts) <= MOST
    assert all(part and part == part.strip() for part in parts)
    assert lie_in(text, parts)


@given(texts, tests)
def test_a_part_is_not_parted_again(text: str, test: Hits) -> None:
    parts = split(text, test)
    if len(parts) < MOST:
        assert [split(part, test) for part in parts] == [[part] for part in parts]


@given(texts, tests)
def test_same_text_same_parts(text: str, test: Hits) -> None:
    assert split(text, test) == split(text, test) == split(f" {text}\n", test)


@st.composite
def hidden(draw: st.DrawFn) -> tuple[str, str]:
    """A text of one sentence, and the same with invisible characters in it."""
    text = draw(salads.filter(lambda text: not set(text) & set(".?!\n")))
    places = st.tuples(st.integers(0, len(text)), st.sampled_from("\x00\x1f\x7f\xad\u200b\u200d\u2060\ufeff"))
    changed = text
    for at, unseen in sorted(draw(st.lists(places, min_size=1, max_size=4)), reverse=True):
        changed = changed[:at] + unseen + changed[at:]
    return text, changed


@given(hidden(), st.sampled_from([None, hits]))
@example(("weather news 1,000 weather", "weather news 1\x00,\u200b000 weather"), hits)
def test_invisible_characters_change_nothing(pair: tuple[str, str], test: Hits) -> None:
    plain, changed = ([fold(part).text for part in split(text, test)] for text in pair)
    assert plain == changed


@given(texts, tests, st.integers(1, 4))
def test_a_cap_merges_the_last_parts_and_changes_no_other(text: str, test: Hits, most: int) -> None:
    parts, capped = split(text, test), split(text, test, most=most)
    assert len(capped) == min(len(parts), most)
    assert capped[:-1] == parts[: max(0, len(capped) - 1)]


@given(salads)
@example("weather and news")
def test_without_triggers_no_part_is_made_that_triggers_would_not_make(text: str) -> None:
    assert len(split(text)) <= len(split(text, hits))


@given(texts, tests)
def test_splitting_off_loses_only_conjunctions(text: str, test: Hits) -> None:
    first, rest = split_off(text, test)
    assert bool(first) is bool(fold(text).text)
    assert not rest or text.index(rest, text.index(first) + len(first))


HOSTILE = [
    *("and ", ", ", "if ", " y ", "also ", "a and ", "x, ", "find and ", "is it and ", "A and ", "Ab and ", "as well "),
    *("x, a and ", "in addition ", "call Ann and ", "what's new, ", "everyone keeps ", "find me it, and ", "1,"),
    *("'", "' ", '" ', "“a ", "'a ", "a. ", "?\n", "and", ",", " ", "\n", "é and ", "a\u0301 and ", "、", "，"),
    *("\u200b", "\x00and "),
]
# The promise for a megabyte, in seconds. A busy runner may be this much slower.
LIMIT = 0.2
SLACK = 3


@pytest.mark.parametrize("unit", HOSTILE, ids=repr)
def test_a_hostile_megabyte_is_parted_at_once(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    assert is_within(LIMIT * SLACK, lambda: split(text, hits))


@pytest.mark.parametrize("unit", HOSTILE, ids=repr)
def test_time_is_linear_below_the_window(unit: str) -> None:
    def work(size: int) -> Callable[[], object]:
        text = unit * (size // len(unit))
        return lambda: [split(text, hits) for _ in range(4)]

    # Quadratic work would show 64 times.
    assert is_linear(work(WINDOW // 8), work(WINDOW), most=24, grain=0.02)


def test_parts_do_not_depend_on_how_many_there_are() -> None:
    texts = [" and ".join(f"call Ann{number}" for number in range(count)) for count in range(1, MOST + 1)]
    for shorter, longer in pairwise(map(split, texts)):
        assert longer[: len(shorter)] == shorter


def test_marks_around_the_whole_quote_nothing() -> None:
    assert split('"Who wrote Emma? Also, can you call Ann?"') == ["Who wrote Emma?", "can you call Ann?"]
    assert split('"cats and dogs"') == ['"cats and dogs"']
    assert split('"find eggs" and call "Ann"') == ['"find eggs"', 'call "Ann"']
