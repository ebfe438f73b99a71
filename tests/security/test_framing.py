"""S10: where one request ends and the next begins. Every answer belongs to its request, whatever the bytes say.

Each case is sent alone, on a connection that is kept (a request before it and one after), and while the server refuses
everybody who asks for work. Requests before and after carry a name that their answers repeat; what is hidden in bodies
carries another, which must never be answered.
"""

from __future__ import annotations

import contextlib
import logging
import re
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from secured_server import call, chat, secured_server
from serving import RunningServer
from turnout.testing import ScriptedProvider
from turnout.web import serve as serving_module

HOST = b"Host: localhost\r\n"
HIDDEN = b"HIDDEN /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
ROUTE = b'{"text": "hello"}'
# Nothing more is expected when nothing came for so long.
QUIET_S = 0.2


class Case(NamedTuple):
    id: str
    raw: bytes
    statuses: tuple[int, ...]
    """Of the answers, in order; none where the connection is closed without one."""
    closes: bool = False
    full: tuple[int, ...] | None = None
    """While nobody is let in, if different."""
    bodiless: bool = False
    """Its answers say how long a body would be, and have none."""


def post(*headers: bytes, body: bytes = ROUTE, path: bytes = b"/v1/route", length: bool = True) -> bytes:
    lines = [HOST, *(header + b"\r\n" for header in headers)]
    if length:
        lines.append(b"Content-Length: %d\r\n" % len(body))
    return b"POST " + path + b" HTTP/1.1\r\n" + b"".join(lines) + b"\r\n" + body


def get(path: bytes = b"/health", *headers: bytes, method: bytes = b"GET", version: bytes = b"HTTP/1.1") -> bytes:
    lines = b"".join(header + b"\r\n" for header in headers or (HOST[:-2],))
    return method + b" " + path + b" " + version + b"\r\n" + lines + b"\r\n"


def chunked(body: bytes, *headers: bytes) -> bytes:
    return post(b"Transfer-Encoding: chunked", *headers, body=body, length=False)


