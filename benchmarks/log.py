"""What it costs to write every decision down, beside what people write down with the standard library, in one run.

Everything runs on one core: routing, the journal's thread, SQLite, the peers and their threads. Only a PostgreSQL
server has the other cores. Files lie on the disk of the checkout, and the heading says how long one sync to it takes,
because a durable commit is little else. Peers write the same JSON form with the same fast encoder, into a simpler
table.

    python benchmarks/log.py                 some four minutes on a quiet machine
    python benchmarks/log.py --quick         under a minute, coarser
    python benchmarks/log.py --no-postgres   starts no server
    python benchmarks/log.py --check         exit code 1 when a target is missed
"""

import argparse
import contextlib
import logging
import logging.handlers
import os
import platform
import queue
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec
from msgspec import Raw
from rich.console import Console

import turnout
from decide import Check, processor
from peer import WORKSHOP, use_base_install
from prompts import TYPOGRAPHIC_EVERY, stream
from report import Table, markdown, show
from turnout import Decision
from turnout.store import LEVELS, Level, Store, open_store
from turnout.store.journal import Durability

ROOT = Path(__file__).parent.parent

# The project's own promises: what a caller waits for, and what one core sustains with the database at the end.
ADDED_US = 20.0
SUSTAINED = 20_000.0

# The published formula: the rate was promised of it, and a student's decision takes several times as long by itself.
MAIN = "tiers-seed"
PROFILES = (MAIN, "study-seed", "tiers", "study", "assist", "sources")
TOKENS = 10
# Distinct prompts by size in tokens, used over and over.
PROMPTS = {TOKENS: 8_192, 200: 1_024, 4_000: 128}
# Sustained runs of each contender.
RUNS = 3
# Decisions a second where an application has other things to do: its caches, and ours, are cold each time.
PACE = 500
# What a queue handler that tries harder commits at once: about the journal's own batch.
GROUP = 200
CALLERS = 64
# How long a drain may take before the run is called off.
PATIENCE_S = 300.0

_encode = msgspec.json.Encoder().encode


class Plan(NamedTuple):
    rounds: int
    busy: int  # calls in a round of a busy loop
    paced: int  # calls in all, at PACE
    sustained: int  # decisions of a sustained run
    slow: int  # the same where every row is a commit
    sized: int  # decisions written to see how large they are
    logged: int  # rows that are read


FULL = Plan(rounds=5, busy=4_000, paced=2_000, sustained=60_000, slow=8_000, sized=5_000, logged=100_000)
QUICK = Plan(rounds=3, busy=1_000, paced=500, sustained=12_000, slow=2_000, sized=2_000, logged=10_000)


class Sink(NamedTuple):
    """Somewhere to write decisions to."""

    record: Callable[[Decision], object]
    drain: Callable[[], object]  # returns when everything is where it belongs
    rows: Callable[[], int]  # how many are there


Opening = Callable[[Path], contextlib.AbstractContextManager[Sink]]


class Contender(NamedTuple):
    name: str
    open: Opening
    slow: bool  # every row is a commit
    dies: str  # what is lost when the process is killed
    power: str  # what is lost when the power goes


class Case(NamedTuple):
    """One row of the times that logging adds."""

    profile: str
    what: str
    open: Opening
    tokens: int = TOKENS

    @property
    def name(self) -> str:
        return f"{self.profile}, {self.what}" + (f", {self.tokens:,} tokens" if self.tokens != TOKENS else "")


class Added(NamedTuple):
    """Microseconds of a decision alone, and of one that is logged, call for call in turn."""

    alone: list[float]
    logged: list[float]

    def added(self, percent: float) -> float:
        return at(self.logged, percent) - at(self.alone, percent)


class Rate(NamedTuple):
    whole: float  # decisions a second, with the drain
    behind_ms: float  # how long the drain took: what was recorded and not yet in the database
    share: float  # percent of the time in which the process had the core


# --- where decisions go


@contextlib.contextmanager
def turnout_store(folder: Path, durability: Durability, level: Level, url: str | None, callers: int) -> Iterator[Sink]:
    with open_store(url or str(folder / "turnout.db"), durability=durability, text=level, config="") as store:
        record: Callable[[Decision], object] = store.record if callers == 1 else crowd(store, callers)

        def drain() -> None:
            if not store.flush(PATIENCE_S):
                raise TimeoutError(f"the journal did not drain: {store.counts()}")

        yield Sink(record, drain, lambda: sum(store.tenants().values()))
        counts = store.counts()
        if counts.lost or counts.rejected or counts.torn:
            raise RuntimeError(f"rows are missing: {counts}")


