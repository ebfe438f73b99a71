"""The journal's one thread: it outlives every error, wakes up when it must, and tells nobody of a commit that has not
happened.

Each test holds something that once was not so, or could easily not be.
"""

from __future__ import annotations

import errno
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from faults import workload
from faults.rounds import open_files, wait_for
from turnout import Decision
from turnout.core.errors import NotStored, StoreUnavailable
from turnout.store import Store, journal
from turnout.store import spool as spool_module
from turnout.store.backend import Unwritable
from turnout.store.row import DecisionRow, Row

# Far more than anything here takes, and far less than the minute that a missed wake-up costs.
SOON_S = 20.0


def decisions(count: int) -> list[Decision]:
    return [workload.decide("t", number) for number in range(count)]


class Gate:
    """A backend whose writes wait until they are let through."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.open = threading.Event()
        self.reached = threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def write(self, rows: Sequence[Row]) -> int:
        self.reached.set()
        assert self.open.wait(SOON_S)
        return int(self._backend.write(rows))


class PoisonedBackend:
    """A backend that refuses certain decisions for what they say, and fails once where it is told to."""

    def __init__(self, backend: Any, poison: Sequence[str], fails: int = 0) -> None:
        self._backend = backend
        self.poison = frozenset(poison)
        self.fails = fails
        """The write that fails, counted from 1; 0 for none."""
        self.writes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def write(self, rows: Sequence[Row]) -> int:
        self.writes += 1
        if self.writes == self.fails:
            raise StoreUnavailable("down")
        if any(type(row) is DecisionRow and row.id in self.poison for row in rows):
            raise Unwritable("it says too much")
        return int(self._backend.write(rows))


@pytest.fixture
def gated(opened: Callable[..., Store]) -> Iterator[tuple[Store, Gate]]:
    store = opened(durability="strict")
    gate = Gate(store.backend)
    store.journal.backend = gate
    yield store, gate
    gate.open.set()


def waits(store: Store, decision: Decision) -> Future[None]:
    """A decision that is recorded, and not yet committed."""
    receipt = store.append(decision)
    assert receipt is not None
    return receipt


class TestReceipts:
    def test_a_caller_who_goes_away_takes_nobody_along(self, gated: tuple[Store, Gate]) -> None:
        """A cancelled future in the midst of a batch must not keep the others from their answers."""
        store, gate = gated
        receipts = [waits(store, decision) for decision in decisions(3)]
        receipts[0].cancel()
        gate.open.set()
        assert [receipt.result(SOON_S) for receipt in receipts[1:]] == [None, None]
        assert store.flush(SOON_S)

    def test_a_receipt_is_given_after_the_commit_of_its_own_row(
        self, gated: tuple[Store, Gate], stored: Callable[[], list[str]]
    ) -> None:
        store, gate = gated
        one, *others = decisions(20)
        first = waits(store, one)
        assert gate.reached.wait(SOON_S)
        later = [(decision.id, waits(store, decision)) for decision in others]
        assert not first.done()
        gate.open.set()
        for ident, receipt in later:
            receipt.result(SOON_S)
            assert ident in stored()

    @pytest.mark.usefixtures("hasty")
    def test_a_refused_row_is_told_to_its_caller_alone(
        self, opened: Callable[..., Store], stored: Callable[[], list[str]]
    ) -> None:
        """Set aside is not stored: whoever asked for it to be must know."""
        store = opened(durability="strict")
        asked = decisions(9)
        poisoned = PoisonedBackend(store.backend, [asked[4].id])
        gate = Gate(poisoned)
        store.journal.backend = gate
        receipts = [waits(store, decision) for decision in asked]
        gate.open.set()
        failed = [number for number, receipt in enumerate(receipts) if receipt.exception(SOON_S) is not None]
        assert failed == [4]
        with pytest.raises(NotStored, match="refused and set aside: it says too much"):
            receipts[4].result()
        assert sorted(stored()) == sorted(decision.id for decision in asked if decision is not asked[4])

    @pytest.mark.usefixtures("hasty")
    def test_a_refused_row_is_told_to_whoever_asks_late(self, opened: Callable[..., Store]) -> None:
        """The writer may be done with a row before its caller has begun to wait."""
        store = opened(durability="strict")
        good, bad = decisions(2)
        store.journal.backend = PoisonedBackend(store.backend, [bad.id])
        written = [store.journal.encoder.decision(one) for one in (good, bad)]
        asked = [(lines, store.journal.spool.append(lines)) for lines in written]
        assert store.flush(SOON_S)
        kept, refused = (store.journal._receipt(len(lines), end) for lines, end in asked)
        assert kept.result(0) is None
        assert isinstance(refused.exception(0), NotStored)

    @pytest.mark.usefixtures("hasty")
    def test_in_an_outage_exactly_those_who_wait_are_told(
        self, opened: Callable[..., Store], stored: Callable[[], list[str]]
    ) -> None:
        store = opened(durability="strict")
        store.journal.backend = PoisonedBackend(store.backend, (), fails=3)
        acked, refused = [], []
        for decision in decisions(8):
            try:
                store.record(decision)
            except NotStored:
                refused.append(decision.id)
            else:
                acked.append(decision.id)
        assert len(refused) == 1
        assert set(acked) <= set(stored())
        # It was in the spool: it arrives after all.
        assert store.flush(SOON_S)
        assert sorted(stored()) == sorted(acked + refused)


class TestClosing:
    @pytest.mark.alike(2)
    @pytest.mark.parametrize("durability", ["strict", "batched"])
    def test_close_while_threads_append(
        self, durability: str, opened: Callable[..., Store], stored: Callable[[], list[str]], spool: Path
    ) -> None:
        """Nobody waits for ever, nothing that was acknowledged is lost, and no file is left open."""
        before = open_files()
        for seed in range(8):
            store = opened(durability=durability)
            acked: list[str] = []
            asked = decisions(4_000)

            def work(mine: list[Decision], store: Store = store, acked: list[str] = acked) -> None:
                for decision in mine:
                    try:
                        store.record(decision)
                    except (NotStored, ValueError):
                        return
                    acked.append(decision.id)

            threads = [threading.Thread(target=work, args=(asked[number::4],)) for number in range(4)]
            for thread in threads:
                thread.start()
            time.sleep(random.Random(seed).random() * 0.03)
            store.close()
            for thread in threads:
                thread.join(SOON_S)
                assert not thread.is_alive(), f"a caller still waits (seed {seed})"
            # What came in between is in a file of the spool, unlocked: the next who opens has it.
            with opened() as heir:
                assert heir.flush(SOON_S)
            assert set(acked) <= set(stored()), f"seed {seed}"
            assert list(spool.iterdir()) == []
        assert open_files() == before

    def test_close_does_not_wait_for_a_database_that_hangs(
        self, gated: tuple[Store, Gate], opened: Callable[..., Store], stored: Callable[[], list[str]]
    ) -> None:
        store, gate = gated
        asked = decisions(5)
        receipts = [waits(store, decision) for decision in asked]
        assert gate.reached.wait(SOON_S)
        began = time.monotonic()
        store.journal.close(timeout_s=0.1)
        assert time.monotonic() - began < SOON_S / 2
        for receipt in receipts:
            with pytest.raises(NotStored, match="the store was closed"):
                receipt.result(0)
        with pytest.raises(ValueError, match="the store is closed"):
            store.append(asked[0])
        gate.open.set()
        wait_for(lambda: not (store.journal._thread and store.journal._thread.is_alive()))
        with opened() as heir:
            assert heir.flush(SOON_S)
        assert sorted(stored()) == sorted(decision.id for decision in asked)

    def test_a_receipt_of_a_closed_journal_is_never_waited_for(self, opened: Callable[..., Store]) -> None:
        """Written before the close, asked for after it."""
        store = opened(durability="strict")
        (decision,) = decisions(1)
        lines = store.journal.encoder.decision(decision)
        end = store.journal.spool.append(lines)
        store.journal.spool.taken -= 1  # as if it had not been taken when the thread ended
        store.close()
        receipt = store.journal._receipt(len(lines), end)
        assert isinstance(receipt.exception(1), NotStored)

    def test_a_thread_that_cannot_be_started(
        self, opened: Callable[..., Store], stored: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(thread: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        asked = decisions(4)
        strict, batched = opened(durability="strict"), opened()
        with monkeypatch.context() as exhausted:
            exhausted.setattr(threading.Thread, "start", refuse)
            batched.record(asked[0])
            with pytest.raises(NotStored):
                strict.record(asked[1])
        batched.record(asked[2])
        strict.record(asked[3])
        assert batched.flush(SOON_S)
        assert strict.flush(SOON_S)
        assert sorted(stored()) == sorted(decision.id for decision in asked)


class TestTheThread:
    def test_no_wake_up_is_missed(self, opened: Callable[..., Store]) -> None:
        """Each row comes at another moment of the thread's going to sleep; a missed one would wait a minute."""
        store = opened(durability="strict")
        chance = random.Random(7)
        asked = decisions(300)
        began = time.monotonic()
        for decision in asked:
            store.record(decision)
            time.sleep(chance.choice((0.0, 0.0, 0.0001, 0.001, 0.005, 0.006)))
        assert time.monotonic() - began < SOON_S
        assert store.counts().committed == store.counts().recorded + parts(asked) + len(workload.PROFILES)

    @pytest.mark.usefixtures("hasty")
    @pytest.mark.parametrize("method", ["adopt", "restore", "rest", "take", "sync"])
    def test_it_outlives_every_method_of_the_spool(
        self,
        method: str,
        opened: Callable[..., Store],
        stored: Callable[[], list[str]],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(journal, "ADOPT_EVERY_S", 0.01)
        store = opened()
        struck = threading.Event()

        def fail(*_: object) -> None:
            struck.set()
            raise OSError(errno.EIO, "Input/output error")

        asked = decisions(40)
        store.record(asked[0])
        with monkeypatch.context() as broken:
            broken.setattr(store.journal.spool, method, fail)
            if method == "sync":
                broken.setattr(store.backend, "write", fail)
            for decision in asked[1:20]:
                store.record(decision)
            assert struck.wait(SOON_S)
        for decision in asked[20:]:
            store.record(decision)
        assert store.flush(SOON_S)
        assert sorted(stored()) == sorted(decision.id for decision in asked)

    def test_a_busy_worker_takes_over_from_a_dead_neighbour(
        self,
        opened: Callable[..., Store],
        stored: Callable[[], list[str]],
        spool: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """It never rests, so it must not take a rest to look around."""
        monkeypatch.setattr(journal, "ADOPT_EVERY_S", 0.25)
        store = opened()
        left, *asked = decisions(50)
        stop = threading.Event()

        def work() -> None:
            while not stop.wait(0.001):
                for decision in asked:
                    store.record(decision)

        worker = threading.Thread(target=work)
        worker.start()
        try:
            theirs = spool_module.Spool(spool, 1 << 20)
            theirs.append(store.journal.encoder.decision(left))
            theirs.close()
            wait_for(lambda: left.id in stored())
        finally:
            stop.set()
            worker.join()

    def test_a_writer_that_does_not_keep_up_syncs_what_waits(
        self, opened: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Else a power cut under full load takes everything that waits, and that may be much."""
        monkeypatch.setattr(spool_module, "BATCH_BYTES", 4_096)
        monkeypatch.setattr(journal, "SYNC_EVERY_S", 0.01)
        store = opened()
        real, synced = store.backend.write, []

        def slow(rows: Sequence[Row]) -> int:
            time.sleep(0.005)
            return int(real(rows))

        def sync() -> None:
            synced.append(store.journal.spool.backlog)

        monkeypatch.setattr(store.backend, "write", slow)
        monkeypatch.setattr(store.journal.spool, "sync", sync)
        for decision in decisions(150):
            store.record(decision)
        assert store.flush(SOON_S)
        assert len(synced) > 5
        assert synced[0] > 100_000

    def test_what_is_flushed_is_counted(self, opened: Callable[..., Store]) -> None:
        store = opened()
        for round_number in range(20):
            for decision in decisions(10):
                store.record(decision)
            assert store.flush(SOON_S)
            counts = store.counts()
            assert counts.recorded == 10 * (round_number + 1)
            assert counts.committed >= counts.recorded
            assert counts.backlog_bytes == 0

    def test_a_store_outlives_a_change_of_folder(
        self, file: Path, tmp_path: Path, stored: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Opened by a relative path: the next segment and the next reader belong to the same place."""
        from turnout.store import open_store

        monkeypatch.setattr(spool_module, "SEGMENT_BYTES", 1)
        monkeypatch.chdir(tmp_path)
        with open_store(file.name) as store:
            elsewhere = tmp_path / "elsewhere"
            elsewhere.mkdir()
            monkeypatch.chdir(elsewhere)
            asked = decisions(5)
            for decision in asked:
                store.record(decision)
            assert len(list(store.records("acme").decisions())) == 2
        assert list(elsewhere.iterdir()) == []
        assert sorted(stored()) == sorted(decision.id for decision in asked)


@pytest.mark.usefixtures("hasty")
class TestWhatIsSaid:
    def test_each_outage_is_told_once_and_so_is_its_end(
        self, opened: Callable[..., Store], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The second outage is as worth telling as the first, though it says the same."""
        store = opened()

        def down(rows: Sequence[Row]) -> int:
            raise StoreUnavailable("the database is down")

        for outage in range(1, 4):
            with monkeypatch.context() as broken:
                broken.setattr(store.backend, "write", down)
                for decision in decisions(5):
                    store.record(decision)
                failed = store.counts().failures
                wait_for(lambda failed=failed: store.counts().failures >= failed + 3)  # type: ignore[misc]
            assert store.flush(SOON_S)
            said = caplog.messages
            assert len([text for text in said if text.startswith("the database is down")]) == outage
            assert len([text for text in said if text.endswith("takes rows again")]) == outage

    def test_two_troubles_at_once_do_not_fill_the_log(
        self, opened: Callable[..., Store], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A full disk is one for the spool and for the database, which take turns to say so."""
        store = opened()
        faces = iter(range(10_000))

        def down(rows: Sequence[Row]) -> int:
            raise StoreUnavailable(f"the database is down in way {next(faces) % 3}")

        def full(*_: object) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        asked = decisions(220)
        with monkeypatch.context() as broken:
            broken.setattr(store.backend, "write", down)
            for number, decision in enumerate(asked[:200]):
                with monkeypatch.context() as full_disk:
                    if number % 2:
                        full_disk.setattr(os, "pwrite", full)
                    store.record(decision)
                time.sleep(0.0005)
            assert len(caplog.messages) <= 4, caplog.messages
            counts = store.counts()
            assert (counts.recorded, counts.lost) == (100, 100)
        time.sleep(journal.CALM_S)
        for decision in asked[200:]:
            store.record(decision)
        assert store.flush(SOON_S)
        assert [text for text in caplog.messages if text.startswith("decisions are logged again; 100 were not")]
        assert len([text for text in caplog.messages if text.startswith("a decision is not logged")]) == 1


@pytest.mark.usefixtures("hasty")
class TestFailEveryOperationOnce:
    """SQLite's own way of testing: the k-th operation fails, for every k there is."""

    KINDS = ("unavailable", "unavailable after the commit", "os error", "a bug", "unwritable")

    @pytest.mark.alike(2)
    @pytest.mark.parametrize("kind", KINDS)
    def test_writes(
        self,
        kind: str,
        opened: Callable[..., Store],
        stored: Callable[[], list[str]],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(spool_module, "BATCH_BYTES", 8_192)
        everything: list[str] = []
        refused: list[str] = []
        rejected = 0
        k, calls = 0, 1
        while k < calls and k < 60:
            k += 1
            store = opened()
            real, count = store.backend.write, iter(range(1, 1_000_000))

            def write(rows: Sequence[Row], k: int = k, real: Any = real, count: Iterator[int] = count) -> int:
                if next(count) != k:
                    return int(real(rows))
                match kind:
                    case "unavailable after the commit":
                        real(rows)
                        raise StoreUnavailable("the connection broke before the answer came")
                    case "unavailable":
                        raise StoreUnavailable("down")
                    case "os error":
                        raise OSError(errno.EIO, "Input/output error")
                    case "a bug":
                        raise ZeroDivisionError
                    case _:
                        if len(rows) == 1:  # nothing to halve: this one is set aside
                            refused.extend(getattr(row, "id", "") for row in rows)
                        raise Unwritable("refused")

            monkeypatch.setattr(store.backend, "write", write)
            for decision in decisions(60):
                store.record(decision)
                everything.append(decision.id)
            assert store.flush(SOON_S), f"k = {k}"
            calls = next(count) - 1
            counts = store.counts()
            assert counts.lost == counts.backlog_bytes == 0, f"k = {k}: {counts}"
            rejected += counts.rejected
            store.close()
        assert k > 8
        assert rejected == len(refused)
        assert sorted(stored()) == sorted(set(everything) - set(refused))

    @pytest.mark.parametrize("fails", range(1, 16))
    def test_a_poisoned_row_is_set_aside_once_whatever_else_fails(
        self, fails: int, opened: Callable[..., Store], stored: Callable[[], list[str]], spool: Path
    ) -> None:
        store = opened()
        asked = decisions(40)
        poison = [asked[7].id, asked[31].id]
        store.journal.backend = PoisonedBackend(store.backend, poison, fails)
        for decision in asked:
            store.record(decision)
        assert store.flush(SOON_S)
        counts = store.counts()
        assert (counts.rejected, counts.lost) == (2, 0)
        told = (spool / journal.REJECTED).read_text(encoding="utf-8").splitlines()
        assert len(told) == 2
        assert all(ident in line for ident, line in zip(poison, told, strict=True))
        assert sorted(stored()) == sorted(decision.id for decision in asked if decision.id not in poison)

    # What the spool asks of the system, in the order in which it is likely to fail.
    CALLS = ("pwrite", "pread", "ftruncate", "open", "close", "fdatasync", "fsync", "fstat")

    @pytest.mark.alike(3)
    @pytest.mark.parametrize("name", CALLS)
    def test_system_calls(
        self,
        name: str,
        opened: Callable[..., Store],
        stored: Callable[[], list[str]],
        spool: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """What was recorded arrives, once; what was not is counted."""
        monkeypatch.setattr(spool_module, "SEGMENT_BYTES", 4_096)
        monkeypatch.setattr(spool_module, "CUT_BYTES", 512)
        everything: set[str] = set()
        offered = recorded = lost = 0
        for k in range(1, 25):
            store = opened()
            failing = Failing(name, k)
            monkeypatch.setattr(spool_module, "os", failing)
            for decision in decisions(12):
                offered += 1
                everything.add(decision.id)
                store.record(decision)
            store.flush(SOON_S)
            store.close()
            monkeypatch.undo()
            monkeypatch.setattr(spool_module, "SEGMENT_BYTES", 4_096)
            counts = store.counts()
            recorded, lost = recorded + counts.recorded, lost + counts.lost
        # What a failure at the end has left behind is there for the next who opens.
        heir = opened()
        assert heir.flush(SOON_S)
        assert offered == recorded + lost
        found = stored()
        assert len(found) == len(set(found)) == recorded
        assert set(found) <= everything
        assert lost <= 24
        heir.close()
        assert list(spool.iterdir()) == []


class Failing:
    """The module `os` with one function that fails at its k-th call."""

    def __init__(self, name: str, k: int) -> None:
        self._name, self._k, self._calls = name, k, 0

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name != self._name:
            return real

        def call(*args: Any, **kwargs: Any) -> Any:
            self._calls += 1
            if self._calls == self._k:
                if name == "close":  # the file is closed all the same
                    real(*args, **kwargs)
                raise OSError(errno.EIO, "Input/output error")
            return real(*args, **kwargs)

        return call


def parts(asked: Sequence[Decision]) -> int:
    return sum(len(decision.parts) for decision in asked)


def test_recorded_by_many_threads_in_strict(opened: Callable[..., Store], stored: Callable[[], list[str]]) -> None:
    store = opened(durability="strict")
    asked = decisions(400)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(store.record, asked))
    assert sorted(stored()) == sorted(decision.id for decision in asked)
