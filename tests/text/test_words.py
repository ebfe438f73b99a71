"""The lists by language: every one is folded words, is used, and is there where the grammar asks for it."""

import ast
import copy
import importlib
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import NamedTuple

import pytest

import turnout.text
from turnout.text.fold import fold
from turnout.text.words import Words, match_phrase, read_table

LANGUAGES = ("en", "es")
TABLES = ("clause", "split", "condition", "sentence", "framing", "reference")
MODULES = [path.name.removesuffix(".py") for path in files(turnout.text).iterdir() if path.name.endswith(".py")]


class Row(NamedTuple):
    language: str
    table: str
    name: str
    entries: list[str]


def rows() -> Iterator[Row]:
    for language in LANGUAGES:
        for table in TABLES:
            for name, found in read_table(table, language).items():
                if name not in ("cue", "pattern"):
                    yield Row(language, table, name, found.split() if isinstance(found, str) else found)


@pytest.mark.parametrize("row", [*rows()], ids=lambda row: f"{row.language}-{row.table}-{row.name}")
def test_lists_hold_folded_words(row: Row) -> None:
    assert row.entries
    # Some lists are of words that are told by their capitals.
    if row.name not in ("starters", "often_last", "exclaiming", "before_time"):
        assert row.entries == [fold(entry).text for entry in row.entries]


def attributes(name: str) -> Iterator[tuple[Words, str]]:
    """Which lists a module asks for."""
    module = importlib.import_module(f"turnout.text.{name}")
    tree = ast.parse(files(turnout.text).joinpath(f"{name}.py").read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            lists = getattr(module, node.value.id, None)
            if isinstance(lists, Words):
                yield lists, node.attr


@pytest.mark.parametrize("name", MODULES)
def test_every_list_that_the_grammar_asks_for_is_there(name: str) -> None:
    for lists, attribute in attributes(name):
        assert getattr(lists, attribute), attribute


def test_every_list_is_used() -> None:
    asked = {attribute for name in MODULES for _, attribute in attributes(name)} | {"phrases", "plain"}
    data = "".join(files(turnout.text).joinpath(f"{language}.toml").read_text("utf-8") for language in LANGUAGES)
    included = set(re.findall(r"@(?:\w+\.)?(\w+)", data)) | set(re.findall(r"\{([a-z]+)\}", data))
    assert {row.name for row in rows()} - asked - included == set()


def test_languages_join_and_lists_include_others() -> None:
    english, both = Words("clause", "en"), Words("clause", "en", "es")
    assert english.please < both.please < both.leads < both.hollow
    assert "abre" in both.commands
    assert "abre" not in english.commands
    assert Words("reference", "en").question == english.question_words


@pytest.mark.parametrize("name", ["commandz", "cue_", "_table_", "__deepcopy__"])
def test_a_list_that_is_not_there_is_an_error(name: str) -> None:
    with pytest.raises(AttributeError):
        getattr(Words("clause", "en", "es"), name)


def test_lists_can_be_copied() -> None:
    assert copy.deepcopy(Words("clause", "en")).serial == {"go", "come", "try"}


def test_the_longest_phrase_matches() -> None:
    phrases = frozenset({"in", "in case", "in case of"})
    assert [match_phrase(text.split(), phrases) for text in ("in case of fire", "in case it", "in", "case", "")] == [
        *(3, 2, 1, 0, 0)
    ]
    assert match_phrase(["and", "in", "case"], phrases, 1) == 2
