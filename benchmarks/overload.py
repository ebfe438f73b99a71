"""Five times more than the gateway can do: what is let in is answered, the rest told soon, then all is as before.

The gateway has a core to itself; the provider behind it and the load (`wrk`) share the other. First its peak is
measured, with as many requests at once as serve it best. Then many connections ask at a steady rate, each again after a
while whatever it was answered: an open load, as the world's is, that does not slow down because the server does. Beside
it a few clients ask now and then and take the time of every answer. At the end they go on alone.

    python benchmarks/overload.py             about a minute
    python benchmarks/overload.py --check     exit code 1 when a target is missed
    python benchmarks/overload.py --times 10  ten times as much
"""

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

from rich.console import Console

from decide import Check
from gateway import FORMS, LOCAL, MISSING, PATH, Bench, Contender, Cores, machine, verdict, write_bodies
from peer import SCRIPTS, WORKSHOP
from report import Table, markdown, show

# The project's own promises (F6): of the peak, this much is still answered; a refusal takes so long; and so long
# after the load is gone there are none.
GOODPUT = 0.80
REFUSED_MS = 50.0
RECOVERED_S = 5.0

CONNECTIONS = 800
PEAK_S, OVER_S = 3, 8
# Clients that take the time: few enough to be no load themselves.
PROBES = 10
PROBE_EVERY_S = 0.1


class Seen(NamedTuple):
    """One answer, as its client saw it."""

    at: float
    status: int
    ms: float


class Probe:
    """A client that asks now and then, on a connection of its own."""

    def __init__(self, contender: Contender, body: bytes) -> None:
        self.port = contender.port
        head = (
            f"POST {PATH} HTTP/1.1\r\nhost: 127.0.0.1:{contender.port}\r\ncontent-type: application/json\r\n"
            f"authorization: Bearer {contender.key}\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        self.sent = head.encode() + body

    async def run(self, seen: list[Seen], ended: asyncio.Event) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        while not ended.is_set():
            began = time.perf_counter()
            writer.write(self.sent)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            await reader.readexactly(length)
            now = time.perf_counter()
            seen.append(Seen(now, int(head.split(b" ", 2)[1]), (now - began) * 1000))
            await asyncio.sleep(PROBE_EVERY_S)
        writer.close()


class Measured(NamedTuple):
    peak: float
    offered: float
    answered: float
    broken: int
    over: list[Seen]
    recovered_s: float
    """From the end of the load to the last refusal."""


def watch(
    contender: Contender, body: bytes, load: Sequence[str], more: dict[str, str]
) -> tuple[dict[str, Any], list[Seen], float]:
    """What the load says, what the clients beside it see, and when the load ended."""

    async def main() -> tuple[dict[str, Any], list[Seen], float]:
        seen: list[Seen] = []
        ended = asyncio.Event()
        probes = [asyncio.create_task(Probe(contender, body).run(seen, ended)) for _ in range(PROBES)]
        process = await asyncio.create_subprocess_exec(*load, stdout=subprocess.PIPE, env={**os.environ, **more})
        told, _ = await process.communicate()
        at = time.perf_counter()
        await asyncio.sleep(RECOVERED_S + 1)
        ended.set()
        await asyncio.gather(*probes)
        said: dict[str, Any] = json.loads(told.decode().strip().splitlines()[-1])
        return said, seen, at

    return asyncio.run(main())


def measure(bench: Bench, contender: Contender, cores: Cores, times: float) -> Measured:
    bench.load(contender, "JSON", 32, 1)
    peak = max(median(bench.load(contender, "JSON", count, PEAK_S).rate for _ in range(3)) for count in (16, 64))
    bench.say(f"peak: {peak:,.0f} requests/s")
    with bench.bodies["JSON"].open("rb") as file:
        body = file.readline().strip()
    more = {"BODIES": str(bench.bodies["JSON"]), "START": "0", "KEY": contender.key}
    more["MEAN_MS"] = str(CONNECTIONS / (peak * times) * 1000)
    wrk = ["taskset", "-c", str(cores.load), "wrk", "-t1", f"-c{CONNECTIONS}", f"-d{OVER_S}s", "--timeout", "30s"]
    url = f"http://127.0.0.1:{contender.port}{PATH}"
    said, seen, at = watch(contender, body, [*wrk, "-s", str(SCRIPTS / "paced.lua"), url], more)
    late = [one.at - at for one in seen if one.status == 503 and one.at > at]
    # Its first second fills the line; what is promised is how it goes on.
    over = [one for one in seen if at - OVER_S + 1 < one.at < at]
    answered = (said["requests"] - said["refused"]) / said["seconds"]
    return Measured(peak, said["requests"] / said["seconds"], answered, said["broken"], over, max(late, default=0.0))


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """The middle, the slowest twentieth and the slowest hundredth."""
    cuts = quantiles(values, n=100) if len(values) > 1 else [0.0] * 99
    return cuts[49], cuts[94], cuts[98]


def tables(found: Measured) -> list[Table]:
    rows = []
    for name, status in (("answered", 200), ("refused (503)", 503)):
        took = [one.ms for one in found.over if one.status == status]
        rows.append([name, str(len(took)), *(f"{value:.1f}" for value in spread(took))])
    note = f"{PROBES} clients, each ten times a second, beside {CONNECTIONS} connections of load."
    load = [
        ["peak, answered/s", f"{found.peak:,.0f}"],
        ["offered/s", f"{found.offered:,.0f} ({found.offered / found.peak:.1f}x)"],
        ["answered/s", f"{found.answered:,.0f} ({found.answered / found.peak:.0%} of the peak)"],
        ["broken connections", str(found.broken)],
        ["last refusal after the load", f"{found.recovered_s:.2f} s"],
    ]
    return [
        Table("Load", ["", ""], load, ""),
        Table("What clients see", ["answer", "seen", "p50 ms", "p95 ms", "p99 ms"], rows, note),
    ]


def checks(found: Measured, times: float) -> list[Check]:
    refused = spread([one.ms for one in found.over if one.status == 503])
    share, offered = found.answered / found.peak, found.offered / found.peak
    return [
        Check(f"offered {times:g}x the peak", f"{offered:.1f}x", offered >= 0.9 * times),
        Check(f"answered: {GOODPUT:.0%} of the peak or more", f"{share:.0%}", share >= GOODPUT),
        Check(f"refused within {REFUSED_MS:g} ms, 95 of 100", f"{refused[1]:.1f} ms", refused[1] < REFUSED_MS),
        Check("no connection broken", str(found.broken), not found.broken),
        Check(f"as before within {RECOVERED_S:g} s", f"{found.recovered_s:.2f} s", found.recovered_s < RECOVERED_S),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
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
        found = measure(bench, bench.turnout(LOCAL, "tiers-local"), cores, options.times)
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
