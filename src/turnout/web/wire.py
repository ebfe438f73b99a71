"""Reading a request and writing an answer, at the level of ASGI: a client that goes away is noticed at once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from turnout.apps.app import Answer
from turnout.core.errors import Refused

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

# A body slower than this holds a place rather than asks.
BODY_S = 10.0
# Bytes a second below which that time runs out.
BODY_RATE = 8192
# A client that takes nothing for so long is as good as gone, and what it does not take is paid for.
TAKE_S = 30.0
# After so long a client is listened for: what it no longer waits for ends within a quarter of a second of its leaving.
LISTEN_S = 0.05
# Options of a request of ours: one or two.
OPTIONS = 32
# Where there is none, a server may name itself.
SERVER = (b"server", b"turnout")


class Gone(Exception):
    """The client has left."""


async def read_body(receive: Receive, limit: int, headers: Mapping[str, str]) -> bytes:
    """The whole body, counted while it comes; what its sender says of its length is only a first look."""
    length, chunked = headers.get("content-length"), "transfer-encoding" in headers
    # Framed by its length, a body has ended with its last byte, whether or not the server has said so.
    whole = int(length) if length is not None and length.isascii() and length.isdigit() and not chunked else -1
    if whole > limit:
        raise _too_large(limit)
    parts: list[bytes] = []
    size = 0
    loop = asyncio.get_running_loop()
    # Ten seconds, and more for a body that keeps coming at a fair rate.
    until = loop.time() + BODY_S
    more = True
    while more:
        try:
            async with asyncio.timeout_at(until):
                message = await receive()
        except TimeoutError:
            raise Refused(408, "invalid_request_error", f"the body did not come within {BODY_S:g} s") from None
        if message["type"] == "http.disconnect":
            # Gone, or there still after chunks that are none: servers do not tell these apart.
            raise Refused(400, "invalid_request_error", "the body broke off, or its chunks are not as HTTP has them")
        part: bytes = message.get("body", b"")
        size += len(part)
        more = message.get("more_body", False) and size != whole
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
        until += len(part) / BODY_RATE
    return parts[0] if len(parts) == 1 else b"".join(parts)


def read_options(scope: Scope) -> dict[str, str]:
    """What stands behind the `?`."""
    said = scope.get("query_string", b"").decode("latin-1")
    try:
        return dict(parse_qsl(said, keep_blank_values=True, max_num_fields=OPTIONS)) if said else {}
    except ValueError:
        said = f"more than {OPTIONS} options behind the `?`: leave out what the path does not take"
        raise Refused(400, "invalid_request_error", said) from None


def _too_large(limit: int) -> Refused:
    return Refused(413, "request_too_large", f"the body is longer than {limit:,} bytes, which is as much as is taken")


async def send_answer(send: Send, answer: Answer) -> None:
    """Write an answer; a stream is closed however it ends."""
    body = answer.body
    if isinstance(body, bytes):
        headers = [*answer.headers, SERVER, (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        return
    async with contextlib.aclosing(body):
        await send({"type": "http.response.start", "status": answer.status, "headers": [*answer.headers, SERVER]})
        async for chunk in body:
            try:
                async with asyncio.timeout(TAKE_S):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            except TimeoutError:
                raise Gone from None
    # A client that has all of an answer finds it in the log: the stream is closed, and its account with it.
    await send({"type": "http.response.body", "body": b""})


class WhileConnected:
    """What a task does in this context is cancelled when the client disconnects, and ends quietly.

    The body must have been read: from then on a server has nothing to tell but that. What is answered at once is not
    watched: listening takes a task of its own.
    """

    __slots__ = ("_gone", "_later", "_receive", "_task", "_watch")

    def __init__(self, receive: Receive, task: asyncio.Task[Any]) -> None:
        self._receive = receive
        self._task = task
        self._gone = False
        self._watch: asyncio.Future[None] | None = None

    def __enter__(self) -> None:
        self._later = asyncio.get_running_loop().call_later(LISTEN_S, self._listen)

    def _listen(self) -> None:
        self._watch = asyncio.ensure_future(_disconnect(self._receive))
        self._watch.add_done_callback(self._leave)

    def _leave(self, watch: asyncio.Future[None]) -> None:
        if not watch.cancelled():
            self._gone = True
            self._task.cancel()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        self._later.cancel()
        if self._watch is not None:
            self._watch.remove_done_callback(self._leave)
            self._watch.cancel()
        # Cancelled by ourselves, the work has ended in order; cancelled from outside, the error is passed on.
        return self._gone and not self._task.uncancel() and kind is asyncio.CancelledError


async def _disconnect(receive: Receive) -> None:
    # Awaited here: what a server returns need not be a coroutine, and a task can only be made of one.
    while (await receive())["type"] != "http.disconnect":
        pass
