"""`turnout tune`: a report for people and programs, and a file only where it is better or asked for."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
WORDS = {"SIMPLE": "define", "MEDIUM": "poem", "COMPLEX": "json", "REASONING": "prove"}


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [(f"{word} item {number}", route) for route, word in WORDS.items() for number in range(25)]
    write("good.jsonl", rows)
    routes = list(WORDS)
    write("bad.jsonl", [(text, routes[at * 7 % 4]) for at, (text, _) in enumerate(rows)])


def write(name: str, rows: list[tuple[str, str]]) -> None:
    Path(name).write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows))


def test_a_better_profile_is_written_and_passes_check(run: Run) -> None:
    held = "fallback = { held = 0.5 }"
    Path("base.toml").write_text(f'extends = "tiers"\nname = "base"\n{held}\n')
    ran = run("tune", "good.jsonl", "-p", "base.toml", "--out", "mine.toml")
    assert ran.code == 0, ran.err
    assert "100 questions with a signal" in ran.out
    assert "better by at least" in ran.out
    assert "next: turnout check mine.toml --cases" in ran.out
    checked = run("check", "mine.toml", "--cases")
    assert checked.code == 0
    assert "100 of 100 right" in checked.out


def test_without_out_nothing_is_written(run: Run) -> None:
    ran = run("tune", "good.jsonl", "-p", "tiers")
    assert ran.code == 0
    assert "--out FILE.toml writes them" in ran.out
    assert sorted(path.name for path in Path().glob("*.toml")) == []


def test_what_is_not_better_is_refused_unless_forced(run: Run) -> None:
    ran = run("tune", "bad.jsonl", "-p", "tiers", "--out", "mine.toml")
    assert ran.code == 1
    assert "not shown to be better" in ran.out
    assert "mine.toml was not written" in ran.out
    assert not Path("mine.toml").exists()
    forced = run("tune", "bad.jsonl", "-p", "tiers", "--out", "mine.toml", "--force")
    assert forced.code == 0
    assert run("check", "mine.toml").code == 0


def test_json_says_it_all(run: Run) -> None:
    ran = run("tune", "good.jsonl", "-p", "tiers", "--json", "--seed", "3")
    told = json.loads(ran.out)
    assert told["profile"] == "tiers"
    assert told["rows"] == 100
    assert told["is_better"]
    assert told["after"] > told["before"]
    assert told["after_bounds"][0] < told["after"] <= told["after_bounds"][1]
    assert told["seed"] == 3
    assert told["written"] is None
    was, now = next(iter(told["moved"].values()))
    assert was != now


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("tune", "none.jsonl"), "none.jsonl: cannot be read"),
        (("tune", "good.jsonl", "-p", "assist"), "has no signals.v1 layer"),
        (("tune", "good.jsonl", "-p", "study"), "'SIMPLE' is no route"),
        (("tune", "good.jsonl", "-p", "tiers", "--layer", "gain"), "no signals.v1 layer 'gain'"),
        (("tune", "good.jsonl", "-p", "tiers", "--out", "good.jsonl"), "would be overwritten"),
        (("tune", "good.jsonl", "-p", "tiers", "--out", "mine.yaml"), "a profile is a .toml file"),
    ],
)
def test_mistakes_are_named(run: Run, argv: tuple[str, ...], said: str) -> None:
    ran = run(*argv)
    assert ran.code not in (0, None)
    assert said in ran.err
