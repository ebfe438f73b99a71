"""An old name of a profile on the command line: one line on stderr says the new one, and the log still knows it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import turnout
from turnout.config.settings import store_url
from turnout.store import open_store

Run = Callable[..., Any]
SAID = "turnout: the profile 'tiers-local' is now 'tiers': use that name\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.jsonl").write_text("".join(json.dumps({"text": f"hello {n}"}) + "\n" for n in range(3000)))


COMMANDS = [
    ("route", "hello"),
    ("explain", "hello"),
    ("batch", "q.jsonl", "--workers", "2", "-o", "d.jsonl"),
    ("evaluate", "labels.jsonl"),
]


@pytest.mark.alike(2)
@pytest.mark.parametrize("argv", COMMANDS, ids=lambda argv: argv[0])
def test_it_is_said_once(argv: tuple[str, ...], run: Run) -> None:
    Path("labels.jsonl").write_text(
        "".join(json.dumps({"text": f"hi {n}", "label": "SIMPLE"}) + "\n" for n in range(40))
    )
    ran = run(*argv, "-p", "tiers-local")
    assert ran.code == 0
    assert ran.err.count(SAID) == 1
    assert SAID not in run(*argv, "-p", "tiers").err


@pytest.mark.parametrize("argv", [("check", "tiers-local"), ("profiles", "show", "tiers-local")])
def test_it_is_said_of_an_argument(argv: tuple[str, ...], run: Run) -> None:
    ran = run(*argv)
    assert (ran.code, ran.err) == (0, SAID)


def test_commands_about_models_say_it(run: Run) -> None:
    assert SAID in run("student", "rollback", "--history", "-p", "tiers-local").err


def test_a_new_profile_may_not_take_an_old_name(run: Run) -> None:
    ran = run("init", "tiers-local")
    assert ran.code == 2
    assert "is the name of a shipped profile" in ran.err


def test_doctor_names_the_setting(run: Run) -> None:
    Path("s.toml").write_text('[server]\nprofile = "tiers-local"\n')
    ran = run("doctor", "--config", "s.toml")
    assert "the profile 'tiers-local' is now 'tiers'" in " ".join(ran.out.split())


def test_the_log_knows_both_names(run: Run) -> None:
    Path("old.toml").write_text('name = "tiers-local"\nextends = "tiers"\n')
    old, new = turnout.load("old.toml", config=""), turnout.load("tiers", config="")
    with open_store(store_url(), config="") as store:
        store.record(old.route_sync("asked before"))
        store.record(new.route_sync("asked since"))
        store.record(turnout.load("study", config="").route_sync("asked of another"))
    for command, both in (("log", ("asked before", "asked since")), ("export", ("asked before", "asked since"))):
        told = run(command, "-p", "tiers").out
        assert [text for text in (*both, "asked of another") if text in told] == list(both)
    assert "asked since" not in run("log", "-p", "tiers-local").out
    assert "asked before" in run("log", "-p", "tiers-local").out
    assert json.loads(run("stats", "-p", "tiers", "--json").out)["decisions"] == 2
    assert (
        "tiers-local"
        in run("show", json.loads(run("log", "-p", "tiers-local", "--json").out.splitlines()[0])["id"]).out
    )
