"""Which questions lean on the turns before: tables in six languages, what was measured, properties, hostile input."""

import json
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timing import is_within
from turnout.text.fold import fold
from turnout.text.followup import find_names, leans, measure
from turnout.text.reference import Reference, find_reference, needs_history

ROWS = Path(__file__).parents[2] / "seeds" / "conversations" / "followup.jsonl"


class Case(NamedTuple):
    id: str
    before: str
    text: str
    needs: bool


# None of them is a row of the set, and in none a word points: without the turn before nothing is found.
CASES = [
    Case(
        "quantity", "How do I bake a sponge cake? Beat the eggs, fold in the flour.", "how much flour do I need?", True
    ),
    Case("definite", "Our tent: 3 kg, two doors, a porch.", "is the porch big enough?", True),
    Case("offer", "The flat has two rooms.", "any pets allowed?", True),
    Case("edit", "Here is your poem about the sea: ...", "add a second verse", True),
    Case("complaint", "Restart the router.", "still no signal", True),
    Case("worded", "The hotel has a pool.", "what time does the pool open?", True),
    Case("stands-with-same-words", "Bread needs yeast.", "How is wine made without adding yeast?", False),
    Case("stands-elsewhere", "Bread needs yeast.", "Who painted the ceiling of the Sistine Chapel?", False),
    Case("stands-procedure", "The hotel has a pool.", "How do I remove rust from an iron gate?", False),
    Case("stands-name", "Bern is the capital of Switzerland.", "What is the population of Uruguay?", False),
    Case("spanish", "El vuelo sale a las nueve.", "¿cuánto dura?", True),
    Case("spanish-stands", "El vuelo sale a las nueve.", "¿Quién escribió La vida es sueño?", False),
    Case("german", "Der Zug fährt um neun.", "und der nächste?", True),
    Case("german-stands", "Der Zug fährt um neun.", "Wie hoch ist der Eiffelturm in Paris?", False),
    Case("french", "Le train part à neuf heures.", "et le suivant ?", True),
    Case("french-stands", "Le train part à neuf heures.", "Qui a écrit Les Misérables en 1862 ?", False),
    Case("chinese", "这家店有三种茶。", "哪种最便宜?", True),
    Case("chinese-stands", "这家店有三种茶。", "珠穆朗玛峰的高度是多少米?", False),
    Case("japanese", "この店にはお茶が三種類あります。", "一番安いのは?", True),
    Case("japanese-stands", "この店にはお茶が三種類あります。", "富士山の高さは何メートルですか?", False),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_leans_on_the_turn_before(case: Case) -> None:
    assert needs_history(case.text, [case.before]) is case.needs
    assert not needs_history(case.text)


def test_what_leans_is_said_in_words() -> None:
    found = find_reference("Any pets allowed?", ["The flat has two rooms."])
    assert found == Reference("followup", "any pets allowed")
    assert found.reason.text == '"any pets allowed" leans on what was said before'


def test_a_word_that_points_is_found_first() -> None:
    assert find_reference("When was he born?", ["Who was Gauss?"]).kind == "pronoun"


def test_conversations_it_was_not_fitted_on() -> None:
    """The promise of benchmarks/reference.py, on the rows that nothing was learnt from."""
    rows = [row for line in ROWS.read_text("utf-8").splitlines() if (row := json.loads(line))["half"] == "test"]
    found = [row["needs"] for row in rows if needs_history(row["text"], row["before"])]
    assert len(rows) > 200
    assert sum(found) / len(found) >= 0.97
    assert sum(found) / sum(row["needs"] for row in rows) >= 0.75


def test_every_weight_is_of_a_measure_and_every_measure_has_one() -> None:
    weights = tomllib.loads(files("turnout.text").joinpath("followup.toml").read_text("utf-8"))["weights"]
    languages = {"en", "es", "de", "fr", "zh", "ja"}
    measured = set(measure("what about the blue one?", ["We have it in red and blue."]))
    assert set(weights) - languages == measured - languages
    assert languages <= set(weights)


def test_every_list_holds_folded_words() -> None:
    tables = tomllib.loads(files("turnout.text").joinpath("followup.toml").read_text("utf-8"))
    names = {frozenset(table) for code, table in tables.items() if code != "weights"}
    assert len(names) == 1
    for code, table in tables.items():
        for name, entries in table.items() if code != "weights" else ():
            words = entries.split() if isinstance(entries, str) else entries
            # Marks are looked for in the text as written.
            assert name == "marks" or words == [fold(word).text for word in words], (code, name)
            assert len(set(words)) == len(words), (code, name)


@pytest.mark.parametrize("text", ["а в чёрном?", "그럼 내일은?", "وغدا؟", "", " ", "\u200b", "???", "🙂"])
def test_a_text_it_cannot_read_leans_on_nothing(text: str) -> None:
    assert not leans(text, ["anything at all"])


def test_nothing_leans_on_nothing() -> None:
    assert not leans("any pets allowed?", [])


def test_only_the_last_turns_count() -> None:
    text, near = "is the porch big enough?", "A tent with a porch."
    assert measure(text, [near]) == measure(text, ["Who was Gauss?", *[""] * 3, near][-4:])
    assert measure(text, [near, *["The sea is salt."] * 4]) == measure(text, ["The sea is salt."] * 4)


def test_what_is_named_is_told_by_its_stem() -> None:
    assert find_names("Who painted the paintings?") == {"paint"}
    assert find_names("德国的面积是多少") == {"德国", "面积"}


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=80), st.lists(st.text(max_size=80), max_size=5))
def test_any_text_is_judged_and_always_alike(text: str, history: list[str]) -> None:
    assert needs_history(text, history) is needs_history(text, history)
    if needs_history(text):
        assert needs_history(text, history)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(CASES), st.lists(st.tuples(st.integers(0, 60), st.sampled_from("\x00\xad\u200b\u2060\ufeff"))))
def test_invisible_characters_change_nothing(case: Case, unseen: list[tuple[int, str]]) -> None:
    changed = case.text
    for at, character in unseen:
        changed = changed[:at] + character + changed[at:]
    assert needs_history(changed, [case.before]) is case.needs


@pytest.mark.parametrize("unit", ["a", "the ", "第", "it ", "é", "\u200b", "l'", "一つ目", "how ", "?\n"])
def test_hostile_megabytes(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    assert is_within(1.0, lambda: leans(text, [text] * 8))
