"""Keys in the store: what is kept of one, and that a copy of the store opens nothing."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from stored import ask
from turnout.core.errors import ConfigError
from turnout.server.key import Credential, digest, new_credential, read_credential, read_pepper, spell
from turnout.store import Store, open_store
from turnout.store.keys import Key

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
