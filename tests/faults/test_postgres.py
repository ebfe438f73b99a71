"""PostgreSQL that is not there, goes away and comes back: what was acknowledged arrives, once."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from faults import workload
from faults.rounds import Scenario, play_on, restarting, wait_for
from postgres_server import PostgresServer
from timing import Delays
from turnout import Decision
from turnout.core.errors import NotStored, StoreUnavailable
from turnout.store import journal, open_store, postgres, sql

SOON_S = 60.0


def decisions(count: int, first: int = 0) -> list[Decision]:
    return [workload.decide("t", number) for number in range(first, first + count)]


def found(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [ident for (ident,) in connection.execute("select id from decisions where parent_id is null")]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "CONNECT_S", 1.0)
    monkeypatch.setattr(journal, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(journal, "LAST_PAUSE_S", 0.1)


@pytest.mark.usefixtures("impatient")
def test_down_at_the_start(postgres_server: PostgresServer, postgres_url: str) -> None:
    postgres_server.stop()
    began = time.monotonic()
    with pytest.raises(StoreUnavailable) as raised:
        open_store(postgres_url)
    assert time.monotonic() - began < 10
    said = str(raised.value)
    # Where, and what the system says of it; not how long a pool has waited.
    assert str(postgres_server.home) in said
    assert "No such file or directory" in said
    assert "\n" not in said


@pytest.mark.usefixtures("impatient")
def test_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1.*refused") as raised:
        open_store("postgresql://someone:canary-secret@127.0.0.1:1/nothing")
    assert "canary-secret" not in str(raised.value)


@pytest.mark.alike(2)
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("crash", [False, True], ids=["stopped", "killed"])
def test_down_later(
    crash: bool, postgres_server: PostgresServer, postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Rows wait in the spool; one sentence when it goes and one when it is back."""
    asked = decisions(300)
    with open_store(postgres_url) as store:
        for decision in asked[:100]:
            store.record(decision)
        assert store.flush(SOON_S)
        postgres_server.stop(crash=crash)
        took = []
        with Delays() as delays:
            for decision in asked[100:200]:
                began = time.perf_counter()
                store.record(decision)
                took.append(time.perf_counter() - began)
        wait_for(lambda: store.counts().failures >= 2)
        waiting = store.counts()
        postgres_server.start()
        for decision in asked[200:]:
            store.record(decision)
        assert store.flush(SOON_S)
        counts = store.counts()
    assert max(took) < delays.allow(0.5)
    assert waiting.backlog_bytes > 0
    assert (counts.lost, counts.rejected, counts.recorded) == (0, 0, 300)
    assert sorted(found(postgres_url)) == sorted(decision.id for decision in asked)
    ours = [record.getMessage() for record in caplog.records if record.name == "turnout.store"]
    assert 1 <= len([text for text in ours if "(routing goes on; rows wait in the spool)" in text]) <= 4
    assert len([text for text in ours if text.endswith("takes rows again")]) >= 1
    assert [record for record in caplog.records if record.name.startswith("psycopg")] == []


@pytest.mark.usefixtures("impatient")
def test_strict_refuses_while_it_is_down(postgres_server: PostgresServer, postgres_url: str) -> None:
    one, two, three = decisions(3)
    with open_store(postgres_url, durability="strict") as store:
        store.record(one)
        postgres_server.stop(crash=True)
        with pytest.raises(NotStored):
            store.record(two)
        postgres_server.start()
        wait_for(lambda: store.flush(1.0))
        store.record(three)
        assert sorted(found(postgres_url)) == [one.id, two.id, three.id]


@pytest.mark.usefixtures("impatient")
def test_a_cut_connection_is_no_matter(postgres_server: PostgresServer, postgres_url: str) -> None:
    """An operator ends the backend in the middle of things; the next attempt has another."""
    asked = decisions(400)
    cutting = threading.Event()

    def cut() -> None:
        with psycopg.connect(postgres_server.url(), autocommit=True) as connection:
            while not cutting.wait(0.02):
                connection.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'turnout'"
                )

    with open_store(postgres_url) as store:
        cutter = threading.Thread(target=cut)
        cutter.start()
        try:
            for decision in asked:
                store.record(decision)
                time.sleep(0.001)
        finally:
            cutting.set()
            cutter.join()
        assert store.flush(SOON_S)
        assert store.counts().rejected == store.counts().lost == 0
    assert sorted(found(postgres_url)) == sorted(decision.id for decision in asked)


@pytest.mark.alike(2)
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("durability", ["batched", "strict"])
def test_killed_while_the_server_restarts(
    durability: str, postgres_server: PostgresServer, postgres_url: str, tmp_path: Path
) -> None:
    """Both ends die at moments of their own; the long version of this is in `make soak`."""
    seed = 11
    chance = random.Random(seed)
    scenario = Scenario(f"PostgreSQL, {durability}", durability=durability, threads=2)
    trouble = restarting(postgres_server, chance)
    result = play_on(postgres_url, scenario, tmp_path, seed, chance, trouble, 50_000, 3.0)
    assert result.kills == 1
    assert result.acknowledged > 0


def test_a_missing_table_keeps_rows_waiting(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is no row's fault: nothing is set aside, and when somebody has mended it everything arrives."""
    monkeypatch.setattr(journal, "LAST_PAUSE_S", 0.05)
    asked = decisions(40)
    with open_store(postgres_url) as store, psycopg.connect(postgres_url, autocommit=True) as operator:
        operator.execute("alter table outcomes rename to outcomes_away")
        operator.execute("alter table decisions rename to decisions_away")
        for decision in asked:
            store.record(decision)
        wait_for(lambda: store.counts().failures >= 2)
        assert store.counts().rejected == 0
        operator.execute("alter table decisions_away rename to decisions")
        operator.execute("alter table outcomes_away rename to outcomes")
        assert store.flush(SOON_S)
        assert store.backend.read(sql.COUNTS, {})[0][0] == 40


def test_a_session_too_long_for_the_index_stops_nobody_else(postgres_url: str, tmp_path: Path) -> None:
    """A caller chooses it. Whatever becomes of the one row, the rest must go on."""
    from turnout import Query

    long = "".join(random.Random(3).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=20_000))
    route: Callable[[Query], Decision] = workload.router("tiers").route_sync
    with open_store(postgres_url) as store:
        store.record(route(Query(text="hello", session=long, tenant=long)))
        after = decisions(20)
        for decision in after:
            store.record(decision)
        assert store.flush(SOON_S)
        counts = store.counts()
    assert counts.lost == 0
    assert {decision.id for decision in after} <= set(found(postgres_url))
    assert len(found(postgres_url)) + counts.rejected == 21
