"""`turnout keys`: a key is shown once, does what it says, and what is wrong with it is said before it is made."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from surroundings import clear_surroundings
from turnout.server.key import digest, read_credential, read_pepper
from turnout.store import open_store

Run = Callable[..., Any]


@pytest.fixture(autouse=True)
def database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    clear_surroundings(monkeypatch, tmp_path)
    monkeypatch.setenv("TURNOUT_DB", str(tmp_path / "turnout.db"))
    return tmp_path / "turnout.db"


def make(run: Run, *argv: str) -> dict[str, Any]:
    ran = run("keys", "create", *argv, "--json")
    assert (ran.code, ran.err) == (0, "")
    made: dict[str, Any] = json.loads(ran.out)
    return made


def test_listing_makes_nothing(run: Run, database: Path) -> None:
    for command in ("list", "--json"):
        assert run("keys", command).code == 0
    assert "No keys" in run("keys", "list").out
    assert run("keys").out == run("keys", "list").out
    assert not database.exists()


def test_a_key_is_shown_once_and_only_its_digest_kept(run: Run, database: Path) -> None:
    ran = run("keys", "create", "alice")
    key = ran.out.split()[0]
    credential = read_credential(key)
    assert credential is not None
    assert "not shown again" in ran.out
    assert "It is the first" in ran.out
    assert "It is the first" not in run("keys", "create", "bob").out
    assert credential.secret not in run("keys", "list").out + run("keys", "list", "--json").out
    with open_store() as store:
        found = store.keys.find(credential.key_id)
        assert found is not None
        assert found.digest == digest(credential.secret, read_pepper())
    connection = sqlite3.connect(database)
    assert credential.secret not in "".join(connection.iterdump())
    connection.close()


def test_what_it_may_do_is_what_was_said(run: Run) -> None:
    argv = ("--tenant", "acme", "--scope", "route", "--scope", "admin", "--profile", "tiers", "--ceiling", "MEDIUM")
    limits = ("--no-force", "--budget-usd", "2.5", "--per-minute", "60", "--days", "30")
    made = make(run, "ci", *argv, *limits)
    (row,) = json.loads(run("keys", "list", "--json").out)
    assert row["id"] == made["id"]
    assert "digest" not in row
    assert (row["tenant"], row["scopes"], row["profiles"], row["ceiling"]) == (
        "acme",
        ["route", "admin"],
        ["tiers"],
        "MEDIUM",
    )
    assert (row["may_force"], row["budget_usd"], row["per_minute"], row["spent_usd"]) == (False, 2.5, 60, 0.0)
    assert row["expires_ms"] - row["created_ms"] == 30 * 86_400_000
    shown = run("keys", "list").out
    for wanted in (made["id"], "acme", "up to MEDIUM", "auto only", "60 a minute", "$2.50", "until"):
        assert wanted in shown


def test_a_ceiling_of_the_servers_own_profile(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "own.toml"
    config.write_text('[server]\nprofile = "tiers-local"\n')
    make(run, "x", "--ceiling", "COMPLEX", "--config", str(config))
    assert "all but admin" in run("keys", "list").out


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("x", "--scope", "adm"), "there is no scope 'adm', did you mean 'admin'?"),
        (("x", "--ceiling", "SIMPEL"), "did you mean 'SIMPLE'?"),
        (("x", "--ceiling", "kiwix", "--profile", "sources"), "which has no order of tiers"),
        (("x", "--profile", "teirs"), "did you mean 'tiers'?"),
        (("x", "--days", "0"), "Must be >= 1"),
        (("x", "--per-minute", "0"), "Must be >= 1"),
        (("x", "--budget-usd", "-1"), "Must be >= 0"),
        ((" ",), "a key needs a name"),
        ((), "NAME requires an argument"),
    ],
)
def test_what_makes_no_sense_makes_no_key(run: Run, database: Path, argv: tuple[str, ...], said: str) -> None:
    ran = run("keys", "create", *argv)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert not database.exists()


def test_revoking(run: Run) -> None:
    made, other = make(run, "alice"), make(run, "bob")
    ran = run("keys", "revoke", made["id"])
    assert (ran.code, ran.err) == (0, "")
    assert f"{made['id']} is revoked" in ran.out
    assert "revoked" in run("keys", "list").out
    again = run("keys", "revoke", made["id"])
    assert again.code == 2
    assert "no valid key" in again.err
    whole = run("keys", "revoke", other["key"])
    assert whole.code == 0
    assert other["key"] not in whole.out
    assert "2 keys, none of them valid" in run("doctor").out


def test_revoking_where_nothing_is(run: Run, database: Path) -> None:
    ran = run("keys", "revoke", "4k2m9x0c7q1z")
    assert ran.code == 2
    assert "no valid key '4k2m9x0c7q1z' (see turnout keys list)" in ran.err
    assert not database.exists()


def test_a_pepper_that_is_none(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNOUT_PEPPER", "short")
    ran = run("keys", "create", "x")
    assert ran.code == 2
    assert "TURNOUT_PEPPER: needs at least 16 characters" in ran.err


def test_names_cannot_draw_on_the_screen(run: Run) -> None:
    make(run, "a\x1b[31mb", "--tenant", "t\x1b[0m")
    assert "\x1b" not in run("keys", "list").out


def test_the_doctor_counts(run: Run) -> None:
    assert "none: a server takes requests from this machine only" in run("doctor").out
    make(run, "x")
    assert "1 valid key of 1" in run("doctor").out