WHOLE = b"11\r\n" + ROUTE + b"\r\n0\r\n\r\n"
UP = (b"Upgrade: websocket", b"Connection: Upgrade")
SOCKET = (*UP, b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
REFUSED = (503,)

CASES = (
    # Bodies, and what hides in them.
    Case("plain", post(), (200,), full=REFUSED),
    Case("chunks", chunked(WHOLE), (200,), full=REFUSED),
    Case("a request as a body", post(body=HIDDEN), (422,), full=REFUSED),
    Case("a body after Upgrade", post(*UP, body=HIDDEN), (400,)),
    Case("a body after the handshake of a WebSocket", post(*SOCKET, body=HIDDEN), (404,)),
    Case("a request after one that is refused", get(b"/health", HOST[:-2], *SOCKET) + get(), (404, 200)),
    Case(
        "a body after Upgrade to HTTP/2",
        post(b"Upgrade: h2c", b"Connection: Upgrade, HTTP2-Settings", b"HTTP2-Settings: AAMAAABkAAQAAP__", body=HIDDEN),
        (422,),
        full=REFUSED,
    ),
    Case("chunks after Upgrade", chunked(b"%x\r\n%b\r\n0\r\n\r\n" % (len(HIDDEN), HIDDEN), *UP), (400,)),
    Case("Upgrade without a body", get(b"/health", HOST[:-2], *UP), (400,)),
    Case("a long body", post(body=b" " * 300_000 + ROUTE), (200,), full=REFUSED, closes=False),
    Case("a body for GET", get(b"/health", HOST[:-2], b"Content-Length: %d" % len(HIDDEN)) + HIDDEN, (200,)),
    Case("a body for a path that is not there", post(path=b"/nowhere", body=HIDDEN), (404,)),
    Case("a body for a method that is not there", post(path=b"/health", body=HIDDEN), (405,)),
    Case("100-continue", post(b"Expect: 100-continue"), (100, 200), full=REFUSED),
    Case("an expectation nobody knows", post(b"Expect: 200-ok"), (200,), full=REFUSED),
    # Lengths.
    Case(
        "length, then chunks",
        post(b"Content-Length: 5", b"Transfer-Encoding: chunked", body=WHOLE + HIDDEN, length=False),
        (200,),
        closes=True,
        full=REFUSED,
    ),
    Case(
        "chunks, then length",
        post(b"Transfer-Encoding: chunked", b"Content-Length: 5", body=WHOLE + HIDDEN, length=False),
        (200,),
        closes=True,
        full=REFUSED,
    ),
    Case("two lengths", post(b"Content-Length: 5", b"Content-Length: 17", length=False), (400,), closes=True),
    Case("the same length twice", post(b"Content-Length: 17"), (200,), full=REFUSED),
    Case("two lengths in one", post(b"Content-Length: 17, 17", length=False), (400,), closes=True),
    Case("a length with a sign", post(b"Content-Length: +17", length=False), (400,), closes=True),
    Case("a negative length", post(b"Content-Length: -1", length=False), (400,), closes=True),
    Case("a length in hex", post(b"Content-Length: 0x11", length=False), (400,), closes=True),
    Case("an empty length", post(b"Content-Length:", length=False), (400,), closes=True),
    Case("a length beyond every number", post(b"Content-Length: " + b"9" * 30, length=False), (400,), closes=True),
    Case("no length, which is none", post(length=False, body=get(b"/nowhere")), (422, 404), full=(503, 404)),
    # Chunks.
    Case("an unknown coding", post(b"Transfer-Encoding: xchunked", body=WHOLE, length=False), (400,), closes=True),
    Case(
        "chunks that are not last",
        post(b"Transfer-Encoding: chunked, identity", body=WHOLE, length=False),
        (400,),
        closes=True,
    ),
    Case(
        "chunks with a space before the colon",
        post(b"Transfer-Encoding : chunked", body=WHOLE, length=False),
        (400,),
        closes=True,
    ),
    Case("chunks in HTTP/1.0", chunked(WHOLE).replace(b"HTTP/1.1", b"HTTP/1.0", 1), (400,), closes=True),
    Case(
        "a size that is not a number", chunked(b"zz\r\n" + ROUTE + b"\r\n0\r\n\r\n"), (400,), closes=True, full=REFUSED
    ),
    Case(
        "a size beyond every number",
        chunked(b"f" * 20 + b"\r\n" + ROUTE + b"\r\n0\r\n\r\n"),
        (400,),
        closes=True,
        full=REFUSED,
    ),
    Case("a negative size", chunked(b"-11\r\n" + ROUTE + b"\r\n0\r\n\r\n"), (400,), closes=True, full=REFUSED),
    Case(
        "a chunk longer than it says", chunked(b"5\r\n" + ROUTE + b"\r\n0\r\n\r\n"), (400,), closes=True, full=REFUSED
    ),
    Case(
        "a long extension of a chunk",
        chunked(b"11;" + b"a" * 100_000 + b"\r\n" + ROUTE + b"\r\n0\r\n\r\n"),
        (400,),
        closes=True,
        full=REFUSED,
    ),
    Case(
        "trailers",
        chunked(b"11\r\n" + ROUTE + b"\r\n0\r\nContent-Length: 40\r\nHost: evil\r\n\r\n"),
        (200,),
        full=REFUSED,
    ),
    # Lines.
    Case("line feeds alone", get().replace(b"\r\n", b"\n"), (200,)),
    Case("a carriage return in a value", get(b"/health", HOST[:-2], b"X: a\rHIDDEN: b"), (400,), closes=True),
    Case("a folded line", get(b"/health", HOST[:-2], b"X: a", b" b"), (400,), closes=True),
    Case("a space before the colon", get(b"/health", b"Host : localhost"), (400,), closes=True),
    Case("a NUL", get(b"/health", HOST[:-2], b"X: a\0b"), (400,), closes=True),
    Case("a line without a name", get(b"/health", HOST[:-2], b": x"), (400,), closes=True),
    Case("a line without a colon", get(b"/health", HOST[:-2], b"HIDDEN"), (400,), closes=True),
    Case("empty lines before", b"\r\n\r\n" + get(), (200,)),
    Case("a long head", get(b"/health", HOST[:-2], b"X: " + b"a" * 200_000), (431,), closes=True),
    Case("many lines", get(b"/health", HOST[:-2], *[b"X: a"] * 2000), (431,), closes=True),
    Case("no HTTP at all", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", (400,), closes=True),
    # Targets and hosts.
    Case("two hosts", get(b"/health", b"Host: localhost", b"Host: evil.com"), (400,)),
    Case("the same host twice", get(b"/health", b"Host: localhost", b"Host: localhost"), (400,)),
    Case("two hosts and a body", post(b"Host: evil.com", body=HIDDEN), (400,)),
    Case("no host", get(b"/health", b"X: a"), (421,)),
    Case("another host", get(b"/health", b"Host: evil.com"), (421,)),
    Case("an absolute target", get(b"http://localhost/health"), (200,)),
    Case("an absolute target elsewhere", get(b"http://evil.com/health", b"Host: evil.com"), (421,)),
    Case("an encoded slash", get(b"/v1%2Fmodels"), (400,)),
    Case("an encoded backslash", get(b"/v1/models/a%5cb"), (400,)),
    Case("an encoded slash in a model's name", get(b"/v1/models/no%2Fsuch"), (404,), full=REFUSED),
    Case("no path", get(b"localhost:80"), (400,)),
    # Versions and methods.
    Case("HTTP/1.0", get(version=b"HTTP/1.0"), (200,), closes=True),
    Case("HTTP/0.9", b"GET /health\r\n\r\n", (400,), closes=True),
    Case("HTTP/2's preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (), closes=True),
    Case("HTTP/3.0", get(version=b"HTTP/3.0"), (400,), closes=True),
    Case("CONNECT", get(b"evil.com:443", method=b"CONNECT"), (400,)),
    Case("OPTIONS *", get(b"*", method=b"OPTIONS"), (400,)),
    Case("TRACE", get(method=b"TRACE"), (405,)),
    Case("HEAD", get(method=b"HEAD"), (405,), bodiless=True),
    Case("a method in small letters", get(method=b"get"), (405,)),
    # More than one.
    Case("three at once", get() + post() + get(b"/nowhere"), (200, 200, 404), full=(200, 503, 404)),
    Case("after it said close", get(b"/health", HOST[:-2], b"Connection: close") + HIDDEN, (200,), closes=True),
    Case("nonsense after it", get() + b"\x00\x01\x02\r\n\r\n", (200, 400), closes=True),
)


@pytest.fixture(scope="module")
def roomy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with secured_server(tmp_path_factory.mktemp("roomy")) as (served, _):
        yield served


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with secured_server(tmp_path_factory.mktemp("full")) as (served, _):
        served.server.admission.room = 0.0  # it grows by a share of itself: from nothing, never
        yield served


class Answer(NamedTuple):
    status: int
    body: bytes


class Line:
    """A connection, and the answers that came on it."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self.sock = socket.create_connection((str(place.hostname), place.port), 5.0)
        self.rest = b""
        self.closed = False

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def send(self, raw: bytes) -> None:
        try:
            self.sock.sendall(raw)
        except ConnectionError:
            self.closed = True

    def read(self, count: int, within_s: float = 5.0, *, bodiless: bool = False) -> list[Answer]:
        """So many answers; fewer if the connection is closed or nothing comes."""
        found: list[Answer] = []
        while len(found) < count and (one := self._read_one(within_s, bodiless)) is not None:
            found.append(one)
        return found

    def _read_one(self, within_s: float, bodiless: bool) -> Answer | None:
        while (found := _answer(self.rest, bodiless)) is None:
            self.sock.settimeout(within_s)
            try:
                piece = self.sock.recv(65536)
            except TimeoutError:
                return None
            except ConnectionError:
                piece = b""
            if not piece:
                self.closed = True
                assert not self.rest, f"half an answer: {self.rest!r}"
                return None
            self.rest += piece
        answer, self.rest = found
        return answer


def _answer(data: bytes, bodiless: bool) -> tuple[Answer, bytes] | None:
    head, end, rest = data.partition(b"\r\n\r\n")
    if not end:
        return None
    status = re.match(rb"HTTP/1\.[01] (\d{3}) ", head)
    assert status is not None, f"no answer begins like this: {data[:200]!r}"
    length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
    size = int(length[1]) if length is not None and not bodiless else 0
    return (Answer(int(status[1]), rest[:size]), rest[size:]) if len(rest) >= size else None


def named(name: str) -> bytes:
    """A request whose answer repeats its name, whether there is room or not."""
    return get(method=name.encode())


def is_for(answer: Answer, name: str) -> bool:
    return answer.status == 405 and f"{name} is not allowed on this path".encode() in answer.body


def test_the_table_is_large_enough() -> None:
    assert len({case.id for case in CASES}) == len(CASES) >= 30


@pytest.mark.alike(2)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.parametrize("crowd", ["roomy", "full"])
class TestEveryAnswerBelongsToItsRequest:
    def test_alone(self, request: pytest.FixtureRequest, crowd: str, case: Case) -> None:
        served: RunningServer = request.getfixturevalue(crowd)
        wanted = case.full if crowd == "full" and case.full is not None else case.statuses
        with Line(served.url) as line:
            line.send(case.raw)
            found = line.read(len(wanted), bodiless=case.bodiless)
            more = line.read(1, 2.0 if case.closes else QUIET_S)
        assert tuple(answer.status for answer in found) == wanted, found
        assert not more, "an answer that nobody asked for"
        assert line.closed or not case.closes
        assert not any(b"HIDDEN" in answer.body for answer in found)

    def test_on_a_kept_connection(self, request: pytest.FixtureRequest, crowd: str, case: Case) -> None:
        served: RunningServer = request.getfixturevalue(crowd)
        wanted = case.full if crowd == "full" and case.full is not None else case.statuses
        with Line(served.url) as line:
            line.send(named("BEFORE"))
            (before,) = line.read(1)
            line.send(case.raw)
            found = line.read(len(wanted), bodiless=case.bodiless)
            line.send(named("AFTER"))
            after = line.read(2, 2.0 if case.closes else QUIET_S)
        assert is_for(before, "BEFORE")
        assert tuple(answer.status for answer in found) == wanted, found
        # A server may close when it has not read all of a request; it may not take the rest for another.
        assert line.closed if case.closes else len(after) == 1 or line.closed, after
        assert all(is_for(answer, "AFTER") for answer in after), after
        assert len(after) <= (0 if case.closes else 1)


# --- many connections


@pytest.fixture
def files() -> Iterator[None]:
    """As many as the system allows: both ends of every connection are here."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 8192:
        pytest.skip("needs 8,192 open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def half_open(url: str, count: int, stack: contextlib.ExitStack, sent: bytes) -> None:
    place = urlsplit(url)
    for _ in range(count):
        sock = stack.enter_context(socket.create_connection((str(place.hostname), place.port), 5.0))
        sock.sendall(sent)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /health HTTP/1.1\r\nhost: loc",
        b"GET /health HTTP/1.1\r\nx: " + b"a" * 60_000,
        b"POST /v1/nowhere HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{",
    ],
    ids=["nothing", "half a head", "a long half", "half a body"],
)
def test_others_are_served_while_many_hold_a_connection(
    pair: tuple[RunningServer, ScriptedProvider], sent: bytes
) -> None:
    served, _ = pair
    with contextlib.ExitStack() as stack:
        half_open(served.url, 1100, stack, sent)
        for _ in range(5):
            began = time.monotonic()
            assert call(served.url, "GET", "/health").status == 200
            assert call(served.url, "POST", "/v1/chat/completions", chat()).status == 200
            assert time.monotonic() - began < 2.0


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningServer, ScriptedProvider]]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8192 if hard == resource.RLIM_INFINITY else min(hard, 8192)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    with secured_server(tmp_path_factory.mktemp("many")) as found:
        yield found


