"""`turnout keys`: a key is shown once, does what it says, and what is wrong with it is said before it is made."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import turnout
from clean_environment import clear_environment
from turnout.runtime.pepper import read_pepper
from turnout.store import open_store
from turnout.web.auth import digest, read_credential

Run = Callable[..., Any]

TIERS = turnout.load("tiers", config="")


@pytest.fixture(autouse=True)
def database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    clear_environment(monkeypatch, tmp_path)
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
    config.write_text('[server]\nprofile = "tiers"\n')
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
    assert (again.code, "is revoked, and stays so" in again.err) == (2, True)
    whole = run("keys", "revoke", other["key"])
    assert whole.code == 0
    assert other["key"] not in whole.out
    assert "2 keys, none of them valid" in run("doctor").out


def test_revoking_by_name_where_it_is_one_keys_alone(run: Run) -> None:
    made = [make(run, name)["id"] for name in ("alice", "bob", "bob")]
    both = run("keys", "revoke", "bob")
    assert both.code == 2
    assert "2 keys are called 'bob'" in both.err
    assert all(ident in both.err.replace("\n", " ") for ident in made[1:])
    assert f"{made[0]} is revoked" in run("keys", "revoke", "alice").out
    assert "did you mean 'bob'?" in run("keys", "revoke", "bobb").err


def test_revoking_where_nothing_is(run: Run, database: Path) -> None:
    ran = run("keys", "revoke", "4k2m9x0c7q1z")
    assert ran.code == 2
    assert "no valid key '4k2m9x0c7q1z': there are none; turnout keys create NAME makes one" in ran.err
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


# --- changing a key


def row_of(run: Run, ident: str) -> dict[str, Any]:
    (row,) = (row for row in json.loads(run("keys", "list", "--json").out) if row["id"] == ident)
    found: dict[str, Any] = row
    return found


CHANGES = [
    (("--name", "bob"), {"name": "bob"}),
    (("--budget-usd", "3"), {"budget_usd": 3.0}),
    (("--budget-day-usd", "0.5"), {"budget_day_usd": 0.5}),
    (("--budget-month-usd", "0"), {"budget_month_usd": 0.0}),
    (("--per-minute", "7"), {"per_minute": 7}),
    (("--ceiling", "SIMPLE"), {"ceiling": "SIMPLE"}),
    (
        ("--profile", "tiers", "--profile", "study", "--remove", "ceiling"),
        {"profiles": ["tiers", "study"], "ceiling": None},
    ),
    (("--scope", "ask", "--scope", "admin"), {"scopes": ["ask", "admin"]}),
    (("--force",), {"may_force": True}),
    (("--remove", "budget-usd"), {"budget_usd": None}),
    (("--remove", "budget-day-usd", "--budget-usd", "9"), {"budget_day_usd": None, "budget_usd": 9.0}),
    (("--remove", "budget-month-usd"), {"budget_month_usd": None}),
    (("--remove", "per-minute"), {"per_minute": None}),
    (("--remove", "profile"), {"profiles": None}),
    (("--remove", "days"), {"expires_ms": None}),
]


@pytest.mark.alike(3)
@pytest.mark.parametrize(("argv", "changed"), CHANGES, ids=" ".join)
def test_what_is_named_is_changed_and_nothing_else(run: Run, argv: tuple[str, ...], changed: dict[str, Any]) -> None:
    limits = ("--budget-usd", "1", "--budget-day-usd", "1", "--budget-month-usd", "1", "--per-minute", "1")
    others = ("--ceiling", "MEDIUM", "--no-force", "--profile", "tiers", "--days", "30", "--tenant", "acme")
    made, other = make(run, "alice", *limits, *others), make(run, "carl")
    before, beside = row_of(run, made["id"]), row_of(run, other["id"])
    ran = run("keys", "update", made["id"], *argv)
    assert (ran.code, ran.err) == (0, "")
    assert made["id"] in ran.out
    assert row_of(run, made["id"]) == before | changed
    assert row_of(run, other["id"]) == beside
    with open_store() as store:
        row = store.keys.find(made["id"])
        credential = read_credential(made["key"])
        assert row is not None
        assert credential is not None
        assert row.digest == digest(credential.secret, read_pepper()), "the key itself goes on working"


def test_days_count_from_now(run: Run) -> None:
    made = make(run, "alice", "--days", "1")
    (told,) = json.loads(run("keys", "update", made["key"], "--days", "3", "--no-force", "--json").out)
    assert made["key"] not in str(told)
    assert told["expires_ms"] == pytest.approx(told["created_ms"] + 3 * 86_400_000, abs=60_000)
    assert told["may_force"] is False


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ((), "nothing to change: name at least one of --name, --force, --scope,"),
        (("--budget-usd", "-1"), "Must be >= 0"),
        (("--budget-day-usd", "nan"), "Must be >= 0 and finite"),
        (("--budget-month-usd", "inf"), "Must be >= 0 and finite"),
        (("--budget-usd", "1", "--remove", "budget-usd"), "--budget-usd and --remove budget-usd contradict each other"),
        (("--remove", "tenant"), "budget-month-usd"),
        (("--scope", "adm"), "there is no scope 'adm', did you mean 'admin'?"),
        (("--ceiling", "SIMPEL"), "did you mean 'SIMPLE'?"),
        (("--profile", "teirs"), "did you mean 'tiers'?"),
        (("--profile", "sources"), "'MEDIUM' is not a tier of the profile sources"),
        (("--per-minute", "0"), "Must be >= 1"),
        (("--days", "0"), "Must be >= 1"),
        (("--name", " "), "a key needs a name"),
    ],
)
def test_what_makes_no_sense_changes_nothing(run: Run, argv: tuple[str, ...], said: str) -> None:
    made = make(run, "alice", "--ceiling", "MEDIUM")
    before = row_of(run, made["id"])
    ran = run("keys", "update", made["id"], *argv)
    assert (ran.code, ran.out) == (2, "")
    assert said in " ".join(ran.err.split())
    assert row_of(run, made["id"]) == before


def test_a_key_that_is_not_there_is_not_changed(run: Run, database: Path) -> None:
    ran = run("keys", "update", "4k2m9x0c7q1z", "--name", "x")
    assert (ran.code, ran.out) == (2, "")
    assert "no valid key '4k2m9x0c7q1z': there are none; turnout keys create NAME makes one" in ran.err
    assert not database.exists()
    made = make(run, "alice")
    ran = run("keys", "update", made["id"][:-1] + "!", "--name", "x")
    assert f"did you mean '{made['id']}'?" in ran.err
    run("keys", "revoke", made["id"])
    ran = run("keys", "update", made["id"], "--name", "x")
    assert f"the key {made['id']} is revoked, and stays so: turnout keys create NAME makes another" in ran.err


def test_budgets_are_listed_with_what_was_spent(run: Run) -> None:
    made = make(run, "x", "--budget-usd", "5", "--budget-day-usd", "1", "--budget-month-usd", "3")
    with open_store() as store:
        store.spend(TIERS.route_sync("hello"), made["id"], 0.25)
    out = " ".join(run("keys", "list").out.split())
    for wanted in ("$0.25 of $5.00", "$0.25 of $3.00", "$0.25 of $1.00", "this month", "today", "(its own)"):
        assert wanted in out
    row = row_of(run, made["id"])
    assert (row["spent_usd"], row["spent_month_usd"], row["spent_day_usd"]) == (0.25, 0.25, 0.25)


# --- whose decisions


def test_a_key_made_without_a_tenant_is_its_own(run: Run) -> None:
    one, two, named = make(run, "a"), make(run, "b"), make(run, "c", "--tenant", "acme")
    assert (one["tenant"], two["tenant"], named["tenant"]) == (one["id"], two["id"], "acme")
    assert row_of(run, one["id"])["tenant"] == one["id"]


# --- and back


def test_giving_the_keys_up(run: Run, database: Path) -> None:
    assert "There are no keys" in run("keys", "open").out
    assert not database.exists()
    one, two = make(run, "alice"), make(run, "bob")
    assert "last valid key" not in run("keys", "revoke", one["id"]).out
    ran = run("keys", "open")
    assert (ran.code, ran.out) == (2, "")
    assert f"1 key is still valid ({two['id']}), so servers go on asking for one" in ran.err
    assert f"turnout keys revoke {two['id']} first" in ran.err
    out = " ".join(run("keys", "revoke", two["id"]).out.split())
    assert "It was the last valid key: servers that use this store now refuse every request." in out
    assert "turnout keys open lets this machine ask without one again" in out
    assert "turnout keys open" in run("doctor").out
    ran = run("keys", "open")
    assert ran.code == 0
    assert "2 keys deleted" in ran.out
    assert "No keys" in run("keys", "list").out
    assert "none: a server takes requests from this machine only" in run("doctor").out