def crowd(store: Store, callers: int) -> Callable[[Decision], None]:
    """As many callers as wait for their own row at the same time: each new one first sees the oldest answered."""
    waiting: deque[Future[None]] = deque()

    def record(decision: Decision) -> None:
        if len(waiting) == callers:
            waiting.popleft().result()
        receipt = store.append(decision)
        if receipt is not None:
            waiting.append(receipt)

    return record


def ours(
    durability: Durability = "batched", level: Level = "full", url: str | None = None, callers: int = 1
) -> Opening:
    return lambda folder: turnout_store(folder, durability, level, url, callers)


@contextlib.contextmanager
def nothing(_: Path) -> Iterator[Sink]:
    count = 0

    def record(_: Decision) -> None:
        nonlocal count
        count += 1

    yield Sink(record, lambda: None, lambda: count)


INSERT = "insert into log values (?, ?, ?, ?, ?)"


def connect(folder: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / "log.db", isolation_level=None, check_same_thread=False)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    connection.execute("create table log (id text primary key, at real, route text, question text, body text)")
    return connection


def plain_row(decision: Decision) -> tuple[str, float, str, str, str]:
    return decision.id, time.time(), decision.route, decision.query.text, decision.json().decode()


def count_log(connection: sqlite3.Connection) -> int:
    (count,) = connection.execute("select count(*) from log").fetchone()
    return int(count)


@contextlib.contextmanager
def naive(folder: Path) -> Iterator[Sink]:
    """An insert and a commit for each decision."""
    with contextlib.closing(connect(folder)) as connection:
        yield Sink(
            lambda decision: connection.execute(INSERT, plain_row(decision)),
            lambda: None,
            lambda: count_log(connection),
        )


def logger_to(handler: logging.Handler) -> logging.Logger:
    logger = logging.Logger("decisions", logging.INFO)
    logger.addHandler(handler)
    return logger


