"""Load at a given rate, whatever the server does: an open loop in a process of its own.

    PYTHONPATH=tests python -m faults.load http://127.0.0.1:8401 RATE SECONDS

A rate of 0 means a closed loop instead: so many clients (`--clients`), each asking again when it has its answer. What
was found is printed as JSON: how many were answered and refused, and how long each took.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import time
from collections import Counter
from typing import cast
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from faults.asking import request

_STATUS = re.compile(rb"HTTP/1\.1 (\d+)")
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
# Nobody waits longer.
PATIENCE_S = 5.0


class Load(Struct):
    """What a load met with."""

    seconds: float
    sent: int
    statuses: dict[str, int]
    answered_per_s: float
    answered_ms: tuple[float, float, float]
    """p50, p95, p99."""
    refused_ms: tuple[float, float, float]
    behind_ms: float
    """How late the generator itself was at worst: what is beyond this is the server's."""


class Connection(asyncio.Protocol):
    def __init__(self, load: Generator) -> None:
        self.load = load
        self.began = 0.0
        self.buffer = bytearray()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def ask(self, due: float) -> None:
        assert self.transport is not None
        self.began = due
        self.transport.write(self.load.question)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        length = _LENGTH.search(self.buffer, 0, end)
        status = _STATUS.match(self.buffer)
        assert length is not None
        assert status is not None
        if len(self.buffer) >= end + 4 + int(length[1]):
            began, self.began = self.began, 0.0
            self.load.note(status[1].decode(), time.monotonic() - began)
            self.buffer.clear()
            self.load.idle.append(self)
            self.load.next(self)

    def connection_lost(self, error: Exception | None) -> None:
        if self.began:
            self.load.note("lost", time.monotonic() - self.began)
        if self in self.load.idle:
            self.load.idle.remove(self)
        self.transport = None


class Generator:
    def __init__(self, url: str, rate: float, seconds: float, clients: int) -> None:
        where = urlsplit(url)
        self.host, self.port = where.hostname, where.port
        self.rate, self.seconds, self.clients = rate, seconds, clients
        self.question = request("openai-chat", "What is the capital of France?", model="auto").replace(
            b"connection: close\r\n", b""
        )
        self.idle: list[Connection] = []
        self.statuses: Counter[str] = Counter()
        self.times: dict[bool, list[float]] = {True: [], False: []}
        self.sent = 0
        self.behind = 0.0
        self.until = 0.0

    def note(self, status: str, took: float) -> None:
        self.statuses[status] += 1
        self.times[status == "200"].append(took)

    def next(self, connection: Connection) -> None:
        if not self.rate and time.monotonic() < self.until:
            self.idle.remove(connection)
            self.sent += 1
            connection.ask(time.monotonic())

    async def run(self) -> Load:
        loop = asyncio.get_running_loop()
        began = time.monotonic()
        self.until = began + self.seconds
        opening: set[asyncio.Task[None]] = set()

        async def open_one(due: float) -> None:
            try:
                _, connection = await loop.create_connection(lambda: Connection(self), self.host, self.port)
            except OSError:
                self.note("lost", time.monotonic() - due)
            else:
                connection.ask(due)

        def start(due: float) -> None:
            self.sent += 1
            if self.idle:
                self.idle.pop().ask(due)
            else:
                task = asyncio.create_task(open_one(due))
                opening.add(task)
                task.add_done_callback(opening.discard)

        if self.rate:
            while (now := time.monotonic()) < self.until:
                while (due := began + self.sent / self.rate) <= now:
                    self.behind = max(self.behind, now - due)
                    start(due)
                await asyncio.sleep(0.001)
        else:
            for _ in range(self.clients):
                start(time.monotonic())
        patience = self.until + PATIENCE_S
        while self.sent > self.statuses.total() and time.monotonic() < patience:
            await asyncio.sleep(0.01)
        self.statuses["unanswered"] += self.sent - self.statuses.total()
        good, bad = self.times[True], self.times[False]
        counts = {name: count for name, count in self.statuses.items() if count}
        took = self.seconds
        return Load(took, self.sent, counts, len(good) / took, _shares(good), _shares(bad), round(self.behind * 1e3, 1))


def _shares(times: list[float]) -> tuple[float, float, float]:
    ordered = sorted(times) or [0.0]
    p50, p95, p99 = (round(ordered[int(share * (len(ordered) - 1))] * 1e3, 1) for share in (0.5, 0.95, 0.99))
    return p50, p95, p99


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("rate", type=float)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--clients", type=int, default=16)
    told = parser.parse_args()
    import uvloop

    found = uvloop.run(Generator(told.url, told.rate, told.seconds, told.clients).run())
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
