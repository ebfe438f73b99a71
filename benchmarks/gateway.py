"""What a gateway costs: requests a second on one core and milliseconds added to each, beside LiteLLM's proxy.

Every contender is one process on one core, and so is the provider behind it, which shares the other core with the load
(`wrk`). Only one contender works at any moment, in alternating rounds, on the same requests: each a different prompt of
about 50 tokens with a system prompt, answered at once by the same scripted provider. Turnout reads a key, decides,
writes the decision, the outcome and the cost to SQLite; LiteLLM's proxy checks its master key and logs nothing; the
bare one (Starlette, aiohttp) does nothing at all, and shows what is left to gain.

A busy machine is not fair, so that rates are also taken for a second of the server's own processor time. Against
LiteLLM ratios are taken round by round, and of the two clocks the one that says less for Turnout counts. Beside the
bare one both are shown: by requests a second, where the load's core may be the limit, and by processor time, where
nothing is. Nothing is promised about those.

    python benchmarks/gateway.py              about four minutes; the first run also installs LiteLLM's proxy
    python benchmarks/gateway.py --quick      about a minute, coarser
    python benchmarks/gateway.py --check      exit code 1 when a target is missed
    python benchmarks/gateway.py --no-peers   without LiteLLM
"""

import argparse
import contextlib
import http.client
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, Literal, NamedTuple

from rich.console import Console

import turnout
from decide import Check, processor
from peer import SCRIPTS, WORKSHOP, environment, use_base_install
from prompts import stream
from report import Table, markdown, show

# The project's own promises: times LiteLLM's rate, and its added latency by how much.
RATE = 25.0
ADDED = 15.0

TOKENS = 50
SYSTEM = "You are a helpful assistant. Answer briefly."
# One prompt in this many is asked about: what rules alone do not decide.
ASKED_EVERY = 20
# More prompts that are asked about than the classifier's cache has entries: going round, none is found in it.
BODIES = ASKED_EVERY * 1_200
CONNECTIONS = 32
START_S = 120.0
# A server whose machine is taken away from it refuses requests, and should; such a run says nothing about its speed.
REPEATS = 5
PATH = "/v1/chat/completions"
MASTER_KEY = "sk-benchmark-0123456789"
PEPPER = "a pepper for benchmarks only"
MISSING = "wrk is not installed, and it makes the load: apt-get install wrk"

LOCAL, ASKING, LITELLM, PLAIN = "turnout, rules", "turnout, 5 % LLM", "litellm proxy", "bare pass-through"
DIRECT = "the provider itself"

Form = Literal["JSON", "SSE"]
FORMS: tuple[Form, ...] = ("JSON", "SSE")


class Plan(NamedTuple):
    rounds: int
    full_s: int  # of a run with all connections; wrk takes whole seconds
    single_s: int  # of a run with one
    slow_s: int  # of either, where a second may pass without an answer


FULL = Plan(rounds=5, full_s=3, single_s=2, slow_s=6)
QUICK = Plan(rounds=3, full_s=2, single_s=1, slow_s=3)


class Run(NamedTuple):
    """What wrk says of one run."""

    rate: float
    cpu_rate: float  # requests for a second of the server's processor time
    p50_ms: float
    p99_ms: float