@contextlib.contextmanager
def json_lines(folder: Path) -> Iterator[Sink]:
    """`logging` to a file, a JSON object a line. Whoever wants to ask something of them has to load them first."""
    file = folder / "decisions.jsonl"
    handler = logging.FileHandler(file, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger = logger_to(handler)

    def record(decision: Decision) -> None:
        row = {"at": time.time(), "question": decision.query.text, "decision": Raw(decision.json())}
        logger.info("%s", _encode(row).decode())

    def rows() -> int:
        with file.open("rb") as lines:
            return sum(1 for _ in lines)

    with contextlib.closing(handler):
        yield Sink(record, handler.flush, rows)


class Inserter(logging.Handler):
    """Writes records into SQLite, some in one transaction."""

    def __init__(self, connection: sqlite3.Connection, group: int) -> None:
        super().__init__()
        self.connection = connection
        self.group = group
        self.waiting: list[tuple[str, float, str, str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.waiting.append(record.row)  # type: ignore[attr-defined]
        if len(self.waiting) >= self.group:
            self.flush()

    def flush(self) -> None:
        if self.waiting:
            self.connection.execute("begin")
            self.connection.executemany(INSERT, self.waiting)
            self.connection.execute("commit")
            self.waiting.clear()


@contextlib.contextmanager
def queued(folder: Path, group: int) -> Iterator[Sink]:
    """`logging` with a queue between the caller and a thread that inserts."""
    with contextlib.closing(connect(folder)) as connection:
        inserter = Inserter(connection, group)
        between: queue.Queue[logging.LogRecord] = queue.Queue()
        listener = logging.handlers.QueueListener(between, inserter)
        logger = logger_to(logging.handlers.QueueHandler(between))
        listener.start()

        def record(decision: Decision) -> None:
            logger.info("decision", extra={"row": plain_row(decision)})

        def drain() -> None:
            listener.stop()
            inserter.flush()
            listener.start()

        yield Sink(record, drain, lambda: count_log(connection))
        listener.stop()
        inserter.flush()


YARDSTICK = "turnout batched"
UNCOMMITTED = "milliseconds"


def contenders() -> list[Contender]:
    return [
        Contender(YARDSTICK, ours(), slow=False, dies="nothing", power=UNCOMMITTED),
        Contender("turnout strict, 1 caller", ours("strict"), slow=True, dies="nothing", power="nothing"),
        Contender(
            f"turnout strict, {CALLERS} callers",
            ours("strict", callers=CALLERS),
            False,
            dies="nothing",
            power="nothing",
        ),
        Contender("SQLite, a commit a row", naive, slow=True, dies="nothing", power="nothing"),
        Contender(
            "logging queue, a commit a row", lambda folder: queued(folder, 1), True, dies="the queue", power="the queue"
        ),
        Contender(
            f"logging queue, a commit a {GROUP}",
            lambda folder: queued(folder, GROUP),
            False,
            dies="the queue",
            power="the queue",
        ),
        Contender("logging to a file, no database", json_lines, False, dies="nothing", power="up to 30 s"),
    ]


def shared(url: str) -> list[Contender]:
    """The same with PostgreSQL."""
    return [
        Contender("turnout batched, PostgreSQL", ours(url=url), slow=False, dies="nothing", power=UNCOMMITTED),
        Contender(
            "turnout strict, PostgreSQL, 1 caller", ours("strict", url=url), True, dies="nothing", power="nothing"
        ),
        Contender(
            f"turnout strict, PostgreSQL, {CALLERS} callers",
            ours("strict", url=url, callers=CALLERS),
            False,
            dies="nothing",
            power="nothing",
        ),
    ]


# --- the run


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    use_base_install()
    # A pipe has no width of its own; the widest table has this one.
    console = Console(width=None if sys.stdout.isatty() else 130)
    log = Console(stderr=True, style="dim", highlight=False, soft_wrap=True)

    def say(message: str) -> None:
        log.print(message, markup=False)

    plan = QUICK if options.quick else FULL
    WORKSHOP.mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        # On the checkout's disk: the system's folder for temporary files may be memory, where a sync costs nothing.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="log-", dir=WORKSHOP)))
        stack.enter_context(own_data(folder))
        databases = stack.enter_context(postgres(say)) if options.postgres else None
        # After the server has started: it has the other cores, everything else shares this one.
        stay_on_one_core()
        load = os.getloadavg()[0]
        bench = Bench(plan, folder, say)
        added, checks = bench.added()
        rates, more = bench.sustained(databases)
        tables = [added, *rates, bench.sizes(databases), bench.reading(databases)]
    checks += more
    tables.append(verdict(checks))
    heading = machine(load, bench.sync_us)
    console.print(heading, markup=False, highlight=False)
    for table in tables:
        show(console, table)
    if options.output:
        text = "\n".join([f"# Writing decisions down\n\n{heading}\n", *map(markdown, tables)])
        options.output.write_text(text, encoding="utf-8")
    return 1 if options.check and not all(check.met for check in checks) else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What logging adds to a decision, and what one core sustains.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and calls: coarser, under a minute")
    parser.add_argument(
        "--postgres", action=argparse.BooleanOptionalAction, default=True, help="measure PostgreSQL too"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables as Markdown")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a target is missed")
    return parser.parse_args(arguments)


@contextlib.contextmanager
def own_data(folder: Path) -> Iterator[None]:
    """The user's own folder is not touched: the spool of a PostgreSQL store would lie there."""
    before = os.environ.get("XDG_DATA_HOME")
    os.environ["XDG_DATA_HOME"] = str(folder / "data")
    try:
        yield
    finally:
        if before is None:
            del os.environ["XDG_DATA_HOME"]
        else:
            os.environ["XDG_DATA_HOME"] = before


Databases = Callable[[], contextlib.AbstractContextManager[str]]


@contextlib.contextmanager
def postgres(say: Callable[[str], None]) -> Iterator[Databases | None]:
    """The tests' own server, but one that syncs and is not in memory; None where there is none."""
    sys.path.append(str(ROOT / "tests"))
    try:
        import postgres_server
    except ImportError:
        say("no psycopg here: PostgreSQL is left out")
        yield None
        return
    package = postgres_server.wheel()
    if package is None:
        say("no PostgreSQL here: it is left out")
        yield None
        return
    postgres_server.SETTINGS |= {"fsync": "on", "full_page_writes": "on", "max_wal_size": "1GB"}
    # A folder of the system's: its user may not be allowed into ours, and the path of its socket must be short.
    home = Path(tempfile.mkdtemp(prefix="turnout-pg-"))
    postgres_server.new_home = lambda: home
    with postgres_server.PostgresServer(package) as server:
        server.start()
        say("PostgreSQL is ready")
        yield server.database


def stay_on_one_core() -> None:
    """The one that had least to do for a second: a neighbour that is bound to a core would halve every rate."""
    listing = Path("/proc/stat")
    if not hasattr(os, "sched_setaffinity") or not listing.exists():
        return

    def idle() -> dict[int, int]:
        rows = (line.split() for line in listing.read_text(encoding="utf-8").splitlines() if line.startswith("cpu"))
        return {int(row[0][3:]): int(row[4]) for row in rows if row[0] != "cpu"}

    before = idle()
    time.sleep(1.0)
    after = idle()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0), key=lambda core: after[core] - before[core])})


