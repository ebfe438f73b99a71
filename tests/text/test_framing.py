"""Discourse framing: found as whole words, taken out of search terms; the two agree on every text."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timing import is_within
from turnout.text.framing import is_framed, phrases, strip_framing


class Case(NamedTuple):
    id: str
    text: str
    rest: str


FRAMED = [
    Case(
        "golden",
        "what's the deal with that whole mercury retrograde thing everyone keeps talking about",
        "what's the deal with that whole mercury retrograde thing",
    ),
    Case("in-front", "everyone keeps talking about black holes rss", "black holes rss"),
    Case("without-about", "why everyone keeps talking like that", "why like that"),
    Case("is", "Everyone is talking about AI", "AI"),
    Case("apostrophe", "the show everyone's obsessed with", "the show"),
    Case("curly", "the show everyone’s obsessed with", "the show"),
    Case("no-apostrophe", "the show everyones talking about", "the show"),
    Case("twice", "everyone is talking about a and everyone is obsessed with b", "a and b"),
    Case("commas", "sourdough, everyone is obsessed with, explained", "sourdough,, explained"),
    Case("mark", "what is that thing everyone keeps talking about?", "what is that thing?"),
    Case("spaces", "Dune  everyone\nkeeps\u00a0talking   about", "Dune"),
    Case("shouted", "EVERYONE KEEPS TALKING ABOUT Dune", "Dune"),
    Case("invisible", "Dune every\u200bone keeps talking about", "dune"),
    Case("look-alikes", "Dune еveryone keeps talking about", "dune"),
    Case("nothing-else", "everyone keeps talking about", ""),
]

PLAIN = [
    Case("someone", "someone keeps talking about it", "someone keeps talking about it"),
    Case("longer-word", "not-everyone keeps talkinga lot", "not-everyone keeps talkinga lot"),
    Case("is-talking", "everyone is talking", "everyone is talking"),
    Case("untouched", "  two  spaces , kept ", "  two  spaces , kept "),
    Case("blank", "", ""),
]


@pytest.mark.parametrize("case", FRAMED, ids=lambda case: case.id)
def test_framed(case: Case) -> None:
    assert is_framed(case.text)
    assert strip_framing(case.text) == case.rest


@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case.id)
def test_not_framed(case: Case) -> None:
    assert not is_framed(case.text)
    assert strip_framing(case.text) == case.rest


@pytest.mark.parametrize("phrase", phrases())
def test_every_phrase_of_the_list_counts(phrase: str) -> None:
    assert is_framed(f"the thing {phrase} it")
    assert strip_framing(f"the thing {phrase} it") == "the thing it"


@given(
    st.lists(st.sampled_from([*phrases(), "everyone", "'s", "talking", " ", "\u200b", "Dune", ",", "?", "е"])).map(
        " ".join
    )
)
def test_what_is_found_is_what_is_taken_out(text: str) -> None:
    assert is_framed(text) is (strip_framing(text) != text)


@pytest.mark.parametrize(
    "unit", ["everyone ", "everyone keeps ", phrases()[0] + " ", "everyone" + " " * 999, " ", "е", " ,"]
)
def test_a_hostile_megabyte_is_read_at_once(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    # 200 ms each; a busy runner may be three times slower.
    assert is_within(1.2, lambda: (is_framed(text), strip_framing(text)))
