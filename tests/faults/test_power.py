"""A power cut after each of some moments, from the making of the database on. The long version is in `make soak`."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from faults import power
from faults.power import Call, OnDisk, disk
from turnout.store import Store, open_store

watched = pytest.mark.skipif(not power.available(), reason="needs strace: apt install strace")


@watched
def test_strict_loses_nothing(tmp_path: Path) -> None:
    outage = power.play(tmp_path, 21, durability="strict", cuts=8, count=120)
    assert outage.promised == 120
    assert outage.lost == {"nothing": 0, "some": 0, "all": 0}
    # A commit is shared, and there is one before each answer: some syncs, and fewer than decisions.
    assert 10 < outage.syncs < 400


@watched
def test_batched_loses_the_end_at_most_and_opens_again(tmp_path: Path) -> None:
    outage = power.play(tmp_path, 22, durability="batched", cuts=8, count=120)
    assert outage.promised == 120
    assert outage.lost["all"] == 0


def call(name: str, arguments: str, begin: int, end: int | None = None) -> Call:
    return Call(name, arguments, begin, begin if end is None else end)


def hexed(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


def test_the_simulation_itself() -> None:
    """What is written before a sync begins survives, what is written after does not, and a name needs a sync too."""
    home = Path("/d")
    file, data = f"3<{hexed('/d/a')}>", hexed
    calls = [
        call("openat", f'AT_FDCWD, "{hexed("/d/a")}", O_RDWR|O_CREAT, 0600', 0),
        call("pwrite64", f'{file}, "{data("one")}", 3, 0', 1),
        call("fsync", file, 2, 4),
        call("pwrite64", f'{file}, "{data("two")}", 3, 3', 3),
        call("write", f'9<{hexed("/d/w0.acks")}>, "{data("7 ID" + chr(10))}", 5', 5),
        call("rename", f'"{hexed("/d/a")}", "{hexed("/d/b")}"', 6),
        call("unlink", f'"{hexed("/d/b")}"', 7),
    ]
    calls.sort(key=lambda one: one.end)

    def after(until: int, way: str) -> tuple[str | None, bytes]:
        (found,), _ = disk(calls, home, until)
        chance = random.Random(1)
        return found.found_as(way, chance), found.content(way, chance)

    assert after(4, "nothing") == (None, b"")
    assert after(5, "nothing") == ("/d/a", b"one")
    assert after(5, "all") == ("/d/a", b"onetwo")
    assert after(8, "nothing") == ("/d/a", b"one")
    assert after(8, "all")[0] is None
    assert [disk(calls, home, until)[1] for until in (5, 6)] == [{}, {7: "ID"}]
    torn = OnDisk("/d/c")
    torn.changes = [power.Write(0, b"x" * 2048)]
    seen = {torn.content("some", random.Random(seed)).count(b"x") for seed in range(40)}
    assert seen > {0, 512, 1024}


def test_a_database_whose_maker_died_can_be_opened(
    file: Path, tmp_path: Path, opened: Callable[..., Store], stored: Callable[[], list[str]]
) -> None:
    """It leaves a journal that only a writer can roll back, and every opening begins with a reader."""
    with closing(sqlite3.connect(file, isolation_level=None)) as maker:
        maker.execute("pragma journal_mode = delete")
        maker.execute("pragma cache_size = 1")
        maker.execute("begin")
        maker.execute("create table half (text)")
        maker.executemany("insert into half values (?)", [("x" * 3_000,)] * 200)
        left = tmp_path / "left.db"
        shutil.copy(file, left)
        shutil.copy(file.with_name(file.name + "-journal"), left.with_name("left.db-journal"))
    with open_store(str(left)) as store:
        assert store.backend.read("select count(*) from decisions", {}) == [(0,)]
        assert list(store.backend.problems()) == []
        assert store.backend.read("select count(*) from sqlite_master where name = 'half'", {}) == [(0,)]
