"""The console at one million decisions: how long its pages take, how many requests a view needs, what it does at idle.

A log of a million decisions is made where there is none (`benchmarks/million.py`, some minutes and 2.4 GB), a server is
started on it as a process of its own, and every page is asked for over HTTP as a browser asks. Filters are asked for
one after the other, rare ones too; the p95 is over all of them.

    python benchmarks/console.py [--log LOG.db] [--rows 1000000] [--rounds 5]
    python benchmarks/console.py --check     exit code 1 when a target is missed
    python benchmarks/console.py --hostile   text that would like to run, in every field that a page shows; with
                                             TURNOUT_DATA the lists of others, too (part of --check)
    python benchmarks/console.py --soak 30   the live tail at 200 decisions a second for so many minutes, which are
                                             written to the log; with --rounds 0 nothing else
"""

import argparse
import contextlib
import http.client
import importlib.util
import io
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

from rich.console import Console

from million import make
from report import Table, show
from turnout.store import open_store

ROOT = Path(__file__).resolve().parent.parent
# What the console promises at a million decisions.
PAGE_S = 1.0
FILTER_MS = 200.0
REQUESTS = 3
IDLE_SHARE = 0.01
GROWTH_BYTES = 20 * 2**20
# Flat: what one collection leaves differs by as much as this.
HEAP_BYTES = 1 * 2**20
# Of the live tail's soak: decisions a second, by so many clients; a machine that others use, too, may be late at times.
RATE, CLIENTS, NEARLY = 200, 4, 0.95
# As long as idling is watched.
IDLE_S = 20.0
PART = {"hx-request": "true", "hx-target": "list"}
SETTINGS = "[server]\nport = {port}\nadmin_port = {admin}\nlag_s = 5.0\n"

PAGES = {
    "overview": "/",
    "playground": "/playground",
    "playground, a question": "/playground?text=Prove+it+step+by+step&profile=tiers",
    "decisions": "/decisions",
    "one decision": "/decisions/last",
    "one decided again": "/decisions/last/again?profile=sources",
    "ask": "/ask",
    "chat": "/chat",
    "study": "/study",
    "docs": "/docs",
    "traffic, an hour": "/traffic?span=hour",
    "traffic, a day": "/traffic",
    "traffic, a week": "/traffic?span=week",
    "traffic, a month": "/traffic?span=month",
    "traffic, a month of a key": "/traffic?span=month&key=key000000003",
    "traffic of a profile": "/traffic?span=month&profile=claims",
    "learning": "/learning",
    "label": "/label",
    "models": "/models",
    "settings": "/settings",
    "profiles": "/profiles",
    "a profile": "/profiles/tiers",
    "keys": "/keys",
    "signing in": "/login",
}
FILTERS: tuple[dict[str, str], ...] = (
    {},
    {"profile": "tiers"},
    {"profile": "claims"},
    {"profile": "claims", "outcome": "S-"},
    {"profile": "sources", "route": "ha", "outcome": "K?"},
    {"route": "web"},
    {"route": "REASONING", "by": "llm"},
    {"route": "nowhere"},
    {"by": "llm"},
    {"by": "signals"},
    {"profile": "study", "by": "llm"},
    {"outcome": "Fi"},
    {"outcome": "?h"},
    {"outcome": "L?"},
    {"key": "key000000003"},
    {"key": "key000000023", "by": "llm"},
    {"key": "nobody"},
    {"session": "s-0012345"},
    {"session": "s-0012345", "by": "student"},
    {"verdict": "wrong"},
    {"verdict": "wrong", "by": "llm"},
    {"text": "xylophone"},
    {"text": "zweischläger"},
    {"text": "not to be found"},
    {"text": "invoice", "profile": "claims"},
    {"span": "day"},
    {"span": "week", "profile": "claims"},
    {"until": "{month}"},
    {"until": "{month}", "by": "signals"},
    {"until": "{month}", "text": "xylophone"},
)


class Check(NamedTuple):
    target: str
    measured: str
    met: bool


