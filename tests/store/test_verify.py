"""A check of a store finds what is wrong with it, says so in sentences, and changes nothing."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from full_store import fill, fill_many
from turnout.store import Store, open_store
from turnout.store.backend import Backend
from turnout.store.migrate import migrations
from turnout.store.spool import Spool
from turnout.store.store import connect
from turnout.store.verify import COUNTED, StoreCheck, describe, examine

PAGE_BYTES = 4096


def found(backend: Backend, folder: Path) -> dict[str, list[StoreCheck]]:
    """The findings by their state."""
    states: dict[str, list[StoreCheck]] = {"ok": [], "note": [], "wrong": []}
    for finding in examine(backend, folder):
        states[finding.state].append(finding)
    return states


def texts(findings: list[StoreCheck]) -> str:
    return "\n".join(finding.text for finding in findings)


@pytest.fixture
def folder(store: Store) -> Path:
    return store.journal.spool.folder


def test_a_sound_store_is_sound(store: Store, folder: Path) -> None:
    fill(store)
    states = found(store.backend, folder)
    assert states["wrong"] == states["note"] == []
    assert [finding.subject for finding in states["ok"]] == ["schema", "pages", "rows", "tables", "spool"]


class Damage(NamedTuple):
    id: str
    statement: str
    said: str


@pytest.mark.alike(2)
@pytest.mark.parametrize(
    "case",
    [
        Damage(
            "a part alone",
            "delete from decisions where id in (select parent_id from decisions)",
            "2 parts without the question",
        ),
        Damage("nobody's outcome", "update outcomes set decision_id = 'x' || decision_id", "6 outcomes without"),
        Damage(
            "feedback of no decision",
            "update feedback set decision_id = 'x'",
            "6 pieces of feedback without a decision",
        ),
        Damage("nobody's breach", "update breaches set decision_id = 'x' || decision_id", "broken rules without"),
        Damage("another tenant's", "update outcomes set tenant = 'other'", "6 outcomes without a decision"),
        Damage("no profile", "delete from profiles where name = 'study'", "1 decisions whose profile is missing"),
        Damage("another text", "update schema_version set checksum = 'x' where number = 2", "from another text"),
        Damage("a later step", "insert into schema_version values (99, 'x', 'y', 0)", "has schema 99"),
    ],
    ids=lambda case: case.id,
)
def test_what_does_not_fit_together(store: Store, folder: Path, case: Damage) -> None:
    fill(store)
    store.backend.change(case.statement, {})
    said = texts(found(store.backend, folder)["wrong"])
    assert case.said in said


def test_json_that_is_none_is_found(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "turnout.db")) as store:
        fill(store)
        store.backend.change("update decisions set body = substr(body, 1, 40)", {})
        said = texts(found(store.backend, tmp_path)["wrong"])
    assert "has a field that is no JSON" in said


def test_many_faults_are_not_listed_one_by_one(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "turnout.db")) as store:
        fill_many(store, 200)
        store.backend.change("update decisions set body = '{'", {})
        states = found(store.backend, tmp_path)
    assert len(states["wrong"]) == 11
    assert "more like these" in states["wrong"][-1].text


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A closed store of some hundred pages."""
    path = tmp_path / "turnout.db"
    with open_store(str(path)) as store:
        fill(store)
        fill_many(store, 300)
    return path


def flip_bytes(path: Path, where: Iterator[int]) -> None:
    content = bytearray(path.read_bytes())
    for place in where:
        content[place] ^= 0xFF
    path.write_bytes(content)