class Contender:
    """One server, ready to be asked."""

    def __init__(self, name: str, process: "subprocess.Popen[str]", port: int, key: str) -> None:
        self.name = name
        self.process = process
        self.port = port
        self.key = key
        self.sent = 0
        """How many requests so far: the next run goes on with the prompts that come then."""

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def ask(self, body: str) -> bytes:
        """One request; raises OSError while nobody listens."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"content-type": "application/json", "authorization": f"Bearer {self.key}"}
        with contextlib.closing(connection):
            connection.request("POST", PATH, body, headers)
            answer = connection.getresponse()
            raw = answer.read()
        if answer.status != 200:
            raise ConnectionError(f"{self.name} answered {answer.status}: {raw[:300]!r}")
        return raw


class Cores(NamedTuple):
    server: int
    load: int

    @classmethod
    def pick(cls) -> "Cores | None":
        free = sorted(os.sched_getaffinity(0))
        return cls(free[0], free[1]) if len(free) > 1 else None


class Bench:
    """The servers, the provider behind them, and the load."""

    def __init__(self, folder: Path, cores: Cores, stack: contextlib.ExitStack, say: Callable[[str], None]) -> None:
        self.folder = folder
        self.cores = cores
        self.stack = stack
        self.say = say
        self.disturbed: Counter[str] = Counter()
        """Runs that were repeated because requests failed, by contender."""
        self.bodies = {form: folder / f"{form}.jsonl" for form in FORMS}
        self.provider = self.start("provider", [sys.executable, str(SCRIPTS / "stub_provider.py")], core=cores.load)
        assert self.provider.stdout is not None
        self.provider_port = int(self.provider.stdout.readline())

    def start(
        self, name: str, command: Sequence[str], *, core: int, more: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[str]":
        pinned = ["taskset", "-c", str(core), *command]
        with (WORKSHOP / f"gateway-{name}.log").open("w", encoding="utf-8") as log:
            process = subprocess.Popen(
                pinned,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if name == "provider" else log,
                stderr=log,
                text=True,
                env={**os.environ, "TURNOUT_PEPPER": PEPPER, **(more or {})},
            )
        self.stack.callback(_end, process)
        return process

    def received(self) -> tuple[int, int]:
        """How many requests the provider had, and how many of them were a classifier's."""
        assert self.provider.stdin is not None
        assert self.provider.stdout is not None
        self.provider.stdin.write("\n")
        self.provider.stdin.flush()
        total, classified = self.provider.stdout.readline().split()
        return int(total), int(classified)

    def direct(self) -> Contender:
        return self._ready(Contender(DIRECT, self.provider, self.provider_port, "none"))

    def turnout(self, name: str, *, asking: bool) -> Contender:
        """`tiers`, which asks a model in doubt; or the same without that layer."""
        port = free_port()
        stem = "asking" if asking else "local"
        profile = self.folder / f"{stem}.toml"
        drop = "" if asking else '[[layers]]\nid = "llm"\ndrop = true\n'
        profile.write_text(f'extends = "tiers"\nname = "{stem}"\n{drop}', encoding="utf-8")
        config, db, key = (self.folder / f"{stem}.{what}" for what in ("settings", "db", "key"))
        slots = "".join(SLOT.format(name=slot, port=self.provider_port) for slot in SLOTS)
        config.write_text(f'[server]\nprofile = "{profile}"\n{slots}', encoding="utf-8")
        command = [sys.executable, str(SCRIPTS / "turnout_gateway.py"), str(port), str(config), str(db), str(key)]
        process = self.start(stem, command, core=self.cores.server)
        contender = Contender(name, process, port, "")
        until = time.monotonic() + START_S
        while not contender.key and time.monotonic() < until and process.poll() is None:
            contender.key = key.read_text(encoding="ascii") if key.exists() else ""
            time.sleep(0.05)
        return self._ready(contender)

    def litellm(self) -> Contender:
        port = free_port()
        config = self.folder / "litellm.yaml"
        config.write_text(LITELLM_YAML.format(port=self.provider_port, key=MASTER_KEY), encoding="utf-8")
        program = environment("litellm-proxy", self.say).with_name("litellm")
        command = [str(program), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
        more = {"LITELLM_LOG": "ERROR", "LITELLM_MODE": "PRODUCTION", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        process = self.start("litellm", [*command, "--num_workers", "1"], core=self.cores.server, more=more)
        return self._ready(Contender(LITELLM, process, port, MASTER_KEY))

    def bare(self) -> Contender:
        port = free_port()
        provider = f"http://127.0.0.1:{self.provider_port}{PATH}"
        command = [sys.executable, str(SCRIPTS / "bare_gateway.py"), str(port), provider]
        return self._ready(Contender(PLAIN, self.start("bare", command, core=self.cores.server), port, "none"))

    def _ready(self, contender: Contender) -> Contender:
        """Wait until it answers, and see that it answers rightly in both forms."""
        until = time.monotonic() + START_S
        for form in FORMS:
            with self.bodies[form].open(encoding="utf-8") as file:
                body = file.readline()
            while True:
                try:
                    answer = contender.ask(body)
                    break
                except OSError as error:
                    if time.monotonic() > until or contender.process.poll() is not None:
                        raise SystemExit(f"{contender.name} does not answer: {error} (see {WORKSHOP})") from None
                    time.sleep(0.2)
            words = b"".join(answer.split(b"harbour")[1:])
            if not words or (form == "SSE" and b"data: [DONE]" not in words):
                raise SystemExit(f"{contender.name} answered something else ({form}): {answer[-300:]!r}")
        self.say(f"{contender.name} is ready")
        return contender

    def load(self, contender: Contender, form: Form, connections: int, seconds: int) -> Run:
        told = {"BODIES": str(self.bodies[form]), "START": str(contender.sent % BODIES), "KEY": contender.key}
        url = f"http://127.0.0.1:{contender.port}{PATH}"
        wrk = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", str(SCRIPTS / "load.lua")]
        for _ in range(REPEATS):
            before = contender.cpu_s()
            ran = subprocess.run(
                ["taskset", "-c", str(self.cores.load), *wrk, url],
                check=True,
                capture_output=True,
                text=True,
                env={**os.environ, **told},
            )
            used = contender.cpu_s() - before
            said: dict[str, Any] = json.loads(ran.stdout.strip().splitlines()[-1])
            if said["requests"] and not said["errors"]:
                break
            self.say(f"{contender.name}: {said['errors']} of {said['requests']} requests failed ({form}); once more")
            self.disturbed[contender.name] += 1
        else:
            raise SystemExit(f"{contender.name}: requests fail again and again ({form})")
        contender.sent += said["requests"]
        requests = said["requests"]
        return Run(requests / said["seconds"], requests / max(used, 0.01), said["p50"] / 1000, said["p99"] / 1000)


SLOTS = ("simple", "medium", "complex", "reasoning", "classifier")
SLOT = """
[models.{name}]
model = "stub/{name}"
base_url = "http://127.0.0.1:{port}/v1"
private = true
prices = {{ input_usd = 1.0, output_usd = 4.0 }}
"""

# As its page on production recommends, without a database; logging to one would only make it slower.
LITELLM_YAML = """
model_list:
  - model_name: auto
    litellm_params:
      model: openai/stub
      api_key: none
      api_base: http://127.0.0.1:{port}/v1
general_settings:
  master_key: {key}
litellm_settings:
  request_timeout: 600
  set_verbose: false
  json_logs: true
"""


def _end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def prompts() -> Iterator[str]:
    """Different prompts without end of which every twentieth is asked about, and no other."""
    route = turnout.load("tiers").route_sync
    sure: list[str] = []
    for text in stream(TOKENS):
        # Without a model to ask, what would be asked about is left to the fallback, or to the best verdict held back.
        if route(text).outcome.endswith("-"):
            sure.append(text)
        elif len(sure) >= ASKED_EVERY - 1:
            yield text
            yield from sure[: ASKED_EVERY - 1]
            del sure[: ASKED_EVERY - 1]


def write_bodies(files: Mapping[Form, Path]) -> None:
    texts = list(islice(prompts(), BODIES))
    for form, file in files.items():
        with file.open("w", encoding="utf-8") as lines:
            for text in texts:
                messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]
                body = {"model": "auto", "messages": messages, **({"stream": True} if form == "SSE" else {})}
                lines.write(json.dumps(body, ensure_ascii=False) + "\n")


class Result(NamedTuple):
    """All rounds of one contender in one form."""

    full: list[Run]
    single: list[Run]

    @property
    def rate(self) -> float:
        return median(run.rate for run in self.full)

    @property
    def cpu_rate(self) -> float:
        return median(run.cpu_rate for run in self.full)

    @property
    def p50_ms(self) -> float:
        return median(run.p50_ms for run in self.single)

    @property
    def p99_ms(self) -> float:
        return median(run.p99_ms for run in self.full)


Results = Mapping[Form, Mapping[str, Result]]


def race(plan: Plan, bench: Bench, contenders: Sequence[Contender], direct: Contender) -> tuple[Results, float]:
    """The rounds, and the share of requests for which the model was asked."""
    results: dict[Form, dict[str, Result]] = {
        form: {one.name: Result([], []) for one in (*contenders, direct)} for form in FORMS
    }
    asked = answered = 0
    for contender in contenders:  # as warm as they will be
        for form in FORMS:
            bench.load(contender, form, CONNECTIONS, plan.slow_s if contender.name == LITELLM else 1)
    for number in range(plan.rounds):
        bench.say(f"round {number + 1} of {plan.rounds} (load {os.getloadavg()[0]:.1f})")
        turn = number % len(contenders)
        for form in FORMS:
            results[form][DIRECT].single.append(bench.load(direct, form, 1, plan.single_s))
            for contender in (*contenders[turn:], *contenders[:turn]):
                full_s, single_s = (plan.slow_s,) * 2 if contender.name == LITELLM else (plan.full_s, plan.single_s)
                before = bench.received()
                results[form][contender.name].full.append(bench.load(contender, form, CONNECTIONS, full_s))
                results[form][contender.name].single.append(bench.load(contender, form, 1, single_s))
                after = bench.received()
                if contender.name == ASKING:
                    asked += after[1] - before[1]
                    answered += (after[0] - before[0]) - (after[1] - before[1])
    return results, asked / max(1, answered)


def tables(plan: Plan, results: Results, share: float, disturbed: Mapping[str, int]) -> list[Table]:
    columns = ["gateway", "requests/s", "per CPU second", "p99 ms", "p50 ms, alone", "added ms"]
    columns += ["x bare", "by CPU", "x litellm"]
    found = []
    # A server that refuses under load would look better without the runs in which it did: so they are told.
    again = ", ".join(f"{name} {count}" for name, count in disturbed.items()) or "none"
    for form, rows in results.items():
        body = []
        for name, row in rows.items():
            if name == DIRECT:
                body.append([name, "", "", "", f"{row.p50_ms:.3f}", "", "", "", ""])
                continue
            figures = [f"{row.rate:,.0f}", f"{row.cpu_rate:,.0f}", f"{row.p99_ms:.1f}", f"{row.p50_ms:.3f}"]
            times = [f"{bare_times(rows, name):.2f}", f"{bare_cpu_times(rows, name):.2f}"]
            times.append(f"{litellm_times(rows, name):.1f}" if LITELLM in rows else "")
            body.append([name, *figures, f"{added_ms(rows, name):.3f}", *times])
        rounds = [times for by_clock in litellm_rounds(rows, LOCAL) for times in by_clock] if LITELLM in rows else []
        spread = f", in single rounds {min(rounds):.1f} to {max(rounds):.1f} with rules" if rounds else ""
        note = (
            f"{CONNECTIONS} connections for the rates and p99, one for p50; medians of {plan.rounds} rounds. "
            f"x bare: how many times slower than the bare one, by requests/s and by processor time; "
            f"x litellm: how many times faster than LiteLLM{spread}. "
            f"The model was asked for {share:.1%} of the requests in the row that says so. "
            f"Runs left out and repeated because requests failed in them, both forms and the warm-up: {again}."
        )
        found.append(Table(f"{form}, one core", columns, body, note))
    return found


def added_ms(rows: Mapping[str, Result], name: str) -> float:
    return max(0.001, rows[name].p50_ms - rows[DIRECT].p50_ms)


def bare_times(rows: Mapping[str, Result], name: str) -> float:
    """How many times slower than the bare one."""
    return rows[PLAIN].rate / rows[name].rate


def bare_cpu_times(rows: Mapping[str, Result], name: str) -> float:
    """How many times the bare one's processor time a request takes."""
    return rows[PLAIN].cpu_rate / rows[name].cpu_rate


def litellm_times(rows: Mapping[str, Result], name: str) -> float:
    """How many times faster than LiteLLM, by the clock that says less."""
    return min(median(by_clock) for by_clock in litellm_rounds(rows, name))


def litellm_rounds(rows: Mapping[str, Result], name: str) -> tuple[list[float], list[float]]:
    """The same for each round, by both clocks: a machine's speed may change between rounds, and hardly within one."""
    pairs = list(zip(rows[name].full, rows[LITELLM].full, strict=True))
    return [one.rate / other.rate for one, other in pairs], [one.cpu_rate / other.cpu_rate for one, other in pairs]


def checks(results: Results) -> list[Check]:
    found = []
    for form, rows in results.items():
        if LITELLM in rows:
            times = litellm_times(rows, LOCAL)
            found.append(Check(f"{form}: {RATE:g}x the requests of LiteLLM's proxy", f"{times:.1f}x", times >= RATE))
            less = added_ms(rows, LITELLM) / added_ms(rows, LOCAL)
            told = f"{form}: adds a {ADDED:g}th of what LiteLLM's proxy adds, or less"
            found.append(Check(told, f"1/{less:.1f}", less >= ADDED))
    return found


def verdict(found: Sequence[Check]) -> Table:
    rows = [[check.target, check.measured, "pass" if check.met else "FAIL"] for check in found]
    return Table("Targets", ["target", "measured", ""], rows)


def machine(peers: bool) -> str:
    versions = f"turnout {turnout.__version__}"
    if peers:
        versions += ", " + (SCRIPTS / "litellm-proxy.in").read_text(encoding="utf-8").strip()
    today = datetime.now(UTC).date().isoformat()
    load = f"{os.getloadavg()[0]:.1f}"
    return (
        f"{processor()}, {os.cpu_count()} cores, load {load}; Python {platform.python_version()}; {versions}; {today}"
    )


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
    plan = QUICK if options.quick else FULL
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=WORKSHOP)))
        write_bodies({form: folder / f"{form}.jsonl" for form in FORMS})
        bench = Bench(folder, cores, stack, lambda message: log.print(message, markup=False))
        contenders = [bench.turnout(LOCAL, asking=False), bench.turnout(ASKING, asking=True), bench.bare()]
        if options.peers:
            contenders.append(bench.litellm())
        results, share = race(plan, bench, contenders, bench.direct())
    found = checks(results)
    printed = [*tables(plan, results, share, bench.disturbed), verdict(found)]
    heading = machine(options.peers)
    console.print(heading, markup=False, highlight=False)
    for table in printed:
        show(console, table)
    if options.output:
        text = "\n".join([f"# Gateways, side by side\n\n{heading}\n", *map(markdown, printed)])
        options.output.write_text(text, encoding="utf-8")
    return 1 if options.check and not all(check.met for check in found) else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Gateways beside each other: requests a second and added latency.")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds: about a minute, coarser")
    parser.add_argument(
        "--peers", action=argparse.BooleanOptionalAction, default=True, help="measure LiteLLM's proxy too"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables as Markdown")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a target is missed")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