class Served(NamedTuple):
    url: str
    process: subprocess.Popen[bytes]

    def get(self, path: str, headers: dict[str, str] | None = None) -> tuple[float, bytes]:
        """How long an answer took, and what it was; raises for one that is none."""
        place = urlsplit(self.url)
        with contextlib.closing(http.client.HTTPConnection(str(place.hostname), place.port, timeout=60)) as connection:
            began = time.perf_counter()
            connection.request("GET", path, headers=headers or {})
            answer = connection.getresponse()
            body = answer.read()
            took = time.perf_counter() - began
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {body[:200]!r}")
        return took, body

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self) -> int:
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def serving(log: Path) -> Iterator[Served]:
    """A server of its own on this log, as `turnout serve` starts one."""
    with tempfile.TemporaryDirectory() as folder:
        port = 20_000 + os.getpid() % 20_000
        config = Path(folder) / "turnout.toml"
        config.write_text(SETTINGS.format(port=port, admin=port + 1))
        known = {"TURNOUT_CONFIG": str(config), "TURNOUT_DB": str(log), "XDG_DATA_HOME": folder}
        command = [sys.executable, "-m", "turnout.cli", "serve"]
        process = subprocess.Popen(command, env={**os.environ, **known}, stdout=subprocess.DEVNULL)
        served = Served(f"http://127.0.0.1:{port}", process)
        try:
            until = time.monotonic() + 60
            while True:
                with contextlib.suppress(OSError):
                    served.get("/")
                    break
                if time.monotonic() > until or process.poll() is not None:
                    raise RuntimeError("the server did not start")
                time.sleep(0.1)
            yield served
        finally:
            process.terminate()
            process.wait(30)


@contextlib.contextmanager
def viewing(served: Served) -> Iterator[list[int]]:
    """A page that follows the log; how many bytes it was sent."""
    place = urlsplit(served.url)
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=60)
    connection.request("GET", "/decisions/live")
    answer = connection.getresponse()
    got = [0]

    def read() -> None:
        with contextlib.suppress(OSError, ValueError, AttributeError, http.client.HTTPException):
            while piece := answer.read1(65536):
                got[0] += len(piece)

    threading.Thread(target=read, daemon=True).start()
    yield got
    with contextlib.suppress(OSError):
        if connection.sock is not None:
            connection.sock.shutdown(2)


