"""A text is the same numbers every time, in time that grows with what is read and no further."""

import subprocess
import sys
from functools import partial
from math import isclose
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timing import is_within
from turnout.text.ngram import Ngrams

NGRAMS = Ngrams()


class Case(NamedTuple):
    id: str
    one: str
    other: str
    same: bool


CASES = [
    Case("itself", "where is my parcel", "where is my parcel", True),
    Case("runs of spaces", "where  is\nmy parcel ", "where is my parcel", True),
    Case("order of words", "is where my parcel", "where is my parcel", False),
    Case("how often", "no no", "no", False),
    Case("a word and its letters apart", "ab", "a b", False),
    Case("punctuation", "done", "done?", False),
    Case("other scripts", "пакет", "paket", False),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_same(case: Case) -> None:
    def of(text: str) -> dict[int, float]:
        return dict(zip(*NGRAMS.of(text), strict=True))

    assert (of(case.one) == of(case.other)) is case.same


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\u200b"], ids=repr)
def test_nothing_to_read(text: str) -> None:
    found = NGRAMS.of(text)
    assert found == ([], []) or text == "\u200b"


@given(st.text(max_size=80))
def test_each_bucket_once_and_length_one(text: str) -> None:
    buckets, values = NGRAMS.of(text)
    assert len(set(buckets)) == len(buckets) == len(values)
    assert all(0 <= bucket < NGRAMS.buckets for bucket in buckets)
    assert not values or isclose(sum(value * value for value in values), 1.0, rel_tol=1e-9)


def test_related_words_share() -> None:
    one, other = (set(NGRAMS.of(text)[0]) for text in ("refund", "refunded"))
    assert len(one & other) / len(one) > 0.6
    assert not one & set(NGRAMS.of("zebra")[0])


def test_the_same_in_another_process() -> None:
    """Weights learned in one process are used in another: no hash may depend on it."""
    code = "from turnout.text.ngram import Ngrams; print(Ngrams().of('¿dónde está mi paquete?'))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"}
    )
    assert done.stdout.strip() == str(NGRAMS.of("¿dónde está mi paquete?"))


def test_no_more_is_read_than_the_limit() -> None:
    short = Ngrams(characters=20)
    assert short.of("where is my parcel a" + "x" * 50) == short.of("where is my parcel a")


def test_time_is_bounded_for_a_megabyte() -> None:
    for text in ("a" * 1_000_000, "word " * 200_000, "!?" * 500_000, "\ud800" * 100_000):
        assert is_within(0.1, partial(NGRAMS.of, text))


def test_words_are_told_what_their_parts_weigh() -> None:
    text = "cancel the order the order"
    buckets, _ = NGRAMS.of(text)
    told = {bucket: float(at) for at, bucket in enumerate(buckets)}
    shared = NGRAMS.share_out(text, told)
    assert [word for word, _ in shared] == ["cancel", "the", "order"]
    assert isclose(sum(share for _, share in shared), sum(told.values()))


WRONG = [{"buckets": 1000}, {"words": (2, 1)}, {"chars": (2, 9)}]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_wrong_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Ngrams(**wrong)  # type: ignore[arg-type]
