"""The one HTTP client. It connects where the egress guard allows, attaches a credential only to the host it belongs to,
follows no redirect, inflates nothing that it was not told to, and names what went wrong.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from time import monotonic
from types import TracebackType

from turnout.core.errors import Broken, EgressRefused, TimedOut

from .deadline import Deadline
from .egress import Egress, Origin
from .http import HttpTransport
from .inflate import ENCODINGS, inflate
from .transport import Exchange, Request, Talk, Transport

__all__ = ["Client", "Request", "Response"]

# Of an answer that is read whole. Generations are far smaller; images and audio may not be.
WHOLE_BYTES = 64 * 1024 * 1024
# Answers are asked for as they are. What comes encoded all the same is refused, or, where the request says so, inflated
# up to the limit it is read with.
PLAIN = frozenset(("", "identity"))
TOO_LONG = "the answer took too long"
_PATH = re.compile(r"/[\x21\x22\x24-\x7e]*")
_BROKEN_LINE = re.compile(r"[\x00\r\n]")


class Response:
    """An answer. Use it as a context: leaving it ends the exchange."""

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
        """End it, for a reader in another task too. A connection whose answer did not end is not used again."""
        self._exchange.close()

    async def next(self, idle_s: float, deadline: Deadline | None = None) -> bytes:
        """More of the body as it arrives, empty at its end; a silence longer than `idle_s` is an error, and so is one
        that lasts until the deadline."""
        wait_s = idle_s if deadline is None else deadline.within(idle_s)
        if not wait_s:
            raise self._late(TOO_LONG)
        try:
            async with asyncio.timeout(wait_s):
                return await self._exchange.next()
        except TimeoutError:
            # Out of time is not the same as silent for too long.
            raise self._late(f"silent for {idle_s:g} s" if wait_s == idle_s else TOO_LONG) from None

    async def chunks(self, idle_s: float, deadline: Deadline | None = None) -> AsyncIterator[bytes]:
        """All of it, as it arrives."""
        while chunk := await self.next(idle_s, deadline):
            yield chunk

    async def read(self, deadline: Deadline, limit: int = WHOLE_BYTES) -> bytes:
        """The whole body; with it the exchange ends."""
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


class Client:
    """Opens exchanges. One for the whole process; used inside one running event loop."""

    def __init__(self, egress: Egress, transport: Transport | None = None) -> None:
        self.egress = egress
        self.transport = transport or HttpTransport()

    async def open(self, request: Request, wait_s: float) -> Response:
        """Send a request; the response, once its headers are here."""
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
        """Open a WebSocket. A credential that is said in it is shielded like one in a header."""
        origin = self.egress.allows(request.origin)
        return await self.transport.converse(_complete(request, origin), self.egress, wait_s)

    async def close(self) -> None:
        await self.transport.close()


def _complete(request: Request, origin: Origin) -> Request:
    """The request with every header it is sent with; refused if it could be read as more than it is."""
    if not _PATH.fullmatch(request.path):
        raise EgressRefused(f"{request.path[:120]!r} leads away from {origin}: no connection is made")
    headers = {"accept-encoding": "identity", "user-agent": "turnout"}
    for name, value in request.headers.items():
        headers[name.lower()] = value
    if request.credential is not None:
        # It replaces what a caller sent under its name.
        headers[request.credential[0].lower()] = request.credential[1]
    if _BROKEN_LINE.search("".join((*headers, *headers.values()))):
        name = next(name for name, value in headers.items() if _BROKEN_LINE.search(name + value))
        raise ValueError(f"the header {name[:40]!r} holds a line end or a NUL")
    shielded = (request.credential is not None or request.shielded) and not request.plain_http
    return request._replace(origin=origin, headers=headers, credential=None, shielded=shielded)