def percentile(found: list[float], percent: int) -> float:
    return sorted(found)[max(-(-len(found) * percent // 100) - 1, 0)]


def requests_of(body: bytes) -> int:
    """What a view asks for beside what is cached: itself, what it follows, what it asks for at once."""
    return 1 + len(re.findall(rb"data-live=|hx-trigger=\"(?:load|every)", body))


def pages(served: Served, rounds: int) -> list[tuple[str, float, float, int, int]]:
    """Each page: the first time, the slowest of the others, its size, its requests."""
    found = []
    for name, path in PAGES.items():
        headers = PART if path.endswith("sources") else {}
        first, body = served.get(path, headers)
        others = [served.get(path, headers)[0] for _ in range(rounds)]
        found.append((name, first, max(others), len(body), requests_of(body)))
    return found


def filters(served: Served, rounds: int) -> list[tuple[str, list[float]]]:
    month = time.strftime("%Y-%m-%dT%H:%M", time.gmtime(time.time() - 30 * 86_400))
    found = []
    for one in FILTERS:
        asked = urlencode({name: value.format(month=month) for name, value in one.items()})
        taken = [served.get(f"/decisions?{asked}", PART)[0] * 1000 for _ in range(rounds)]
        found.append((", ".join(f"{name} {value}" for name, value in one.items()) or "none", taken))
    return found


def idle(served: Served) -> float:
    """The share of a core that a server takes while a page is open and nothing happens."""
    with viewing(served):
        time.sleep(2.0)
        before = served.cpu_s()
        time.sleep(IDLE_S)
        return (served.cpu_s() - before) / IDLE_S


@contextlib.contextmanager
def browser_heap(served: Served) -> Iterator[Callable[[], tuple[float, int]]]:
    """A real browser with the page open: what its scripts keep, in bytes after a collection, and the rows it shows;
    nan without a browser."""
    found = shutil.which("chromium")
    if found is None or importlib.util.find_spec("playwright") is None:
        yield lambda: (float("nan"), 0)
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"{served.url}/decisions")
        tools = page.context.new_cdp_session(page)

        def measure() -> tuple[float, int]:
            tools.send("HeapProfiler.collectGarbage")
            return float(tools.send("Runtime.getHeapUsage")["usedSize"]), page.locator("#rows tr").count()

        yield measure
        browser.close()


def hostile_text() -> list[Check]:
    """Lists of text that would like to run, in every field that a page shows, in a real browser: what of it ran."""
    # There `console` is a folder of tests, and not this file.
    beside = [one for one in sys.path if Path(one).resolve() != ROOT / "benchmarks"]
    sys.path[:] = [str(ROOT / "tests"), *beside]
    from console.browsing import browsing
    from console.hostile import CHUNK_CHARACTERS, PAYLOADS, read_list, try_payloads
    from console.inhabited import gather

    payloads = [*PAYLOADS, *read_list()]
    views, ran, stopped, left, shown, hidden = 0, 0, 0, 0, 0, 0
    with browsing() as browser:
        tested = 0
        for some in gather(payloads, CHUNK_CHARACTERS):
            with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
                tried = try_payloads(browser, Path(folder), some)
            views, ran, stopped = views + tried.views, ran + len(tried.ran), stopped + tried.stopped
            tested += tried.payloads
            left, shown, hidden = left + len(tried.left), shown + tried.shown, hidden + len(tried.hidden)
            told = f"{tested:,} payloads, {views:,} views, {shown:,} times shown, {ran} ran"
            print(told, file=sys.stderr, flush=True)
            for said in (*tried.ran, *tried.left, *tried.hidden):
                print(f"  {said}", file=sys.stderr)
    what = f"{len(payloads):,} payloads in {views:,} views"
    # Where a sentence of an answer ends inside a payload, or a passage does, its text is not found in one piece.
    print(f"{what}: {shown:,} times found as text, of {shown + hidden:,} looked for", file=sys.stderr)
    return [
        at_most(f"{what}: run", ran, 0, ""),
        at_most(f"{what}: stopped by the policy alone", stopped, 0, ""),
        at_most(f"{what}: requests to another host", left, 0, ""),
    ]


class Sample(NamedTuple):
    """How much there is after so many minutes."""

    minute: float
    server: int
    """Bytes of the server."""
    heap: float
    """Bytes that the browser's scripts keep."""
    rows: int
    """Of the list on its page."""


class Soaked(NamedTuple):
    decided: int
    seconds: float
    sent: int
    samples: list[Sample]

    @property
    def grown(self) -> int:
        """Bytes of the server since the first minute."""
        return self.samples[-1].server - self.samples[0].server

    @property
    def heap(self) -> float:
        """Bytes of the browser's since then: the last samples' median, as one collection leaves more than another."""
        few = max(1, min(5, len(self.samples) // 3))
        return statistics.median(one.heap for one in self.samples[-few:]) - statistics.median(
            one.heap for one in self.samples[:few]
        )


class Askers:
    """Clients that ask at a steady rate, together so many times a second."""

    def __init__(self, served: Served) -> None:
        self.place = urlsplit(served.url)
        self.decided = [0] * CLIENTS
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self.ask, args=(number,), daemon=True) for number in range(CLIENTS)]

    def __enter__(self) -> "Askers":
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        for thread in self.threads:
            thread.join(60)

    def ask(self, number: int) -> None:
        body = b'{"text": "a question of the soak, which is decided and logged"}'
        connection = http.client.HTTPConnection(str(self.place.hostname), self.place.port, timeout=60)
        due = time.monotonic() + number / RATE
        while not self.ended.wait(max(0.0, due - time.monotonic())):
            # What could not be sent in time is not sent all at once later: the rate is steady.
            due = max(due + CLIENTS / RATE, time.monotonic() - 1.0)
            try:
                connection.request("POST", "/v1/route", body)
                answer = connection.getresponse()
                answer.read()
                self.decided[number] += answer.status == 200
            except (OSError, http.client.HTTPException):
                connection.close()


def soak(served: Served, minutes: float) -> Soaked:
    """The live tail at a steady rate, with two pages open, one of them a browser's."""
    samples = list[Sample]()
    every = min(60.0, minutes * 6)
    with viewing(served) as got, browser_heap(served) as measure, Askers(served) as askers:
        began = time.monotonic()
        while (passed := time.monotonic() - began) < minutes * 60:
            time.sleep(max(0.0, min(every * (len(samples) + 1), minutes * 60) - passed))
            samples.append(Sample((time.monotonic() - began) / 60, served.resident(), *measure()))
            one = samples[-1]
            said = f"{one.minute:5.1f} min: {sum(askers.decided):,} decided, server {one.server / 2**20:.1f} MB"
            print(f"{said}, heap {one.heap / 2**20:.2f} MB, {one.rows} rows", file=sys.stderr, flush=True)
        return Soaked(sum(askers.decided), time.monotonic() - began, got[0], samples)


def soaking(served: Served, minutes: float) -> list[Check]:
    soaked = soak(served, minutes)
    rate = soaked.decided / soaked.seconds
    print(f"soak: {soaked.decided:,} decided, {rate:.0f}/s, {soaked.sent:,} bytes sent to a page")
    return [
        Check(f"decisions a second: {RATE}, nearly", f"{rate:.0f}", rate >= NEARLY * RATE),
        at_most("growth of the server", soaked.grown / 2**20, GROWTH_BYTES / 2**20, "MB"),
        at_most("growth of the browser's heap", soaked.heap / 2**20, HEAP_BYTES / 2**20, "MB"),
    ]


def count_hours(log: Path) -> None:
    """What a server does in its first minute on a log that was never counted; from then on it is one hour an hour."""
    began, counted = time.monotonic(), 0
    with open_store(str(log), config="") as store:
        while store.count_hour():
            counted += 1
    print(f"{counted:,} hours of traffic counted in {time.monotonic() - began:.1f} s")


def at_most(what: str, measured: float, limit: float, unit: str) -> Check:
    return Check(f"{what}: at most {limit:g} {unit}", f"{measured:.3g} {unit}", measured <= limit)


def look(served: Served, rounds: int) -> tuple[list[Table], list[Check]]:
    """Pages, filters and idling."""
    for path in PAGES.values():  # what a process does once is not a page's
        served.get(path, PART if path.endswith("sources") else {})
    seen = pages(served, rounds)
    asked = filters(served, rounds)
    all_ms = [took for _, taken in asked for took in taken]
    share = idle(served)
    tables = [
        Table(
            "pages", ("page", "first", "slowest", "bytes", "requests"),
            [(name, f"{a * 1e3:.0f} ms", f"{b * 1e3:.0f} ms", f"{size:,}", str(n)) for name, a, b, size, n in seen],
        ),
        Table(
            "filters", ("filter", "median", "slowest"),
            [(name, f"{statistics.median(taken):.1f} ms", f"{max(taken):.1f} ms") for name, taken in asked],
        ),
    ]  # fmt: skip
    checks = [
        at_most("every page", max(max(first, slow) for _, first, slow, _, _ in seen), PAGE_S, "s"),
        at_most("filters, p95", percentile(all_ms, 95), FILTER_MS, "ms"),
        at_most("requests a view, beside cached files", max(count for *_, count in seen), REQUESTS, ""),
        at_most("a core at idle with a page open", share * 100, IDLE_SHARE * 100, "%"),
    ]
    return tables, checks


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--log", type=Path, default=Path(tempfile.gettempdir()) / "turnout-million.db")
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--soak", type=float, default=0.0, metavar="MINUTES")
    options.add_argument("--hostile", action="store_true", help="text that would like to run")
    options.add_argument("--check", action="store_true")
    said = options.parse_args()
    checks: list[Check] = []
    tables: list[Table] = []
    if said.rounds or said.soak:
        if not said.log.exists():
            make(said.log, said.rows, 90)
        count_hours(said.log)
        with serving(said.log) as served:
            if said.rounds:
                tables, checks = look(served, said.rounds)
            if said.soak:
                checks += soaking(served, said.soak)
    if said.hostile or (said.check and said.rounds):
        checks += hostile_text()
    screen = Console(width=None if sys.stdout.isatty() else 130)
    rows = [("ok" if one.met else "FAIL", one.target, one.measured) for one in checks]
    for table in (*tables, Table("targets", ("", "target", "measured"), rows)):
        show(screen, table)
    return 1 if said.check and not all(one.met for one in checks) else 0


if __name__ == "__main__":
    sys.exit(main())
