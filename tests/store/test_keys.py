"""Keys in the store: what is kept of one, and that a copy of the store opens nothing."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from stored_decisions import ask
from turnout import Decision
from turnout.core.errors import ConfigError, StoreError
from turnout.runtime.pepper import read_pepper
from turnout.store import Outcome, Store, TimeSpan, open_store
from turnout.store.keys import Key
from turnout.store.row import SpendRow, contents, decode_row
from turnout.web.auth import Credential, digest, read_credential
from turnout.web.key import new_credential, spell

PEPPER = b"sixteen bytes or more"


def a_key(credential: Credential, **fields: object) -> Key:
    told = {"id": credential.key_id, "digest": digest(credential.secret, PEPPER), "name": "a program", **fields}
    return Key(**told)  # type: ignore[arg-type]


def test_a_key_comes_back_as_it_was(store: Store) -> None:
    assert not store.keys.any()
    plain, full = (
        a_key(new_credential()),
        a_key(
            new_credential(),
            tenant="a",
            scopes=("ask", "admin"),
            profiles=("tiers",),
            ceiling="MEDIUM",
            may_force=False,
            budget_usd=0.125,
            budget_day_usd=0.0625,
            budget_month_usd=0.0,
            per_minute=7,
            created_ms=1,
            expires_ms=2**41,
        ),
    )
    for key in (plain, full):
        store.keys.add(key)
        assert store.keys.find(key.id) == replace(key, tenant=key.tenant or key.id)
    assert store.keys.any()
    assert {key.id for key in store.keys.all()} == {plain.id, full.id}
    assert store.keys.find("0" * 12) is None


def test_a_key_is_added_once(store: Store) -> None:
    key = a_key(new_credential())
    store.keys.add(key)
    with pytest.raises(StoreError, match=r"there is a key .* already"):
        store.keys.add(replace(key, name="another"))
    assert [one.name for one in store.keys.all()] == [key.name]


def test_a_key_is_revoked_once(store: Store) -> None:
    key = a_key(new_credential())
    store.keys.add(key)
    now = time.time_ns() // 1_000_000
    assert key.is_valid(now)
    assert store.keys.revoke(key.id)
    assert not store.keys.revoke(key.id)
    assert not store.keys.revoke("nobody")
    found = store.keys.find(key.id)
    assert found is not None
    assert not found.is_valid(now)
    assert store.keys.any(), "a revoked key is a key: the server stays closed"


@pytest.mark.parametrize(("expires_ms", "valid"), [(999, False), (1000, False), (1001, True), (None, True)])
def test_a_key_expires(expires_ms: int | None, valid: bool) -> None:
    assert a_key(new_credential(), expires_ms=expires_ms).is_valid(1000) is valid


def test_ids_do_not_collide_and_have_their_shape() -> None:
    made = [new_credential() for _ in range(2000)]
    assert len({one.key_id for one in made}) == len({one.secret for one in made}) == 2000
    for one in made:
        assert read_credential(spell(one)) == one
        assert len(spell(one)) == 4 + 12 + 1 + 43
        assert one.secret not in repr(one)


@pytest.mark.parametrize("spoil", ["", " ", "\n", "\0", "=", "é", "x"])
def test_a_key_is_exactly_its_shape(spoil: str) -> None:
    good = spell(new_credential())
    assert read_credential(good + spoil) is None or not spoil
    assert read_credential(spoil + good) is None or not spoil
    assert read_credential(good[:-1] + spoil) is None or len(spoil) == 1
    assert read_credential(good.upper()) is None
    assert read_credential(good.replace("tno_", "tnо_")) is None, "a Cyrillic letter"


def test_a_copy_of_the_store_opens_nothing(tmp_path: Path) -> None:
    """No bytes of a dump are a secret, and none pass for one."""
    made = [new_credential() for _ in range(50)]
    with open_store(f"sqlite:///{tmp_path}/turnout.db") as store:
        for one in made:
            store.keys.add(a_key(one))
    dump = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    for one in made:
        assert one.key_id.encode() in dump
        for at in range(0, len(one.secret) - 8):
            assert one.secret[at : at + 8].encode() not in dump
    with closing(sqlite3.connect(tmp_path / "turnout.db")) as database:
        rows = database.execute("select * from keys").fetchall()
    known = {one.key_id: digest(one.secret, PEPPER) for one in made}
    for row in rows:
        for value in map(str, row):
            for tried in (value, value[:43], value[-43:], value.ljust(43, "A")[:43]):
                assert digest(tried, PEPPER) != known[row[0]]
    # Who has the dump and not the pepper cannot even test a guess.
    assert digest(made[0].secret, b"another pepper here") != known[made[0].key_id]
    assert digest(made[0].secret, b"") != known[made[0].key_id]


@pytest.mark.parametrize("pepper", ["", "short", " " * 20, "fifteen bytes..", "\t\n" * 10])
def test_a_weak_pepper_is_refused(monkeypatch: pytest.MonkeyPatch, pepper: str) -> None:
    monkeypatch.setenv("TURNOUT_PEPPER", pepper)
    with pytest.raises(ConfigError, match="at least 16 characters"):
        read_pepper()


def test_a_pepper_is_made_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TURNOUT_PEPPER", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    first = read_pepper()
    assert len(first) == 64
    assert read_pepper() == first
    (file,) = tmp_path.rglob("pepper*")
    assert file.stat().st_mode & 0o077 == 0
    for damaged in ("", "\n", "deadbeef"):
        file.write_text(damaged)
        with pytest.raises(ConfigError, match="empty or damaged"):
            read_pepper()


def test_spending_is_summed_and_not_repeated(store_url: str) -> None:
    """A row of spending survives the process, and saying it twice is saying it once."""
    decisions = [ask() for _ in range(5)]
    with open_store(store_url) as store:
        for decision in decisions[:3]:
            store.spend(decision, "aaaaaaaaaaaa", 0.25)
        store.spend(decisions[3], "bbbbbbbbbbbb", 1.0)
        assert store.keys.spent("aaaaaaaaaaaa") == 0.75
    with open_store(store_url) as store:
        assert store.keys.spent("aaaaaaaaaaaa") == 0.75
        for decision in decisions[:3]:
            store.spend(decision, "aaaaaaaaaaaa", 0.25)
        store.spend(decisions[4], "aaaaaaaaaaaa", 0.25)
        assert store.keys.spent("aaaaaaaaaaaa") == 1.0
        assert store.keys.spent("bbbbbbbbbbbb") == 1.0
        assert store.keys.spent("cccccccccccc") == 0.0


def test_spending_is_told_from_a_moment_on(store: Store) -> None:
    for number, created_ms in enumerate((1000, 2000, 3000)):
        store.backend.write([SpendRow(ask().id, "aaaaaaaaaaaa", 2.0**number, created_ms)])
    assert [store.keys.spent("aaaaaaaaaaaa", since) for since in (0, 1000, 1001, 3000, 3001)] == [
        7.0,
        7.0,
        6.0,
        4.0,
        0.0,
    ]


def test_a_key_made_without_a_tenant_is_its_own(store: Store) -> None:
    keys = [a_key(new_credential()), a_key(new_credential()), a_key(new_credential(), tenant="acme")]
    for key in keys:
        store.keys.add(key)
    assert {key.id: key.tenant for key in store.keys.all()} == {
        keys[0].id: keys[0].id,
        keys[1].id: keys[1].id,
        keys[2].id: "acme",
    }
    assert store.keys.own_tenants() == []
    store.record(ask(tenant=keys[0].id))
    assert store.keys.own_tenants() == [keys[0].id]


def test_a_key_is_changed_but_for_its_secret_and_its_tenant(store: Store) -> None:
    key = a_key(new_credential(), tenant="acme", created_ms=5, budget_usd=1.0)
    other = a_key(new_credential(), tenant="other")
    for one in (key, other):
        store.keys.add(one)
    wanted = replace(
        key,
        name="another program",
        scopes=("route",),
        profiles=("study",),
        ceiling="SIMPLE",
        may_force=False,
        budget_usd=None,
        budget_day_usd=2.0,
        budget_month_usd=3.0,
        per_minute=4,
        expires_ms=2**41,
    )
    assert store.keys.update(replace(wanted, digest="1" * 64, tenant="globex", created_ms=6, revoked_ms=7))
    assert store.keys.find(key.id) == wanted
    assert store.keys.find(other.id) == other
    assert not store.keys.update(a_key(new_credential()))
    store.keys.revoke(key.id)
    assert not store.keys.update(key), "a revoked key stays as it is"


def test_keys_are_deleted_all_together_and_only_when_none_is_valid(store: Store) -> None:
    assert store.keys.delete_all() == 0
    now = time.time_ns() // 1_000_000
    revoked, expired, valid = (
        a_key(new_credential()),
        a_key(new_credential(), expires_ms=now - 1),
        a_key(new_credential(), expires_ms=now + 60_000),
    )
    for key in (revoked, expired, valid):
        store.keys.add(key)
    store.keys.revoke(revoked.id)
    store.spend(ask(), revoked.id, 0.5)
    assert store.keys.delete_all() == 0
    assert len(store.keys.all()) == 3
    store.keys.revoke(valid.id)
    assert store.keys.delete_all() == 3
    assert not store.keys.any()
    assert store.keys.spent(revoked.id) == 0.5, "what was spent stays written down"


def test_who_spent_what(store: Store) -> None:
    """Over all tenants; what a key asked for and what it cost go together, whenever the decision was written."""
    own, shared = a_key(new_credential(), name="own"), a_key(new_credential(), name="shared", tenant="acme")
    for key in (own, shared):
        store.keys.add(key)
    compound = ask("What is the weather tomorrow and who won the match yesterday?", "sources", tenant=own.id)
    assert compound.parts
    first, second, free = ask(tenant=own.id), ask(tenant="acme"), ask()
    store.append(compound, key_id=own.id, spent_usd=0.25)
    store.append(first, key_id=own.id)
    store.close_account(first, Outcome(cost_usd=0.5), key_id=own.id, spent_usd=0.5)
    store.close_account(second, Outcome(cost_usd=2.0), key_id=shared.id, spent_usd=2.0, decided=False)
    store.close_account(free, Outcome(cost_usd=0.125, classifier_usd=0.0625), decided=False)
    store.append(ask(tenant="nobody"))
    told = [(use.id, use.name, use.tenant, use.decisions, use.spent_usd) for use in store.keys.use()]
    assert told == [
        (shared.id, "shared", "acme", 1, 2.0),
        (own.id, "own", own.id, 2, 0.75),
        ("", "", "", 1, 0.1875),
        ("", "", "nobody", 1, None),
    ]
    assert [use.id for use in store.keys.use(tenant="acme")] == [shared.id]
    assert [use.decisions for use in store.keys.use(key=own.id, profile="study")] == [1]
    assert store.keys.use(span=TimeSpan(0, 1)) == []
    rows = list(store.records(own.id).labels())
    assert {store.records(own.id).get(row.id).key_id for row in rows} == {own.id}, "parts, too"
    assert len(rows) == 2 + len(compound.parts)


def test_a_log_is_read_by_key(store: Store) -> None:
    """Within a tenant that has several."""
    made = {key: [ask(tenant="acme") for _ in range(2)] for key in ("aaaaaaaaaaaa", "bbbbbbbbbbbb", "")}
    for key, decisions in made.items():
        for decision in decisions:
            store.close_account(decision, Outcome(model=key), key_id=key, spent_usd=0.5, decided=False)
    records = store.records("acme")
    for key, decisions in made.items():
        found = list(records.decisions(key=key, oldest_first=True))
        assert [one.id for one in found] == [decision.id for decision in decisions]
        assert {one.key_id for one in found} == {key}
        stats = records.stats(key=key)
        assert stats.decisions == 2
        assert [(one.model, one.answers) for one in stats.spent] == [(key, 2)]
        assert stats.latency_us["max"] == max(decision.elapsed_ns for decision in decisions) / 1000
    assert records.stats().decisions == len(list(records.decisions())) == 6
    assert list(store.records("globex").decisions(key="aaaaaaaaaaaa")) == []


def test_a_spool_of_an_earlier_version_is_taken_over(store: Store) -> None:
    """Its lines know no key."""
    content = line_of(store, ask("asked before"))
    older = msgspec.json.encode(msgspec.json.decode(content)[:-1])
    assert decode_row(older) == decode_row(content)
    store.backend.write([decode_row(older)])
    assert store.records().get("last").key_id == ""


def line_of(store: Store, decision: Decision) -> bytes:
    (content,) = (one for one in contents(store.journal.encoder.decision(decision)) if one)
    return content
