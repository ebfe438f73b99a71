"""The shipped seed set: enough of every type in both languages, nothing twice, nothing that the golden cases ask."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec
import pytest

import turnout
from turnout.config.cases import read_cases
from turnout.text.fold import fold

PROFILES = Path(turnout.__file__).parent / "profiles"
SEEDS = PROFILES / "seeds" / "assist.jsonl"
TYPES = ("RETRIEVAL", "CODE_GENERATION", "CONVERSATIONAL", "PLATFORM")

# The contract asks for 100 of a type; what ships has more, and losing a batch of it should be noticed.
LEAST = {"en": 580, "es": 400}
MOST_BYTES = 1_300_000
# Rows that begin with the same three words share a skeleton; the most frequent ("what's the ...") has 18.
MOST_ALIKE = 18
# Share of four-letter pieces in common. At 0.6 two short questions differ in one word.
NEAR = 0.6


class Seed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str
    label: Literal["RETRIEVAL", "CODE_GENERATION", "CONVERSATIONAL", "PLATFORM"]
    lang: Literal["en", "es", "de", "fr", "pt", "zh", "ja", "it", "ru", "ko", "nl", "pl", "tr"]
    shape: str = ""


@pytest.fixture(scope="module")
def seeds() -> list[Seed]:
    return [msgspec.json.decode(line, type=Seed) for line in SEEDS.read_bytes().splitlines()]


@pytest.fixture(scope="module")
def golden() -> list[str]:
    cases = read_cases(PROFILES / "cases" / "assist.jsonl")
    texts = [text for case in cases for text in (case.text, *(turn.text for turn in case.turns))]
    return [text for text in texts if text.strip()]


def bare(text: str) -> str:
    """Without case, accents and punctuation: "¿Qué es?" and "que es" are the same row. Punctuation alone stays."""
    folded = fold(text).text
    letters = "".join(letter for letter in unicodedata.normalize("NFD", folded) if not unicodedata.combining(letter))
    return " ".join(re.findall(r"\w+", letters)) or folded


def pieces(text: str) -> set[str]:
    padded = f" {bare(text)} "
    return {padded[start : start + 4] for start in range(max(1, len(padded) - 3))}


def near(texts: Iterable[str], others: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of the two that share most of their pieces; found through the pieces, not by comparing all with all."""
    kept = [(other, pieces(other)) for other in others]
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for index, (_, held) in enumerate(kept):
        for piece in held:
            holders[piece].append(index)
    found = []
    for text in texts:
        own = pieces(text)
        for index, shared in Counter(index for piece in own for index in holders[piece]).items():
            other, held = kept[index]
            if shared >= NEAR * (len(own) + len(held) - shared):
                found.append((text, other))
    return found


@pytest.mark.parametrize("label", TYPES)
@pytest.mark.parametrize("lang", LEAST)
def test_every_type_has_enough_of_both_languages(seeds: list[Seed], label: str, lang: str) -> None:
    assert sum(seed.label == label and seed.lang == lang for seed in seeds) >= LEAST[lang]


def test_no_language_is_left_out(seeds: list[Seed]) -> None:
    for label in TYPES:
        langs = Counter(seed.lang for seed in seeds if seed.label == label)
        assert langs.most_common(1)[0][0] == "en", label
        assert min(langs[lang] for lang in ("en", "es", "de", "fr", "pt", "zh", "ja")) >= 100, label


def test_no_text_is_blank_or_comes_twice(seeds: list[Seed]) -> None:
    assert all(seed.text == seed.text.strip() != "" for seed in seeds)
    counts = Counter(bare(seed.text) for seed in seeds)
    assert [text for text, times in counts.items() if times > 1] == []


def test_no_golden_case_is_among_them(seeds: list[Seed], golden: list[str]) -> None:
    asked = {bare(text) for text in golden}
    assert [seed.text for seed in seeds if bare(seed.text) in asked] == []
    assert near((seed.text for seed in seeds), golden) == []


@pytest.mark.parametrize(("text", "other", "alike"), [
    ("What is a closure", "¿what is a clósure?", True),
    ("cancel my subscription now", "cancel our subscription now", True),
    ("cancel my subscription", "what is a closure", False),
])  # fmt: skip
def test_nearness_sees_a_changed_word_and_not_a_changed_question(text: str, other: str, alike: bool) -> None:
    assert bool(near([text], [other])) is alike


def test_no_skeleton_dominates(seeds: list[Seed]) -> None:
    begun: Counter[tuple[str, ...]] = Counter()
    for seed in seeds:
        words = bare(seed.text).split()
        if len(words) > 3:
            begun[(seed.label, *words[:3])] += 1
    assert {start: times for start, times in begun.items() if times > MOST_ALIKE} == {}


def test_a_question_in_spanish_is_written_as_people_write_it(seeds: list[Seed]) -> None:
    questions = [seed.text for seed in seeds if seed.lang == "es" and "?" in seed.text]
    opened = sum("¿" in text for text in questions) / len(questions)
    assert 0.5 <= opened <= 0.85
    assert sum(seed.text.isascii() for seed in seeds if seed.lang == "es") >= 400


def test_the_hard_rules_take_only_platform_rows_and_few_of_them(seeds: list[Seed]) -> None:
    # What the rules decide the classifier never sees: rows they take teach it nothing, and a row of another type that
    # they take would carry a label the contract forbids.
    router = turnout.load("assist", config="")
    taken = Counter(seed.label for seed in seeds if router.route_sync(seed.text).by == "rules")
    platform = sum(seed.label == "PLATFORM" for seed in seeds)
    assert set(taken) == {"PLATFORM"}
    assert taken["PLATFORM"] <= 0.1 * platform


def test_the_file_stays_small() -> None:
    assert SEEDS.stat().st_size < MOST_BYTES
