"""Five times more than the gateway can do: what is let in is answered, the rest told soon, then all is as before.

The gateway has a core to itself; the provider behind it and the load share the other. Its peak is measured, with as
many requests at once as serve it best. Then requests come at a steady rate, whatever becomes of them: an open load, as
the world's is, that does not slow down because the server does (`peers/open_load.py`; its own delays count against the
server). Machines are not equally fast from one minute to the next, so each round has its own peak, measured just before
and a few seconds after it. At the end half the peak is offered, second by second, until nobody is refused. Beside it
stands an ASGI application that does nothing but refuse, under the same server and the same load: what any server of
this kind pays for saying no.

    python benchmarks/overload.py             about a minute and a half
    python benchmarks/overload.py --check     exit code 1 when a target is missed
    python benchmarks/overload.py --times 10  ten times as much
"""

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from rich.console import Console

from decide import Check
from gateway import FORMS, LOCAL, MISSING, START_S, Bench, Contender, Cores, free_port, machine, verdict, write_bodies
from peer import SCRIPTS, WORKSHOP, use_base_install
from report import Table, markdown, show

# The project's own promises: of the peak, this much is still answered; a refusal takes so long; and so long after the
# load is gone nobody is refused any more.
GOODPUT = 0.50
REFUSED_MS = 50.0
RECOVERED_S = 5.0
BARE = "bare ASGI, only refuses"

# Twenty seconds are more than the log's commits can be put off for; what is left of them is not the next peak's to pay.
PEAK_S, OVER_S, REST_S, ROUNDS = 4, 20, 4, 3


class Seen(NamedTuple):
    """What one load saw."""

    peak: float
    """What the gateway can do at that time."""
    offered: float
    answers: Mapping[str, Mapping[str, float]]
    """By status: `count`, and how long they took."""
    unsent: int
    broken: int

    def rate(self, status: str, seconds: float) -> float:
        return self.answers.get(status, {}).get("count", 0) / seconds

    def share(self, status: str) -> float:
        return self.rate(status, OVER_S) / self.peak


class Measured(NamedTuple):
    rounds: list[Seen]
    recovered_s: float
    bare: Seen
    """An application that only refuses, at the rate of the last round."""

    def of(self, status: str, figure: str) -> float:
        return median(one.answers.get(status, {}).get(figure, 0.0) for one in self.rounds)

    def share(self, status: str) -> float:
        """Of the peak."""
        return median(one.share(status) for one in self.rounds)

    @property
    def peak(self) -> float:
        return median(one.peak for one in self.rounds)

    @property
    def offered(self) -> float:
        return median(one.offered for one in self.rounds)


def offer(bench: Bench, contender: Contender, cores: Cores, rate: float, seconds: int) -> Seen:
    command = ["taskset", "-c", str(cores.load), sys.executable, str(SCRIPTS / "open_load.py")]
    told = [str(contender.port), contender.key, str(bench.bodies["JSON"]), str(rate), str(seconds)]
    ran = subprocess.run([*command, *told], check=True, stdout=subprocess.PIPE)
    said: dict[str, Any] = json.loads(ran.stdout)
    return Seen(0.0, said["sent"] / seconds, said["answers"], said["unsent"], said["broken"])


def refuse(bench: Bench, cores: Cores, rate: float) -> Seen:
    """What an application does that refuses everything."""
    port = free_port()
    process = bench.start("refusal", [sys.executable, str(SCRIPTS / "bare_refusal.py"), str(port)], core=cores.server)
    contender = Contender("bare refusal", process, port, "none")
    until = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < until:
        with contextlib.suppress(OSError):
            contender.ask("{}")
            break
        time.sleep(0.1)
    bench.say("an application that only refuses")
    return offer(bench, contender, cores, rate, OVER_S)


