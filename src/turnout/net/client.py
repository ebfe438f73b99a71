"""The one HTTP client: aiohttp's, limited to what the egress guard allows.

It connects only where the guard allows, sends a credential only to the host it belongs to, and gives every failure a
name of ours. A host name is resolved once, and all its addresses are checked before one is used. Redirects, cookies,
decompression and proxies from the environment are off. When the guard's rules change, connections and resolved names
of the old rules are not used again.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from functools import lru_cache, partial
from io import BytesIO
from time import monotonic
from types import TracebackType
from typing import NamedTuple, TypedDict, TypeVar
from weakref import WeakKeyDictionary

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from yarl import URL

from turnout.core.errors import Broken, EgressRefused, NetError, TimedOut

from .deadline import Deadline
from .egress import Egress, Origin, is_exposed
from .failure import name_failure, said_by
from .inflate import ENCODINGS, inflate
from .transport import Exchange, Request, Talk, Transport

__all__ = ["Client", "Request", "Response"]

# For the pool, the name, the connection and TLS together; a provider that takes longer counts as down.
CONNECT_S = 2.0
CONNECTIONS = 512
KEEP_ALIVE_S = 30.0
# Headers that aiohttp adds to a request without them.
UNASKED = frozenset(("accept", "content-type"))
# How long the checked addresses of a name are used.
NAMES_S = 30
# All headers of a response together; Node has the same limit.
HEADER_BYTES = 16 * 1024
# A longer body is sent in pieces, so that sending it stops when its caller goes away.
PIECE_BYTES = 64 * 1024
# Of one WebSocket message: the list of all entities of a large home has some 3 MB.
MESSAGE_BYTES = 16 * 1024 * 1024
# How long closing a WebSocket may wait for the other side.
FAREWELL_S = 0.25
# Of a response that is read whole. Generations are far smaller; images and audio may not be.
WHOLE_BYTES = 64 * 1024 * 1024
# Requests ask for plain responses. A compressed one is refused, or inflated if the request says so, within the limit
# it is read with.
PLAIN = frozenset(("", "identity"))
TOO_LONG = "the answer took too long"
Started = TypeVar("Started")
_PATH = re.compile(r"/[\x21\x22\x24-\x7e]*")
_BROKEN_LINE = re.compile(r"[\x00\r\n]")


class Client:
    """Sends requests. One for the whole process; used inside one running event loop."""

    def __init__(self, egress: Egress, transport: Transport | None = None) -> None:
        self.egress = egress
        self.transport = transport or HttpTransport()

    async def open(self, request: Request, wait_s: float) -> Response:
        """Send a request and return the response as soon as its headers have arrived."""
        origin = self.egress.known.get(request.origin) or self.egress.allows(request.origin)
        exchange = await self.transport.send(_complete(request, origin), self.egress, wait_s)
        encoding = exchange.headers.get("content-encoding", "").strip().lower()
        if encoding in PLAIN:
            return Response(exchange, origin.host)
        if request.inflates and encoding in ENCODINGS:
            return Response(exchange, origin.host, encoding)
        exchange.close()
        broken = Broken(f"{origin.host}: the answer is encoded ({encoding[:40]}), which was not asked for")
        broken.was_sent = True
        raise broken

    async def converse(self, request: Request, wait_s: float) -> Talk:
        """Open a WebSocket. A credential sent in a message is protected like one in a header."""
        origin = self.egress.allows(request.origin)
        return await self.transport.converse(_complete(request, origin), self.egress, wait_s)

    async def close(self) -> None:
        await self.transport.close()


def _complete(request: Request, origin: Origin) -> Request:
    """The request with all its headers; refused if a server could read it as more than one request."""
    if not _PATH.fullmatch(request.path):
        raise EgressRefused(f"{request.path[:120]!r} leads away from {origin}: no connection is made")
    headers = {"accept-encoding": "identity", "user-agent": "turnout"}
    for name, value in request.headers.items():
        headers[name.lower()] = value
    if request.credential is not None:
        # It replaces a header of the same name from the caller.
        headers[request.credential[0].lower()] = request.credential[1]
    if _BROKEN_LINE.search("".join((*headers, *headers.values()))):
        name = next(name for name, value in headers.items() if _BROKEN_LINE.search(name + value))
        raise ValueError(f"the header {name[:40]!r} holds a line end or a NUL")
    shielded = (request.credential is not None or request.shielded) and not request.plain_http
    return request._replace(origin=origin, headers=headers, credential=None, shielded=shielded)


class Response:
    """A response. Use it as a context: leaving it ends the exchange."""

    def __init__(self, exchange: Exchange, where: str, encoding: str = "") -> None:
        self.status = exchange.status
        self.headers = exchange.headers
        self._exchange = exchange
        self._where = where
        self._encoding = encoding

    async def __aenter__(self) -> Response:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the exchange, also for a reader in another task. The connection of an unfinished one is not reused."""
        self._exchange.close()

    async def next(self, idle_s: float, deadline: Deadline | None = None) -> bytes:
        """The next piece of the body, empty at its end. Raises TimedOut after a silence of `idle_s`, or at the
        deadline."""
        wait_s = idle_s if deadline is None else deadline.within(idle_s)
        if not wait_s:
            raise self._late(TOO_LONG)
        try:
            async with asyncio.timeout(wait_s):
                return await self._exchange.next()
        except TimeoutError:
            raise self._late(f"silent for {idle_s:g} s" if wait_s == idle_s else TOO_LONG) from None

    async def chunks(self, idle_s: float, deadline: Deadline | None = None) -> AsyncIterator[bytes]:
        """The body, piece by piece as it arrives."""
        while chunk := await self.next(idle_s, deadline):
            yield chunk

    async def read(self, deadline: Deadline, limit: int = WHOLE_BYTES) -> bytes:
        """The whole body; ends the exchange."""
        left_s = deadline.at - monotonic()
        if left_s <= 0:
            raise self._late(TOO_LONG)
        whole = self._exchange.ready()
        if whole is None:
            whole = await self._wait_for_all(left_s, limit)
        if len(whole) > limit:
            raise Broken(f"{self._where}: the answer is longer than {limit:,} bytes")
        self._exchange.close()
        return inflate(whole, self._encoding, limit, self._where) if self._encoding else whole

    async def _wait_for_all(self, left_s: float, limit: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(left_s):
                while size <= limit and (chunk := await self._exchange.next()):
                    size += len(chunk)
                    parts.append(chunk)
        except TimeoutError:
            raise self._late(TOO_LONG) from None
        return b"".join(parts)

    def _late(self, said: str) -> TimedOut:
        return TimedOut(f"{self._where}: {said}")


class HttpTransport:
    """Keeps connections between requests; used inside one running event loop."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._tls: ssl.SSLContext | None = None

    async def send(self, request: Request, egress: Egress, wait_s: float) -> Exchange:
        origin, body, headers, proxy = request.origin, request.body, request.headers, _proxy(egress, request.origin)
        if proxy["proxy_headers"] and origin.scheme != "https":
            # Over TLS the login goes with CONNECT; without TLS it goes with the request itself.
            headers = {**headers, **proxy["proxy_headers"]}

        async def start() -> aiohttp.ClientResponse:
            return await self._opened(egress).request(
                request.method,
                _url(origin, request.path),
                data=BytesIO(body) if len(body) > PIECE_BYTES else body or None,
                headers=headers,
                # aiohttp copies all headers to leave out some of its own: only asked for where it would add one.
                skip_auto_headers=None if headers.keys() >= UNASKED else UNASKED,
                allow_redirects=False,
                ssl=self._trusted(origin),
                **proxy,
            )

        exchange = _Exchange(await self._attempt(request, wait_s, start))
        if exchange.size > HEADER_BYTES:
            exchange.close()
            message = f"what it answered is not HTTP (headers of more than {HEADER_BYTES:,} bytes)"
            broken = Broken(f"{origin.host}: {message}")
            broken.was_sent = True
            raise broken
        return exchange

    async def converse(self, request: Request, egress: Egress, wait_s: float) -> Conversation:
        """Open a WebSocket, through the same guard."""

        async def start() -> aiohttp.ClientWebSocketResponse:
            return await self._opened(egress).ws_connect(
                _url(request.origin, request.path),
                headers=request.headers,
                max_msg_size=MESSAGE_BYTES,
                ssl=self._trusted(request.origin),
                **_proxy(egress, request.origin),
            )

        return Conversation(await self._attempt(request, wait_s, start), request.origin.host)

    async def _attempt(self, request: Request, wait_s: float, start: Callable[[], Awaitable[Started]]) -> Started:
        """What `start` returns, within the time; its failures are NetErrors."""
        attempt = _Attempt(request)
        try:
            async with asyncio.timeout(wait_s):
                # Set within the timeout: its timer would keep a context with this value until it fires.
                mark = _attempt.set(attempt)
                try:
                    return await start()
                finally:
                    _attempt.reset(mark)
        except (NetError, aiohttp.ClientError, OSError) as error:
            failure = name_failure(error, request.origin.host, CONNECT_S, wait_s)
        failure.was_sent = attempt.connected
        raise failure

    def _trusted(self, origin: Origin) -> ssl.SSLContext | bool:
        if origin.scheme == "https" and self._tls is None:
            self._tls = trusted()
        return self._tls or True

    def _opened(self, egress: Egress) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=_Connector(egress),
                trust_env=False,
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_S),
                max_line_size=HEADER_BYTES,
                max_field_size=HEADER_BYTES,
            )
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


class _Attempt:
    """What the connector must know about a request, and whether it got a connection."""

    def __init__(self, request: Request) -> None:
        self.origin = request.origin
        self.shielded = request.shielded
        """It carries a key, which is never sent to a public address over plain http."""
        self.connected = False
        """Before that, nothing of the request was sent."""


_attempt: ContextVar[_Attempt] = ContextVar("attempt")


class _Exchange:
    """A response on its connection."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self.headers: dict[str, str] = {}
        self.size = 0
        """Of the headers, in bytes."""
        for name, value in response.headers.items():
            key = name.lower()
            self.headers[key] = f"{self.headers[key]}, {value}" if key in self.headers else value
            self.size += len(name) + len(value) + 4
        self._response = response
        self._where = response.url.raw_host
        protocol = response.connection.protocol if response.connection is not None else None
        self._closed = protocol.closed if protocol is not None else None
        if self._closed is not None:
            self._closed.add_done_callback(self._end)

    def ready(self) -> bytes | None:
        content = self._response.content
        if not content.is_eof() or content.exception() is not None or self._torn() is not None:
            return None
        return content.read_nowait()

    async def next(self) -> bytes:
        chunk, broken = b"", None
        try:
            chunk = await self._response.content.readany()
            broken = None if chunk else self._response.content.exception() or self._torn()
        except (aiohttp.ClientError, OSError, RuntimeError) as error:
            broken = error  # a RuntimeError if the connection was lost at this moment
        if broken is not None:
            raise Broken(f"{self._where}: the answer broke off ({said_by(broken)})") from broken
        return chunk

    def close(self) -> None:
        content = self._response.content
        if self._closed is not None:
            self._closed.remove_done_callback(self._end)
        if content.at_eof() and self._response.connection is None:
            return  # it was read to its end, and its connection is free for the next request
        if content.exception() is None:
            # By default aiohttp raises one error object for all responses, which then keeps every frame it passed.
            content.set_exception(aiohttp.ClientConnectionError("closed by us"))
        self._response.close()

    def _end(self, closed: asyncio.Future[None]) -> None:
        """The connection was lost: a reader must not wait for the rest."""
        content, lost = self._response.content, _lost(closed)
        if content.exception() is None and not content.is_eof():
            content.set_exception(
                aiohttp.ClientPayloadError(said_by(lost) if lost is not None else "connection closed")
            )

    def _torn(self) -> BaseException | None:
        """The error if a response that ends with its connection was cut off: closed is an end, reset is not."""
        if self._closed is None or not self._closed.done():
            return None
        return None if "content-length" in self.headers or "transfer-encoding" in self.headers else _lost(self._closed)


class Conversation:
    """A WebSocket: text messages of limited size in both directions."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, where: str) -> None:
        self._socket = socket
        self._where = where

    async def say(self, text: str) -> None:
        try:
            await self._socket.send_str(text)
        except (aiohttp.ClientError, OSError) as error:
            raise Broken(f"{self._where}: the conversation broke off ({said_by(error)})") from error

    async def hear(self, wait_s: float) -> str:
        """The next message."""
        try:
            async with asyncio.timeout(wait_s):
                heard = await self._socket.receive()
        except TimeoutError:
            raise TimedOut(f"{self._where}: silent for {wait_s:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise Broken(f"{self._where}: the conversation broke off ({said_by(error)})") from error
        if heard.type is not aiohttp.WSMsgType.TEXT:
            raise Broken(f"{self._where}: the conversation ended ({heard.type.name.lower()})")
        return str(heard.data)

    async def close(self) -> None:
        """Close it, without waiting long for the other side."""
        with contextlib.suppress(TimeoutError, aiohttp.ClientError, OSError):
            async with asyncio.timeout(FAREWELL_S):
                await self._socket.close()


class _Resolver(AbstractResolver):
    """Resolves a name; raises EgressRefused unless the guard admits every one of its addresses."""

    def __init__(self, egress: Egress) -> None:
        self._egress = egress
        self._resolver = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "it has no address")
        for one in found:
            self._egress.admits(host, port, one["host"])
        return found

    async def close(self) -> None:
        await self._resolver.close()


class _Made(NamedTuple):
    """What was true of a connection when it was made."""

    rules: object
    """The rules of the guard."""
    address: str
    exposed: bool
    """Whether others can read what is sent on it."""


class _Connector(aiohttp.TCPConnector):
    """A pool that hands out no connection that has received unrequested bytes, and keeps none with unsent bytes."""

    def __init__(self, egress: Egress) -> None:
        super().__init__(
            resolver=_Resolver(egress), limit=CONNECTIONS, keepalive_timeout=KEEP_ALIVE_S, ttl_dns_cache=NAMES_S
        )
        self._egress = egress
        self._rules = egress.rules
        self._made: WeakKeyDictionary[ResponseHandler, _Made] = WeakKeyDictionary()

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        attempt, rules = _attempt.get(), self._egress.rules
        if (req.url.scheme, req.url.host, req.url.port) != attempt.origin[:3]:
            # aiohttp follows redirects of a WebSocket handshake, whatever it is told.
            raise EgressRefused(f"{attempt.origin.host} leads to another place: no connection is made")
        if rules != self._rules:
            self._rules = rules
            self.clear_dns_cache()
        while True:
            connection = await super().connect(req, traces, timeout)
            protocol, transport = connection.protocol, connection.transport
            made = self._made.get(protocol) if protocol is not None else None
            same = made is None or made.rules == rules
            if same and protocol is not None and transport is not None and not protocol.should_close:
                break
            # Bytes that arrived after the last response would be taken for the response to this request.
            connection.close()
            if made is None:
                raise aiohttp.ClientConnectionError("it spoke before it was asked")
        if made is None:
            address = str(transport.get_extra_info("peername")[0])
            made = self._made[protocol] = _Made(rules, address, is_exposed(attempt.origin, address))
            if protocol.closed is not None:
                # Retrieved, so that asyncio does not report how an idle connection ended.
                protocol.closed.add_done_callback(_lost)
        if attempt.shielded and made.exposed:
            connection.close()
            said = f"{attempt.origin.host} leads to {made.address}, a public address: a key is not sent there over http"
            raise EgressRefused(f"{said}; use https, or set plain_http = true if that is meant")
        connection.add_callback(partial(_drop_unsent, transport))
        attempt.connected = True
        return connection


class _ProxyOptions(TypedDict):
    proxy: URL | None
    proxy_headers: dict[str, str]


def _proxy(egress: Egress, origin: Origin) -> _ProxyOptions:
    """The proxy for a request, if it needs one: private origins are inside this network, the proxy leads out of it."""
    proxy = egress.proxy if not origin.private else None
    if proxy is None:
        return {"proxy": None, "proxy_headers": {}}
    login = {"proxy-authorization": proxy.login} if proxy.login else {}
    return {"proxy": _url(proxy.origin, ""), "proxy_headers": login}


def _lost(closed: asyncio.Future[None]) -> BaseException | None:
    """The error a connection was lost by; None if it was closed."""
    return None if closed.cancelled() else closed.exception()


def _drop_unsent(transport: asyncio.Transport) -> None:
    """Closing waits until everything is sent, which never happens if the peer does not read."""
    if transport.get_write_buffer_size():
        transport.abort()


@lru_cache(maxsize=256)
def _url(origin: Origin, path: str) -> URL:
    return URL(f"{origin}{path}", encoded=True)


def trusted() -> ssl.SSLContext:
    """The certificates that this system trusts."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
