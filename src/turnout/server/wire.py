"""Reading a request and writing an answer, at the level of ASGI: a client that goes away is noticed at once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Protocol

from turnout.apps.caller import Refused
from turnout.apps.gateway.gateway import Answer

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

# A body slower than this is somebody holding a place, not somebody asking.
BODY_S = 10.0
# Bytes a second below which that time runs out.
BODY_RATE = 8192
# A client that takes nothing for so long is as good as gone, and what it does not take is paid for.
TAKE_S = 30.0


PRESENCE = "turnout.presence"
"""Where a request's scope says whether its client is still there."""
DIRECT = "turnout.direct"
"""Where it has the quick way, if there is one."""


class Gone(Exception):
    """The client has left."""


class Quick(Protocol):
    """Beside ASGI's messages: what is whole is read and written as a whole."""

    def body(self) -> bytes | None:
        """The whole body, if it has come; it can be had once."""
        ...

    def answer(self, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes, /) -> bool:
        """Write an answer; False if that is not possible now, and nothing was written."""
        ...


def take_body(quick: Quick | None, limit: int) -> bytes | None:
    """The whole body, if it has come already."""
    whole = quick.body() if quick is not None else None
    if whole is not None and len(whole) > limit:
        raise _too_large(limit)
    return whole


async def read_body(receive: Receive, limit: int, length: str | None) -> bytes:
    """The whole body, counted while it comes; what its sender says of its length is only a first look."""
    if length is not None and length.isascii() and length.isdigit() and int(length) > limit:
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
            raise Gone
        part: bytes = message.get("body", b"")
        more = message.get("more_body", False)
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
        until += len(part) / BODY_RATE
    return b"".join(parts)


def _too_large(limit: int) -> Refused:
    return Refused(413, "request_too_large", f"the body is longer than {limit:,} bytes, which is as much as is taken")


def write_answer(quick: Quick | None, answer: Answer) -> bool:
    """Write an answer that is whole at once; False if it is not, or that is not possible now."""
    body = answer.body
    return quick is not None and isinstance(body, bytes) and quick.answer(answer.status, answer.headers, body)


async def send_answer(send: Send, answer: Answer) -> None:
    """Write an answer; a stream is closed however it ends."""
    body = answer.body
    if isinstance(body, bytes):
        headers = [*answer.headers, (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        return
    async with contextlib.aclosing(body):
        await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
        async for chunk in body:
            try:
                async with asyncio.timeout(TAKE_S):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            except TimeoutError:
                raise Gone from None
        await send({"type": "http.response.body", "body": b""})


class Presence:
    """Whether a client is still there, and what is done at once when it leaves."""

    def __init__(self) -> None:
        self.gone = False
        self.calls: list[Callable[[], object]] = []

    def leave(self) -> None:
        self.gone = True
        for call in self.calls:
            call()

    def needed_by(self, task: asyncio.Task[Any]) -> Needed:
        """What the task does in this context is stopped at once when the client leaves, and ends quietly."""
        return Needed(self, task)


class Needed:
    __slots__ = ("_presence", "_task")

    def __init__(self, presence: Presence, task: asyncio.Task[Any]) -> None:
        self._presence = presence
        self._task = task

    def __enter__(self) -> None:
        self._presence.calls.append(self._task.cancel)
        if self._presence.gone:
            self._task.cancel()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        self._presence.calls.remove(self._task.cancel)
        # Cancelled by ourselves, the work has ended in order; by anybody else, that is theirs to know.
        return kind is asyncio.CancelledError and self._presence.gone and not self._task.uncancel()
