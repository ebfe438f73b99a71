"""The one HTTP client. It connects where the egress guard allows, attaches a credential only to the host it belongs to,
follows no redirect, takes no proxy from the environment, and names what went wrong.

A response is read as it comes; whoever reads it may stop at any moment, and the connection is closed then.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from functools import lru_cache, partial
from io import BytesIO
from types import TracebackType
from typing import Any, NamedTuple
from weakref import WeakSet

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from multidict import CIMultiDict
from yarl import URL

from turnout.core.errors import Broken, EgressRefused, TimedOut, Unreachable

from .deadline import Deadline
from .egress import Egress, Origin

# A place in the pool, the name, the connection and TLS together; a provider that takes longer is as good as down.
CONNECT_S = 2.0
CONNECTIONS = 512
KEEP_ALIVE_S = 30.0
# How long a name's addresses, once checked, are used.
NAMES_S = 30
# Of an answer that is read whole. Generations are far smaller; images and audio may not be.
WHOLE_BYTES = 64 * 1024 * 1024
# A header line beyond this is no provider's.
HEADER_BYTES = 16 * 1024
# A longer body is sent in pieces: what is not sent when its caller goes away never is.
PIECE_BYTES = 64 * 1024
# Answers are asked for as they are: what is small on the wire and huge in memory is not inflated at all.
PLAIN = frozenset(("", "identity"))
# Of what a library or a peer says about a failure.
SAID_CHARACTERS = 200


class Request(NamedTuple):
    """What is sent. The path begins with a slash; the credential is a header of its own, for this origin only."""

    origin: Origin
    path: str
    body: bytes = b""
    method: str = "POST"
    headers: Mapping[str, str] = {}
    credential: tuple[str, str] | None = None
    """A header's name and value."""


class GuardedResolver(AbstractResolver):
    """Resolves a name and hands out only addresses the egress guard admits."""

    def __init__(self, egress: Egress) -> None:
        self._egress = egress
        self._resolver = aiohttp.ThreadedResolver()

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)  # type: ignore[arg-type]
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "it has no address")
        for one in found:
            self._egress.admits(host, port, one["host"])
        return found

    async def close(self) -> None:
        await self._resolver.close()


class GuardedConnector(aiohttp.TCPConnector):
    """Hands out only connections on which nobody has spoken unasked, and lets none linger with words left to send."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._known: WeakSet[ResponseHandler] = WeakSet()

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        connection = await super().connect(req, traces, timeout)
        protocol, transport = connection.protocol, connection.transport
        if protocol is None or transport is None or protocol.should_close:
            # An answer that was sent after the last one, to nobody's question, would be taken for ours.
            connection.close()
            raise aiohttp.ClientConnectionError("it answered what was not asked")
        if protocol not in self._known and protocol.closed is not None:
            # Responses ask how their connection ends; when none is there, somebody must have asked all the same.
            self._known.add(protocol)
            protocol.closed.add_done_callback(_lost)
        connection.add_callback(partial(_drop_unsent, transport))
        return connection


def _lost(closed: asyncio.Future[None]) -> BaseException | None:
    """What a connection was lost by; None if it was closed."""
    return None if closed.cancelled() else closed.exception()


def _drop_unsent(transport: asyncio.Transport) -> None:
    """Closing waits until all is sent, which a peer that does not read can put off for ever."""
    if transport.get_write_buffer_size():
        transport.abort()


class Response:
    """An answer that has begun. Use it as a context: leaving it ends the exchange."""

    def __init__(self, response: aiohttp.ClientResponse, where: str) -> None:
        self._response = response
        self._where = where
        self.status = response.status
        self.headers = response.headers
        protocol = response.connection.protocol if response.connection is not None else None
        self._closed = protocol.closed if protocol is not None else None
        if self._closed is not None:
            self._closed.add_done_callback(self._end)

    def _end(self, closed: asyncio.Future[None]) -> None:
        """The connection is gone: nobody need wait for the rest. aiohttp says so only if it was lost in good order."""
        content, lost = self._response.content, _lost(closed)
        framed = "content-length" in self.headers or "transfer-encoding" in self.headers
        # An answer without a length ends with its connection: well if that was closed, not if it was torn.
        if content.exception() is None and (not content.is_eof() or (lost is not None and not framed)):
            content.set_exception(aiohttp.ClientPayloadError(_said(lost) if lost is not None else "connection closed"))

    async def __aenter__(self) -> Response:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it, for whoever is reading it too. A connection whose answer did not come to its end is not reused."""
        content = self._response.content
        if self._closed is not None:
            self._closed.remove_done_callback(self._end)
        if content.exception() is None:
            # Left to itself aiohttp raises one and the same error object for ever, which then keeps every frame it saw.
            content.set_exception(aiohttp.ClientConnectionError("closed by us"))
        if content.at_eof():
            self._response.release()
        else:
            self._response.close()

    async def chunks(self, idle_s: float, deadline: Deadline | None = None) -> AsyncIterator[bytes]:
        """The body as it arrives; a silence longer than `idle_s` is an error, and so is no end by the deadline."""
        content = self._response.content
        while True:
            wait_s = idle_s if deadline is None else deadline.within(idle_s)
            if not wait_s:
                raise TimedOut(f"{self._where}: the answer took too long")
            try:
                # What is here already needs no clock.
                chunk = content.read_nowait() if content.exception() is None else b""
                if not chunk and not content.at_eof():
                    async with asyncio.timeout(wait_s):
                        chunk = await content.readany()
                broken = content.exception()
                if not chunk and broken is not None:
                    raise broken
            except TimeoutError:
                if wait_s < idle_s:
                    continue  # not silent for too long, but out of time
                raise TimedOut(f"{self._where}: silent for {idle_s:g} s") from None
            except (aiohttp.ClientError, OSError) as error:
                raise Broken(f"{self._where}: the answer broke off ({_said(error)})") from error
            if not chunk:
                return
            yield chunk

    async def read(self, deadline: Deadline, idle_s: float, limit: int = WHOLE_BYTES) -> bytes:
        """The whole body."""
        parts: list[bytes] = []
        size = 0
        async for chunk in self.chunks(idle_s, deadline):
            size += len(chunk)
            if size > limit:
                raise Broken(f"{self._where}: the answer is longer than {limit:,} bytes")
            parts.append(chunk)
        return b"".join(parts)


