"""Citations of a written answer: tables of what is parsed, kept and dropped, then properties, then hostile input."""

from typing import NamedTuple

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from timing import is_linear
from turnout.search.citation import (
    MOST_CITED,
    CheckedAnswer,
    CitationStream,
    Status,
    Supported,
    Unsupported,
    Why,
    apply,
    check,
    parse,
)


class ParsedCase(NamedTuple):
    id: str
    answer: str
    cited: list[tuple[int, ...]]  # of each sentence


PARSED = [
    ParsedCase("none", "Paris is big. Rome is old.", [(), ()]),
    ParsedCase("before-the-stop", "Paris is big [1]. Rome is old [2].", [(1,), (2,)]),
    ParsedCase("behind-the-stop", "Paris is big.[1] Rome is old.[2]", [(1,), (2,)]),
    ParsedCase("behind-the-stop-and-a-space", "Paris is big. [1] Rome is old. [2]", [(1,), (2,)]),
    ParsedCase("several", "Paris is big [2][3]. Rome [1] is old [2].", [(2, 3), (1, 2)]),
    ParsedCase("list-in-one", "Paris is big [1, 3]. Rome is old [2;4].", [(1, 3), (2, 4)]),
    ParsedCase("range", "Paris is big [1-3]. Rome is old [2–3].", [(1, 2, 3), (2, 3)]),
    ParsedCase("endless-range", "Paris is big [1-999].", [tuple(range(1, MOST_CITED + 2))]),
    ParsedCase("twice", "Paris [1] is big [1].", [(1,)]),
    ParsedCase("nested", "Paris is big [[1]]. Rome is old ([2]).", [(1,), (2,)]),
    ParsedCase("footnote", "Paris is big [^1].", [(1,)]),
    ParsedCase("link", "Paris is big [1](https://example.org/a_b). Rome is old.", [(1,), ()]),
    ParsedCase("lenticular", "Paris is big【1】. Rome is old【2†source】.", [(1,), (2,)]),
    ParsedCase("as-a-word", "Paris is big. [1] says so.", [(), (1,)]),
    ParsedCase("items", "- Paris is big [1]\n- Rome is old [2]\n1. Bonn is small [3]", [(1,), (2,), (3,)]),
    ParsedCase("inline-code", "Use `a[1]` here. Then `b` [2].", [(), (2,)]),
    ParsedCase("fenced-code", "Run this [1]:\n```\nx = a[2]\n```\nIt prints [3].", [(1,), (), (3,)]),
    ParsedCase("zero", "Take list[0] first.", [()]),
    ParsedCase("year", "In [2019] it rained.", [()]),
    ParsedCase("text", "See [the page](https://example.org) and [x].", [()]),
    ParsedCase("spanish", "¿Es grande? París es grande [1].", [(), (1,)]),
    ParsedCase("german-date", "Am 5. Mai regnete es [1]. Gut.", [(1,), ()]),
    ParsedCase("japanese", "東京は大きい[1]。京都は古い[2]。", [(1,), (2,)]),
    ParsedCase("empty", "", []),
]


@pytest.mark.parametrize("case", PARSED, ids=lambda case: case.id)
def test_parse(case: ParsedCase) -> None:
    sentences = parse(case.answer)
    assert [sentence.cited for sentence in sentences] == case.cited
    assert "".join(sentence.text for sentence in sentences) == case.answer


SECTIONS = [
    "Paris is the capital of France. About 2.1 million people live there.",
    "The Eiffel Tower was completed in 1889. It is 330 metres tall.",
    "Kitchen light: off. The front door is locked. Plex is up.",
]


class AppliedCase(NamedTuple):
    id: str
    answer: str
    rendered: str


