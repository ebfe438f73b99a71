"""One round: processes record, are killed at a moment that a seed chooses, and the store is opened again and held
against everything they were promised.

A round fails if an acknowledged decision, one of its parts or its outcome is missing, if anything is there twice, if a
row says something else than routing gives without a store, if the database is damaged, or if the spool is not empty.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from faults import workload
from faults.workload import SETTLED, RoutedDecision
from postgres_server import PostgresServer
from turnout.store import open_store, sql
from turnout.store.store import connect
from turnout.store.verify import STRAYS

TESTS = Path(__file__).parent.parent
PATIENCE_S = 60.0


class Scenario(NamedTuple):
    name: str
    durability: str = "batched"
    workers: int = 1
    threads: int = 1
    segment_bytes: int = 0
    locked: str = ""
    """Another process holds the database: `always`, so that everything waits in the spool, or `now and then`."""
    heirs: int = 0
    """So many processes open the store at once afterwards, and take over what was left."""
    replay: bool = False
    """The heirs are killed as well, on the way."""


SCENARIOS = (
    Scenario("batched"),
    Scenario("strict", durability="strict", threads=8),
    Scenario("batched, small segments", segment_bytes=32_768),
    Scenario("strict, small segments", durability="strict", threads=8, segment_bytes=4_096),
    Scenario("batched, two processes", workers=2),
    Scenario("strict, two processes", durability="strict", workers=2, threads=4),
    Scenario("batched, locked, three heirs", locked="always", segment_bytes=65_536, heirs=3),
    Scenario("batched, locked, killed again in replay", locked="always", heirs=1, replay=True),
    Scenario("batched, two processes of four threads, small segments", workers=2, threads=4, segment_bytes=32_768),
    Scenario("strict, locked now and then", durability="strict", threads=8, locked="now and then"),
)


class Result(NamedTuple):
    scenario: str
    seed: int
    kills: int
    acknowledged: int
    rows: int
    """Decisions in the database, without parts."""
    spooled: int
    """Bytes that were in the spool when the last process was dead."""
    repeated: int
    """Rows among them that the database had already."""
    torn: int
    seconds: float


class RoundFailed(AssertionError):
    pass


def demand(holds: bool, seed: int, scenario: str, what: str) -> None:
    if not holds:
        raise RoundFailed(f"{what} (scenario {scenario!r}, seed {seed})")


@contextmanager
def child(url: str, acks: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of `faults.child`, which is gone afterwards. What it logs is in a file beside its acknowledgements."""
    environment = os.environ | {"PYTHONPATH": str(TESTS)}
    with acks.with_suffix(".log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "faults.child", url, acks, *options], env=environment, stderr=log
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes] | None = None) -> None:
    until = time.monotonic() + PATIENCE_S
    while not condition():
        if process is not None and process.poll() is not None:
            return
        if time.monotonic() > until:
            raise TimeoutError("the process does not get anywhere")
        time.sleep(0.001)


def said(acks: Iterable[Path]) -> str:
    """What the processes of these acknowledgements logged, the end of it."""
    return " | ".join(file.with_suffix(".log").read_text(encoding="utf-8", errors="replace")[-800:] for file in acks)


def size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def acknowledged(file: Path) -> dict[int, str]:
    """Number and id of each decision that was promised. The last line may be torn: then it was not."""
    if not file.exists():
        return {}
    lines = file.read_bytes().split(b"\n")[:-1]
    pairs = (line.decode().split(" ", 1) for line in lines if not line.startswith((b"open", b"done")))
    return {int(number): ident for number, ident in pairs}


