"""A database that is held by another program, taken away, replaced or damaged while decisions are recorded: routing
does not notice, and nothing is lost silently."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from faults import workload
from faults.rounds import acknowledged, child, locked, size, wait_for
from turnout import Decision
from turnout.core.errors import StoreDamaged
from turnout.store import Store, open_store, sql
from turnout.store import row as row_module
from turnout.store import spool as spool_module

SOON_S = 20.0

# Holds the database for a while from a process of its own: POSIX locks do not hold within one.
HOLDER = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
connection.execute("begin exclusive")
print("held", flush=True)
time.sleep(float(sys.argv[2]))
connection.execute("commit")
print("released", flush=True)
"""


def decisions(count: int, first: int = 0) -> list[Decision]:
    return [workload.decide("t", number) for number in range(first, first + count)]


@contextmanager
def held(file: Path, seconds: float) -> Iterator[None]:
    command = [sys.executable, "-c", HOLDER, str(file), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield
        assert holder.stdout.readline() == b"released\n"


def pace(store: Store, seconds: float, asked: list[Decision]) -> list[float]:
    """Route and record for a while; how long each took, in microseconds, shortest first."""
    took, until, number = [], time.perf_counter() + seconds, len(asked)
    while time.perf_counter() < until:
        began = time.perf_counter_ns()
        decision = workload.decide("t", number)
        store.record(decision)
        took.append((time.perf_counter_ns() - began) / 1000)
        asked.append(decision)
        number += 1
        time.sleep(0.0005)
    return sorted(took)


def test_routing_does_not_notice_a_locked_database(
    opened: Callable[..., Store], stored: Callable[[], list[str]], file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = opened()
    asked = decisions(50)
    for decision in asked:
        store.record(decision)
    before = pace(store, 1.0, asked)
    assert store.flush(SOON_S)
    with held(file, 3.2):
        during = pace(store, 3.0, asked)
        waiting = store.counts()
    assert store.flush(SOON_S)
    counts = store.counts()
    # The writer waits two seconds for the lock each time; had a caller to wait as well, it would be seen from afar.
    assert during[len(during) * 99 // 100] <= max(10 * before[len(before) * 99 // 100], 2_000.0)
    # A wait for the lock takes two seconds; a process that gets no turn on a busy machine, less than one.
    assert during[-1] < 1_000_000.0
    assert waiting.backlog_bytes > 100_000
    assert waiting.failures >= 1
    assert (counts.lost, counts.rejected, counts.backlog_bytes) == (0, 0, 0)
    assert sorted(stored()) == sorted(decision.id for decision in asked)
    assert [workload.routed(decision) for decision in asked] == [
        workload.expected(*workload.asked(number)) for number in range(len(asked))
    ]
    said, again = caplog.messages
    assert said.startswith(f"{file}: database is locked: another program holds it")
    assert again == f"{file} takes rows again"


@pytest.mark.usefixtures("hasty")
class TestTakenAway:
    def test_a_removed_database_keeps_rows_waiting(
        self,
        opened: Callable[..., Store],
        stored: Callable[[], list[str]],
        file: Path,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """Commits into a file without a name succeed, and are worth nothing."""
        store = opened()
        first, second = decisions(20), decisions(30, first=20)
        for decision in first:
            store.record(decision)
        assert store.flush(SOON_S)
        for name in (file.name, file.name + "-wal", file.name + "-shm"):
            file.with_name(name).unlink(missing_ok=True)
        for decision in second:
            store.record(decision)
        wait_for(lambda: store.counts().failures > 3)
        assert not file.exists(), "an empty database was put in its place"
        assert "it was removed" in store.counts().last_error
        said = [text for text in caplog.messages if text.startswith(f"{file}: it was removed")]
        assert 1 <= len(said) <= 2
        store.close()
        with open_store(str(file)) as heir:
            assert heir.flush(SOON_S)
        # Of the first ones, those whose segment had not been given up come back as well.
        found = set(stored())
        assert {decision.id for decision in second} <= found <= {decision.id for decision in first + second}

    def test_strict_does_not_acknowledge_into_a_removed_file(self, opened: Callable[..., Store], file: Path) -> None:
        from turnout.core.errors import NotStored

        store = opened(durability="strict")
        one, two = decisions(2)
        store.record(one)
        file.unlink()
        with pytest.raises(NotStored, match="it was removed"):
            store.record(two)

    def test_a_replaced_database_gets_what_was_not_in_the_old_one(
        self, opened: Callable[..., Store], stored: Callable[[], list[str]], file: Path, empty_database: Path
    ) -> None:
        store = opened()
        first, second, third = decisions(20), decisions(20, first=20), decisions(20, first=40)
        for decision in first:
            store.record(decision)
        assert store.flush(SOON_S)
        assert len(list(store.records("acme").decisions())) == 7
        copy = file.with_name("copy.db")
        shutil.copy(empty_database, copy)
        for name in (file.name + "-wal", file.name + "-shm"):
            file.with_name(name).unlink(missing_ok=True)
        copy.rename(file)
        for decision in second:
            store.record(decision)
        assert store.flush(SOON_S)
        for decision in third:
            store.record(decision)
        assert store.flush(SOON_S)
        assert sorted(stored()) == sorted(decision.id for decision in second + third)
        # Readers look at the new one, and it knows the profiles of what it holds.
        assert len(list(store.records("acme").decisions())) == 13
        assert not any(store.backend.read(sql.STRAYS, {})[0])

    def test_a_database_that_comes_back(
        self, opened: Callable[..., Store], stored: Callable[[], list[str]], file: Path
    ) -> None:
        """As when a volume is not mounted for a moment."""
        store = opened()
        asked = decisions(40)
        for decision in asked[:20]:
            store.record(decision)
        assert store.flush(SOON_S)
        file.rename(file.with_name("away.db"))
        for decision in asked[20:]:
            store.record(decision)
        wait_for(lambda: store.counts().failures > 3)
        file.with_name("away.db").rename(file)
        assert store.flush(SOON_S)
        assert sorted(stored()) == sorted(decision.id for decision in asked)


@pytest.mark.usefixtures("hasty")
class TestSpoolTakenAway:
    def test_while_rows_wait(
        self,
        opened: Callable[..., Store],
        stored: Callable[[], list[str]],
        file: Path,
        spool: Path,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        store = opened()
        asked = decisions(60)
        with held(file, 1.0):
            for decision in asked[:30]:
                store.record(decision)
            shutil.rmtree(spool)
            for decision in asked[30:]:
                store.record(decision)
            wait_for(lambda: any("was removed while in use" in text for text in caplog.messages))
            assert any(size(path) for path in spool.glob("*.spool"))
        assert store.flush(SOON_S)
        assert store.counts().lost == 0
        assert sorted(stored()) == sorted(decision.id for decision in asked)

    def test_and_the_process_killed(self, file: Path, spool: Path, tmp_path: Path) -> None:
        """What waited in a file without a name would have died with the process."""
        acks = tmp_path / "w.acks"
        with child(str(file), acks, "--worker", "w", "--busy-s", "0.02", "--count", "2000") as process:
            wait_for(lambda: size(acks) > 0, process)
            with locked(file):
                wait_for(lambda: size(acks) > 20_000, process)
                shutil.rmtree(spool)
                wait_for(lambda: len(acknowledged(acks)) == 2_000, process)
                wait_for(lambda: any(size(path) for path in spool.glob("*.spool")), process)
                time.sleep(0.3)
                process.kill()
                process.wait()
        with open_store(str(file)) as store:
            assert store.flush(SOON_S)
            found = {ident for (ident,) in store.backend.read("select id from decisions where parent_id is null", {})}
        assert set(acknowledged(acks).values()) <= found

    def test_when_it_cannot_be_made_again(
        self,
        opened: Callable[..., Store],
        stored: Callable[[], list[str]],
        spool: Path,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """What is in the removed file is committed all the same; what comes after the segment is full is counted."""
        store = opened()
        asked = decisions(30)
        store.record(asked[0])
        assert store.flush(SOON_S)
        shutil.rmtree(spool)
        spool.write_bytes(b"a file where the folder should be")
        for decision in asked[1:]:
            store.record(decision)
        assert store.flush(SOON_S)
        counts = store.counts()
        assert counts.recorded + counts.lost == 30
        assert len(stored()) == counts.recorded
        wait_for(lambda: "cannot be made again" in caplog.text)  # the writer looks at its files after it has answered
        said = [text for text in caplog.messages if "cannot be made again" in text]
        # Each reason once: it may be met while the folder goes, and then again where the file stands.
        assert len(said) == len(set(said))
        assert not any(".spool" in text.removeprefix(str(spool)) for text in said)
        spool.unlink()


def damage(file: Path) -> None:
    """Overwrite the rows of a closed database, and spare its beginning, which every opening reads."""
    with file.open("r+b") as stream:
        for page in range(60, file.stat().st_size // 4096):
            stream.seek(page * 4096)
            stream.write(os.urandom(4096))


def filled(file: Path, count: int = 400) -> None:
    with open_store(str(file)) as store:
        for decision in decisions(count):
            store.record(decision)


class TestDamage:
    def test_after_an_unclean_end_a_damaged_database_is_refused(self, file: Path, spool: Path) -> None:
        filled(file)
        damage(file)
        left = spool_module.Spool(spool, 1 << 20)
        left.append(row_module.line(b"a row of a process that died"))
        left.close()
        with pytest.raises(StoreDamaged, match=r"turnout\.db: .*: restore a backup \(turnout db verify says more\)"):
            open_store(str(file))
        # What was left is still there, for the database that will be restored.
        (path,) = spool.glob("*.spool")
        assert b"a row of a process that died" in path.read_bytes()

    def test_after_a_clean_end_it_opens_and_verify_tells(self, file: Path) -> None:
        """A check of the whole file at each start would take seconds for a large one."""
        filled(file)
        damage(file)
        with open_store(str(file)) as store:
            try:
                problems = list(store.backend.problems())
            except StoreDamaged as error:
                problems = [str(error)]
        assert problems
        assert str(file) in problems[0]

    def test_a_whole_database_passes_after_an_unclean_end(
        self, file: Path, spool: Path, stored: Callable[[], list[str]]
    ) -> None:
        filled(file)
        (asked,) = decisions(1, first=400)
        with open_store(str(file)) as store:
            left = spool_module.Spool(spool, 1 << 20)
            left.append(store.journal.encoder.decision(asked))
            left.close()
        with open_store(str(file)) as store:
            assert store.flush(SOON_S)
        assert asked.id in stored()

    def test_a_look_for_damage_does_not_take_long(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of a database that is too large it says nothing."""
        from turnout.store import sqlite

        filled(file, 2_000)
        monkeypatch.setattr(sqlite, "CHECK_S", -1.0)
        monkeypatch.setattr(sqlite, "CHECK_STEPS", 10)
        with open_store(str(file)) as store:
            store.backend.check()
            assert len(list(store.records("acme").decisions())) > 600

    @pytest.mark.usefixtures("hasty")
    def test_damage_while_it_is_open_keeps_rows_waiting(
        self, opened: Callable[..., Store], file: Path, spool: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        filled(file)
        damage(file)
        caplog.set_level(logging.WARNING)
        store = opened()
        asked = decisions(200, first=1_000)
        for decision in asked:
            store.record(decision)
        wait_for(lambda: store.counts().failures > 2 or store.counts().backlog_bytes == 0)
        counts = store.counts()
        assert counts.lost == 0
        assert counts.failures > 2, "this damage should have been met"
        assert any("restore a backup" in text for text in caplog.messages)
        store.close()
        waiting = b"".join(path.read_bytes() for path in spool.glob("*.spool"))
        assert all(decision.id.encode() in waiting for decision in asked[-20:])


def test_integrity_under_many_writers(file: Path, tmp_path: Path) -> None:
    """A storm of SQLITE_BUSY: three processes and a backup at once."""
    files = [tmp_path / f"w{number}.acks" for number in range(3)]
    with (
        child(str(file), files[0], "--worker", "w0", "--count", "600") as one,
        child(str(file), files[1], "--worker", "w1", "--count", "600", "--durability", "strict") as two,
        child(str(file), files[2], "--worker", "w2", "--count", "600", "--threads", "3") as three,
        closing(sqlite3.connect(tmp_path / "copy.db")) as target,
        closing(sqlite3.connect(file)) as source,
    ):
        while any(process.poll() is None for process in (one, two, three)):
            source.backup(target, pages=64)
        assert [process.wait() for process in (one, two, three)] == [0, 0, 0]
    with open_store(str(file)) as store:
        assert list(store.backend.problems()) == []
        assert store.backend.read("select count(*) from decisions where parent_id is null", {})[0][0] == 1_800
