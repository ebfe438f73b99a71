"""Clients that go away: before the first token, while a stream runs, and while a whole answer is awaited.

Whatever the moment, the provider is told soon, the place is free again, and the log says what happened, once. The long
version is in `soak.py`.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from faults.asking import ask, connect, outcomes, request
from serving import SERVERS, RunningServer, serving
from timing import Delays
from turnout.testing import Fault, Reply, ScriptedProvider
from turnout.testing.reply import Received
from turnout.web import app

# What reliability promises.
SOON_S = 0.25
AT_ONCE = 10
TRIES = 3
WINDOWS = ("silent", "headers", "streaming", "plain")
SETTINGS = '[server]\nlag_s = 60.0\n[models.simple]\nmodel = "slow/one"\nbase_url = "%s"\n'
REPLIES = {
    "silent": Reply(fault=Fault("stall", "before_headers")),
    "headers": Reply(fault=Fault("stall", "before_delta")),
    "streaming": Reply("word " * 400, chunk_delay_s=0.01),
    "plain": Reply(fault=Fault("stall", "after_delta")),
}


class LeaveResult(NamedTuple):
    """How it went."""

    asked: int
    reached: int
    """The provider had the question when the client left."""
    slowest_s: float
    """Until the provider was told."""
    allowed_s: float
    """What that may take on this machine, with what else it does."""
    ended: Counter[str]
    windows: Counter[str]


def leave(folder: Path, count: int, seed: int, server: str = SERVERS[0]) -> LeaveResult:
    """So many clients go away at random moments; raises AssertionError unless all promises but the one of time hold."""
    chance = random.Random(seed)
    left_at: dict[int, float] = {}
    windows: dict[int, str] = {}

    def reply(received: Received) -> Reply:
        return REPLIES[windows[number_of(received)]] if b"number" in received.raw else Reply("Yes.")

    async def one(served: RunningServer, number: int, room: asyncio.Semaphore) -> None:
        window = windows[number] = chance.choice(WINDOWS)
        async with room:
            reader, writer = await connect(served.url)
            writer.write(request("openai-chat", f"What is number {number}?", stream=window != "plain"))
            if window == "streaming":
                await reader.readuntil(b'"content":"word')
            await asyncio.sleep(chance.choice((0.0, 0.005, 0.05, 0.15)) * chance.random())
            if chance.random() < 0.3:
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            left_at[number] = time.monotonic()
            writer.transport.abort()

    async def everybody(served: RunningServer) -> None:
        room = asyncio.Semaphore(AT_ONCE)
        await asyncio.gather(*(one(served, number, room) for number in range(count)))

    with (
        ScriptedProvider.in_thread(reply) as provider,
        serving(folder, SETTINGS % provider.base_url, server=server) as served,
        Delays() as delays,
    ):
        assert asyncio.run(ask(served.url, request("openai-chat", "Are you there?"))).status == 200
        tasks, files = count_tasks(served), open_files()
        asyncio.run(everybody(served))
        met = [received for received in provider.requests if b"number" in received.raw]
        eventually(lambda: all(received.closed_at is not None for received in met), "the provider is told")
        eventually(lambda: served.server.admission.active == 0, "every place is free")
        eventually(lambda: count_tasks(served) <= tasks, "no task is left")
        eventually(lambda: open_files() <= files, "no file is left")
        assert not served.server.runtime.models.live
        assert served.server.runtime.models.retries.active == 0
        written = outcomes(served, folder)
        again = asyncio.run(ask(served.url, request("openai-chat", "Are you still there?")))
        assert again.status == 200
    took = [(received.closed_at or 0.0) - left_at[number_of(received)] for received in met]
    ended = Counter(outcome.ended for outcome in written.values())
    assert ended.pop("answered") == 1
    assert set(ended) == {"cancelled"}
    # One that left before its question was read has left no trace; one that reached the provider has left one.
    assert len(met) <= ended["cancelled"] <= count
    return LeaveResult(count, len(met), max(took), delays.allow(SOON_S), ended, Counter(windows.values()))


def number_of(received: Received) -> int:
    found = re.search(rb"number (\d+)", received.raw)
    assert found is not None
    return int(found[1])


def count_tasks(served: RunningServer) -> int:
    return len(asyncio.all_tasks(served.loop))


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def eventually(holds: Callable[[], bool], what: str, within_s: float = 20.0) -> None:
    until = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < until, f"it should be so by now: {what}"
        time.sleep(0.01)


def test_a_client_that_reads_nothing_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "TAKE_S", 0.3)
    endless = Reply("word " * 200, fault=Fault("endless", "after_delta", after=100))

    async def sit(served: RunningServer, provider: ScriptedProvider) -> None:
        _, writer = await connect(served.url)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(request("openai-chat", "What is number 1?", stream=True))
        until = time.monotonic() + 10
        while provider.received == 0 or served.server.admission.active:
            assert time.monotonic() < until
            await asyncio.sleep(0.02)
        writer.transport.abort()

    with ScriptedProvider.in_thread(endless) as provider, serving(tmp_path, SETTINGS % provider.base_url) as served:
        asyncio.run(sit(served, provider))
        eventually(lambda: provider.requests[0].is_abandoned, "the provider is told")
        assert [outcome.ended for outcome in outcomes(served, tmp_path).values()] == ["cancelled"]


@pytest.mark.parametrize("server", SERVERS)
def test_dead_clients_cost_nothing(tmp_path: Path, server: str) -> None:
    # A busy machine is slow at times; what is slow by itself is slow each time.
    for number in range(TRIES):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = leave(folder, 50, seed=7, server=server)
        if found.slowest_s <= found.allowed_s:
            break
    else:
        pytest.fail(f"the slowest took {found.slowest_s:.3f} s")
    assert found.reached >= 5
    assert set(found.windows) == set(WINDOWS)
