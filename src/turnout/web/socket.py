"""A row of the route table that is a WebSocket: let in as any request is, and from then on a stream of messages.

Guard, admission, authentication and scope are passed before the socket is accepted; who may not have it gets the
refusal that any other route would give. Each piece of the stream is one text message. Nothing is queued: the next
piece is asked for when the last one has been taken, and a client that takes none for half a minute is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import msgspec

from turnout.apps.app import Answer
from turnout.core.errors import Refused

from .wire import TAKE_S, Gone, Message, Receive, Scope, Send

# How long nothing may be said before the other side is asked whether it is there; proxies cut after a minute.
PING_S = 20.0
# Within this time a key that was revoked loses its socket, as the threat model has it.
RECHECK_S = 60.0
# Characters of a message from a client, which has nothing to say but that it is there.
HEARD_CHARACTERS = 256
# And how many of them within a minute: one a second.
HEARD_PER_MINUTE = 60
# What a client has to take that it is over.
CLOSE_S = 2.0
# The protocol that a client names when it sends its key as another one, which is all that a page's script can do.
PROTOCOL: Final = "turnout"
PING, PONG = b'{"event":"ping"}', b'{"event":"pong"}'

# What sockets are closed with, by RFC 6455 and its registry.
DONE, RESTARTING, FORBIDDEN, FAILED, TOO_SLOW = 1000, 1012, 1008, 1011, 1013


def denying(scope: Scope, send: Send) -> Send:
    """What a refusal is sent with: an answer of HTTP, if the server can; else the socket is closed unopened."""
    whole = "websocket.http.response" in (scope.get("extensions") or {})

    async def sending(message: Message) -> None:
        kind: str = message["type"]
        if not kind.startswith("http.response."):
            await send(message)
        elif whole:
            await send({**message, "type": f"websocket.{kind}"})
        elif kind == "http.response.start":
            await send({"type": "websocket.close", "code": FORBIDDEN})

    return sending


def headers_with_key(scope: Scope) -> list[tuple[bytes, bytes]]:
    """The headers, and among them the key that a page names as a protocol: `new WebSocket(url, ["turnout", key])`."""
    named = [one.encode("latin-1", "replace") for one in scope.get("subprotocols") or () if one != PROTOCOL]
    return [*scope["headers"], *((b"authorization", b"Bearer " + one) for one in named)]


class Socket:
    """One that is about to be accepted."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, recheck: Callable[[], Awaitable[object]]) -> None:
        """`recheck` raises Refused once the caller may no longer have it."""
        self._protocol = PROTOCOL if PROTOCOL in (scope.get("subprotocols") or ()) else None
        self._receive = receive
        self._send = send
        self._recheck = recheck
        self._heard: list[float] = []

    async def run(self, answer: Answer, is_stopping: Callable[[], bool]) -> None:
        """Send what the answer's body gives, until it ends or the client leaves, or the server stops."""
        assert not isinstance(answer.body, bytes)  # noqa: S101 - a socket's handler returns a stream
        code: int | None = FAILED
        try:
            async with contextlib.aclosing(answer.body) as body:
                await self._put({"type": "websocket.accept", "subprotocol": self._protocol}, TAKE_S)
                code = await self._tell(aiter(body))
        except Refused:
            code = FORBIDDEN
        except TimeoutError:
            code = TOO_SLOW
        except (Gone, OSError):
            code = None
        except asyncio.CancelledError:
            code = RESTARTING
            here = asyncio.current_task()
            if not is_stopping() or here is None or here.uncancel():
                raise
        finally:
            if code is not None:
                with contextlib.suppress(OSError, TimeoutError):
                    await self._put({"type": "websocket.close", "code": code}, CLOSE_S)

    async def _tell(self, pieces: AsyncIterator[bytes]) -> int:
        clock = asyncio.get_running_loop().time
        checked = clock()
        hearing: asyncio.Future[Message] = asyncio.ensure_future(self._receive())
        coming = asyncio.ensure_future(_next(pieces))
        try:
            while True:
                done, _ = await asyncio.wait((hearing, coming), timeout=PING_S, return_when=asyncio.FIRST_COMPLETED)
                if clock() - checked >= RECHECK_S:
                    await self._recheck()
                    checked = clock()
                if hearing in done:
                    if self._hear(hearing.result(), clock()):
                        await self._say(PONG)
                    hearing = asyncio.ensure_future(self._receive())
                if coming in done:
                    piece = coming.result()
                    if piece is None:
                        return DONE
                    await self._say(piece)
                    coming = asyncio.ensure_future(_next(pieces))
                if not done:
                    await self._say(PING)
        finally:
            # Some servers cannot close a socket while it is listened to.
            for one in (hearing, coming):
                one.cancel()
            await asyncio.wait((hearing, coming))

    def _hear(self, message: Message, now: float) -> bool:
        """Whether a client's message asks for an answer; raises Gone if it has left, Refused for what is too much."""
        if message["type"] == "websocket.disconnect":
            raise Gone
        text = message.get("text") or ""
        self._heard = [at for at in self._heard if now - at < 60.0] + [now]
        if len(text) > HEARD_CHARACTERS or message.get("bytes") or len(self._heard) > HEARD_PER_MINUTE:
            raise Refused(403, "permission_error", "this socket only tells: send it nothing but a ping now and then")
        return _is_ping(text)

    async def _say(self, text: bytes) -> None:
        await self._put({"type": "websocket.send", "text": text.decode()}, TAKE_S)

    async def _put(self, message: Message, seconds: float) -> None:
        async with asyncio.timeout(seconds):
            await self._send(message)


async def _next(pieces: AsyncIterator[bytes]) -> bytes | None:
    return await anext(pieces, None)


def _is_ping(text: str) -> bool:
    if text.strip() == "ping":
        return True
    try:
        told = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    return isinstance(told, dict) and "ping" in (told.get("type"), told.get("event"))