def options(scenario: Scenario, worker: str, count: int) -> list[str]:
    said = ["--worker", worker, "--durability", scenario.durability]
    said += ["--threads", str(scenario.threads), "--count", str(count)]
    if scenario.segment_bytes:
        said += ["--segment-bytes", str(scenario.segment_bytes), "--batch-bytes", str(scenario.segment_bytes // 2)]
    if scenario.locked:
        said += ["--busy-s", "0.05"]
    return said


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """The database, held by this process."""
    with closing(sqlite3.connect(file, isolation_level=None, timeout=30.0)) as connection:
        connection.execute("begin exclusive")
        yield


@contextmanager
def locked_now_and_then(file: Path, chance: random.Random) -> Iterator[None]:
    done = threading.Event()

    def hold() -> None:
        while not done.wait(chance.random() * 0.1):
            with locked(file):
                done.wait(chance.random() * 0.2)

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        yield
    finally:
        done.set()
        holder.join()


def play(scenario: Scenario, folder: Path, seed: int, *, count: int = 50_000, longest_s: float = 1.0) -> Result:
    """One round on SQLite. Every process is killed within `longest_s` of its first acknowledgement."""
    chance = random.Random(seed)
    file = folder / "turnout.db"
    holding = {
        "": contextlib.nullcontext(),
        "always": locked(file),
        "now and then": locked_now_and_then(file, chance),
    }
    return play_on(str(file), scenario, folder, seed, chance, holding[scenario.locked], count, longest_s)


def play_on(
    url: str,
    scenario: Scenario,
    folder: Path,
    seed: int,
    chance: random.Random,
    trouble: AbstractContextManager[None],
    count: int,
    longest_s: float,
) -> Result:
    """One round: `trouble` begins when every process has opened its store, and ends when the last one is dead."""
    began = time.monotonic()
    open_store(url).close()
    spool = connect(url)[1]
    acks = {f"w{number}": folder / f"w{number}.acks" for number in range(scenario.workers)}
    kills = 0
    with ExitStack() as running:
        processes = [
            running.enter_context(child(url, file, *options(scenario, name, count))) for name, file in acks.items()
        ]
        for process, file in zip(processes, acks.values(), strict=True):
            wait_for(lambda file=file: size(file) > 0, process)  # type: ignore[misc]
        with trouble:
            for process in processes:
                time.sleep(chance.random() * longest_s / len(processes))
                ended = process.poll()
                demand(not ended, seed, scenario.name, f"a process ended with {ended}: {said(acks.values())}")
                kills += ended is None
                process.kill()
                process.wait()
    left = sum(size(path) for path in spool.glob("*.spool"))
    kills += inherit(url, scenario, folder, spool, chance)
    with open_store(url) as store:
        demand(store.flush(PATIENCE_S), seed, scenario.name, f"the spool is not replayed: {store.counts()}")
        counts = store.counts()
        promised = {name: acknowledged(file) for name, file in acks.items()}
        rows = check(store.backend.read, promised, scenario.name, seed)
        problems = list(store.backend.problems())
    demand(not problems, seed, scenario.name, f"the database is damaged: {problems[:1]}")
    demand(counts.backlog_bytes == 0 and counts.rejected == 0, seed, scenario.name, f"not all was taken: {counts}")
    demand(not list(spool.iterdir()), seed, scenario.name, f"the spool is not empty: {list(spool.iterdir())}")
    total = sum(len(numbers) for numbers in promised.values())
    seconds = time.monotonic() - began
    return Result(scenario.name, seed, kills, total, rows, left, counts.repeated, counts.torn, seconds)


def inherit(url: str, scenario: Scenario, folder: Path, spool: Path, chance: random.Random) -> int:
    """Let other processes take over the spool, all at once; how many of them were killed before they were done."""
    kills = 0
    with ExitStack() as running:
        files = [folder / f"heir{number}.acks" for number in range(scenario.heirs)]
        slowly = ("--batch-bytes", "16384") if scenario.replay else ()
        heirs = [running.enter_context(child(url, file, "--replay", *slowly)) for file in files]
        for heir, file in zip(heirs, files, strict=True):
            if scenario.replay:
                wait_for(lambda file=file: size(file) > 0, heir)  # type: ignore[misc]
                time.sleep(chance.random() * 0.15)
                kills += heir.poll() is None and any(size(path) for path in spool.glob("*.spool"))
                heir.kill()
            if heir.wait(PATIENCE_S) and not scenario.replay:
                raise RoundFailed(f"an heir ended with {heir.returncode}")
    return kills


def check(
    read: Callable[[str, dict[str, Any]], list[Any]],
    promised: dict[str, dict[int, str]],
    scenario: str,
    seed: int,
    *,
    torn: bool = False,
) -> int:
    """Hold the database against what was promised; how many root rows there are.

    Where lines of the spool were torn, a row may be there without what it belongs to.
    """
    roots: dict[str, Any] = {}
    parts: dict[str, list[Any]] = {}
    for row in read(ALL, {}):
        if row[1] is None:
            roots[row[0]] = row
        else:
            parts.setdefault(row[1], []).append(row)
    settled = Counter(ident for (ident,) in read(SETTLEMENTS, {}))
    lost = []
    for worker, numbers in promised.items():
        for number, ident in numbers.items():
            row = roots.get(ident)
            if row is None or row[2] != f"{worker}-{number}":
                lost.append(ident)
            elif number % SETTLED == 0:
                demand(settled[ident] == 1, seed, scenario, f"the outcome of decision {number} is not there")
    demand(not lost, seed, scenario, f"{len(lost)} acknowledged decisions are not there")
    sessions = Counter(row[2] for row in roots.values())
    twice = [session for session, count in sessions.items() if count > 1]
    demand(not twice, seed, scenario, f"{len(twice)} decisions are there twice")
    promised_ids = {ident for numbers in promised.values() for ident in numbers.values()}
    for ident, row in roots.items():
        number = int(row[2].rpartition("-")[2])
        profile, text = workload.asked(number)
        found = RoutedDecision(
            *told(row), tuple(RoutedDecision(*told(part), ()) for part in sorted(parts.get(ident, ())))
        )
        same = found == workload.expected(profile, text) and row[3] == profile
        # What was not promised may have lost its parts with the process; what was must be whole.
        partial = ident not in promised_ids and found[:2] == workload.expected(profile, text)[:2]
        demand(same or partial, seed, scenario, f"decision {number} says {found}")
    if torn:
        return len(roots)
    for count, what in zip(read(sql.STRAYS, {})[0], STRAYS, strict=True):
        demand(count == 0, seed, scenario, f"there are {what}")
    return len(roots)


ALL = "select id, parent_id, session, profile, routes, decided_by from decisions"
SETTLEMENTS = "select decision_id from outcomes"


def told(row: Any) -> tuple[tuple[str, ...], str]:
    return tuple(json.loads(row[4])), row[5]


@contextmanager
def restarting(
    server: PostgresServer, chance: random.Random, longest_s: float = 0.6, ends: Counter[str] | None = None
) -> Iterator[None]:
    """A PostgreSQL that is ended and started again, over and over, and runs at the end; `ends` counts how."""
    done = threading.Event()

    def restart() -> None:
        while not done.wait(chance.random() * longest_s):
            how = chance.choice(("stopped", "crashed", "killed"))
            if ends is not None:
                ends[how] += 1
            if how == "killed":
                kill_server(server)
            else:
                server.stop(crash=how == "crashed")
            done.wait(chance.random() * longest_s / 2)
            start_server(server)

    thread = threading.Thread(target=restart)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        start_server(server)


def kill_server(server: PostgresServer) -> None:
    """kill -9 for the first process of the server; the others notice, some sooner, some later."""
    if server.pid is not None:
        os.kill(server.pid, signal.SIGKILL)
        wait_for(lambda: server.pid is None)


def start_server(server: PostgresServer) -> None:
    """As long as a process of the one that was killed is there, the next one refuses to start."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            server.start()
        except RuntimeError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return