# "~" stands for what marks a sentence.
APPLIED = [
    AppliedCase("kept", "Paris is the capital of France [1].", "Paris is the capital of France [1]."),
    AppliedCase("wrong-section", "Paris is the capital of France [2].", "Paris is the capital of France.~"),
    AppliedCase("one-of-two", "Paris is the capital of France [1][2].", "Paris is the capital of France [1]."),
    AppliedCase("one-of-a-list", "Paris is the capital of France [2, 1].", "Paris is the capital of France [1]."),
    AppliedCase("no-such-section", "Paris is the capital of France [1][9].", "Paris is the capital of France [1]."),
    AppliedCase("only-no-such-section", "Paris is the capital of France [9].", "Paris is the capital of France.~"),
    AppliedCase(
        "together",
        "The Eiffel Tower in Paris, capital of France, was completed in 1889 [1][2].",
        "The Eiffel Tower in Paris, capital of France, was completed in 1889 [1][2].",
    ),
    AppliedCase(
        "behind-the-stop",
        "The tower is 324 metres tall. [2] Paris is the capital of France. [1]",
        "The tower is 324 metres tall.~ Paris is the capital of France. [1]",
    ),
    AppliedCase("number", "The Eiffel Tower is 324 metres tall [2].", "The Eiffel Tower is 324 metres tall.~"),
    AppliedCase("state", "The kitchen light is on [3].", "The kitchen light is on.~"),
    AppliedCase("state-kept", "The kitchen light is off [3].", "The kitchen light is off [3]."),
    AppliedCase("negated", "The front door is not locked [3].", "The front door is not locked.~"),
    AppliedCase("twice-negated", "The front door is not unlocked [3].", "The front door is not unlocked [3]."),
    AppliedCase("uncited", "Madrid is nice.\n\nRome too.", "Madrid is nice.\n\nRome too."),
    AppliedCase("nothing-stated", "It is so [1].", "It is so.~"),
    AppliedCase(
        "items",
        "- The Eiffel Tower was completed in 1889 [2]\n- Plex is down [3]\n",
        "- The Eiffel Tower was completed in 1889 [2]\n- Plex is down~\n",
    ),
    AppliedCase(
        "numbered-items",
        "1. Paris is the capital of France [1]\n2. Plex is up [3]",
        "1. Paris is the capital of France [1]\n2. Plex is up [3]",
    ),
    AppliedCase("code", "```\nx[1] = 2\n```\n", "```\nx[1] = 2\n```\n"),
]


@pytest.mark.parametrize("case", APPLIED, ids=lambda case: case.id)
def test_apply(case: AppliedCase) -> None:
    assert apply(case.answer, SECTIONS).render("~") == case.rendered


def test_what_was_found_is_shown_as_places_in_the_sections() -> None:
    (sentence,) = apply("The Eiffel Tower was completed in 1889 [2].", SECTIONS).sentences
    (citation,) = sentence.citations
    assert isinstance(citation.result, Supported)
    assert [SECTIONS[place.passage][place.start : place.end] for place in citation.result.where] == [
        "The Eiffel Tower was completed in 1889."
    ]
    assert sentence.status == Status.SUPPORTED
    assert sentence.kept == (2,)


def test_why_a_citation_was_dropped_is_a_value_and_a_sentence() -> None:
    checked = apply("The Eiffel Tower is 324 metres tall [2][7].", SECTIONS)
    (sentence,) = checked.sentences
    results = [citation.result for citation in sentence.citations]
    assert [result.why for result in results if isinstance(result, Unsupported)] == [Why.NUMBER, Why.NO_SECTION]
    assert [result.said for result in results if isinstance(result, Unsupported)] == [
        '"324" is not said there of this.',
        "There is no section 7; there are 3.",
    ]
    assert msgspec.json.decode(msgspec.json.encode(checked), type=CheckedAnswer) == checked


def test_a_sentence_that_cites_everything_is_checked_against_a_few() -> None:
    many = ["Rain fell in Oslo."] * 20
    (sentence,) = apply(f"Rain fell in Oslo {''.join(f'[{n}]' for n in range(1, 21))}.", many).sentences
    assert sentence.kept == tuple(range(1, MOST_CITED + 1))


