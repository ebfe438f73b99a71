"""The bilingual test questions of the assist profile stay a test: balanced, labelled, and unlike anything trained on.

A question that is also a golden case or a training row would measure memory. The training rows are only compared
with, never shown: a failure names the questions, so that whoever rewrites one does not learn the training set by it.
"""

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

import pytest

from corpora.measure import cases, router
from turnout.config.load import shipped_file
from turnout.text.fold import fold

PROFILES = shipped_file("assist").parent
QUESTIONS = PROFILES / "cases" / "assist-questions.jsonl"
SEEDS = PROFILES / "seeds" / "assist.jsonl"

# 100 a label put the 95 % interval of a label's recall within ten points; three in five of the messages are English.
WANTED = {"en": 60, "es": 40}
# Much Spanish is typed without accents, tildes or opening marks, due or not: a third of the 160 rows at least.
LEAST_PLAIN_SPANISH = 53
# Two texts that share four fifths of their three-letter pieces differ by a word, a typo or the punctuation.
NEAR = 0.8

_not_word = re.compile(r"[\W_]+")


class Question(NamedTuple):
    text: str
    label: str
    lang: str


@cache
def questions() -> tuple[Question, ...]:
    return tuple(Question(**json.loads(line)) for line in QUESTIONS.read_text(encoding="utf-8").splitlines())


def seeds() -> list[str]:
    return [json.loads(line)["text"] for line in SEEDS.read_text(encoding="utf-8").splitlines() if line.strip()]


def plain(text: str) -> str:
    """Folded, without accents and punctuation: stricter than folding alone, so nothing folded-equal slips through."""
    letters = unicodedata.normalize("NFD", fold(text).text)
    return _not_word.sub(" ", "".join(one for one in letters if not unicodedata.combining(one))).strip()


@cache
def pieces(text: str) -> frozenset[str]:
    """The three-letter pieces of the folded text; a space at either end lets short texts have some."""
    padded = f" {' '.join(fold(text).text.split())} "
    return frozenset(padded[at : at + 3] for at in range(len(padded) - 2))


def alike(left: frozenset[str], right: frozenset[str]) -> float:
    """Jaccard: pieces in both, of those in either."""
    return len(left & right) / len(left | right)


def near(texts: Iterable[str], others: Iterable[str]) -> list[str]:
    """Those of the texts which one of the others nearly repeats."""
    known: dict[int, list[frozenset[str]]] = {}
    for other in others:
        known.setdefault(len(pieces(other)), []).append(pieces(other))

    def repeats(text: str) -> bool:
        mine = pieces(text)
        # The smaller set is at least that share of the larger one, or they cannot have it in common.
        sizes = range(math.floor(len(mine) * NEAR), math.ceil(len(mine) / NEAR) + 1)
        return any(alike(mine, other) >= NEAR for size in sizes for other in known.get(size, ()))

    return [text for text in texts if repeats(text)]


def test_counts_per_label_and_language() -> None:
    counted = Counter((question.label, question.lang) for question in questions())
    assert counted == {(label, lang): n for label in router("assist").profile.routes for lang, n in WANTED.items()}


def test_every_question_says_something() -> None:
    assert [question for question in questions() if not plain(question.text)] == []
    assert [question for question in questions() if question.text != question.text.strip()] == []


def test_some_spanish_is_plain_ascii() -> None:
    assert sum(question.lang == "es" and question.text.isascii() for question in questions()) >= LEAST_PLAIN_SPANISH


def test_no_question_is_asked_twice() -> None:
    counted = Counter(plain(question.text) for question in questions())
    assert [text for text, times in counted.items() if times > 1] == []


def test_no_question_nearly_repeats_another() -> None:
    texts = [question.text for question in questions()]
    assert [text for at, text in enumerate(texts) if near([text], texts[:at])] == []


def test_no_question_is_a_golden_case() -> None:
    golden = {plain(text) for case in cases("assist") for text in (case.text, *(turn.text for turn in case.turns))}
    assert [question.text for question in questions() if plain(question.text) in golden] == []


def test_no_question_is_a_training_row() -> None:
    trained = {plain(text) for text in seeds()}
    assert [question.text for question in questions() if plain(question.text) in trained] == []


@pytest.mark.long
def test_no_question_nearly_repeats_a_training_row() -> None:
    found = near([question.text for question in questions()], seeds())
    print(f"near duplicates of training rows: {len(found)} of {len(questions())}, {len(found) / len(questions()):.1%}")
    assert len(found) == 0, found


class Pair(NamedTuple):
    id: str
    left: str
    right: str
    near: bool


PAIRS = [
    Pair("case", "Show me the retry settings", "show me the RETRY settings", near=True),
    Pair("spaces", "show me the  retry settings", "show me the retry\nsettings", near=True),
    Pair("punctuation", "show me the retry settings", "show me the retry settings?", near=True),
    Pair("typo", "which settings does the retry policy of the client have",
         "which settings does the retry polcy of the client have", near=True),
    Pair("other-word", "show me the retry settings", "show me the cache settings", near=False),
    Pair("short", "go", "no", near=False),
]  # fmt: skip


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.id)
def test_what_counts_as_nearly_the_same(pair: Pair) -> None:
    assert bool(near([pair.left], [pair.right])) is pair.near
