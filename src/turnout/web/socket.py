"""WebSockets: checked and authenticated like other requests before they are accepted, then a stream of text messages.

Nothing is queued: the next piece of the stream is read when the last one was sent, and a client that accepts none for
half a minute counts as gone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import msgspec
from starlette.types import Message, Receive, Scope, Send

from turnout.apps.app import Answer
from turnout.core.errors import Refused

# A client that accepts no data for so long counts as gone: generating more for it would cost money.
TAKE_S = 30.0
# After so long without a message a ping is sent; proxies close a silent connection after a minute.
PING_S = 20.0
# Together with a key's 30 s in the cache and the pause between pings, a revoked key loses its socket within a minute.
RECHECK_S = 10.0
# Clients send nothing but pings: the most characters of one, and the most messages in a minute.
HEARD_CHARACTERS = 256
HEARD_PER_MINUTE = 60
# How long sending the close may take.
CLOSE_S = 2.0
# A page's script cannot set headers: it sends its key as a subprotocol, beside this one.
PROTOCOL: Final = "turnout"
PING, PONG = b'{"event":"ping"}', b'{"event":"pong"}'

# Codes to close a socket with, from RFC 6455 and its registry.
DONE, RESTARTING, FORBIDDEN, FAILED, TOO_SLOW = 1000, 1012, 1008, 1011, 1013


class Gone(Exception):
    """The client has left."""


def denying(scope: Scope, send: Send) -> Send:
    """Sends a refusal: as an HTTP response if the ASGI server can, else by closing the socket."""
    can_respond = "websocket.http.response" in (scope.get("extensions") or {})

    async def sending(message: Message) -> None:
        kind: str = message["type"]
        if not kind.startswith("http.response."):
            await send(message)
        elif can_respond:
            await send({**message, "type": f"websocket.{kind}"})
        elif kind == "http.response.start":
            await send({"type": "websocket.close", "code": FORBIDDEN})

    return sending


def headers_with_key(scope: Scope) -> list[tuple[bytes, bytes]]:
    """The headers, with the key that a page sends as a subprotocol: `new WebSocket(url, ["turnout", key])`."""
    keys = [one.encode("latin-1", "replace") for one in scope.get("subprotocols") or () if one != PROTOCOL]
    return [*scope["headers"], *((b"authorization", b"Bearer " + key) for key in keys)]


class Socket:
    def __init__(self, scope: Scope, receive: Receive, send: Send, recheck: Callable[[], Awaitable[object]]) -> None:
        """`recheck` raises Refused when the caller may no longer use the socket."""
        self._protocol = PROTOCOL if PROTOCOL in (scope.get("subprotocols") or ()) else None
        self._receive = receive
        self._send = send
        self._recheck = recheck
        self._heard: list[float] = []
        """When the messages of the last minute came."""

    async def run(self, answer: Answer, is_stopping: Callable[[], bool]) -> None:
        """Send the answer's body, until it ends, the client leaves or the server stops."""
        assert not isinstance(answer.body, bytes)  # noqa: S101 - a socket's handler returns a stream
        code: int | None = FAILED
        try:
            async with contextlib.aclosing(answer.body) as body:
                await self._put({"type": "websocket.accept", "subprotocol": self._protocol}, TAKE_S)
                code = await self._stream(aiter(body))
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

    async def _stream(self, pieces: AsyncIterator[bytes]) -> int:
        clock = asyncio.get_running_loop().time
        checked = clock()
        hearing: asyncio.Future[Message] = asyncio.ensure_future(self._receive())
        coming = asyncio.ensure_future(anext(pieces, None))
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
                    coming = asyncio.ensure_future(anext(pieces, None))
                if not done:
                    await self._say(PING)
        finally:
            # Some servers cannot close a socket while `receive` is awaited.
            for one in (hearing, coming):
                one.cancel()
            await asyncio.wait((hearing, coming))

    def _hear(self, message: Message, now: float) -> bool:
        """Whether a message is a ping; raises Gone if the client has left, Refused if it sends too much."""
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


def _is_ping(text: str) -> bool:
    if text.strip() == "ping":
        return True
    try:
        message = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    return isinstance(message, dict) and "ping" in (message.get("type"), message.get("event"))