def test_a_full_house_says_so_once_and_then_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(serving_module, "HEAD_S", 1.5)
    monkeypatch.setattr(serving_module, "LOOK_S", 0.1)
    caplog.set_level(logging.WARNING, "turnout.web")

    def said() -> list[str]:
        return [record.getMessage() for record in caplog.records if "connections are open" in record.getMessage()]

    with secured_server(tmp_path / "server", server="connections = 20") as (served, _), contextlib.ExitStack() as stack:
        for episode in (1, 2):
            half_open(served.url, 25, stack, b"GET /health HTTP/1.1\r\n")
            # Those that hold the places are let go after a while, and whoever waited is served.
            assert call(served.url, "GET", "/health").status == 200
            assert len(said()) == episode
            assert said()[-1].startswith("20 connections are open, which is the limit, and ")
            # Whoever looks after the server gets in all the same.
            assert call(served.admin, "GET", "/health").status == 200
            time.sleep(1.0)


def test_the_limit_of_open_files_is_raised_or_kept_to() -> None:
    """In a process of its own, whose limit is lowered."""
    told = (
        "import resource\n"
        "from turnout.net.listener import most_connections\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 4096))\n"
        "print(most_connections(2048, 200, raise_limit=False), resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
        "print(most_connections(2048, 200, raise_limit=True), resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
        "print(most_connections(9999, 200, raise_limit=True), resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
    )
    ran = subprocess.run([sys.executable, "-c", told], check=True, capture_output=True, text=True)
    assert ran.stdout.split("\n")[:3] == ["568 1024", "2048 2504", "3640 4096"]