def measure(bench: Bench, contender: Contender, cores: Cores, times: float) -> Measured:
    bench.load(contender, "JSON", 32, 2)
    best = max((16, 32), key=lambda count: bench.load(contender, "JSON", count, PEAK_S).rate)
    before = bench.load(contender, "JSON", best, PEAK_S).rate
    rounds = []
    for number in range(ROUNDS):
        bench.say(f"round {number + 1} of {ROUNDS}; peak: {before:,.0f} requests/s")
        seen = offer(bench, contender, cores, before * times, OVER_S)
        time.sleep(REST_S)
        after = bench.load(contender, "JSON", best, PEAK_S).rate
        rounds.append(seen._replace(peak=(before + after) / 2))
        before = after
    peak = before
    ended = time.monotonic()
    while offer(bench, contender, cores, peak / 2, 1).answers.keys() != {"200"} and time.monotonic() < ended + 60:
        pass
    # The last second itself, in which all was well, and those in which connections are made and answers awaited, do not
    # count.
    recovered = max(0.0, time.monotonic() - ended - 3)
    return Measured(rounds, recovered, refuse(bench, cores, peak * times))


def tables(found: Measured) -> list[Table]:
    rows = []
    for name, status in (("answered", "200"), ("refused", "503")):
        figures = [found.of(status, figure) for figure in ("p50_ms", "p95_ms", "p99_ms")]
        rate = median(one.rate(status, OVER_S) for one in found.rounds)
        rows.append([name, f"{rate:,.0f}", f"{found.share(status):.2f}", *(f"{figure:.1f}" for figure in figures)])
    figures = [found.bare.answers.get("503", {}).get(figure, 0.0) for figure in ("p50_ms", "p95_ms", "p99_ms")]
    rate = found.bare.rate("503", OVER_S)
    rows.append([BARE, f"{rate:,.0f}", f"{rate / found.peak:.2f}", *(f"{figure:.1f}" for figure in figures)])
    note = (
        f"Medians of {ROUNDS} rounds of {OVER_S} s. Peak: {found.peak:,.0f} requests/s; offered: {found.offered:,.0f}. "
        f"Of the peak: {min(one.share('200') for one in found.rounds):.2f} in the worst round, "
        f"{max(one.share('200') for one in found.rounds):.2f} in the best. "
        f"Connections broken: {sum(one.broken for one in found.rounds)}; not sent for want of one: "
        f"{sum(one.unsent for one in found.rounds)}."
    )
    columns = ["requests", "a second", "of the peak", "p50 ms", "p95 ms", "p99 ms"]
    return [Table("Overload, one core", columns, rows, note)]


def checks(found: Measured, times: float) -> list[Check]:
    share, offered, refused = found.share("200"), found.offered / found.peak, found.of("503", "p95_ms")
    broken = sum(one.broken for one in found.rounds)
    return [
        Check(f"{times:g}x the peak is offered", f"{offered:.1f}x", offered >= 0.95 * times),
        Check(f"{GOODPUT:.0%} of the peak or more is answered", f"{share:.0%}", share >= GOODPUT),
        Check(f"the rest is refused within {REFUSED_MS:g} ms (p95)", f"{refused:.1f} ms", refused < REFUSED_MS),
        Check("no connection is broken", str(broken), not broken),
        Check(f"as before within {RECOVERED_S:g} s", f"{found.recovered_s:.1f} s", found.recovered_s < RECOVERED_S),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    use_base_install()
    console = Console(width=None if sys.stdout.isatty() else 130)
    log = Console(stderr=True, style="dim", highlight=False, soft_wrap=True)
    cores = Cores.pick()
    if shutil.which("wrk") is None or cores is None:
        log.print(MISSING if cores is not None else "two cores are needed: one for the server, one for the load")
        return 2
    WORKSHOP.mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=WORKSHOP)))
        write_bodies({form: folder / f"{form}.jsonl" for form in FORMS})
        bench = Bench(folder, cores, stack, lambda message: log.print(message, markup=False))
        found = measure(bench, bench.turnout(LOCAL, asking=False), cores, options.times)
    judged = checks(found, options.times)
    printed = [*tables(found), verdict(judged)]
    heading = machine(peers=False)
    console.print(heading, markup=False, highlight=False)
    for table in printed:
        show(console, table)
    if options.output:
        text = "\n".join([f"# Overload\n\n{heading}\n", *map(markdown, printed)])
        options.output.write_text(text, encoding="utf-8")
    return 1 if options.check and not all(check.met for check in judged) else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The gateway under more load than it can take.")
    parser.add_argument("--times", type=float, default=5.0, metavar="N", help="how many times the peak is offered")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables as Markdown")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a target is missed")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
