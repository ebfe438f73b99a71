"""Raw servers on loopback that do exactly what a test says, byte by byte, and a client that may talk to them."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import socket
import ssl
import struct
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import aiohttp.connector
import pytest

from timing import Delays
from turnout.net.client import Client, Request, Response
from turnout.net.deadline import Deadline
from turnout.net.egress import Egress, Origin

T = TypeVar("T")
HOST = "127.0.0.1"
# A connection is gone this long after nobody wants it any more. The promise (P9) is 0.25 s and the soak holds it to
# that; here other tests share the machine, and a connection that is forgotten stays for good.
GONE_S = 1.0
# The machine is shared: no wait in a test may be longer than this, and none is meant to be near it.
NEVER_S = 10.0
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def trust(certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust a certificate as a user does, with SSL_CERT_FILE. aiohttp reads it once, at import."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[1]))
    monkeypatch.setattr(aiohttp.connector, "_SSL_CONTEXT_VERIFIED", aiohttp.connector._make_ssl_context(True))


class ReceivedRequest(NamedTuple):
    line: str
    headers: list[tuple[str, str]]
    body: bytes

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]


class Talk:
    """One connection, from the server's side."""

    def __init__(self, server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.server = server
        self.reader = reader
        self.writer = writer

    async def request(self) -> ReceivedRequest:
        """The next request, whole."""
        raw = await self.reader.readuntil(b"\r\n\r\n")
        line, *lines = raw.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
        headers = [(name.lower(), value.strip()) for name, _, value in (one.partition(":") for one in lines)]
        received = ReceivedRequest(line, headers, b"")
        length = received.all("content-length")
        if length:
            received = received._replace(body=await self.reader.readexactly(int(length[0])))
        self.server.requests.append(received)
        return received

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def gone(self) -> float:
        """When the client had left."""
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(65536):
                pass
        return time.monotonic()

    def reset(self) -> None:
        """End it the rude way."""
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Script = Callable[[Talk], Awaitable[Any]]


class Server:
    def __init__(self, script: Script) -> None:
        self.script = script
        self.connections = 0
        self.requests: list[ReceivedRequest] = []
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def origin(self) -> Origin:
        return Origin("http", HOST, self.port, private=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            # A client that leaves in the middle is what most of these tests are about.
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self.script(Talk(self, reader, writer))
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=NEVER_S)
        await asyncio.sleep(0)


@asynccontextmanager
async def serving(script: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(script)
    listening = await asyncio.start_server(server._accepted, HOST, 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        await server.close()


@asynccontextmanager
async def client_for(*origins: Origin) -> AsyncIterator[Client]:
    client = Client(Egress(frozenset(origins)))
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def talking(script: Script) -> AsyncIterator[tuple[Server, Client]]:
    async with serving(script) as server, client_for(server.origin) as client:
        yield server, client


def run(test: Coroutine[Any, Any, T]) -> T:
    """On a loop of its own, in debug mode: a response or a connection that is not closed is a warning there."""

    async def bounded() -> T:
        async with asyncio.timeout(NEVER_S * 3):
            return await test

    return asyncio.run(bounded(), debug=True)


async def chunks(response: Response, idle_s: float, deadline: Deadline | None = None) -> AsyncIterator[bytes]:
    """The body, piece by piece as it arrives."""
    while chunk := await response.next(idle_s, deadline):
        yield chunk


async def ask(client: Client, origin: Origin, *, wait_s: float = 5.0, limit: int = 1 << 20, **fields: Any) -> bytes:
    """A whole exchange."""
    request = Request(origin, fields.pop("path", "/"), **fields)
    async with await client.open(request, wait_s) as response:
        return await response.read(Deadline.after(wait_s), limit)


async def polite(talk: Talk) -> None:
    """Answers `ok` for as long as it is asked."""
    while True:
        await talk.request()
        await talk.send(OK)


@contextmanager
def taking(least_s: float, most_s: float) -> Iterator[None]:
    with Delays() as delays:
        started = time.monotonic()
        yield
        took = time.monotonic() - started
    assert least_s <= took < delays.allow(most_s)


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as one:
        one.bind((HOST, 0))
        port: int = one.getsockname()[1]
        return port


class Watch:
    """What was tried. Places beyond loopback are not reached; a test that means to try one takes it off the list."""

    def __init__(self) -> None:
        self.on = False
        self.tried: list[str] = []
        self.strayed: list[str] = []

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event == "socket.connect" and isinstance(args[1], tuple):
            host = args[1][0]
            self.tried.append(host)
            if not ipaddress.ip_address(host.partition("%")[0]).is_loopback:
                self.strayed.append(host)
                raise OSError(errno.ENETUNREACH, "stopped by the watch")
        if event == "socket.getaddrinfo" and isinstance(args[0], str):
            try:
                ipaddress.ip_address(args[0])
            except ValueError:
                if args[0] != "localhost":
                    self.strayed.append(args[0])
                    raise socket.gaierror(socket.EAI_NONAME, "stopped by the watch") from None


WATCH = Watch()
sys.addaudithook(WATCH)

Answer = list[str] | OSError
_REAL = socket.getaddrinfo


class Names:
    """A resolver's answers. Each name has a queue of them; the last one stays."""

    def __init__(self) -> None:
        self.answers: dict[str, deque[Answer]] = {}
        self.asked: list[str] = []

    def say(self, name: str, *answers: Answer) -> None:
        self.answers[name] = deque(answers)

    def getaddrinfo(
        self, host: str, port: int, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
    ) -> list[tuple[Any, ...]]:
        if host not in self.answers:
            return _REAL(host, port, family, type, proto, flags)
        self.asked.append(host)
        queue = self.answers[host]
        answer = queue.popleft() if len(queue) > 1 else queue[0]
        if isinstance(answer, OSError):
            raise answer
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (one, port, 0, 0))
            if ":" in one
            else (socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port))
            for one in answer
        ]


class ProxyDouble:
    """An HTTP proxy as companies have one: it resolves names by its own list and asks for a password if told to."""

    def __init__(self, names: dict[str, Server], login: str = "") -> None:
        self.names = names
        self.login = login
        self.heads: list[ReceivedRequest] = []
        self.left: list[float] = []

    async def __call__(self, talk: Talk) -> None:
        head = await talk.request()
        self.heads.append(head)
        method, target, _ = head.line.split(" ")
        host = (target if method == "CONNECT" else target.split("/")[2]).rpartition(":")[0]
        if self.login and head.all("proxy-authorization") != [self.login]:
            await talk.send(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
        elif host not in self.names:
            await talk.send(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
        elif method != "CONNECT":
            await talk.send(OK)
        else:
            reader, writer = await asyncio.open_connection(HOST, self.names[host].port)
            await talk.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = asyncio.create_task(self._pass(reader, talk.writer))
            try:
                await self._pass(talk.reader, writer)
                self.left.append(time.monotonic())
            finally:
                back.cancel()
                writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
