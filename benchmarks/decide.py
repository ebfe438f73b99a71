"""How long an explained decision takes, beside LiteLLM's complexity router and semantic-router, in one run.

Every contender runs in its own interpreter on the same core and routes the same prompts, in alternating rounds: a fixed
set over and over, as in an application's steady state, and then prompts nobody has seen before, where no cache helps.
A busy machine is not fair: a long call is interrupted more often than a short one, which flatters whoever is fast. So
long calls are timed by the processor's clock too, and a ratio is the smaller one of the two. Turnout is asked for more
than the peers: its clock also covers reading the reasons and encoding the decision as JSON.

    python benchmarks/decide.py              about two minutes on a quiet machine; the first run also installs the peers
    python benchmarks/decide.py --quick      under a minute, coarser
    python benchmarks/decide.py --check      exit code 1 when a target is missed
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from statistics import median
from typing import NamedTuple

from rich.console import Console

from peer import Peer, PeerDied, PeerTimeout, environment, use_base_install
from prompts import CHARACTERS_PER_TOKEN, HOSTILE, TYPOGRAPHIC_EVERY, Hostile, all_vocabulary, stream
from report import Table, markdown, show

ROOT = Path(__file__).parent.parent

# Times faster than LiteLLM's heuristic_v2 on prompts never seen, by their size in tokens: the project's own promise
# for the profile people use, with its student, and for the published scorer alone.
TARGETS = {
    "turnout tiers": {10: 1.5, 200: 4.0, 4_000: 5.0, 100_000: 5.0},
    "turnout tiers-seed": {10: 3.5, 200: 8.0, 4_000: 15.0, 100_000: 15.0},
}
# Milliseconds for the worst call on a hostile text: the project's own promise.
HOSTILE_ASCII_MS = 50.0
HOSTILE_OTHER_MS = 200.0
HOSTILE_CHARACTERS = 1_000_000
HOSTILE_CALLS = 3
# A backtracking engine needs minutes for a megabyte: the peers get this much, and this long.
HOSTILE_PEER_CHARACTERS = 64 * 1024
HOSTILE_PEER_S = 10.0

# In tokens: WINDOW in peers/semantic.py.
SHORT_SIGHT = 512

PROFILES = ("tiers", "tiers-seed", "study", "study-seed", "sources", "claims", "assist")
YARDSTICK = "turnout tiers"
RIVAL = "litellm heuristic_v2"


class Plan(NamedTuple):
    rounds: int
    fixed: Mapping[int, tuple[int, int]]  # by prompt size in tokens: how many prompts, how often each in one round
    new: Mapping[int, int]  # by prompt size: how many unseen prompts in one round


FULL = Plan(
    rounds=7,
    fixed={10: (32, 16), 200: (16, 12), 4_000: (8, 6), 100_000: (4, 2)},
    new={10: 256, 200: 96, 4_000: 24, 100_000: 4},
)
QUICK = Plan(
    rounds=3,
    fixed={10: (32, 6), 200: (16, 4), 4_000: (8, 2), 100_000: (4, 1)},
    new={10: 128, 200: 32, 4_000: 8, 100_000: 2},
)


class Entry(NamedTuple):
    """One row: which router of which peer."""

    name: str
    peer: Peer
    router: str
    tiers: bool  # its routes are the four tiers, so that accuracy means something


class Timing(NamedTuple):
    """One row at one size, in microseconds."""

    rounds: list[list[float]]
    cpu: list[list[float]]  # the same calls in processor time, where they are long
    accented: list[float]  # the calls whose prompt was not plain ASCII

    @property
    def p50(self) -> float:
        # The median round: one disturbed round does not move it.
        return median(median(times) for times in self.rounds)

    def times(self, base: "Timing") -> float:
        """How many times slower than `base`, by the clock that says less."""
        wall = self.p50 / base.p50
        # Some systems tick too coarsely to see a call at all.
        return min(wall, self.cpu_p50 / base.cpu_p50) if self.cpu_p50 and base.cpu_p50 else wall

    @property
    def cpu_p50(self) -> float:
        return median(median(times) for times in self.cpu) if self.cpu else 0.0

    @property
    def p99(self) -> float:
        pooled = sorted(time for times in self.rounds for time in times)
        return pooled[-(-len(pooled) * 99 // 100) - 1]


Timings = Mapping[int, Mapping[str, Timing]]


class Race(NamedTuple):
    fixed: Timings
    new: Timings


class Check(NamedTuple):
    target: str
    measured: str
    met: bool


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    use_base_install()
    # A pipe has no width of its own; the widest table has this one.
    console = Console(width=None if sys.stdout.isatty() else 130)
    log = Console(stderr=True, style="dim", highlight=False, soft_wrap=True)

    def say(message: str) -> None:
        log.print(message, markup=False)

    plan = QUICK if options.quick else FULL
    with ExitStack() as stack:
        try:
            entries = enrol(stack, peers=options.peers, say=say)
            timings = race(plan, entries, say)
            prose = read_prose(entries, options.data, plan.rounds)
            hostile, limits = attack(entries, say)
            scores = accuracy(entries, options.data)
        except (PeerDied, PeerTimeout) as failure:
            log.print(str(failure), markup=False, style="red")
            return 1
    checks = [*compare(timings.new), *limits]
    tables = [*speed(plan, timings), prose, scores, hostile, verdict(checks)]
    heading = machine(entries)
    console.print(heading, markup=False, highlight=False)
    for table in tables:
        show(console, table)
    if options.output:
        text = "\n".join([f"# Explained decisions, side by side\n\n{heading}\n", *map(markdown, tables)])
        options.output.write_text(text, encoding="utf-8")
    return 1 if options.check and not all(check.met for check in checks) else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Turnout beside its peers: time, accuracy and hostile input, in one run."
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer rounds and calls: coarser figures in under a minute"
    )
    parser.add_argument(
        "--peers", action=argparse.BooleanOptionalAction, default=True, help="measure LiteLLM and semantic-router too"
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        default=os.environ.get("TURNOUT_DATA") or ROOT.parent / "shared" / "data",
        help="folder that holds litellm_tiers/cases.jsonl (default: $TURNOUT_DATA, else ../shared/data)",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables as Markdown")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a target is missed")
    return parser.parse_args(arguments)


def enrol(stack: ExitStack, *, peers: bool, say: Callable[[str], None]) -> list[Entry]:
    def start(name: str, script: str, python: Path) -> Peer:
        peer = Peer(name, script, python)
        stack.callback(peer.close)
        peer.start()
        say(f"{name} {peer.version} is ready")
        return peer

    turnout = start("turnout", "turnout_router.py", Path(sys.executable))
    entries = [Entry(f"turnout {profile}", turnout, profile, tiers=profile.startswith("tiers")) for profile in PROFILES]
    if peers:
        litellm = start("litellm", "litellm_router.py", environment("litellm", say))
        semantic = start("semantic-router", "semantic.py", environment("semantic-router", say))
        entries += [
            Entry("litellm heuristic", litellm, "heuristic", tiers=True),
            Entry("litellm heuristic_v2", litellm, "heuristic_v2", tiers=True),
            Entry("semantic-router call", semantic, "call", tiers=True),
            Entry("semantic-router acall", semantic, "acall", tiers=True),
        ]
    return entries


def race(plan: Plan, entries: Sequence[Entry], say: Callable[[str], None]) -> Race:
    def blank() -> dict[int, dict[str, Timing]]:
        return {size: {entry.name: Timing([], [], []) for entry in entries} for size in plan.fixed}

    fixed, new = blank(), blank()
    supply = {size: stream(size) for size in plan.fixed}
    known = {size: list(islice(supply[size], count)) for size, (count, _) in plan.fixed.items()}
    for number in range(plan.rounds):
        say(f"round {number + 1} of {plan.rounds}")
        # Nobody is always the one who comes after the slowest.
        order = [*entries[number % len(entries) :], *entries[: number % len(entries)]]
        for size, (_, times) in plan.fixed.items():
            unseen = list(islice(supply[size], plan.new[size]))
            for entry in order:
                record(fixed[size][entry.name], entry, known[size] * times, warm=known[size])
                record(new[size][entry.name], entry, unseen, warm=known[size][:1])
    return Race(fixed, new)


def record(timing: Timing, entry: Entry, texts: list[str], warm: list[str]) -> None:
    answer = entry.peer.time(entry.router, texts, warm=warm)
    wall = [ns / 1000 for ns in answer.ns]
    timing.rounds.append(wall)
    if answer.cpu_ns:
        timing.cpu.append([ns / 1000 for ns in answer.cpu_ns])
    timing.accented.extend(time for time, text in zip(wall, texts, strict=True) if not text.isascii())


def attack(entries: Sequence[Entry], say: Callable[[str], None]) -> tuple[Table, list[Check]]:
    """The worst call on every hostile text; LiteLLM gets a fifteenth of the length, and a time limit."""
    ours = [entry for entry in entries if entry.peer.name == "turnout"]
    theirs = [entry for entry in entries if entry.peer.name == "litellm"]
    rows = []
    checks = []
    for case in (*HOSTILE, all_vocabulary()):
        say(f"hostile input: {case.name}")
        limit = HOSTILE_ASCII_MS if case.unit.isascii() else HOSTILE_OTHER_MS
        worst = {entry.name: worst_ms(entry, case, HOSTILE_CHARACTERS, HOSTILE_CALLS) for entry in ours}
        figures = [f"{worst[entry.name]:.1f}" for entry in ours]
        rows.append([case.name, f"{limit:g}", *figures, *(stand(entry, case) for entry in theirs)])
        slowest = max(worst, key=worst.__getitem__)
        measured = f"{worst[slowest]:.1f} ms ({slowest})"
        checks.append(Check(f"{case.name}: under {limit:g} ms in every profile", measured, worst[slowest] < limit))
    columns = ["text", "limit", *(entry.router for entry in ours), *(entry.name for entry in theirs)]
    note = f"Worst of {HOSTILE_CALLS} calls on {HOSTILE_CHARACTERS:,} characters, explained and encoded."
    if theirs:
        note += f" LiteLLM: one call on {HOSTILE_PEER_CHARACTERS:,} characters, ended after {HOSTILE_PEER_S:g} s."
    return Table("Hostile input, milliseconds", columns, rows, note), checks


def worst_ms(entry: Entry, case: Hostile, characters: int, calls: int) -> float:
    texts = [case.text(characters, variant) for variant in range(calls)]
    return max(entry.peer.time(entry.router, texts).ns) / 1e6


def stand(entry: Entry, case: Hostile) -> str:
    text = case.text(HOSTILE_PEER_CHARACTERS)
    try:
        return f"{entry.peer.time(entry.router, [text], limit_s=HOSTILE_PEER_S).ns[0] / 1e6:.1f}"
    except PeerTimeout:
        return f"over {HOSTILE_PEER_S * 1000:,.0f}"


def speed(plan: Plan, race: Race) -> list[Table]:
    tables = []
    columns = ["contender", "p50", "p99", f"x slower than {YARDSTICK}", "p50, new prompts", "x slower, new prompts"]
    for size, rows in race.fixed.items():
        unseen = race.new[size]
        body = [
            [
                name,
                figure(row.p50),
                figure(row.p99),
                ratio(row.times(rows[YARDSTICK])),
                figure(unseen[name].p50),
                ratio(unseen[name].times(unseen[YARDSTICK])),
            ]
            for name, row in rows.items()
        ]
        count, times = plan.fixed[size]
        note = (
            f"{count} prompts, each {times} times in each of {plan.rounds} rounds; {plan.rounds * plan.new[size]} new "
            "ones; p50 is the median round's."
        )
        if size > SHORT_SIGHT and any(name.startswith("semantic") for name in rows):
            note += f" semantic-router's encoder reads the first {SHORT_SIGHT} tokens only."
        tables.append(Table(f"Prompts of {size:,} tokens, microseconds", columns, body, note))
    return [*tables, typography(race.fixed)]


def typography(timings: Timings) -> Table:
    names = [name for name in (YARDSTICK, RIVAL) if all(name in rows for rows in timings.values())]
    body = [[f"{size:,}", *(figure(median(rows[name].accented)) for name in names)] for size, rows in timings.items()]
    note = f"The same run, only the one prompt in {TYPOGRAPHIC_EVERY} that is not plain ASCII."
    return Table("Prompts with curly quotes and accents, p50 in microseconds", ["tokens", *names], body, note)


def read_prose(entries: Sequence[Entry], data: Path, rounds: int) -> Table:
    """What people really ask, pasted code and all: made-up prompts repeat their words more than prose does."""
    title = "Real prompts, microseconds"
    files = sorted((data / "prompts").glob("*.jsonl"))
    if not files:
        return Table(title, ["skipped"], [[f"{data / 'prompts'} is not there; name its folder with --data DIR"]])
    texts = [json.loads(line)["prompt"] for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    timings = {
        entry.name: Timing([], [], []) for entry in entries if entry.tiers and entry.peer.name != "semantic-router"
    }
    for number in range(rounds):
        for entry in (*entries[number % len(entries) :], *entries[: number % len(entries)]):
            if entry.name in timings:
                # Each text once a process: a second time would find what was kept of the first.
                record(timings[entry.name], entry, texts[number::rounds], warm=texts[number : number + 1])
    base = timings[YARDSTICK]
    body = [[name, figure(row.p50), figure(row.p99), ratio(row.times(base))] for name, row in timings.items()]
    tokens = sorted(len(text) // CHARACTERS_PER_TOKEN for text in texts)
    named = ", ".join(file.stem for file in files)
    note = (
        f"{len(texts):,} prompts ({named}), each once; half of them have {tokens[len(tokens) // 2]:,} tokens or more."
    )
    return Table(title, ["contender", "p50", "p99", f"x slower than {YARDSTICK}"], body, note)


def figure(microseconds: float) -> str:
    return f"{microseconds:,.1f}" if microseconds < 1000 else f"{microseconds:,.0f}"


def ratio(value: float) -> str:
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def accuracy(entries: Sequence[Entry], data: Path) -> Table:
    title = "Accuracy on litellm_tiers"
    source = data / "litellm_tiers" / "cases.jsonl"
    if not source.exists():
        return Table(title, ["skipped"], [[f"{source} is not there; name its folder with --data DIR or TURNOUT_DATA"]])
    cases = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
    rows = []
    for entry in entries:
        if entry.tiers:
            labels = entry.peer.label(entry.router, [case["prompt"] for case in cases])
            pairs = list(zip(labels, cases, strict=True))
            exact = sum(label == case["tier"] for label, case in pairs)
            accepted = sum(label in (case["tier"], *case.get("acceptable", ())) for label, case in pairs)
            rows.append([entry.name, f"{exact}/{len(cases)}", f"{accepted}/{len(cases)}"])
    note = (
        f"A smoke test of {len(cases)} prompts from LiteLLM's own evaluation, no more. Turnout's tiers profile runs "
        "without its LLM layer here, and semantic-router with a toy encoder."
    )
    return Table(title, ["contender", "exact", "acceptable"], rows, note)


def compare(timings: Timings) -> list[Check]:
    checks = []
    for name, targets in TARGETS.items():
        for size, target in targets.items():
            rows = timings[size]
            if RIVAL in rows:
                times = rows[RIVAL].times(rows[name])
                asked = f"{name}, {size:,} new tokens: {target:g}x faster than {RIVAL}"
                checks.append(Check(asked, f"{times:.2f}x", times >= target))
    return checks


def verdict(checks: Sequence[Check]) -> Table:
    rows = [[check.target, check.measured, "pass" if check.met else "FAIL"] for check in checks]
    measured = any(RIVAL in check.target for check in checks)
    return Table(
        "Targets", ["target", "measured", ""], rows, "" if measured else "Without peers no ratio was measured."
    )


def machine(entries: Sequence[Entry]) -> str:
    versions = ", ".join(f"{peer.name} {peer.version}" for peer in dict.fromkeys(entry.peer for entry in entries))
    today = datetime.now(UTC).date().isoformat()
    # A reader should know whether the cores were free: beyond one runnable process a core, calls are interrupted.
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{processor()}, {os.cpu_count()} cores{load}; Python {platform.python_version()}; {versions}; {today}"


def processor() -> str:
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    sys.exit(main())
