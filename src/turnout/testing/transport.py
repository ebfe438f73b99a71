"""A transport that answers from a script without a socket, for tests that are not about sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from turnout.core.errors import Broken, NetError, TimedOut, Unreachable
from turnout.net.client import WebSocket
from turnout.net.egress import Egress
from turnout.net.transport import Request

from .reply import ScriptedReply


class ScriptedTransport:
    """Answers from a script; its last entry repeats. A `Reply` is sent as its `body` or as the pieces of its text; a
    `NetError` is raised. A body ends after its last piece or, with a `fault`, breaks off there."""

    def __init__(self, script: Sequence[ScriptedReply | NetError] = (ScriptedReply(),)) -> None:
        if not script:
            raise ValueError("an empty script: write [Reply()] for a greeting")
        self.script = tuple(script)
        self.requests: list[Request] = []
        """The requests as sent, with the credential in the headers."""
        self.exchanges: list[ScriptedExchange] = []
        self.closed = False

    async def send(self, request: Request, egress: Egress, wait_s: float) -> ScriptedExchange:
        entry = self.script[min(len(self.requests), len(self.script) - 1)]
        self.requests.append(request)
        if isinstance(entry, NetError):
            raise entry
        try:
            async with asyncio.timeout(wait_s):
                await asyncio.sleep(entry.delay_s)
        except TimeoutError:
            late = TimedOut(f"{request.origin.host}: no answer within {wait_s:g} s")
            late.was_sent = True
            raise late from None
        exchange = ScriptedExchange(entry, request.origin.host)
        self.exchanges.append(exchange)
        return exchange

    async def open_socket(self, request: Request, egress: Egress, wait_s: float) -> WebSocket:
        raise Unreachable(f"{request.origin.host}: a script has no WebSocket")

    async def close(self) -> None:
        self.closed = True
        for exchange in self.exchanges:
            exchange.close()


class ScriptedExchange:
    """The exchange for one answer of a script."""

    def __init__(self, reply: ScriptedReply, where: str) -> None:
        self.status = reply.status
        self.headers: Mapping[str, str] = reply.headers
        self.closed = False
        self._reply = reply
        self._where = where
        whole = reply.body
        self._pieces = [piece.encode() for piece in reply.pieces()] if whole is None else [whole] if whole else []

    def ready(self) -> bytes | None:
        return None

    async def next(self) -> bytes:
        await asyncio.sleep(self._reply.chunk_delay_s)
        if self.closed:
            raise Broken(f"{self._where}: the answer broke off (closed by us)")
        if self._pieces:
            return self._pieces.pop(0)
        if self._reply.fault is not None:
            raise Broken(f"{self._where}: the answer broke off ({self._reply.fault.kind})")
        return b""

    def close(self) -> None:
        self.closed = True
