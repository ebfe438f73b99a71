"""A server process that is told to stop while streams run. The long version is in `soak.py`."""

from __future__ import annotations

import asyncio
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from faults.asking import ERROR, LAST, HttpResponse, ask, get, request, understand
from faults.asking import connect as connected
from turnout.testing import Fault, Reply, ScriptedProvider
from turnout.testing.reply import Received

DRAIN_S = 1.5
# Interpreter, store and sockets on two busy cores, beyond what the drain itself may take.
SLACK_S = 6.0
SETTINGS = """
[server]
drain_s = {drain_s}
requests = 1000
lag_s = 60.0
[models.simple]
model = "slow/one"
base_url = "{url}"
"""
LONG = Reply("word " * 100, fault=Fault("endless", "after_delta", seconds=0.05))


class Running(NamedTuple):
    process: subprocess.Popen[str]
    url: str
    admin: str


@contextmanager
def running(
    folder: Path, provider: ScriptedProvider, drain_s: float = DRAIN_S, settings: str = SETTINGS
) -> Iterator[Running]:
    """A server in a process of its own."""
    file = folder / "turnout.toml"
    file.write_text(settings.format(drain_s=drain_s, url=provider.base_url), encoding="utf-8")
    options = ("--port", "0", "--admin-port", "0", "--config", file, "--db", folder / "turnout.db")
    with (folder / "errors").open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "faults.served", *map(str, options)],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=Path(__file__).parent.parent,
        )
    try:
        assert process.stdout is not None
        said = ""
        while (found := re.search(r"(http://\S+:\d+).*(http://\S+:\d+)", said, re.DOTALL)) is None:
            line = process.stdout.readline()
            assert line, (folder / "errors").read_text()
            said += line
        yield Running(process, found[1], found[2])
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def kind_of(received: Received) -> Reply:
    if b"short" in received.raw:
        return Reply("word " * 20, chunk_delay_s=DRAIN_S / 60)
    if b"silent" in received.raw:
        return Reply(fault=Fault("stall", "before_headers"))
    return LONG


class StopResult(NamedTuple):
    code: int
    seconds: float
    ends: Counter[str]
    """How the streams and the others ended, as their clients see it."""
    late: list[HttpResponse]
    """What was asked after the server had been told."""
    rows: Counter[str]
    decisions: int
    errors: str


def end_of(got: HttpResponse) -> str:
    if got.status != 200:
        return str(got.status)
    if got.body.count(LAST["openai-chat"]):
        return "complete" if got.whole and ERROR["openai-chat"] not in got.body else "wrong"
    return "error event" if got.whole and ERROR["openai-chat"] in got.body else "truncated"


async def stop(server: Running, provider: ScriptedProvider, kinds: dict[str, int], *, twice: bool) -> StopResult:
    """Open streams, tell the server to stop, watch."""

    async def one(kind: str, number: int) -> HttpResponse:
        reader, writer = await connected(server.url)
        try:
            writer.write(request("openai-chat", f"A {kind} one, number {number}.", stream=kind != "silent plain"))
            return understand(await reader.read())
        except ConnectionError:
            return HttpResponse(0, {}, b"", 0.0, whole=False)
        finally:
            writer.close()

    asked = [asyncio.create_task(one(kind, number)) for kind, count in kinds.items() for number in range(count)]
    until = time.monotonic() + 20
    while provider.received < len(asked):
        assert time.monotonic() < until
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    began = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    await asyncio.sleep(0.15)
    late = []
    if twice:
        server.process.send_signal(signal.SIGTERM)
    elif asked:
        late = [
            await ask(server.url, get("/ready")),
            await ask(server.admin, get("/ready")),
            await ask(server.url, get("/health")),
            await ask(server.url, request("openai-chat", "Too late?")),
        ]
    code = await asyncio.to_thread(server.process.wait, 60)
    seconds = time.monotonic() - began
    ends = Counter(end_of(got) if got.status else "closed" for got in await asyncio.gather(*asked))
    return StopResult(code, seconds, ends, late, Counter(), 0, "")


def stopped(folder: Path, kinds: dict[str, int], *, drain_s: float = DRAIN_S, twice: bool = False) -> StopResult:
    with ScriptedProvider.in_thread(kind_of) as provider, running(folder, provider, drain_s) as server:
        found = asyncio.run(stop(server, provider, kinds, twice=twice))
    with closing(sqlite3.connect(folder / "turnout.db")) as connection:
        rows = Counter(ended for (ended,) in connection.execute("select ended from outcomes"))
        ((decisions,),) = connection.execute("select count(*) from decisions")
    return found._replace(rows=rows, decisions=decisions, errors=(folder / "errors").read_text())


def test_told_to_stop_it_finishes_what_runs_and_says_what_it_cuts(tmp_path: Path) -> None:
    kinds = {"short": 10, "long": 10, "silent": 2, "silent plain": 2}
    found = stopped(tmp_path, kinds)
    assert found.errors == ""
    assert found.code == 0
    assert DRAIN_S <= found.seconds < DRAIN_S + SLACK_S
    assert found.ends == {"complete": 10, "error event": 10, "503": 4}
    assert [got.status for got in found.late] == [503, 503, 200, 503]
    assert max(got.seconds for got in found.late) < 1.0
    assert found.late[-1].headers["retry-after"] == "1"
    # One of each for everything that was let in.
    assert found.decisions == sum(kinds.values())
    assert found.rows == {"answered": 10, "failed": 10, "cancelled": 4}


def test_told_twice_it_ends_at_once(tmp_path: Path) -> None:
    found = stopped(tmp_path, {"long": 6, "silent": 2}, drain_s=60.0, twice=True)
    assert found.code == 0
    assert found.seconds < SLACK_S
    assert found.decisions == sum(found.rows.values()) == 8
    assert not {"complete", "wrong"} & set(found.ends)


def test_with_nothing_to_do_it_stops_soon(tmp_path: Path) -> None:
    found = stopped(tmp_path, {}, drain_s=60.0)
    assert (found.code, found.errors) == (0, "")
    assert found.seconds < SLACK_S
