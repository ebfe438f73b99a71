"""kill -9 in every step of an audit, before its result is made and after: it goes on at the first unfinished step, and
there is one card at the end; two workers that share PostgreSQL publish none twice."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from subprocess import Popen
from typing import Any, NamedTuple

import pytest

from apps.claims.auditing import CardFile
from child import running
from postgres_server import PostgresServer
from store.conftest import store_url  # noqa: F401 - the stores of tests/store
from turnout.apps.claims.audit import STEPS
from turnout.apps.claims.event import read_event
from turnout.store import open_store
from turnout.store.session_log import open_session_log

pytest.importorskip("dbos")
PATIENCE_S = 60.0
ALL_STEPS = (*STEPS, "card")
# Every process takes seconds to start: all steps in `make soak`, these always.
KILLED = ALL_STEPS if os.environ.get("TURNOUT_LONG") else ("card",)
EVENTS = 13


class Step(NamedTuple):
    audit: str
    process: int
    name: str


class Fleet(NamedTuple):
    """Processes that make audits on one store."""

    url: str
    folder: Path

    @contextlib.contextmanager
    def worker(self, *what: str) -> Iterator[Popen[bytes]]:
        command = [sys.executable, "-m", "faults.auditor", self.url, str(self.folder), *what]
        with running(command, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}) as process:
            yield process

    @property
    def steps(self) -> list[Step]:
        file = self.folder / "steps"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [Step(ident, int(process), name) for ident, process, name in (line.split(" ", 2) for line in lines)]

    @property
    def cards(self) -> list[str]:
        return [card.id for card in CardFile(self.folder / "cards").lines]

    def hold(self, step: str) -> None:
        (self.folder / "hold").write_text(step, encoding="utf-8")

    def let_go(self) -> None:
        (self.folder / "hold").unlink()

    def wait(self, until: Any) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not until():
            assert time.monotonic() < deadline, f"after {PATIENCE_S:g} s: {self.steps}, {self.cards}"
            time.sleep(0.02)

    def is_in(self, process: Popen[bytes], step: str) -> bool:
        return any((one.process, one.name) == (process.pid, step) for one in self.steps)

    def finish(self, *processes: Popen[bytes]) -> None:
        (self.folder / "end").touch()
        for process in processes:
            assert process.wait(PATIENCE_S) == 0

    def heard(self) -> list[str]:
        """The events of the session, by the store alone."""
        with open_store(self.url, config="") as store:
            log = open_session_log(store)
            rows = log.after("", "s", 0)
            log.close()
        assert [row.sequence for row in rows] == list(range(1, len(rows) + 1))
        return [str(read_event(row.body, row.sequence, row.at_ms).__struct_config__.tag) for row in rows]


@pytest.fixture
def fleet(store_url: str, tmp_path: Path) -> Fleet:  # noqa: F811
    folder = tmp_path / "fleet"
    folder.mkdir()
    return Fleet(store_url, folder)


def kill(process: Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait(PATIENCE_S)


@pytest.mark.alike(2)
def test_killed_in_every_step(fleet: Fleet) -> None:
    """One audit, killed before and after each of its steps: fourteen kills in all, one card."""
    begun = "start"
    for step in KILLED:
        for held in (step, f"after {step}"):
            fleet.hold(held)
            with fleet.worker(begun) as process:
                fleet.wait(
                    lambda held=held, process=process: (process.pid, held) in {(s.process, s.name) for s in fleet.steps}
                )
                kill(process)
            begun = "resume"
    fleet.let_go()
    with fleet.worker("resume") as process:
        fleet.wait(lambda: Counter(step.name for step in fleet.steps)["after card"] >= 2)
        fleet.wait(lambda: fleet.heard()[-1:] == ["claim_card_ready"])
        fleet.finish(process)
    assert len(fleet.cards) == 1
    # Each step was begun when it was killed before and after, and once more to be done; none that was stored was made
    # again.
    began = Counter(step.name for step in fleet.steps)
    times = {step: 3 if step in KILLED else 1 for step in ALL_STEPS}
    assert {step: began[step] for step in ALL_STEPS} == times
    order = [step.name for step in fleet.steps if not step.name.startswith("after")]
    assert order == [step for step in ALL_STEPS for _ in range(times[step])]
    assert len(fleet.heard()) == EVENTS


@pytest.mark.long
def test_two_workers_never_publish_twice(fleet: Fleet) -> None:
    """One is killed in the middle of its audits while the other lives: that one takes them over, and only then."""
    fleet.hold("adversarial_checker")
    with fleet.worker("start", "3") as first, fleet.worker("start", "3") as second:
        held = lambda pid: sum(s.name == "adversarial_checker" and s.process == pid for s in fleet.steps)  # noqa: E731
        fleet.wait(lambda: held(first.pid) >= 3 and held(second.pid) >= 3)
        time.sleep(0.6)
        assert len(fleet.steps) == 6 * 7, "what a living worker has begun is its own"
        kill(first)
        fleet.let_go()
        fleet.wait(lambda: fleet.heard().count("claim_card_ready") == 6)
        fleet.finish(second)
    assert len(fleet.cards) == 6
    assert len(set(fleet.cards)) == 6
    # Those of the worker that lives were made once, the others' third step twice.
    assert Counter(step.name for step in fleet.steps)["adversarial_checker"] == 9
    assert Counter(fleet.heard()) == Counter(
        {
            "pipeline_started": 6,
            "agent_started": 30,
            "agent_completed": 30,
            "pipeline_completed": 6,
            "claim_card_ready": 6,
        }
    )


@pytest.mark.alike(2)
def test_two_that_run_the_same_audit_publish_it_once(fleet: Fleet) -> None:
    """A worker that is stopped, and not dead, is no danger: if its lock is lost, both run, and one card is there."""
    fleet.hold("card")
    with fleet.worker("start") as first:
        fleet.wait(lambda: any(step.name == "card" for step in fleet.steps))
        with fleet.worker("resume") as second:
            # What starts holds a lock of its own while it brings the tables up.
            fleet.wait((fleet.folder / f"open-{second.pid}").exists)
            fleet.wait(lambda: steal(fleet) or fleet.is_in(second, "card"))
            fleet.let_go()
            fleet.wait(lambda: fleet.heard()[-1:] == ["claim_card_ready"])
            time.sleep(1.0)
            fleet.finish(first, second)
    assert len(set(fleet.cards)) == 1
    assert len(fleet.heard()) == EVENTS


@pytest.mark.long
def test_a_database_that_restarts_ends_no_audit(
    postgres_server: PostgresServer, postgres_url: str, tmp_path: Path
) -> None:
    fleet = Fleet(postgres_url, tmp_path)
    fleet.hold("source_checker")
    with fleet.worker("start") as process:
        fleet.wait(partial(fleet.is_in, process, "source_checker"))
        postgres_server.stop(crash=True)
        fleet.let_go()
        fleet.wait(partial(fleet.is_in, process, "after source_checker"))
        time.sleep(1.0)
        postgres_server.start()
        fleet.wait(lambda: fleet.heard()[-1:] == ["claim_card_ready"])
        fleet.finish(process)
    assert len(fleet.cards) == 1
    assert len(fleet.heard()) == EVENTS


def steal(fleet: Fleet) -> None:
    """Let living workers look dead: their locks are gone."""
    if fleet.url.startswith("sqlite"):
        for file in Path(fleet.url.removeprefix("sqlite:///") + ".workers").glob("0*"):
            file.unlink(missing_ok=True)
        return
    import psycopg

    with psycopg.connect(fleet.url, autocommit=True) as connection:
        connection.execute(
            "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and database = "
            "(select oid from pg_database where datname = current_database())"
        )
