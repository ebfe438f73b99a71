"""Of a very long text the beginning and the end are read: the work stops growing, and the decision says so.

And what a follow-up goes on from is read with it, where a profile says so.
"""

from typing import NamedTuple

import pytest

from timing import is_within
from turnout import Query, Turn
from turnout.text.match import Lexicon, Phrase
from turnout.text.read import LONGEST, LONGEST_TASK, reader

LEXICON = Lexicon()
WORD = LEXICON.add(Phrase(("needle",)), "test.needle")
READ = reader(LEXICON.compile(), fold_name="unicode", unwrap=True)


class Case(NamedTuple):
    id: str
    unit: str
    units: int = 1
    """Of UTF-16, for one character."""


CASES = [Case("ascii", "x"), Case("accents", "é"), Case("han", "熵"), Case("emoji", "😀", 2)]


def around(unit: str, length: int, at: int) -> str:
    """A text of that length with the word at that place."""
    return unit * at + " needle " + unit * (length - at - len(" needle "))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_ends_of_a_long_text_are_read_and_all_of_it_counts(case: Case) -> None:
    length = LONGEST + 1000
    for at, found in ((5, True), (length - 100, True), (length // 2, False)):
        text = around(case.unit, length, at)
        reading = READ(Query(text))
        assert (WORD in reading.hits) is found
        assert "scan.window" in reading.notes
        # A line end between the two is one unit more.
        assert reading.units == len(text.encode("utf-16-le")) // 2 + 1


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_up_to_there_all_of_it_is_read(case: Case) -> None:
    reading = READ(Query(around(case.unit, LONGEST, LONGEST // 2)))
    assert reading.hits == (WORD,)
    assert reading.notes == ()


def test_what_a_client_wraps_around_the_words_does_not_count_however_long_it_is() -> None:
    packed = "[chat messages since your last reply]\n" + "x" * (2 * LONGEST)
    text = f"{packed}\n[Current message - respond to this]\nthe needle, please"
    reading = READ(Query(turns=(Turn("user", text),)))
    assert reading.words == "the needle, please"
    assert reading.units == len(reading.words)
    assert reading.notes == ("extract.packed", "scan.window")


@pytest.mark.parametrize("unit", ["x", "\ufdfa", "р" + "aypal ", "<a></a>", "a" + "\u0301" * 40, "\u200b"])
def test_the_longest_text_takes_no_longer_than_what_is_read_of_it(unit: str) -> None:
    query = Query(turns=(Turn("user", unit * (16 * LONGEST // len(unit))),))
    assert is_within(1.5, lambda: READ(query), tries=3)


INHERIT = reader(LEXICON.compile(), fold_name="unicode", unwrap=True, inherit=True)
TASK = "Prove that the square root of two is irrational"
DONE = "Done. Shall I go on?"
LONG = TASK + " and so on" * 300


class FollowUp(NamedTuple):
    id: str
    before: tuple[str, ...]
    """The user's and the assistant's in turn."""
    asked: str
    task: str = TASK


FOLLOW_UPS = [
    FollowUp("a consent", (TASK, DONE), "yes, go ahead"),
    FollowUp("two in a row", (TASK, DONE, "yes", DONE), "ok, continue"),
    FollowUp("the task before it is the one", ("hello", "Hi!", TASK, DONE), "do it again"),
    FollowUp("without a task, the answer before", ("", DONE), "yes", DONE),
    FollowUp("a long task is read from its beginning", (LONG, DONE), "go on", LONG[:LONGEST_TASK]),
    FollowUp("another matter", (TASK, DONE), "What is the capital of France?", ""),
    FollowUp("a sum", (TASK, DONE), "3+1", ""),
    FollowUp("thanks", (TASK, DONE), "Thanks a lot!", ""),
    FollowUp("thanks and a word more", (TASK, DONE), "ok thanks, that's great", ""),
    FollowUp("thanks for what was needed", (TASK, DONE), "Perfect, it\u2019s exactly what I needed", ""),
    FollowUp("a consent without thanks", (TASK, DONE), "ok"),
    FollowUp("thanks in Chinese", (TASK, DONE), "谢谢，明白了", ""),
    FollowUp("thanks in German", (TASK, DONE), "Vielen Dank!", ""),
    FollowUp("a long message", (TASK, DONE), "go on with this" * 30, ""),
    FollowUp("nothing before", (), "yes, go ahead", ""),
    FollowUp("nothing asked", (TASK, DONE), "", ""),
]


@pytest.mark.parametrize("case", FOLLOW_UPS, ids=lambda case: case.id)
def test_a_follow_up_is_read_with_what_it_goes_on_from(case: FollowUp) -> None:
    before = tuple(Turn("assistant" if at % 2 else "user", text) for at, text in enumerate(case.before))
    last = Query(turns=(*before, Turn("user", case.asked)))
    beside = Query(case.asked, turns=before)
    for query in (last, beside) if case.asked else (last,):
        reading = INHERIT(query)
        assert reading.words == (f"{case.task}\n{case.asked}" if case.task else case.asked)
        assert reading.notes == (("extract.inherited",) if case.task else ())
        assert READ(query).words == case.asked


def test_only_what_was_said_is_gone_on_from() -> None:
    turns = (Turn("system", TASK), Turn("tool", TASK), Turn("user", "yes, go ahead"), Turn("assistant", TASK))
    assert INHERIT(Query(turns=turns)).words == "yes, go ahead"


def test_thousands_of_turns_take_no_longer_than_the_last_of_them() -> None:
    turns = tuple(Turn("assistant" if at % 2 else "user", "it " * 5000) for at in range(2000))
    assert is_within(0.5, lambda: INHERIT(Query("go on", turns=turns)), tries=3)
