"""The journal: routing never waits for a database that is batched, and never answers before one that is strict."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import stat
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from stored_decisions import ask, select, stuck
from turnout.core.errors import NotStored, StoreUnavailable
from turnout.store import Outcome, Store, open_store
from turnout.store import journal as journal_module
from turnout.store import postgres as postgres_module
from turnout.store import sqlite as sqlite_module
from turnout.store.row import DecisionRow, ProfileRow, Row, contents, decode_row, line
from turnout.store.store import open_reader

# No integer column of either database holds it.
TOO_LARGE = 2**70
COUNT = "select count(*) from decisions"


def until(happened: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.002)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that is held by somebody else is given up after a moment, and tried again after another."""
    monkeypatch.setattr(sqlite_module, "BUSY_S", 0.02)
    monkeypatch.setattr(postgres_module, "STATEMENT_MS", 250)
    monkeypatch.setattr(journal_module, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(journal_module, "LAST_PAUSE_S", 0.05)


def test_batched_rows_arrive_by_themselves(store: Store, store_url: str) -> None:
    store.record(ask())
    until(lambda: select(store_url, COUNT) == [(1,)])


def test_rows_that_come_during_a_commit_are_gathered_too(
    opened: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a busy process commits as often as its disk lets it, a few rows each time."""
    store, asked, writes = opened(), [ask() for _ in range(200)], []
    real = store.backend.write

    def write(rows: Sequence[Row]) -> int:
        writes.append(len(rows))
        time.sleep(0.005)
        return real(rows)

    monkeypatch.setattr(store.backend, "write", write)
    begun = time.monotonic()
    for one in asked:
        store.record(one)
        time.sleep(0.002)
    took = time.monotonic() - begun
    assert len(writes) <= took / journal_module.GATHER_S + 1
    assert store.flush()
    assert sum(writes) >= len(asked)


class TestBusy:
    """While the process says that it has no time to spare, rows stay in the spool, synced; but not for ever."""

    def test_commits_wait_and_readers_do_not(self, opened: Callable[..., Store]) -> None:
        store = opened()
        store.journal.hold_back(True)
        for _ in range(3):
            store.record(ask())
        time.sleep(0.3)
        assert store.counts().committed == 0
        assert len(list(store.records().decisions())) == 3, "whoever reads finds what was recorded"
        store.record(ask())
        store.journal.hold_back(False)
        until(lambda: store.counts().backlog_bytes == 0)

    def test_not_beyond_a_quarter_of_the_spool(
        self, opened: Callable[..., Store], store_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = opened()
        store.journal.hold_back(True)
        monkeypatch.setattr(journal_module, "SPARED", 1 / store.journal.spool.limit_bytes)
        store.record(ask())
        until(lambda: select(store_url, COUNT) == [(1,)])


class TestStrict:
    def test_committed_before_it_returns(self, opened: Callable[..., Store], store_url: str) -> None:
        store = opened(durability="strict")
        for number in range(1, 6):
            store.record(decision := ask())
            assert select(store_url, COUNT) == [(number,)]
            store.settle(decision, Outcome())
            assert select(store_url, "select count(*) from outcomes") == [(number,)]
            store.reply(ask(session="s"), "an answer")
            assert select(store_url, "select count(*) from replies") == [(number,)]

    def test_from_many_threads(self, opened: Callable[..., Store], store_url: str) -> None:
        store = opened(durability="strict")

        def record(number: int) -> bool:
            store.record(decision := ask(f"Define entropy {number}"))
            return store.backend.read("select 1 from decisions where id = :id", {"id": decision.id}) == [(1,)]

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(record, range(100)))
        assert select(store_url, COUNT) == [(100,)]

    def test_appended_it_is_a_promise(self, opened: Callable[..., Store], store_url: str) -> None:
        store = opened(durability="strict")
        with stuck(store_url):
            promise = store.append(ask())
            assert promise is not None
            assert not promise.done()
        promise.result(10)
        assert select(store_url, COUNT) == [(1,)]

    def test_awaited_without_blocking(self, opened: Callable[..., Store], store_url: str) -> None:
        store = opened(durability="strict")

        async def record() -> None:
            promises = [store.append(ask()) for _ in range(20)]
            await asyncio.gather(*(asyncio.wrap_future(promise) for promise in promises if promise is not None))

        asyncio.run(record())
        assert select(store_url, COUNT) == [(20,)]

    def test_batched_promises_nothing(self, store: Store) -> None:
        assert store.append(ask()) is None

    @pytest.mark.usefixtures("impatient")
    def test_what_cannot_be_stored_is_said(self, opened: Callable[..., Store], store_url: str) -> None:
        store = opened(durability="strict")
        with stuck(store_url):
            decision = ask()
            with pytest.raises(NotStored) as caught:
                store.record(decision)
            assert isinstance(caught.value, StoreUnavailable)
            assert str(caught.value).startswith(store.backend.where)
            expected = "database is locked: another program holds it" if "sqlite" in store_url else "statement timeout"
            assert expected in str(caught.value)
            with pytest.raises(NotStored):
                store.settle(decision, Outcome())
        # The caller was told it is not stored; it is in the spool all the same, and comes once it can.
        until(lambda: select(store_url, COUNT) == [(1,)])

    def test_a_full_spool_is_said(self, opened: Callable[..., Store]) -> None:
        store = opened(durability="strict")
        store.journal.spool.limit_bytes = 10
        with pytest.raises(NotStored, match="the spool holds 10 bytes, its limit"):
            store.record(ask())
        assert store.counts().lost == 1


class TestPoison:
    """A row that a database refuses for what it says must not stop the others."""

    @pytest.mark.parametrize("at", [0, 7, 19])
    def test_is_set_aside(self, store: Store, store_url: str, at: int, caplog: pytest.LogCaptureFixture) -> None:
        made = [ask(f"Define entropy {number}") for number in range(20)]
        with stuck(store_url):  # so that they come as one group
            for decision in made:
                store.record(decision)
            for number, decision in enumerate(made):
                store.settle(decision, Outcome(attempts=TOO_LARGE if number == at else number))
        assert store.flush()
        records = store.records()
        found = [records.outcome(decision.id) for decision in made]
        assert found == [None if number == at else Outcome(attempts=number) for number in range(20)]
        counts = store.counts()
        assert (counts.rejected, counts.lost, counts.backlog_bytes) == (1, 0, 0)
        assert counts.committed == 1 + 20 + 19
        (kept,) = self.rejected(store)
        assert made[at].id in kept["row"]
        assert str(TOO_LARGE) in kept["row"]
        assert kept["error"].startswith(store.backend.where)
        assert any("set aside" in record.message for record in caplog.records)

    def rejected(self, store: Store) -> list[dict[str, str]]:
        file = store.journal.spool.folder / journal_module.REJECTED
        assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, "what people ask is nobody else's to read"
        return [json.loads(row) for row in file.read_text().splitlines()]

    @pytest.mark.usefixtures("impatient")
    def test_is_set_aside_once_however_often_its_group_is_tried(self, store: Store, store_url: str) -> None:
        folder = store.journal.spool.folder
        folder.mkdir(exist_ok=True, parents=True)
        with stuck(store_url):
            store.record(decision := ask())
            store.journal.put(line(b"[]"))  # whole, and no row
            store.journal.put(line(b'["l",null,"",null,null,1,"Hi",null,"full",null,{"id":"x"}]'))  # nor is this
            store.settle(decision, Outcome(attempts=TOO_LARGE))
            until(lambda: store.counts().failures >= 3)
            assert not (folder / journal_module.REJECTED).exists()
        assert store.flush()
        assert len(self.rejected(store)) == store.counts().rejected == 3
        assert len(list(store.records().decisions())) == 1

    def test_strict_says_so(self, opened: Callable[..., Store]) -> None:
        store = opened(durability="strict")
        store.record(decision := ask())
        with pytest.raises(NotStored):
            store.settle(decision, Outcome(attempts=TOO_LARGE))
        store.record(ask())
        assert store.counts().rejected == 1


def test_a_row_of_an_earlier_version_is_taken_from_the_spool(store: Store) -> None:
    decision = ask()
    (content,) = contents(store.journal.encoder.decision(decision))
    assert content is not None
    store.journal.put(line(msgspec.json.encode(decode_row(content))))  # as it was written before: column by column
    assert msgspec.json.decode(store.records().get(decision.id).body) == decision.to_dict()


def test_a_torn_line_is_counted(store: Store) -> None:
    store.journal.put(b"00000000 [torn\n")
    store.record(decision := ask())
    assert store.flush()
    assert (store.counts().torn, store.counts().rejected) == (1, 0)
    assert store.records().get(decision.id)


class TestOutage:
    @pytest.mark.usefixtures("impatient")
    def test_routing_does_not_wait(self, store: Store, store_url: str, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.WARNING, "turnout.store")
        with stuck(store_url):
            started = time.monotonic()
            for number in range(50):
                store.record(ask(f"Define entropy {number}"))
            # Some 50 us each, and the database is held until we let go; a busy machine is allowed for.
            assert time.monotonic() - started < 5.0
            until(lambda: store.counts().failures >= 2)
            counts = store.counts()
            assert (counts.recorded, counts.committed, counts.lost) == (50, 0, 0)
            assert counts.backlog_bytes > 0
            assert counts.last_error.startswith(store.backend.where)
        until(lambda: store.counts().backlog_bytes == 0)
        assert store.counts().committed == 51
        assert select(store_url, COUNT) == [(50,)]
        until(lambda: any("takes rows again" in record.message for record in caplog.records))
        assert sum("rows wait in the spool" in record.message for record in caplog.records) == 1, "not at every try"

    @pytest.mark.usefixtures("impatient")
    def test_what_does_not_fit_is_lost_and_counted(
        self, store: Store, store_url: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        with stuck(store_url):
            store.record(ask())
            store.journal.spool.limit_bytes = store.counts().backlog_bytes + 100
            for _ in range(5):
                store.record(ask())
            assert (store.counts().lost, store.counts().recorded) == (5, 1)
            assert "its limit" in store.counts().last_error
            assert sum("is not logged" in record.message for record in caplog.records) == 1
        assert store.flush()
        assert select(store_url, COUNT) == [(1,)]
        store.journal.spool.limit_bytes *= 1000
        store.record(ask())
        assert store.flush()
        assert (store.counts().lost, select(store_url, COUNT)) == (5, [(2,)])

    @pytest.mark.usefixtures("impatient")
    def test_a_profile_that_did_not_fit_goes_with_the_next(self, store: Store) -> None:
        limit, store.journal.spool.limit_bytes = store.journal.spool.limit_bytes, 10
        store.record(ask())
        store.journal.spool.limit_bytes = limit
        store.record(decision := ask())
        assert store.records().profile(decision.profile.hash) is not None

    @pytest.mark.usefixtures("impatient")
    def test_no_decision_gets_into_the_spool_before_its_profile(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of two threads with the first decisions of a profile either may be the first to write; a crash in between
        must not leave a decision that nobody can explain."""
        write = store.journal.spool.append
        written: list[bytes] = []

        def overtaken(lines: bytes) -> int:
            if not written:
                written.append(b"")
                store.record(ask("the other thread's"))
            written.append(lines)
            return write(lines)

        monkeypatch.setattr(store.journal.spool, "append", overtaken)
        store.record(ask("the first thread's"))
        store.record(ask("a later one"))
        kinds = [[type(decode_row(content or b"")) for content in contents(lines)] for lines in written[1:]]
        assert kinds == [[ProfileRow, DecisionRow], [ProfileRow, DecisionRow], [DecisionRow]]


class TestFlush:
    def test_of_nothing(self, store: Store) -> None:
        assert store.flush(0.0)

    def test_waits_for_what_was_recorded_before(self, store: Store, store_url: str) -> None:
        for number in range(200):
            store.record(ask(f"Define entropy {number}"))
        assert store.flush()
        assert select(store_url, COUNT) == [(200,)]

    @pytest.mark.usefixtures("impatient")
    def test_gives_up_in_time(self, store: Store, store_url: str) -> None:
        with stuck(store_url):
            store.record(ask())
            started = time.monotonic()
            assert not store.flush(0.05)
            assert 0.05 <= time.monotonic() - started < 5.0
        assert store.flush()

    @pytest.mark.usefixtures("impatient")
    def test_a_reader_does_not_wait_for_ever(self, store: Store, store_url: str) -> None:
        """What is read while the database takes no rows is what it has."""
        store.record(first := ask())
        store.flush()
        if store_url.startswith("sqlite"):
            with stuck(store_url):
                store.record(ask())
                assert [one.id for one in store.records().decisions()] == [first.id]


class TestClose:
    def test_commits_what_is_left(self, opened: Callable[..., Store], store_url: str) -> None:
        store = opened()
        for number in range(100):
            store.record(ask(f"Define entropy {number}"))
        store.close()
        assert select(store_url, COUNT) == [(100,)]
        assert list(store.journal.spool.folder.glob("*.spool")) == []

    @pytest.mark.usefixtures("impatient")
    def test_leaves_what_it_cannot_commit_for_the_next(self, opened: Callable[..., Store], store_url: str) -> None:
        store = opened()
        made = [ask(f"Define entropy {number}") for number in range(10)]
        with stuck(store_url):
            for decision in made:
                store.record(decision)
            started = time.monotonic()
            store.close()
            assert time.monotonic() - started < 5.0
        assert select(store_url, COUNT) == [(0,)]
        with opened() as heir:
            assert heir.flush()
            assert [one.id for one in heir.records().decisions(oldest_first=True)] == [one.id for one in made]
            assert heir.records().profile(made[0].profile.hash) is not None
        assert list(store.journal.spool.folder.glob("*.spool")) == []

    @pytest.mark.usefixtures("impatient")
    def test_whoever_only_reads_finds_what_was_left_too(self, opened: Callable[..., Store], store_url: str) -> None:
        store = opened()
        decision = ask()
        with stuck(store_url):
            store.record(decision)
            store.close()
        with open_reader(store_url) as reader:
            assert reader.records().get(decision.id).id == decision.id

    def test_twice_is_harmless(self, opened: Callable[..., Store]) -> None:
        store = opened()
        store.record(ask())
        store.close()
        store.close()

    def test_ends_its_thread(self, opened: Callable[..., Store]) -> None:
        before = threading.active_count()
        with opened() as store:
            store.record(ask())
            store.flush()
        until(lambda: threading.active_count() <= before)

    @pytest.mark.parametrize("durability", ["batched", "strict"])
    def test_used_afterwards_it_is_loud(self, opened: Callable[..., Store], durability: str) -> None:
        """A disk or a database can fail at any time, and routing goes on; a closed store is a mistake in a program."""
        store = opened(durability=durability)
        store.record(decision := ask(session="s"))
        store.close()
        records = store.records()
        for use in (
            lambda: store.record(decision),
            lambda: store.append(decision),
            lambda: store.settle(decision, Outcome()),
            lambda: store.settle(decision.id, Outcome()),
            lambda: store.reply(decision, "an answer"),
            store.tenants,
            lambda: records.get("last"),
            lambda: list(records.decisions()),
            lambda: records.judge(decision.id, "right", by="me"),
        ):
            with pytest.raises(
                ValueError, match="the store is closed, or was opened before a fork: open it where it is"
            ):
                use()
        assert store.counts().lost == 0

    def test_the_spool_is_left_alone_afterwards(self, opened: Callable[..., Store]) -> None:
        store = opened()
        store.record(ask())
        store.close()
        with pytest.raises(ValueError, match="closed"):
            store.record(ask())
        assert list(store.journal.spool.folder.glob("*.spool")) == []


class TestFork:
    def test_a_child_must_open_its_own(self, store: Store, store_url: str) -> None:
        """It has the parent's memory and sockets, and none of its threads: to use them would harm the parent."""
        store.record(ask("Define entropy before"))
        assert store.flush()

        def child() -> None:
            for use in (lambda: store.record(ask()), lambda: store.records().get("last"), store.tenants):
                with pytest.raises(ValueError, match="opened before a fork"):
                    use()
            store.close()
            with open_store(store_url) as own:
                own.record(ask("Define entropy in the child"))

        in_child(child)
        store.record(ask("Define entropy after"))
        found = [one.question for one in store.records().decisions(oldest_first=True)]
        assert found == ["Define entropy before", "Define entropy in the child", "Define entropy after"]
        assert (store.counts().failures, store.counts().lost) == (0, 0)

    def test_a_child_does_not_inherit_the_spool(self, store: Store, store_url: str) -> None:
        """A child that lives on holds no lock: when the parent dies, others may take over what it left."""
        with stuck(store_url):
            store.record(ask())
            ours = str(store.journal.spool.folder.resolve())

            def held() -> list[str]:
                names = {os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if _is_open(fd)}
                return [name for name in names if name.startswith(ours) and name.endswith(".spool")]

            def child() -> None:
                assert held() == []

            assert held(), "here it is open"

            in_child(child)
        assert store.flush()
        assert select(store_url, COUNT) == [(1,)]


def _is_open(fd: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{fd}")


def in_child(work: Callable[[], None]) -> None:
    """Do it in a forked process, and tell what went wrong there."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # of Python 3.12 on: that it forks with threads is the point
        pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            os.write(writing, traceback.format_exc()[-3000:].encode())
        finally:
            os._exit(1)
    os.close(writing)
    with open(reading, "rb") as told:
        said = told.read().decode()
    _, status = os.waitpid(pid, 0)
    assert (os.waitstatus_to_exitcode(status), said) == (0, ""), said


def test_two_stores_on_one_database(opened: Callable[..., Store], store_url: str) -> None:
    one, two = opened(), opened()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: (one, two)[number % 2].record(ask(f"Define entropy {number}")), range(100)))
    assert one.flush()
    assert two.flush()
    assert select(store_url, COUNT) == [(100,)]
    assert one.counts().recorded == two.counts().recorded == 50
    assert one.counts().failures == two.counts().failures == 0
    assert select(store_url, "select count(*) from profiles") == [(1,)]


def test_repr_says_where_and_how(opened: Callable[..., Store]) -> None:
    store = opened(durability="strict", text="hash")
    assert repr(store) == f"Store({store.backend.where!r}, strict, text=hash)"
