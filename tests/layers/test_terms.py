"""A text as its terms: what is read of it, and that the same text gives the same terms everywhere."""

import subprocess
import sys
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from timing import is_linear
from turnout.layers.term_head import END, SHAPE_NUMBERS, START, Terms, measure_shape, tokenize
from turnout.text.fold import fold


class Wrong(NamedTuple):
    id: str
    fields: dict[str, Any]
    said: str


WRONG = [
    Wrong("no power of two", {"buckets": 1000}, "buckets is 1000: it must be a power of two"),
    Wrong("no buckets", {"buckets": 0}, "`int` >= 2"),
    Wrong("too many buckets", {"buckets": 1 << 23}, "`int` <= 4194304"),
    Wrong("half a bucket", {"buckets": 2.5}, "Expected `int`"),
    Wrong("runs backwards", {"letters": [5, 3]}, "letters is 5 to 3: it must be from low to high"),
    Wrong("runs of nothing", {"letters": [0, 3]}, "`int` >= 1"),
    Wrong("long runs", {"letters": [3, 9]}, "`int` <= 8"),
    Wrong("one length", {"letters": [3]}, "length 2"),
    Wrong("nothing is read", {"head": 0}, "`int` >= 1"),
    Wrong("too much is read", {"head": 65_537}, "`int` <= 65536"),
    Wrong("less than no end", {"tail": -1}, "`int` >= 0"),
    Wrong("too long an end", {"tail": 65_537}, "`int` <= 65536"),
    Wrong("an unknown field", {"words": 1}, "unknown field `words`"),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.id)
def test_terms_that_are_none(case: Wrong) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(case.fields, Terms)
    assert case.said in str(caught.value)


def test_the_widest_there_are() -> None:
    for fields in ({"buckets": 2, "letters": (1, 1), "head": 1, "tail": 0}, {"buckets": 1 << 22, "letters": (8, 8)}):
        assert msgspec.convert(msgspec.to_builtins(Terms(**fields)), Terms) == Terms(**fields)  # type: ignore[arg-type]


class Cut(NamedTuple):
    id: str
    text: str
    read: str


WINDOW = Terms(head=6, tail=3)
CUTS = [
    Cut("short", "abc", "abc"),
    Cut("just", "abcdefghi", "abcdefghi"),
    Cut("one more", "abcdefghij", "abcdef\nhij"),
    Cut("long", "abcdef" + "x" * 999 + "hij", "abcdef\nhij"),
]


@pytest.mark.parametrize("case", CUTS, ids=lambda case: case.id)
def test_of_a_long_text_its_beginning_and_its_end_are_read(case: Cut) -> None:
    assert WINDOW.cut(case.text) == case.read


def test_without_an_end_only_the_beginning_is_read() -> None:
    assert Terms(head=3, tail=0).cut("abcdef") == "abc\n"


@given(st.text(), st.integers(1, 50), st.integers(0, 50))
def test_no_more_is_read_than_the_window(text: str, head: int, tail: int) -> None:
    terms = Terms(head=head, tail=tail)
    read = terms.cut(text)
    assert len(read) <= head + tail + 1
    assert terms.cut(read[: head + tail]) == read[: head + tail]
    assert len(tokenize(read)) <= head + tail


TOKENS = {
    "what's up, doc?": ["what", "'", "s", "up", ",", "doc", "?"],
    "3rd of 12_000": ["3", "rd", "of", "12", "000"],
    "天気は?": ["天", "気", "は", "?"],
    "ok好 naïve": ["ok", "好", "naïve"],
    " \n\t": [],
    "": [],
}


@pytest.mark.parametrize(("text", "tokens"), TOKENS.items())
def test_tokens(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


def test_a_word_a_pair_and_letters_fall_apart() -> None:
    own, letters = Terms().of_word("parcel")
    assert own not in letters
    par, cel = Terms().of_word("par")[0], Terms().of_word("cel")[0]
    assert Terms().of_pair(par, cel) != Terms().of_pair(cel, par)
    assert Terms().of_word("ab")[1] == [], "runs of letters in a short word are hardly more than the word"
    # " parcel " has 6 runs of three, 5 of four, 4 of five.
    assert len(letters) == 15
    assert len(Terms().of_word("x" * 10_000)[1]) == len(Terms().of_word("x" * 24)[1])


@given(st.lists(st.sampled_from([11, 222, 3333]), min_size=1))
def test_pairs_are_neighbours(hashes: list[int]) -> None:
    terms = Terms()
    found = terms.of_pairs(hashes, [terms.before(one) for one in hashes])
    assert found == {terms.of_pair(*pair) for pair in pairwise((START, *hashes, END))}
    wide = terms.of_pairs([one * 5 for one in hashes], [terms.before(one) * 5 for one in hashes], 5)
    assert wide == {one * 5 for one in found}, "as rows of a table they are the same"


@given(st.text(min_size=1))
def test_the_shape_is_some_finite_numbers(text: str) -> None:
    tokens = tokenize(text)
    if tokens:
        shape = measure_shape(text, len(tokens), len(set(tokens)))
        assert len(shape) == SHAPE_NUMBERS
        assert all(0.0 <= number < 1e5 for number in shape)


def test_another_process_gives_the_same_terms() -> None:
    """Python's own hashes of words differ from process to process; none of them is used."""
    code = (
        "from turnout.layers.term_head import *;"
        "print([Terms().of_word(w) for w in ('paquete', '天', '\\ud800')], Terms().of_pairs([1, 2, 3], [4, 5, 6]))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }  # fmt: skip
    assert len(said) == 1


@pytest.mark.parametrize("hidden", ["\u200b", "\u00ad", "\u2060", "\ufeff"])
def test_invisible_characters_are_no_terms(hidden: str) -> None:
    plain = fold("where is my parcel").text
    assert tokenize(fold(f"wh{hidden}ere is my{hidden} par{hidden}cel").text) == tokenize(plain)


def test_time_is_linear_in_what_is_read() -> None:
    wide = Terms(head=65_536, tail=0)
    short, long = "where is 天気 a1b2!? " * 400, "where is 天気 a1b2!? " * 3_200
    assert is_linear(lambda: _read(wide, short), lambda: _read(wide, long), most=24, grain=0.002)


def _read(terms: Terms, text: str) -> None:
    tokens = tokenize(terms.cut(text))
    sizes = [len(token) for token in tokens]
    terms.of_pairs(sizes, sizes)
    measure_shape(text, len(tokens), len(set(tokens)))
