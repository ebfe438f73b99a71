"""`turnout feedback`: right, wrong, or the route it should have been; and what it refuses."""

import getpass
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from turnout.cli.option import user_name

Run = Callable[..., Any]


class Word(NamedTuple):
    id: str
    word: str
    verdict: str
    should_be: str | None
    said: str


WORDS = [
    Word("right", "right", "right", None, "SIMPLE is right"),
    Word("wrong", "wrong", "wrong", None, "SIMPLE is wrong"),
    Word("other case", "Right", "right", None, "SIMPLE is right"),
    Word("route", "COMPLEX", "wrong", "COMPLEX", "SIMPLE → COMPLEX, corrected"),
    Word("route, other case", "complex", "wrong", "COMPLEX", "SIMPLE → COMPLEX"),
    Word("the same route", "SIMPLE", "right", None, "SIMPLE is right"),
    Word("the same route, other case", "simple", "right", None, "SIMPLE is right"),
    Word("route, spelled out", "route:MEDIUM", "wrong", "MEDIUM", "SIMPLE → MEDIUM"),
    Word("verdict, spelled out", "verdict:wrong", "wrong", None, "SIMPLE is wrong"),
]


@pytest.mark.parametrize("case", WORDS, ids=lambda case: case.id)
def test_a_word(case: Word, run: Run) -> None:
    ident = json.loads(run("route", "hello", "--json").out)["id"]
    ran = run("feedback", "last", case.word, "--note", "because")
    assert (ran.code, ran.err) == (0, "")
    assert case.said in ran.out
    assert f"{ident} · by {getpass.getuser()}" in ran.out
    (word,) = json.loads(run("show", ident, "--json").out)["feedback"]
    assert (word["verdict"], word["should_be"], word["note"]) == (case.verdict, case.should_be, "because")
    assert word["by"] == getpass.getuser()


def test_wrong_alone_says_how_to_say_more(run: Run) -> None:
    run("route", "hello")
    _, hint = run("feedback", "last", "wrong").out.splitlines()
    assert hint.endswith("ROUTE says what it should have been: MEDIUM, COMPLEX, REASONING")


def test_the_last_word_counts_and_all_are_kept(run: Run) -> None:
    run("route", "hello")
    for word, by in (("wrong", "anna"), ("MEDIUM", "anna"), ("right", "bob")):
        form = json.loads(run("feedback", "last", word, "--by", by, "--json").out)
        assert form["by"] == by
    words = json.loads(run("show", "--json").out)["feedback"]
    assert [(word["verdict"], word["should_be"]) for word in words] == [
        ("wrong", None),
        ("wrong", "MEDIUM"),
        ("right", None),
    ]


def test_one_of_several_routes_is_not_all_of_them(run: Run) -> None:
    run("route", "Will it rain in Paris, and who won the game?", "-p", "sources")
    assert "forecast + web → web, corrected" in run("feedback", "last", "web").out
    assert "forecast + web is right" in run("feedback", "last", "right").out


STEER = """
name = "steer"
routes = ["left", "right", "Left"]
fallback = { route = "left" }
[[layers]]
kind = "rules.v1"
[[layers.rules]]
id = "r"
route = "right"
when = { any = ["starboard"] }
[[layers.rules]]
id = "l"
route = "Left"
when = { any = ["port"] }
[policy.left]
[policy.right]
[policy.Left]
"""


class SteeredCase(NamedTuple):
    id: str
    word: str
    code: int
    said: str


STEERED = [
    SteeredCase(
        "both",
        "right",
        2,
        "'right' is a verdict, and 'right' a route of profile 'steer': write verdict:right or route:right",
    ),
    SteeredCase("the verdict", "verdict:right", 0, "left is right"),
    SteeredCase("the route", "route:right", 0, "left → right, corrected"),
    SteeredCase("only a verdict", "wrong", 0, "left is wrong"),
    SteeredCase("exactly that route", "Left", 0, "left → Left"),
    SteeredCase("neither of two", "LEFT", 2, "'LEFT' is not a route of profile 'steer'"),
    SteeredCase("no such verdict", "verdict:maybe", 2, "verdict 'maybe' is neither right nor wrong"),
    SteeredCase("no such route", "route:wrong", 2, "'wrong' is not a route of profile 'steer'"),
]


@pytest.mark.parametrize("case", STEERED, ids=lambda case: case.id)
def test_a_profile_with_a_route_called_right(case: SteeredCase, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "steer.toml"
    file.write_text(STEER)
    run("route", "ahead", "-p", str(file))
    ran = run("feedback", "last", case.word)
    assert ran.code == case.code
    assert case.said in (ran.err if case.code else ran.out)


class RefusedCase(NamedTuple):
    id: str
    argv: tuple[str, ...]
    said: str


REFUSED = [
    RefusedCase(
        "route", ("last", "COMPLX"), "'COMPLX' is not a route of profile 'tiers', did you mean 'COMPLEX'?: SIMPLE, "
    ),
    RefusedCase("decision", ("ZZZZZZZZ", "right"), "no decision 'ZZZZZZZZ' (see turnout log)"),
    RefusedCase("tenant", ("last", "right", "--tenant", "acme"), "no decision 'last' of tenant 'acme'"),
    RefusedCase("no word", ("last",), "WORD"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_a_refusal_is_a_sentence(case: RefusedCase, run: Run) -> None:
    run("route", "hello")
    ran = run("feedback", *case.argv)
    assert (ran.code, ran.out) == (2, "")
    assert case.said in ran.err
    assert json.loads(run("show", "--json").out)["feedback"] == []


def test_somebody_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 4711")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert user_name().startswith("uid ")
