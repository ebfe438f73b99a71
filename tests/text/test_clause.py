"""What a clause does: a table of moods and one of what can and cannot be understood alone; both total and linear."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timing import is_linear
from turnout.text.clause import LISTS, Mood, begins_with, has_content, judge, leans
from turnout.text.words import read_table


class Case(NamedTuple):
    mood: Mood
    text: str


MOODS = [
    Case(Mood.QUESTION, "what is a quark"),
    Case(Mood.QUESTION, "what's a quark"),
    Case(Mood.QUESTION, "whats a quark"),
    Case(Mood.QUESTION, "what s a quark"),
    Case(Mood.QUESTION, "what films are on"),
    Case(Mood.QUESTION, "how cold is it"),
    Case(Mood.QUESTION, "who won"),
    Case(Mood.QUESTION, "how to bake bread"),
    Case(Mood.QUESTION, "hey what about lunch"),
    Case(Mood.QUESTION, "is the door locked"),
    Case(Mood.QUESTION, "is emma a good book"),
    Case(Mood.QUESTION, "do the lights work"),
    Case(Mood.QUESTION, "don't they open at nine"),
    Case(Mood.QUESTION, "have you seen emma"),
    Case(Mood.QUESTION, "has the mail arrived"),
    Case(Mood.QUESTION, "have the doors been locked"),
    Case(Mood.QUESTION, "will yosemite be cold"),
    Case(Mood.QUESTION, "for tonight can you find a table"),
    Case(Mood.QUESTION, "qué hora es"),
    Case(Mood.QUESTION, "que es un quark"),
    Case(Mood.QUESTION, "está la puerta abierta"),
    Case(Mood.QUESTION, "va a llover"),
    Case(Mood.COMMAND, "find my keys"),
    Case(Mood.COMMAND, "please just find my keys"),
    Case(Mood.COMMAND, "text me the address"),
    Case(Mood.COMMAND, "hum me a tune"),
    Case(Mood.COMMAND, "to my list please add milk"),
    Case(Mood.COMMAND, "at seven turn on the lights"),
    Case(Mood.COMMAND, "busca un hotel"),
    Case(Mood.WISH, "i need a table"),
    Case(Mood.WISH, "i would really like some tea"),
    Case(Mood.WISH, "i d like some tea"),
    Case(Mood.WISH, "we'd love a table outside"),
    Case(Mood.WISH, "looking for a plumber"),
    Case(Mood.WISH, "am looking for a plumber"),
    Case(Mood.WISH, "like to book a seat"),
    Case(Mood.WISH, "on monday i need a table"),
    Case(Mood.WISH, "my parents need a table"),
    Case(Mood.WISH, "this song deserves four stars"),
    Case(Mood.WISH, "necesito un taxi"),
    Case(Mood.STATEMENT, "i like cats"),
    Case(Mood.STATEMENT, "my card was stolen"),
    Case(Mood.STATEMENT, "i'm at home"),
    Case(Mood.STATEMENT, "the dog chewed up my card"),
    Case(Mood.STATEMENT, "somebody ate my lunch"),
    Case(Mood.STATEMENT, "when it arrives"),
    Case(Mood.STATEMENT, "what i should do"),
    Case(Mood.STATEMENT, "is not working"),
    Case(Mood.STATEMENT, "can't log in"),
    Case(Mood.STATEMENT, "has a dog"),
    Case(Mood.STATEMENT, "have my tires changed"),
    Case(Mood.STATEMENT, "will smith movies"),
    Case(Mood.FRAGMENT, ""),
    Case(Mood.FRAGMENT, "please"),
    Case(Mood.FRAGMENT, "cats"),
    Case(Mood.FRAGMENT, "roll history"),
    Case(Mood.FRAGMENT, "phone bills"),
    Case(Mood.FRAGMENT, "close to the river"),
    Case(Mood.FRAGMENT, "rain in may"),
    Case(Mood.FRAGMENT, "llama farms"),
]


@pytest.mark.parametrize("case", MOODS, ids=lambda case: case.text or "blank")
def test_mood(case: Case) -> None:
    assert judge(case.text.split()) is case.mood


@pytest.mark.parametrize(
    "text",
    [
        *("", "please", "why", "what do i do", "can you help", "is that possible", "what's up", "show me"),
        *("tell him the time", "cancel it", "how can i get one", "play the next one", "is that an option"),
        *("when was it written", "if so", "because it rains", "read", "find something else"),
    ],
)
def test_leans(text: str) -> None:
    assert leans(text.split())


@pytest.mark.parametrize(
    "text",
    [
        *(
            "find my keys",
            "is it raining",
            "will it rain tomorrow",
            "how cold will it be",
            "how long does it take to rome",
        ),
        *("rate this book one out of six", "a table for one", "see if it will rain", "what's the time", "cats"),
    ],
)
def test_stands_alone(text: str) -> None:
    assert not leans(text.split())


def test_content() -> None:
    assert has_content(["the", "door"])
    assert not has_content(["what's", "it", "to", "you"])
    assert not has_content([])


def test_begins_with_reads_past_what_comes_before_the_clause() -> None:
    assert begins_with(["please", "now", "go"], LISTS.serial)
    assert not begins_with(["please"], LISTS.serial)
    assert not begins_with([], LISTS.serial)


def test_lists_that_narrow_others_lie_inside_them() -> None:
    assert LISTS.nouns_too <= LISTS.commands
    assert LISTS.loose_auxiliaries | LISTS.possessive_auxiliaries | LISTS.modals <= LISTS.auxiliaries
    assert LISTS.determining | LISTS.adverbial <= LISTS.question_words
    assert LISTS.conditional_wishes | LISTS.bare_wishes <= LISTS.wishes


vocabulary = sorted(set().union(*(getattr(LISTS, name) for name in read_table("clause", "en"))))
clauses = st.lists(st.sampled_from(vocabulary) | st.sampled_from(["cats", "door", "it", "one"]), max_size=12)


@given(clauses)
def test_total(words: list[str]) -> None:
    assert judge(words) in Mood
    assert leans(words) or has_content(words)


@given(clauses)
def test_words_before_the_clause_change_nothing(words: list[str]) -> None:
    assert judge(["please", *words]) is judge(words) or not words
    assert leans(["please", *words]) is leans(words)


@pytest.mark.parametrize(
    "word", ["and", "it", "can", "i", "at", "find", "one", "need", "please", *sorted(LISTS.hollow)[:3]]
)
def test_time_is_linear_in_the_words(word: str) -> None:
    def work(count: int) -> Callable[[], object]:
        words = [word] * count
        return lambda: (judge(words), leans(words))

    # Quadratic work would show 64 times.
    assert is_linear(work(10_000), work(80_000), most=24, grain=0.02)
