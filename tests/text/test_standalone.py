"""Follow-ups in words of their own, and questions that are left alone."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.text.standalone import WINDOW, make_standalone


class Case(NamedTuple):
    before: str
    text: str
    standalone: str


CASES = [
    Case("Will it rain in Paris?", "and tomorrow?", "Will it rain in Paris tomorrow?"),
    Case("Will it rain in Paris today?", "And tomorrow", "Will it rain in Paris tomorrow?"),
    Case("Will it rain in Paris tomorrow?", "and in Lyon?", "Will it rain in Lyon tomorrow?"),
    Case("Will it rain in Paris tomorrow?", "what about Lyon?", "Will it rain in Lyon tomorrow?"),
    Case(
        "what's the weather like today in Rome",
        "how about this weekend?",
        "what's the weather like this weekend in Rome?",
    ),
    Case("weather", "what about tomorrow", "weather tomorrow?"),
    Case("What is Moby Dick about?", "who wrote it?", "who wrote Moby Dick?"),
    Case("who was Charles Darwin", "when was he born?", "when was Charles Darwin born?"),
    Case("who was Charles Darwin", "and his wife?", "and Charles Darwin's wife?"),
    Case("Is the front door locked?", "and is it closed?", "and is the front door closed?"),
    Case("Are all services up?", "why?", "why? (Are all services up)"),
    Case("weather", "and the news?", "the news"),
    Case("weather", "What is the capital of France?", "What is the capital of France?"),
    Case("news", "is it raining?", "is it raining?"),
    Case("who was Charles Darwin", "how far is the moon?", "how far is the moon?"),
    Case("", "and tomorrow?", "and tomorrow?"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text)
def test_standalone(case: Case) -> None:
    assert make_standalone(case.text, [case.before], lambda text: "news" in text or "rain" in text) == case.standalone


@given(st.text(max_size=60), st.lists(st.text(max_size=60), max_size=3))
def test_it_is_total_and_bounded(text: str, history: list[str]) -> None:
    assert len(make_standalone(text, history)) <= len(text) + 2 * WINDOW
