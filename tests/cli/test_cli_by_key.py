"""The log and its statistics by key: what one asked for, who spent what, and what a list without a key leaves out."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import turnout
from turnout import Query
from turnout.store import Outcome, Store, open_store
from turnout.store.keys import Key

Run = Callable[..., Any]

TIERS = turnout.load("tiers", config="")


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store() as store:
        yield store


def logged(run: Run, *filters: str) -> list[dict[str, Any]]:
    ran = run("log", "--json", *filters)
    assert (ran.code, ran.err) == (0, "")
    return [json.loads(line) for line in ran.out.splitlines()]


@pytest.fixture
def keyed(store: Store) -> tuple[str, str, str]:
    """Two keys of one tenant and one that is its own; two decisions each, and one that no key asked for."""
    keys = [
        Key(f"{letter * 12}", "0" * 64, f"key {letter}", tenant)
        for letter, tenant in zip("abc", ("t", "t", ""), strict=True)
    ]
    for key in keys:
        store.keys.add(key)
        for number in range(2):
            query = Query(f"question {number} of {key.name}", tenant=key.tenant or key.id)
            decision = TIERS.route_sync(query)
            spent = 0.5 if key.tenant else 2.0
            store.close_account(decision, Outcome(cost_usd=spent), key_id=key.id, spent_usd=spent, decided=False)
    store.record(TIERS.route_sync("mine"))
    store.flush()
    return keys[0].id, keys[1].id, keys[2].id


def test_the_log_of_a_key(keyed: tuple[str, str, str], run: Run) -> None:
    """Its tenant need not be named."""
    for key in keyed:
        wanted = [f"question {number} of key {key[0]}" for number in range(2)]
        rows = logged(run, "--key", key)
        assert [row["question"] for row in rows] == wanted
        assert {row["key_id"] for row in rows} == {key}
        assert wanted[1] in run("log", "--key", key).out
    assert len(logged(run, "--tenant", "t")) == 4
    assert [row["question"] for row in logged(run, "--tenant", "t", "--key", keyed[0])] == [
        row["question"] for row in logged(run, "--key", keyed[0])
    ]


def test_what_the_log_leaves_out_is_said(keyed: tuple[str, str, str], run: Run) -> None:
    out = run("log").out
    assert "mine" in out
    assert "question 0" not in out
    said = f"Not included: what 1 key without a tenant asked for ({keyed[2]}). Use --tenant ID to see it"
    assert said in " ".join(out.split())
    assert "question 1 of key c" in run("log", "--tenant", keyed[2]).out
    assert "Not included" not in run("log", "--tenant", "t").out + run("log", "--key", keyed[2]).out
    assert said in " ".join(run("stats").out.split())
    exported = run("export")
    assert exported.out.count("\n") == 1
    assert said in " ".join(exported.err.split())


def test_a_decision_of_a_key_is_found_by_its_id(keyed: tuple[str, str, str], run: Run) -> None:
    ident = logged(run, "--key", keyed[2])[0]["id"]
    assert f"key {keyed[2]}" in run("show", ident).out
    assert run("feedback", ident[-8:], "right", "--by", "me").code == 0
    assert json.loads(run("show", ident, "--json").out)["feedback"][0]["by"] == "me"
    assert run("show", logged(run, "--tenant", "t")[0]["id"]).code == 2, "a tenant's own is asked for by its name"


def test_a_key_that_is_not_there(keyed: tuple[str, str, str], run: Run) -> None:
    for command in ("log", "stats"):
        ran = run(command, "--key", "aaaaaaaaaaax")
        assert (ran.code, ran.out) == (2, "")
        said = "--key 'aaaaaaaaaaax': there is no such key, did you mean 'aaaaaaaaaaaa'? (see turnout keys list)"
        assert said in " ".join(ran.err.split())
        assert run(command, "--key", "").code == 2
        ran = run(command, "--key", keyed[0], "--tenant", "u")
        assert f"--key {keyed[0]} is of tenant 't', not 'u': leave out --tenant" in " ".join(ran.err.split())


def test_a_key_that_was_deleted_is_known_by_what_it_left(keyed: tuple[str, str, str], run: Run) -> None:
    for key in keyed:
        run("keys", "revoke", key)
    assert run("keys", "open").code == 0
    for key in keyed:
        assert len(logged(run, "--key", key)) == 2
    assert json.loads(run("stats", "--by", "key", "--json").out)["keys"][0]["id"] == keyed[2]


def test_statistics_of_a_key(keyed: tuple[str, str, str], run: Run) -> None:
    for key, spent in zip(keyed, (0.5, 0.5, 2.0), strict=True):
        form = json.loads(run("stats", "--key", key, "--json").out)
        assert form["decisions"] == 2
        assert sum(one["cost_usd"] for one in form["spent"]) == 2 * spent
    assert json.loads(run("stats", "--tenant", "t", "--json").out)["decisions"] == 4


def test_statistics_by_key(keyed: tuple[str, str, str], run: Run) -> None:
    form = json.loads(run("stats", "--by", "key", "--json").out)
    assert form["by"] == "key"
    told = [(use["id"], use["name"], use["tenant"], use["decisions"], use["spent_usd"]) for use in form["keys"]]
    assert told == [
        (keyed[2], "key c", keyed[2], 2, 4.0),
        (keyed[0], "key a", "t", 2, 1.0),
        (keyed[1], "key b", "t", 2, 1.0),
        ("", "", "", 1, None),
    ]
    ran = run("stats", "--by", "key")
    assert (ran.code, ran.err) == (0, "")
    lines = [line.split() for line in ran.out.splitlines()]
    assert [line[0] for line in lines[2:]] == [keyed[2], keyed[0], keyed[1], "(none)"]
    for wanted in ("key c", "(its own)", "$4.00", "unknown"):
        assert wanted in ran.out
    assert len(json.loads(run("stats", "--by", "key", "--tenant", "t", "--json").out)["keys"]) == 2
    assert len(json.loads(run("stats", "--by", "key", "--key", keyed[0], "--json").out)["keys"]) == 1
    assert json.loads(run("stats", "--by", "key", "--until", "2020-01-01", "--json").out)["keys"] == []
    assert run("stats", "--by", "key", "--until", "2020-01-01").out.startswith("none of 1 decision matches")