class Client:
    """Opens exchanges. One for the whole process; made inside a running event loop."""

    def __init__(self, egress: Egress) -> None:
        self.egress = egress
        self._session: aiohttp.ClientSession | None = None
        self._origins: frozenset[Origin] = frozenset()
        self._retired: list[aiohttp.ClientSession] = []

    def _current_session(self) -> aiohttp.ClientSession:
        """Under other rules, names resolved and connections made under the old ones are not used again."""
        if self._session is None or self._origins != self.egress.origins:
            if self._session is not None:
                # What it is still reading goes on; its idle connections expire.
                self._retired.append(self._session)
            self._session = self._open_session()
            self._origins = self.egress.origins
        return self._session

    def _open_session(self) -> aiohttp.ClientSession:
        connector = GuardedConnector(
            resolver=GuardedResolver(self.egress),
            limit=CONNECTIONS,
            keepalive_timeout=KEEP_ALIVE_S,
            ttl_dns_cache=NAMES_S,
        )
        return aiohttp.ClientSession(
            connector=connector,
            trust_env=False,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_S),
            max_line_size=HEADER_BYTES,
            max_field_size=HEADER_BYTES,
            skip_auto_headers=("User-Agent",),
        )

    async def open(self, request: Request, wait_s: float) -> Response:
        """Send a request; the response, once its headers are here."""
        origin = self.egress.allows(request.origin)
        url = _url(origin, request.path)
        headers = CIMultiDict({"user-agent": "turnout", "accept-encoding": "identity"})
        headers.update(request.headers)
        if request.credential is not None:
            headers[request.credential[0]] = request.credential[1]
        body = BytesIO(request.body) if len(request.body) > PIECE_BYTES else request.body or None
        where = origin.host
        try:
            async with asyncio.timeout(wait_s):
                response = await self._current_session().request(
                    request.method, url, data=body, headers=headers, allow_redirects=False
                )
        except aiohttp.ConnectionTimeoutError:
            raise Unreachable(f"{where}: no connection within {CONNECT_S:g} s") from None
        except TimeoutError:
            raise TimedOut(f"{where}: no answer within {wait_s:g} s") from None
        except aiohttp.ClientResponseError as error:
            raise Broken(f"{where}: what it answered is not HTTP ({_said(error)})") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(f"{where}: {_said(error)}") from error
        encoding = ", ".join(response.headers.getall("content-encoding", ())).strip().lower()
        if encoding not in PLAIN:
            response.close()
            raise Broken(f"{where}: the answer is encoded ({encoding[:40]}), which was not asked for")
        return Response(response, where)

    async def close(self) -> None:
        sessions = [*self._retired, *([self._session] if self._session is not None else [])]
        self._session = None
        self._retired.clear()
        for session in sessions:
            await session.close()


@lru_cache(maxsize=256)
def _url(origin: Origin, path: str) -> URL:
    """The address of a path; refused if it could be read as leading elsewhere."""
    url = URL(f"{origin}{path}") if path.startswith("/") else None
    if url is None or (url.scheme, url.raw_host, url.port) != origin[:3]:
        raise EgressRefused(f"{path[:120]!r} leads away from {origin}: no connection is made")
    return url


def _said(error: BaseException) -> str:
    # The first line: what follows is what the peer sent.
    said = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
    return said.strip().partition("\n")[0].rstrip(":")[:SAID_CHARACTERS] or type(error).__name__
