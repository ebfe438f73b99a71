"""A WebSocket is a row of the route table: guarded, let in and authenticated as any other, on both servers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar, NamedTuple
from urllib.parse import urlsplit

import aiohttp
import pytest

from secured_server import call, clean_environment, forget, id_of, make_key, send_raw, status_of
from serving import SERVERS, RunningServer, serving
from turnout.apps import app as app_module
from turnout.apps.app import SOCKET, Answer, AppCommand, Call, Route
from turnout.runtime.runtime import Runtime
from turnout.web import socket as socket_module

QUIET = "[server]\nlag_s = 60.0\nwait_s = 5.0\ndrain_s = 1.0\n"


class Telling:
    """Counts for whoever listens; what it is told to count to stands in the path."""

    name = "telling"
    commands: ClassVar[tuple[AppCommand, ...]] = ()
    closed: ClassVar[list[str]] = []

    def __init__(self, runtime: Runtime) -> None:
        self.routes = (Route(SOCKET, "/ws/tell/{id}", "ask", self.tell),)

    async def tell(self, call: Call) -> Answer:
        """Count."""
        return Answer(200, [], self._count(call.params["id"]))

    async def _count(self, said: str) -> AsyncGenerator[bytes, None]:
        try:
            for number in range(int(said.strip("+"))):
                yield (str(number) * (100_000 if said.startswith("+") else 1)).encode()
            if said.endswith("+"):
                await asyncio.Event().wait()
        finally:
            self.closed.append(said)


@pytest.fixture(params=SERVERS)
def served(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningServer]:
    clean_environment(monkeypatch, tmp_path)
    entry = EntryPoint("telling", f"{__name__}:Telling", app_module.GROUP)
    monkeypatch.setattr(EntryPoint, "load", lambda self: Telling)
    monkeypatch.setattr(app_module, "entry_points", lambda *, group: [entry] if group == app_module.GROUP else [])
    Telling.closed.clear()
    with serving(tmp_path, QUIET, server=request.param) as found:
        yield found


Talk = Callable[[aiohttp.ClientWebSocketResponse], Awaitable[Any]]


def connect(served: RunningServer, path: str, talk: Talk, **options: Any) -> Any:
    """What came of talking over a socket; the status if it was refused."""

    async def run() -> Any:
        async with aiohttp.ClientSession() as session:
            try:
                async with session.ws_connect(f"{served.url}{path}", **options) as opened:
                    return await asyncio.wait_for(talk(opened), 10)
            except aiohttp.WSServerHandshakeError as refused:
                return refused.status

    return asyncio.run(run())


async def listen(opened: aiohttp.ClientWebSocketResponse) -> tuple[list[str], int | None]:
    """Everything that is told, and what the socket was closed with."""
    told: list[str] = []
    while (message := await opened.receive()).type is aiohttp.WSMsgType.TEXT:
        told.append(message.data)
    # What the socket itself says of it is whether the client's own goodbye could still be sent.
    return told, message.data


async def first(opened: aiohttp.ClientWebSocketResponse) -> str:
    return str((await opened.receive()).data)


def until(is_so: Callable[[], bool]) -> bool:
    end = time.monotonic() + 5
    while not is_so() and time.monotonic() < end:
        time.sleep(0.01)
    return is_so()


def test_every_piece_is_a_message(served: RunningServer) -> None:
    assert connect(served, "/ws/tell/3", listen) == (["0", "1", "2"], 1000)
    assert until(lambda: not served.server.sockets)
    assert served.server.admission.active == 0


def test_a_client_that_leaves_ends_the_stream(served: RunningServer) -> None:
    assert connect(served, "/ws/tell/1+", first) == "0"
    assert until(lambda: Telling.closed == ["1+"])
    assert until(lambda: not served.server.sockets)


class Refusal(NamedTuple):
    id: str
    path: str
    headers: dict[str, str]
    status: int


REFUSALS = [
    Refusal("a foreign page", "/ws/tell/1", {"origin": "https://evil.example"}, 403),
    Refusal("a page of no origin", "/ws/tell/1", {"origin": "null"}, 403),
    Refusal("another port's page", "/ws/tell/1", {"origin": "http://127.0.0.1:1"}, 403),
    Refusal("another site's page", "/ws/tell/1", {"sec-fetch-site": "cross-site"}, 403),
    Refusal("another host", "/ws/tell/1", {"host": "evil.example"}, 421),
    Refusal("no such socket", "/ws/none", {}, 404),
    Refusal("a route that is none", "/v1/route", {}, 404),
]


def test_refused_before_it_is_accepted(served: RunningServer) -> None:
    for case in REFUSALS:
        assert connect(served, case.path, listen, headers=case.headers) == case.status, case.id
    assert Telling.closed == []


def test_its_own_page_may_connect(served: RunningServer) -> None:
    assert connect(served, "/ws/tell/1", listen, headers={"origin": served.url}) == (["0"], 1000)


def test_it_is_no_route_of_http(served: RunningServer) -> None:
    for method in ("GET", "POST"):
        got = call(served.url, method, "/ws/tell/1")
        assert (got.status, got.headers["upgrade"]) == (426, "websocket")
    # A method that one of the servers does not even read.
    assert call(served.url, "WS", "/ws/tell/1").status in (400, 426)
    assert "/ws/tell/{id}" not in json.loads(call(served.url, "GET", "/openapi.json").body)["paths"]


def test_keys(served: RunningServer) -> None:
    good, weak = make_key(served.store), make_key(served.store, scopes=("route",))
    forget(served)
    assert connect(served, "/ws/tell/1", listen) == 401
    assert connect(served, "/ws/tell/1", listen, headers={"authorization": f"Bearer {weak}"}) == 403
    assert connect(served, "/ws/tell/1", listen, headers={"x-api-key": good}) == (["0"], 1000)

    async def protocol(opened: aiohttp.ClientWebSocketResponse) -> tuple[str | None, str]:
        return opened.protocol, await first(opened)

    # As a page's script sends it, which cannot set headers.
    assert connect(served, "/ws/tell/1", protocol, protocols=["turnout", good]) == ("turnout", "0")
    assert connect(served, "/ws/tell/1", listen, protocols=["turnout", "tno_short"]) == 401
    both = {"protocols": ["turnout", good], "headers": {"x-api-key": good}}
    assert connect(served, "/ws/tell/1", listen, **both) == 400


def test_a_revoked_key_loses_its_socket(served: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_module, "RECHECK_S", 0.05)
    monkeypatch.setattr(socket_module, "PING_S", 0.05)
    key = make_key(served.store)
    forget(served)

    async def revoked(opened: aiohttp.ClientWebSocketResponse) -> int | None:
        await first(opened)
        await asyncio.to_thread(served.store.keys.revoke, id_of(key))
        await asyncio.to_thread(forget, served)
        return (await listen(opened))[1]

    assert connect(served, "/ws/tell/1+", revoked, headers={"x-api-key": key}) == 1008


def test_pings_are_answered_and_sent(served: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ping(opened: aiohttp.ClientWebSocketResponse) -> list[str]:
        told = [await first(opened)]
        for said in ("ping", '{"type": "ping"}', "pong", '{"event": "ping"}'):
            await opened.send_str(said)
        told += [await first(opened) for _ in range(3)]
        return told

    pong = '{"event":"pong"}'
    assert connect(served, "/ws/tell/1+", ping) == ["0", pong, pong, pong]
    monkeypatch.setattr(socket_module, "PING_S", 0.05)

    async def idle(opened: aiohttp.ClientWebSocketResponse) -> list[str]:
        return [await first(opened) for _ in range(3)]

    assert connect(served, "/ws/tell/1+", idle) == ["0", *['{"event":"ping"}'] * 2]


class Chatter(NamedTuple):
    id: str
    sent: list[str | bytes]


CHATTER = [
    Chatter("much", ["x"] * 100),
    Chatter("long", ["x" * 1000]),
    Chatter("binary", [b"\x00\xff"]),
    Chatter("deep", ["[" * 200_000]),
]


async def chatter(opened: aiohttp.ClientWebSocketResponse, case: Chatter) -> int | None:
    with contextlib.suppress(aiohttp.ClientError, ConnectionError):
        for said in case.sent:
            await (opened.send_bytes(said) if isinstance(said, bytes) else opened.send_str(said))
    return (await listen(opened))[1]


def test_a_client_has_nothing_to_say(served: RunningServer) -> None:
    for case in CHATTER:
        assert connect(served, "/ws/tell/1+", partial(chatter, case=case)) == 1008, case.id
    assert until(lambda: Telling.closed == ["1+"] * len(CHATTER))


def test_no_more_than_there_may_be(served: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    from msgspec.structs import replace

    served.server.settings = replace(served.server.settings, sockets=2)

    async def three(opened: aiohttp.ClientWebSocketResponse) -> Any:
        async with aiohttp.ClientSession() as session, session.ws_connect(f"{served.url}/ws/tell/1+"):
            return await asyncio.to_thread(connect, served, "/ws/tell/1+", listen)

    assert connect(served, "/ws/tell/1+", three) == 503


def test_no_more_than_a_key_may_have(served: RunningServer) -> None:
    from msgspec.structs import replace

    served.server.settings = replace(served.server.settings, key_sockets=1)
    mine, other = ({"x-api-key": make_key(served.store)} for _ in range(2))
    forget(served)

    async def second(opened: aiohttp.ClientWebSocketResponse) -> Any:
        again = await asyncio.to_thread(connect, served, "/ws/tell/1+", listen, headers=mine)
        return again, await asyncio.to_thread(connect, served, "/ws/tell/1", listen, headers=other)

    refused, let_in = connect(served, "/ws/tell/1+", second, headers=mine)
    assert (refused, let_in != 503) == (503, True)


def test_who_takes_nothing_is_let_go(served: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_module, "TAKE_S", 0.3)
    place = urlsplit(served.url)
    request = (
        "GET /ws/tell/+999 HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
        "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    with socket.create_connection((str(place.hostname), place.port)) as opened:
        opened.sendall(request.encode())
        assert until(lambda: Telling.closed == ["+999"])
        assert until(lambda: not served.server.sockets)


def test_a_server_that_stops_says_so(served: RunningServer) -> None:
    async def stopped(opened: aiohttp.ClientWebSocketResponse) -> tuple[list[str], int | None]:
        told = [await first(opened)]
        served.stop()
        rest, code = await listen(opened)
        return told + rest, code

    began = time.monotonic()
    assert connect(served, "/ws/tell/1+", stopped) == (["0"], 1012)
    assert until(lambda: Telling.closed == ["1+"])
    assert time.monotonic() - began < 5


def test_a_handshake_that_is_none(served: RunningServer) -> None:
    told = send_raw(served.url, b"GET /ws/tell/1 HTTP/1.1\r\nhost: 127.0.0.1\r\nupgrade: websocket\r\n\r\n")
    assert status_of(told) in (400, 426)
