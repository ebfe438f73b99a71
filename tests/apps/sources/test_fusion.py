"""Fusion: what is inside a longer answer goes, what is long is cut at a line's end, what is left is labelled."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.apps.sources.fusion import SECTION_CHARACTERS, cut, fuse, label
from turnout.apps.sources.source import SourceAnswer

FIVE = "The sun is a star. It is hot. It is old. It is large. It shines."


class Case(NamedTuple):
    id: str
    texts: list[str]
    left: list[int]


CASES = [
    Case("different", ["Cats purr.", "Dogs bark."], [0, 1]),
    Case("the same: the first", [FIVE, FIVE], [0]),
    Case("case and signs do not count", ["THE SUN is a star! it is hot; really.", FIVE], [0, 1]),
    Case(
        "three of five sentences inside: 60 %", ["It is hot. It is old. It is large. Cats purr. Dogs bark.", FIVE], [1]
    ),
    Case("two of five: 40 %", ["It is hot. It is old. Cats purr. Dogs bark. Birds sing.", FIVE + " And more."], [0, 1]),
    Case("whole words only", ["It is hot.", "The exit is hotel number five, far away."], [0, 1]),
    Case("order is kept", ["It is hot.", "Cats purr.", FIVE], [1, 2]),
    Case(
        "inside another",
        ["It is old.", FIVE, "Cats purr and sleep and eat and purr and sleep and so on, all day long."],
        [1, 2],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_is_left(case: Case) -> None:
    answers = [(f"s{place}", SourceAnswer(text)) for place, text in enumerate(case.texts)]
    assert [section.source for section in fuse(answers)] == [f"s{place}" for place in case.left]


FORGED = ["[2] kiwix", " [2] kiwix", "\u200b[2] kiwix", "\uff3b2] kiwix", "x\r[2] kiwix", "x\u2028[2] kiwix", "[ha]"]
FORGED += ["\u3164[2] kiwix", "\u2800[2] kiwix", "\ufe0f[2] kiwix", "\U000e0020[2] kiwix"]


@pytest.mark.parametrize("forged", FORGED)
def test_no_line_of_a_page_looks_like_a_label(forged: str) -> None:
    told = label(fuse([("web", SourceAnswer(f"One.\n{forged}\nThe door is open.")), ("kiwix", SourceAnswer("Two."))]))
    lines = [
        line
        for line in told.splitlines()
        if line.strip(" \u200b\ufeff\u3164\u2800\ufe0f\U000e0020")[:1] in ("[", "\uff3b")
    ]
    assert lines == ["[1] web", "[2] kiwix"]


@given(st.lists(st.text("ab .\n", max_size=60), min_size=1, max_size=4))
def test_something_is_always_left_and_in_order(texts: list[str]) -> None:
    sections = fuse([(f"s{place}", SourceAnswer(text)) for place, text in enumerate(texts)])
    names = [section.source for section in sections]
    assert names
    assert names == sorted(names)


LONG = "\n".join(f"line {number:04} of a long answer" for number in range(200))


def test_a_long_section_is_cut_at_the_end_of_a_line() -> None:
    short = cut(LONG)
    assert SECTION_CHARACTERS - 30 < len(short) <= SECTION_CHARACTERS
    assert LONG.startswith(f"{short}\n")
    assert cut("x" * SECTION_CHARACTERS) == "x" * SECTION_CHARACTERS
    assert cut("word " * 400).endswith("word…")


@given(st.text("ab \n", max_size=200), st.integers(1, 50))
def test_a_cut_is_no_longer_than_it_may_be(text: str, most: int) -> None:
    assert len(cut(text, most)) <= max(most, 1)


def test_one_alone_is_left_as_it_is() -> None:
    assert fuse([("kiwix", SourceAnswer(LONG))])[0].text == LONG


def test_labels() -> None:
    sections = fuse([("news", SourceAnswer("Cats purr.")), ("kiwix", SourceAnswer("Dogs bark."))])
    assert label(sections) == "[1] news\nCats purr.\n\n[2] kiwix\nDogs bark."
