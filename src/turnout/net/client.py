"""The one HTTP client: aiohttp's, limited to what the egress guard allows.

It sends a credential only to the host it belongs to, and its errors are NetErrors. A name is resolved once, and all its
addresses are checked before one is used. Redirects, cookies, decompression and proxies from the environment are off.
After a change of the guard's rules, connections and addresses of the old rules are not used again.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import lru_cache, partial
from io import BytesIO
from time import monotonic
from typing import NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import aiohttp
from aiohttp.abc import ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from msgspec import Struct
from yarl import URL

from turnout.core.errors import Broken, EgressRefused, NetError, TimedOut

from .deadline import Deadline
from .egress import Egress, Origin, is_exposed
from .failure import name_failure, text_of
from .inflate import ENCODINGS, inflate
from .transport import Exchange, Request, Transport

__all__ = ["Client", "Request", "Response"]

# For the pool, the name, the connection and TLS together; a provider that takes longer counts as down.
CONNECT_S = 2.0
CONNECTIONS = 512
KEEP_ALIVE_S = 30.0
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
# Content encodings of a plain response. Any other is refused, or inflated if the request says so.
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

    async def open_socket(self, request: Request, wait_s: float) -> WebSocket:
        """Open a WebSocket. A credential sent in a message is protected like one in a header."""
        origin = self.egress.allows(request.origin)
        return await self.transport.open_socket(_complete(request, origin), self.egress, wait_s)

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

    async def __aexit__(self, *_: object) -> None:
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

    def _late(self, message: str) -> TimedOut:
        return TimedOut(f"{self._where}: {message}")


class HttpTransport:
    """Keeps connections between requests; used inside one running event loop."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def send(self, request: Request, egress: Egress, wait_s: float) -> Exchange:
        origin, body = request.origin, request.body
        proxy, login = _proxy(egress, origin)

        async def start() -> _Exchange:
            response = await self._opened(egress).request(
                request.method,
                _url(origin, request.path),
                data=BytesIO(body) if len(body) > PIECE_BYTES else body or None,
                # Over TLS the login goes with CONNECT; without TLS it goes with the request itself.
                headers=request.headers if origin.scheme == "https" else {**request.headers, **login},
                allow_redirects=False,
                proxy=proxy,
                proxy_headers=login,
            )
            if sum(len(name) + len(value) + 4 for name, value in response.raw_headers) > HEADER_BYTES:
                response.close()
                message = f"what it answered is not HTTP (headers of more than {HEADER_BYTES:,} bytes)"
                raise Broken(f"{origin.host}: {message}")
            return _Exchange(response)

        return await self._start(request, wait_s, start)

    async def open_socket(self, request: Request, egress: Egress, wait_s: float) -> WebSocket:
        origin = request.origin
        proxy, login = _proxy(egress, origin)

        async def start() -> WebSocket:
            url = _url(origin, request.path)
            opened = await self._opened(egress).ws_connect(
                url, headers=request.headers, max_msg_size=MESSAGE_BYTES, proxy=proxy, proxy_headers=login
            )
            return WebSocket(opened, origin.host)

        return await self._start(request, wait_s, start)

    async def _start(self, request: Request, wait_s: float, start: Callable[[], Awaitable[Started]]) -> Started:
        """What `start` returns, within `wait_s`; its failures are NetErrors."""
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


class _Attempt(Struct):
    """The request for which the connector looks for a connection."""

    request: Request
    connected: bool = False
    """It has one. Before that, nothing of the request was sent."""


_attempt: ContextVar[_Attempt] = ContextVar("attempt")


class _Exchange:
    """A response on its connection."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self.headers: dict[str, str] = {}
        for name, value in response.headers.items():
            key = name.lower()
            self.headers[key] = f"{self.headers[key]}, {value}" if key in self.headers else value
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
            raise Broken(f"{self._where}: the answer broke off ({text_of(broken)})") from broken
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
                aiohttp.ClientPayloadError(text_of(lost) if lost is not None else "connection closed")
            )

    def _torn(self) -> BaseException | None:
        """The error if a response that ends with its connection was cut off: closed is an end, reset is not."""
        if self._closed is None or not self._closed.done():
            return None
        return None if "content-length" in self.headers or "transfer-encoding" in self.headers else _lost(self._closed)


class WebSocket:
    """A WebSocket: text messages of limited size in both directions."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, where: str) -> None:
        self._socket = socket
        self._where = where

    async def send(self, text: str) -> None:
        try:
            await self._socket.send_str(text)
        except (aiohttp.ClientError, OSError) as error:
            raise Broken(f"{self._where}: the conversation broke off ({text_of(error)})") from error

    async def receive(self, wait_s: float) -> str:
        """The next message. Raises TimedOut or Broken."""
        try:
            async with asyncio.timeout(wait_s):
                message = await self._socket.receive()
        except TimeoutError:
            raise TimedOut(f"{self._where}: silent for {wait_s:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise Broken(f"{self._where}: the conversation broke off ({text_of(error)})") from error
        if message.type is not aiohttp.WSMsgType.TEXT:
            raise Broken(f"{self._where}: the conversation ended ({message.type.name.lower()})")
        return str(message.data)

    async def close(self) -> None:
        """Close it, without waiting long for the other side."""
        with contextlib.suppress(TimeoutError, aiohttp.ClientError, OSError):
            async with asyncio.timeout(FAREWELL_S):
                await self._socket.close()


class _Resolver(aiohttp.ThreadedResolver):
    """Resolves a name; raises EgressRefused unless the guard admits every one of its addresses."""

    def __init__(self, egress: Egress) -> None:
        super().__init__()
        self._egress = egress

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        addresses = await super().resolve(host, port, family)
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "it has no address")
        for address in addresses:
            self._egress.admits(host, port, address["host"])
        return addresses


class _ConnectionFacts(NamedTuple):
    """What was true of a connection when it was made."""

    rules: object
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
        self._made: WeakKeyDictionary[ResponseHandler, _ConnectionFacts] = WeakKeyDictionary()

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        attempt, rules = _attempt.get(), self._egress.rules
        origin = attempt.request.origin
        if (req.url.scheme, req.url.host, req.url.port) != origin[:3]:
            # aiohttp follows redirects of a WebSocket handshake, whatever it is told.
            raise EgressRefused(f"{origin.host} leads to another place: no connection is made")
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
            # Bytes that arrived after the last response would be read as the response to this request.
            connection.close()
            if made is None:
                raise aiohttp.ClientConnectionError("it spoke before it was asked")
        if made is None:
            address = str(transport.get_extra_info("peername")[0])
            made = self._made[protocol] = _ConnectionFacts(rules, address, is_exposed(origin, address))
            if protocol.closed is not None:
                # Retrieved, so that asyncio does not report how an idle connection ended.
                protocol.closed.add_done_callback(_lost)
        if attempt.request.shielded and made.exposed:
            connection.close()
            message = f"{origin.host} leads to {made.address}, a public address: a key is not sent there over http"
            raise EgressRefused(f"{message}; use https, or set plain_http = true if that is meant")
        connection.add_callback(partial(_drop_unsent, transport))
        attempt.connected = True
        return connection


def _proxy(egress: Egress, origin: Origin) -> tuple[URL | None, dict[str, str]]:
    """The proxy for a request and the header to log in to it. Private origins are reached without one."""
    proxy = egress.proxy if not origin.private else None
    if proxy is None:
        return None, {}
    return _url(proxy.origin, ""), {"proxy-authorization": proxy.login} if proxy.login else {}


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
