"""Bodies made to keep a server busy, and how long it says nothing to others meanwhile.

The server is a process of its own, and so is the watch that asks it for `/health` all the time: neither waits for the
client that sends the bodies.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from child import running
from turnout.testing import Reply, ScriptedProvider

# As long as a body may be, nearly: 32 MiB are taken.
SIZE = 33_000_000
CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
COUNT, ROUTE, BATCH, FEEDBACK = "/v1/messages/count_tokens", "/v1/route", "/v1/route/batch", "/v1/feedback"
ASKING = (CHAT, MESSAGES, RESPONSES)
TIERS = ("simple", "medium", "complex", "reasoning")


class AttackResult(NamedTuple):
    status: int
    silence_s: float
    """The longest that the server was at work on something else while asked for `/health`."""
    took_s: float
    grown_bytes: int
    """What the server's memory grew by at most."""
    answer: bytes


def filled(before: str, unit: str, after: str, size: int = SIZE, joint: str = ",") -> bytes:
    """The unit as often as it fits between the two."""
    one = unit.encode()
    room = size - len(before.encode()) - len(after.encode())
    count = max(1, room // (len(one) + len(joint)))
    return before.encode() + joint.encode().join([one] * count) + after.encode()


def asking(path: str, before: str, unit: str, after: str, joint: str = ",", size: int = SIZE) -> bytes:
    """A user's message in a path's own format, its content the unit as often as it fits."""
    field = "input" if path == RESPONSES else "messages"
    limit = ',"max_tokens":64' if path in (MESSAGES, COUNT) else ""
    opens = f'{{"model":"auto"{limit},"{field}":[{{"role":"user","content":'
    return filled(opens + before, unit, after + "}]}", size, joint)


def member(path: str, name: str, before: str, unit: str, after: str, joint: str = ",", size: int = SIZE) -> bytes:
    """A sound question with one more member, which holds the unit as often as it fits."""
    sound = question(path)[:-1].decode()
    return filled(f'{sound},"{name}":{before}', unit, f"{after}}}", size, joint)


def question(path: str, **more: Any) -> bytes:
    """A sound one."""
    if path == ROUTE:
        fields: dict[str, Any] = {"text": "hello"}
    elif path == BATCH:
        fields = {"queries": [{"text": "hello"}]}
    elif path == FEEDBACK:
        fields = {"decision": "x", "verdict": "right"}
    elif path == RESPONSES:
        fields = {"model": "auto", "input": [{"role": "user", "content": "hello"}]}
    else:
        fields = {"model": "auto", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 64}
    return msgspec.json.encode(fields | more)


class Watch:
    """A process that asks for `/health` without end, and says how long it took at most since it was last asked. Of
    each wait, that counts for which the server itself was at work: what other processes take is not its silence."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.longest()

    def longest(self) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def worked_s(pid: int) -> float:
    """The processor time of another process, all its threads together; where that cannot be told, the time of day."""
    if sys.platform != "linux":
        return time.monotonic()
    # How Linux spells the clock of a process, which clock_getcpuclockid(3) would say.
    return time.clock_gettime(~pid << 3 | 2)


def watch(url: str, pid: int) -> None:
    """What that process does."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=120)
    longest = 0.0
    chosen = selectors.DefaultSelector()
    chosen.register(sys.stdin.buffer, selectors.EVENT_READ)
    while True:
        started, work = time.monotonic(), worked_s(pid)
        connection.request("GET", "/health")
        answer = connection.getresponse()
        assert (answer.status, bool(answer.read())) == (200, True)
        longest = max(longest, min(time.monotonic() - started, worked_s(pid) - work))
        if chosen.select(0.005):
            if not sys.stdin.buffer.readline():
                return
            sys.stdout.write(f"{longest}\n")
            sys.stdout.flush()
            longest = 0.0


class Target(NamedTuple):
    url: str
    admin: str
    pid: int
    provider: ScriptedProvider
    watch: Watch

    def send(self, path: str, body: bytes) -> AttackResult:
        """Send a body, and see how the server is for others meanwhile."""
        place = urlsplit(self.url)
        before = _memory(self.pid, "VmRSS")
        with contextlib.suppress(OSError):
            Path(f"/proc/{self.pid}/clear_refs").write_text("5")
        self.watch.longest()
        started = time.monotonic()
        with contextlib.closing(http.client.HTTPConnection(str(place.hostname), place.port, timeout=120)) as connection:
            connection.request("POST", path, body, {"content-type": "application/json"})
            answer = connection.getresponse()
            told = answer.read()
        took = time.monotonic() - started
        # What is written down afterwards holds others up just as well.
        time.sleep(0.3)
        silence = self.watch.longest()
        return AttackResult(answer.status, silence, took, _memory(self.pid, "VmHWM") - before, told)


def _memory(pid: int, name: str) -> int:
    try:
        found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) * 1024 if found is not None else 0


@contextlib.contextmanager
def target(folder: Path, server: str = "") -> Iterator[Target]:
    """A server in a process of its own, with models that answer at once, and a watch beside it."""
    tests = Path(__file__).parent
    environment = os.environ | {"XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    with ScriptedProvider.in_thread(Reply("Paris."), keep=1) as provider:
        file = folder / "turnout.toml"
        text = f"[server]\nlag_s = 60.0\nwait_s = 5.0\n{server}\n"
        for tier in TIERS:
            text += f'[models.{tier}]\nmodel = "fake/{tier}"\nbase_url = "{provider.base_url}"\nprivate = true\n'
            text += 'wires = ["openai-chat", "anthropic-messages", "openai-responses"]\n'
        file.write_text(text, encoding="utf-8")
        options = ("--port", "0", "--admin-port", "0", "--config", file, "--db", folder / "turnout.db")
        command = [sys.executable, "-m", "faults.served", *map(str, options)]
        with (
            (folder / "errors").open("wb") as errors,
            running(command, stdout=subprocess.PIPE, stderr=errors, cwd=tests, env=environment) as process,
        ):
            assert process.stdout is not None
            told = b""
            while (found := re.search(rb"(http://\S+:\d+).*(http://\S+:\d+)", told, re.DOTALL)) is None:
                line = process.stdout.readline()
                assert line, (folder / "errors").read_text()
                told += line
            url, admin = found[1].decode(), found[2].decode()
            asks = [sys.executable, "-m", "hostile", url, str(process.pid)]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            with running(asks, cwd=tests, **pipes) as watching:
                yield Target(url, admin, process.pid, provider, Watch(watching))


if __name__ == "__main__":
    watch(sys.argv[1], int(sys.argv[2]))