class Bench:
    def __init__(self, plan: Plan, folder: Path, say: Callable[[str], None]) -> None:
        self.plan = plan
        self.folder = folder
        self.say = say
        self.prompts = {size: list(islice(stream(size), count)) for size, count in PROMPTS.items()}
        self.texts = self.prompts[TOKENS]
        self.routers = {profile: turnout.load(profile, config="") for profile in PROFILES}
        for router in self.routers.values():
            for text in self.texts[:256]:
                router.route_sync(text).json()
        self.sync_us = sync_us(folder)

    @contextlib.contextmanager
    def sink(self, opening: Opening) -> Iterator[Sink]:
        """A fresh one, and nothing left of it afterwards."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        try:
            with opening(folder) as sink:
                yield sink
        finally:
            shutil.rmtree(folder)

    # --- what a caller waits for

    def added(self) -> tuple[Table, list[Check]]:
        cases = [Case(profile, "full", ours()) for profile in PROFILES]
        cases += [Case(MAIN, "full", ours(), size) for size in PROMPTS if size != TOKENS]
        cases += [Case(MAIN, level, ours(level=level)) for level in LEVELS if level != "full"]
        cases += [Case(MAIN, "full, strict", ours("strict")), Case(MAIN, "SQLite, a commit a row", naive)]
        cases += [Case(MAIN, "logging to a file", json_lines), Case(MAIN, "logging queue", lambda at: queued(at, 1))]
        busy = [Added([], []) for _ in cases]
        for number in range(self.plan.rounds):
            self.say(f"added time: round {number + 1} of {self.plan.rounds}")
            for case, times in zip(cases, busy, strict=True):
                self.alternate(case, times, self.plan.busy, 0)
        paced = [Added([], []) for _ in cases]
        for case, times in zip(cases, paced, strict=True):
            self.say(f"added time at {PACE} a second: {case.name}")
            self.alternate(case, times, self.plan.paced, 1 / PACE)
        rows, checks = [], []
        for case, hot, cold in zip(cases, busy, paced, strict=True):
            figures = [
                at(hot.alone, 50),
                hot.added(50),
                hot.added(99),
                at(cold.alone, 50),
                cold.added(50),
                cold.added(99),
            ]
            rows.append([case.name, *map(figure, figures)])
            if case.what == "full" and case.tokens == TOKENS:
                target = f"{case.profile}, full text, batched: logging adds under {ADDED_US:g} µs (p50, busy loop)"
                checks.append(Check(target, f"{hot.added(50):.1f} µs", hot.added(50) < ADDED_US))
        note = (
            f"Prompts of {TOKENS} tokens by default. A decision alone and a logged one in turn: {self.plan.rounds} "
            f"rounds of {self.plan.busy:,} calls in a busy loop, then {self.plan.paced:,} calls at {PACE} a second, "
            "where caches are cold whenever a call begins. Added: the percentile of the logged ones less that of the "
            "others, which share the core with the writing thread."
        )
        columns = ["profile, what is kept", "busy: alone p50", "added p50", "added p99"]
        columns += [f"{PACE}/s: alone p50", "added p50", "added p99"]
        return Table("What logging adds to a decision, microseconds", columns, rows, note), checks

    def alternate(self, case: Case, times: Added, calls: int, gap_s: float) -> None:
        route, clock = self.routers[case.profile].route_sync, time.perf_counter_ns
        texts = self.prompts[case.tokens]
        with self.sink(case.open) as sink:
            record = sink.record
            for text in texts[:64]:
                record(route(text))
            sink.drain()
            due = time.perf_counter()
            for number, text in enumerate(islice(cycle(texts), calls)):
                if gap_s:
                    due += gap_s
                    time.sleep(max(0.0, due - time.perf_counter()))
                # In turn, and the other way round after each eight: one prompt in eight is of its own kind.
                if (number + number // TYPOGRAPHIC_EVERY) % 2:
                    start = clock()
                    record(route(text))
                    times.logged.append((clock() - start) / 1000)
                else:
                    start = clock()
                    route(text)
                    times.alone.append((clock() - start) / 1000)
            sink.drain()

    # --- what one core sustains

    def sustained(self, databases: Databases | None) -> tuple[list[Table], list[Check]]:
        local = [Contender("nothing is logged", nothing, slow=False, dies="", power=""), *contenders()]
        rates = self.rates(local)
        ours_rate = middle(rates[YARDSTICK]).whole
        rows = []
        for one in local:
            whole, behind, share = middle(rates[one.name])
            figures = [f"{whole:,.0f}", times(ours_rate / whole), figure(behind), f"{share:.0f}"]
            rows.append([one.name, *figures, one.dies, one.power])
        others = {f"{profile}, batched": self.rate(profile, ours(), self.plan.sustained) for profile in PROFILES[1:]}
        for name, rate in others.items():
            rows.append([name, f"{rate.whole:,.0f}", "", figure(rate.behind_ms), f"{rate.share:.0f}", "", ""])
        note = (
            f"Profile {MAIN}, prompts of {TOKENS} tokens, full text; {self.plan.sustained:,} decisions, "
            f"{self.plan.slow:,} where every row is a commit; the median of {RUNS} runs, until the last row is in the "
            "database. Behind: what the caller had recorded and the database did not have yet, in time. Core: how much "
            "of it the process had; where nothing waits for a disk, what is missing to 100 was a neighbour's. The "
            "kernel writes a file to the disk within about 30 s."
        )
        columns = ["on one core", "decisions/s", "turnout batched is x faster", "behind at the end, ms", "core, %"]
        tables = [Table("Sustained", [*columns, "kill -9 loses", "a power cut loses"], rows, note)]
        checks = [
            Check(
                f"{MAIN}, batched, on one core with the drain: over {SUSTAINED:,.0f} decisions/s",
                f"{ours_rate:,.0f}/s",
                ours_rate > SUSTAINED,
            )
        ]
        if databases is not None:
            tables.append(self.on_postgres(databases))
        return tables, checks

    def on_postgres(self, databases: Databases) -> Table:
        rows = []
        for place in range(len(shared(""))):
            found = []
            for _ in range(RUNS):
                with databases() as url:
                    one = shared(url)[place]
                    self.say(f"sustained: {one.name}")
                    found.append(self.rate(MAIN, one.open, self.plan.slow if one.slow else self.plan.sustained))
            whole, behind, share = middle(found)
            rows.append([one.name, f"{whole:,.0f}", figure(behind), f"{share:.0f}"])
        note = (
            f"The same, {self.plan.sustained:,} decisions, {self.plan.slow:,} with 1 caller. The server is real, syncs "
            "its log, is reached through a Unix socket, and may use the other cores."
        )
        columns = ["one core for Turnout", "decisions/s", "behind at the end, ms", "core, %"]
        return Table("Sustained, PostgreSQL", columns, rows, note)

    def rates(self, entries: Sequence[Contender]) -> dict[str, list[Rate]]:
        found: dict[str, list[Rate]] = {one.name: [] for one in entries}
        for number in range(RUNS):
            # Nobody is always the one who comes after the slowest.
            for one in [*entries[number:], *entries[:number]]:
                self.say(f"sustained: {one.name}, {number + 1} of {RUNS}")
                count = self.plan.slow if one.slow else self.plan.sustained
                found[one.name].append(self.rate(MAIN, one.open, count))
        return found

    def rate(self, profile: str, opening: Opening, count: int) -> Rate:
        route = self.routers[profile].route_sync
        with self.sink(opening) as sink:
            record = sink.record
            start, busy = time.perf_counter(), time.process_time()
            for text in islice(cycle(self.texts), count):
                record(route(text))
            called = time.perf_counter()
            sink.drain()
            ended, busy = time.perf_counter(), time.process_time() - busy
            if sink.rows() != count:
                raise RuntimeError(f"{sink.rows():,} of {count:,} rows are there")
        return Rate(count / (ended - start), (ended - called) * 1e3, 100 * busy / (ended - start))

    # --- how large, and how fast to read

    def sizes(self, databases: Databases | None) -> Table:
        self.say("bytes a decision")
        rows = []
        for profile, level in [*((profile, "full") for profile in PROFILES), *((MAIN, level) for level in LEVELS[:-1])]:
            folder = Path(tempfile.mkdtemp(dir=self.folder))
            file = folder / "turnout.db"
            with open_store(str(file), text=level, config="") as store:
                self.fill(store, profile, self.plan.sized)
                spooled = store.journal.spool.written
            # Closed: the write-ahead log is folded into the file.
            cells = [f"{spooled / self.plan.sized:,.0f}", f"{file.stat().st_size / self.plan.sized:,.0f}"]
            if databases is not None:
                with databases() as url, open_store(url, text=level, config="") as store:
                    self.fill(store, profile, self.plan.sized)
                    ((size,),) = store.backend.read("select pg_total_relation_size('decisions')", {})
                    cells.append(f"{size / self.plan.sized:,.0f}")
            rows.append([f"{profile}, {level}", *cells])
            shutil.rmtree(folder)
        columns = ["profile, what is kept", "in the spool", "in SQLite"]
        if databases is not None:
            columns.append("in PostgreSQL")
        note = f"{self.plan.sized:,} decisions on prompts of {TOKENS} tokens, indexes included."
        return Table("Bytes a decision", columns, rows, note)

    def fill(self, store: Store, profile: str, count: int) -> None:
        route = self.routers[profile].route_sync
        for text in islice(cycle(self.texts), count):
            store.record(route(text))
        if not store.flush(PATIENCE_S):
            raise TimeoutError(f"the journal did not drain: {store.counts()}")

    def reading(self, databases: Databases | None) -> Table:
        self.say("reading")
        found = [self.read(str(self.folder / "reading.db"))]
        columns = ["over this many rows", "SQLite"]
        if databases is not None:
            with databases() as url:
                found.append(self.read(url))
            columns.append("PostgreSQL")
        rows = [[name, *(figure(times[name]) for times in found)] for name in found[0]]
        note = (
            f"{self.plan.logged:,} decisions of {len(PROFILES)} profiles in turn, full text; the median of 5. The "
            "command line adds its own start."
        )
        return Table("Reading, milliseconds", columns, rows, note)

    def read(self, url: str) -> dict[str, float]:
        with open_store(url, config="") as store:
            for profile in PROFILES:
                self.fill(store, profile, self.plan.logged // len(PROFILES))
            records = store.records()
            known = next(iter(records.decisions()))
            asks: dict[str, Callable[[], object]] = {
                "stats": lambda: records.stats(bucket_ms=60_000),
                "stats of one profile": lambda: records.stats(profile=MAIN),
                "one decision by id": lambda: records.get(known.id),
                "log, the last 20": lambda: list(islice(records.decisions(), 20)),
                "log of one profile, the last 20": lambda: list(islice(records.decisions(profile=MAIN), 20)),
                "log of one outcome that is rare": lambda: list(records.decisions(outcome="N?")),
                "log of a word that is in no row": lambda: list(records.decisions(contains="xylophone")),
                "every label, for an export": lambda: deque(records.labels(), 0),
            }
            return {name: median(elapsed_ms(ask) for _ in range(5)) for name, ask in asks.items()}


def middle(rates: Sequence[Rate]) -> Rate:
    return Rate(*(median(figures) for figures in zip(*rates, strict=True)))


def elapsed_ms(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e3


def sync_us(folder: Path) -> float:
    """How long the disk takes to say that four kilobytes are safe."""
    found = []
    with (folder / "sync").open("wb", buffering=0) as file:
        for _ in range(100):
            file.write(bytes(4096))
            start = time.perf_counter()
            os.fdatasync(file.fileno()) if hasattr(os, "fdatasync") else os.fsync(file.fileno())
            found.append((time.perf_counter() - start) * 1e6)
    return median(found)


def at(values: Sequence[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def figure(value: float) -> str:
    return f"{value:,.1f}" if abs(value) < 1000 else f"{value:,.0f}"


def times(value: float) -> str:
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def verdict(checks: Sequence[Check]) -> Table:
    rows = [[check.target, check.measured, "pass" if check.met else "FAIL"] for check in checks]
    return Table("Targets", ["target", "measured", ""], rows)


def machine(load: float, sync: float) -> str:
    today = datetime.now(UTC).date().isoformat()
    return (
        f"{processor()}, {os.cpu_count()} cores, load {load:.1f} at the start, a sync to the disk {sync:,.0f} µs; "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}; turnout {turnout.__version__}; {today}"
    )


if __name__ == "__main__":
    sys.exit(main())