def _third(size: int) -> Iterator[int]:
    """The third of the file in the middle; a single page there may be a text's, whose bytes nothing vouches for."""
    return iter(range(size // 3, 2 * size // 3))


def _middles(size: int) -> Iterator[int]:
    """Some bytes in the middle of each page but the first."""
    for start in range(PAGE_BYTES, size, PAGE_BYTES):
        yield from range(start + PAGE_BYTES // 2, start + PAGE_BYTES // 2 + 64)


class BrokenCase(NamedTuple):
    id: str
    places: Callable[[int], Iterator[int]]
    """Which bytes of a file of that size."""


@pytest.mark.parametrize(
    "case",
    [
        BrokenCase("the heads of some pages", lambda size: iter(range(10 * PAGE_BYTES, size, 7 * PAGE_BYTES))),
        BrokenCase("the middle of every page", _middles),
        BrokenCase("the third in the middle", _third),
        BrokenCase("the schema", lambda _: iter(range(100, 200))),
        BrokenCase("the first bytes", lambda _: iter(range(16))),
        BrokenCase("here and there", lambda size: iter(random.Random(3).sample(range(PAGE_BYTES, size), size // 50))),
    ],
    ids=lambda case: case.id,
)
def test_damage_is_a_sentence(file: Path, case: BrokenCase) -> None:
    flip_bytes(file, case.places(file.stat().st_size))
    before = file.read_bytes()
    with closing(connect(str(file))[0]) as backend:
        wrong = found(backend, file.parent / "none")["wrong"]
    assert wrong
    assert all(len(finding.text) < 400 for finding in wrong)
    assert len(wrong) < 100
    assert file.read_bytes() == before


def test_a_file_cut_short_is_a_sentence(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: 20 * PAGE_BYTES + 100])
    with closing(connect(str(file))[0]) as backend:
        assert found(backend, file.parent / "none")["wrong"]


def test_another_database_is_none(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("create table mine (id int)")
    with closing(connect(str(tmp_path / "other.db"))[0]) as backend:
        (wrong,) = found(backend, tmp_path)["wrong"]
    assert wrong.text == "it has no tables of Turnout's"


def test_what_waits_in_the_spool(store: Store, tmp_path: Path) -> None:
    gone, alive = tmp_path / "gone", tmp_path / "alive"
    left, held = Spool(gone, 1 << 20), Spool(alive, 1 << 20)
    left.append(b"x" * 100)
    left.close()
    held.append(b"y" * 50)
    assert "100 bytes were left by a process that is gone" in texts(found(store.backend, gone)["note"])
    assert "at most 50 bytes of running processes wait" in texts(found(store.backend, alive)["ok"])
    held.close()
    assert left.adopt(), "a look has taken nothing away"


def test_refused_rows_are_wrong(store: Store, tmp_path: Path) -> None:
    fill(store)
    (tmp_path / "rejected.jsonl").write_text('{"error":"x","row":"y"}\n{"error":"x","row":"z"}\n')
    (wrong,) = found(store.backend, tmp_path)["wrong"]
    assert wrong.text == "2 rows were refused"
    assert str(tmp_path / "rejected.jsonl") in wrong.advice


def test_description(store: Store, folder: Path, store_url: str) -> None:
    fill(store)
    said = describe(store.backend, folder)
    assert said["rows"] == dict(zip(COUNTED, (6, 2, 6, 6, said["rows"]["breaches"], 4, 5), strict=True))
    assert said["schema"] == migrations(said["kind"])[-1].number
    assert said["pending"] == []
    assert said["size_bytes"] > 10_000
    assert said["kind"] in store_url.replace("postgresql", "postgres")
    assert ("vector" in said) == (said["kind"] == "postgres")
    if said["kind"] == "postgres":
        assert said["vector"]
        assert int(said["version"].split(".")[0]) >= 18


def test_description_of_nothing(store_url: str, tmp_path: Path) -> None:
    with closing(connect(store_url)[0]) as backend:
        backend.migrate()
        empty = describe(backend, tmp_path)
        assert set(empty["rows"].values()) == {0}


def test_a_store_that_was_never_migrated(postgres_url: str, tmp_path: Path) -> None:
    with closing(connect(postgres_url)[0]) as backend:
        said = describe(backend, tmp_path)
        assert (said["schema"], said["rows"]) == (0, {})
        (wrong,) = found(backend, tmp_path)["wrong"]
        assert wrong.advice == "turnout db migrate makes them"
