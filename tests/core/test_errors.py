"""The error tree, and that a message names the value, what is known, and the word that was meant."""

import inspect
import re
from typing import NamedTuple

import pytest

from timing import is_within
from turnout.core import errors
from turnout.core.errors import (
    ConfigError,
    Problem,
    QueryTooLarge,
    TurnoutError,
    UnknownProfile,
    UnknownRoute,
    suggest,
)


class Case(NamedTuple):
    id: str
    word: str
    known: tuple[str, ...]
    suggestion: str


CASES = [
    Case("near", "confidance", ("confidence", "margin"), "confidence"),
    Case("case is ignored", "SIMPEL", ("simple", "medium"), "simple"),
    Case("the known spelling is given", "medum", ("SIMPLE", "MEDIUM"), "MEDIUM"),
    Case("nothing near", "zebra", ("confidence", "margin"), ""),
    Case("nothing known", "x", (), ""),
    Case("empty", "", ("a",), ""),
    Case("the nearest of several", "layers.locl", ("layers.local", "layers.llm"), "layers.local"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_suggest(case: Case) -> None:
    assert suggest(case.word, case.known) == (f", did you mean {case.suggestion!r}?" if case.suggestion else "")


def test_suggest_is_quick_on_hostile_words() -> None:
    assert suggest("a" * 20_000, [f"route{i}" for i in range(50)]) == ""
    # Nothing is compared beyond what could be a name: 30 MB took 14 seconds.
    assert is_within(0.05, lambda: suggest("SIMPLE" * 5_000_000, ["SIMPLE", "MEDIUM"]))


def test_a_message_repeats_the_beginning_of_a_value() -> None:
    for error in (UnknownRoute("ceiling", "x" * 10**6, ["A"]), UnknownProfile("x" * 10**6, ["a"])):
        assert len(str(error)) < 400


def test_a_config_error_carries_every_problem() -> None:
    error = ConfigError([Problem("a.toml:1 x", "wrong"), Problem("a.toml:2 y", "worse")])
    assert str(error) == "a.toml:1 x: wrong\na.toml:2 y: worse"
    assert [problem.where for problem in error.problems] == ["a.toml:1 x", "a.toml:2 y"]


def test_messages_name_the_value_the_limit_and_the_next_step() -> None:
    assert str(QueryTooLarge(1234567, 1000)) == (
        "the text has 1,234,567 characters; at most 1,000 are routed: shorten it, or send parts"
    )
    assert str(UnknownRoute("ceiling", "simpel", ["SIMPLE", "MEDIUM"])) == (
        "ceiling 'simpel' is not a route of this profile, did you mean 'SIMPLE'?: SIMPLE, MEDIUM"
    )
    message = str(UnknownProfile("studdy", ["study", "tiers"]))
    assert "'studdy'" in message
    assert "did you mean 'study'?" in message
    assert "known: study, tiers; or the path of a .toml file" in message


def test_the_tree_at_the_top_of_the_file_is_the_tree() -> None:
    drawn = re.findall(r"^( +[│├└─ ]*)(\w+)", errors.__doc__ or "", re.MULTILINE)
    classes = {name: one for name, one in vars(errors).items() if inspect.isclass(one) and issubclass(one, Exception)}
    lines = [(len(indent), name) for indent, name in drawn if name in classes]
    assert [name for _, name in lines] == list(classes), "drawn in the order they are defined, none left out"
    above: list[tuple[int, str]] = []
    for indent, name in lines:
        while above and above[-1][0] >= indent:
            above.pop()
        assert classes[name].__base__ is (classes[above[-1][1]] if above else Exception), name
        above.append((indent, name))
    assert all(issubclass(one, TurnoutError) for one in classes.values())
