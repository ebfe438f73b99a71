"""What one tenant's keys do is not there for another's: not by id, nor by its beginning, in a batch or in a cache."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from secured_server import call, chat, forget, id_of, make_key, secured_server
from serving import RunningServer

# Keys made without a tenant are their own, each of them: neither sees the other, and none sees all.
WITHOUT = ("(no tenant)", "(no tenant either)")
TENANTS = ("a", "b", *WITHOUT, "a'; --", "A", "a ")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningServer, dict[str, str]]]:
    with secured_server(tmp_path_factory.mktemp("walls")) as (served, _):
        scopes = ("ask", "route", "decisions:read", "feedback:write", "admin")
        tenants = {name: "" if name in WITHOUT else name for name in TENANTS}
        keys = {name: make_key(served.store, tenant=tenant, scopes=scopes) for name, tenant in tenants.items()}
        forget(served)
        yield served, keys


def make(served: RunningServer, key: str, number: int) -> list[str]:
    """Decisions of every kind there is."""
    text = f"What is the capital of France, number {number}?"
    one = call(served.url, "POST", "/v1/route", {"text": text, "session": "shared"}, key=key).json["id"]
    batch = {"queries": [{"text": text, "session": "shared"}, {"text": text}]}
    many = [made["id"] for made in call(served.url, "POST", "/v1/route/batch", batch, key=key).json["decisions"]]
    asked = call(served.url, "POST", "/v1/chat/completions", chat(text), key=key).headers["x-turnout-decision"]
    return [one, *many, asked]


def test_no_decision_crosses(server: tuple[RunningServer, dict[str, str]]) -> None:
    """A thousand looks by random keys: each sees all of its own and none of the others'."""
    served, keys = server
    rng = random.Random("walls")
    owned = [
        (tenant, ident) for number in range(4) for tenant in TENANTS for ident in make(served, keys[tenant], number)
    ]
    leaks = []
    for _ in range(1000):
        owner, ident = rng.choice(owned)
        tenant = rng.choice(TENANTS)
        spelled = rng.choice((ident, ident[:20], ident[:25], ident.lower()))
        got = call(served.url, "GET", f"/v1/decisions/{spelled}", key=keys[tenant])
        if got.status == 200 and (got.json["id"], tenant) not in {(id_, who) for who, id_ in owned}:
            leaks.append((owner, tenant, spelled))
        if spelled == ident:
            assert got.status == (200 if tenant == owner else 404), (owner, tenant)
    assert not leaks


@pytest.mark.parametrize("spelled", ["%25", "_", "%2a", "", "0", "01", "'%20or%20'1'='1", "..", "%00"])
def test_no_pattern_finds_anything(server: tuple[RunningServer, dict[str, str]], spelled: str) -> None:
    served, keys = server
    make(served, keys["a"], 77)
    got = call(served.url, "GET", f"/v1/decisions/{spelled}", key=keys["b"])
    assert got.status in (400, 404, 422), got


def test_feedback_does_not_cross(server: tuple[RunningServer, dict[str, str]]) -> None:
    served, keys = server
    ident = make(served, keys["a"], 99)[0]
    for tenant in TENANTS:
        body: dict[str, Any] = {"decision": ident, "verdict": "wrong", "note": f"by {tenant}"}
        got = call(served.url, "POST", "/v1/feedback", body, key=keys[tenant])
        assert got.status == (201 if tenant == "a" else 404)
    told = call(served.url, "GET", f"/v1/decisions/{ident}", key=keys["a"]).json
    assert [one["note"] for one in told["feedback"]] == ["by a"]


def test_an_answer_says_nothing_of_what_is_not_ones_own(server: tuple[RunningServer, dict[str, str]]) -> None:
    """Somebody else's decision and one that never was are the same to a stranger."""
    served, keys = server
    ident = make(served, keys["a"], 5)[0]
    never = ident[:-4] + "ZZZZ"
    there = call(served.url, "GET", f"/v1/decisions/{ident}", key=keys["b"])
    not_there = call(served.url, "GET", f"/v1/decisions/{never}", key=keys["b"])
    assert there.status == not_there.status == 404
    assert there.body.replace(ident.encode(), b"") == not_there.body.replace(never.encode(), b"")


@pytest.mark.parametrize("pair", [("a", "b"), WITHOUT], ids=["tenants", "keys without one"])
def test_a_conversation_is_one_tenants(server: tuple[RunningServer, dict[str, str]], pair: tuple[str, str]) -> None:
    """The same words of two tenants are two conversations."""
    served, keys = server
    one, other = (keys[name] for name in pair)
    hard = "Prove formally, step by step, that the algorithm terminates; derive the theorem and its proof. " * 30
    assert call(served.url, "POST", "/v1/chat/completions", chat(hard), key=one).status == 200
    again = chat() | {"messages": [{"role": "user", "content": hard}, {"role": "assistant", "content": "so"}]}
    mine = call(served.url, "POST", "/v1/chat/completions", again, key=one)
    theirs = call(served.url, "POST", "/v1/chat/completions", again, key=other)
    assert mine.headers.get("x-turnout-pinned") == "turn"
    assert "x-turnout-pinned" not in theirs.headers


def test_sessions_of_keys_without_a_tenant_are_apart(server: tuple[RunningServer, dict[str, str]]) -> None:
    """And none of it is among the rows of the machine's own, that no key asked for."""
    served, keys = server
    made = {name: set(make(served, keys[name], 11)) for name in WITHOUT}
    for name in WITHOUT:
        records = served.store.records(id_of(keys[name]))
        listed = {row.id for row in records.decisions()}
        assert made[name] <= listed
        assert not listed & (set.union(*made.values()) - made[name])
        assert {row.key_id for row in records.decisions()} == {id_of(keys[name])}
        assert {row.id for row in records.decisions(session="shared")} < listed
        assert records.turns("shared")
    assert list(served.store.records("").decisions()) == []


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("durability", ["batched", "strict"])
def test_every_row_knows_its_key(tmp_path: Path, durability: str, stream: bool) -> None:
    """Whether it is written before the answer or with it; rows that no key asked for say so."""
    with secured_server(tmp_path / "rows", server=f'[store]\ndurability = "{durability}"') as (served, _):
        call(served.url, "POST", "/v1/chat/completions", chat(stream=stream))
        key = make_key(served.store, tenant="acme")
        forget(served)
        made = make(served, key, 1)
        got = call(served.url, "POST", "/v1/chat/completions", chat(stream=stream), key=key)
        made.append(got.headers["x-turnout-decision"])
        assert {row.id for row in served.store.records("acme").decisions(key=id_of(key))} == set(made)
        assert [row.key_id for row in served.store.records().decisions()] == [""]