def test_an_answer_that_cites_more_than_is_compared_says_so() -> None:
    sections = ["Rain fell in Oslo. " * 6000]
    results = [one.citations[0].result for one in apply("Rain fell in Oslo [1]. " * 60, sections).sentences]
    assert isinstance(results[0], Supported)
    assert isinstance(results[-1], Unsupported)
    assert results[-1].why == Why.TOO_LONG


# --- what holds for every answer

PIECES = st.sampled_from(
    [
        "Paris",
        " is",
        " not",
        " big",
        ".",
        " ",
        "[1]",
        "[2]",
        " [3, 1]",
        "\n",
        "- ",
        "`",
        "```\n",
        "1889",
        " 5 km",
        "é",
        "「",
        "。",
        "[",
    ]
)
ANSWERS = st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=40).map("".join))


@given(ANSWERS, st.lists(ANSWERS, max_size=3))
@example("[1]", [""])
@example("\ud800 [1]", ["\ud800"])
def test_every_answer_is_checked_and_always_alike(answer: str, sections: list[str]) -> None:
    checked = apply(answer, sections)
    assert checked == apply(answer, sections)
    assert "".join(sentence.text for sentence in parse(answer)) == answer
    for sentence in checked.sentences:
        for citation in sentence.citations:
            assert 0 <= citation.result.score <= 1
            if isinstance(citation.result, Supported):
                assert citation.result.where
                assert all(place.passage == citation.section - 1 for place in citation.result.where)
                assert all(0 <= p.start < p.end <= len(sections[p.passage]) for p in citation.result.where)


WRITTEN = st.lists(st.sampled_from([case.answer for case in (*PARSED, *APPLIED)]), max_size=4).map(" ".join)


@given(st.one_of(ANSWERS, WRITTEN), st.lists(st.integers(0, 300), max_size=12).map(sorted))
def test_a_stream_is_checked_as_the_whole_is(answer: str, cuts: list[int]) -> None:
    """However an answer is cut, its sentences and what became of their citations are the same."""
    stream = CitationStream(SECTIONS)
    pieces = [answer[start:end] for start, end in zip([0, *cuts], [*cuts, None], strict=True)]
    found = [sentence for piece in pieces for sentence in stream.feed(piece)]
    assert CheckedAnswer((*found, *stream.finish())) == apply(answer, SECTIONS)


@given(ANSWERS)
def test_nothing_but_citations_is_lost(answer: str) -> None:
    """What is no citation stays as it was and where it was."""
    rest = []
    for sentence in parse(answer):
        end = 0
        for mark in sentence.marks:
            rest.append(sentence.text[end : mark.start])
            end = mark.end
        rest.append(sentence.text[end:])
    assert apply(answer, []).render("") == "".join(rest)


@given(ANSWERS)
def test_an_answer_that_cites_itself_keeps_its_text(answer: str) -> None:
    checked = apply(answer, [answer] * 3)
    if all(len(sentence.kept) == len(sentence.citations) for sentence in checked.sentences):
        assert checked.render() == answer


def test_a_sentence_by_itself_is_checked_too() -> None:
    assert isinstance(check("Paris is the capital of France.", SECTIONS), Supported)
    assert isinstance(check("Lyon is the capital of Spain.", SECTIONS), Unsupported)
    assert isinstance(check("Paris is the capital of France.", []), Unsupported)


# --- hostile input

HOSTILE = [
    "[1]",
    "a [1] ",
    "[1] A. ",
    "[",
    "[[1",
    "`",
    "【1",
    "[1](https://",
    "- ",
    "1. ",
    "not ",
    "9",
    "May 5 ",
    "[1,",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_time_is_linear_in_the_answer(unit: str) -> None:
    short, long = unit * (8_000 // len(unit)), unit * (64_000 // len(unit))
    assert is_linear(lambda: apply(short, SECTIONS), lambda: apply(long, SECTIONS), most=16, grain=0.01)
