"""`pointing.v1`: what only its asker can see or remember is never asked about without it."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from turnout import Query, Router, load, load_profile
from turnout.text.pointing import find_pointing


class Case(NamedTuple):
    id: str
    text: str
    found: str | None


CASES = [
    Case("definite", "What is the footnote about?", "the footnote"),
    Case("definite-inside", "What is the date of the judgment?", "the judgment"),
    Case("a-place-tells-nothing", "What is the value at three seconds?", "the value"),
    Case("how-it-looks", "What is the dotted line?", "the dotted line"),
    Case("print-tells-nothing", "What is the word in bold?", "the word"),
    Case("part", "What is reference 12?", "reference 12"),
    Case("part-in-words", "What does chapter two say?", "chapter two"),
    Case("pronoun-in-its-clause", "Why is there a square root in it?", "it"),
    Case("whose", "Is my answer right: demand falls when prices rise?", "my answer"),
    Case("when", "What did we read yesterday?", "did we"),
    Case("called", "What is the arrow called?", "the arrow"),
    Case("made-and-on-the-page", "Who wrote the letter?", "the letter"),
    Case("spanish", "¿Qué es la nota al pie?", "la nota"),
    Case("german", "Was steht in der Tabelle?", "der tabelle"),
    Case("french", "Que veut dire le titre ?", "le titre"),
    Case("chinese", "脚注说了什么？", "脚注"),
    Case("told-apart", "What is the speed of light?", None),
    Case("term", "What is the golden ratio?", None),
    Case("name", "What is the Magna Carta?", None),
    Case("unique", "What is the function of the liver?", None),
    Case("a-kind", "What is a young swan called?", None),
    Case("a-work", "Who painted the scream?", None),
    Case("quoted", 'What does the word "the footnote" mean?', None),
    Case("next-clause", "What is a neuron and how does it fire?", None),
    Case("spanish-generic", "¿Qué es la fotosíntesis?", None),
    Case("own-words", "Explain entropy in your own words", None),
    Case("long", f"The footnote {'and so on ' * 12}?", None),
    Case("blank", " ", None),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_points(case: Case) -> None:
    assert find_pointing(case.text) == case.found


@pytest.mark.parametrize("case", [one for one in CASES if one.found], ids=lambda case: case.id)
def test_what_points_is_sent_its_context(case: Case) -> None:
    assert load("study", config="").route_sync(Query(case.text)).route != "standalone_definition"


def test_a_reason_names_the_words_and_a_declared_route_stays() -> None:
    profile = load_profile("study", config="")
    # The signals take it for a definition, whatever the student says of it.
    router = Router(replace(profile, layers=tuple(place for place in profile.layers if place.id != "student")))
    reasons = router.route_sync(Query("What is the footnote about?")).remarks
    assert any(one.code == "pointing.context" and "the footnote" in one.text for one in reasons)
    declared = Query("What is the footnote about?", declared="standalone")
    assert router.route_sync(declared).route == "standalone_definition"


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    assert find_pointing(text) is None or text.strip()
