"""One connection and the exchange on it: a request is written, an answer is read as it comes.

A connection serves one exchange at a time and goes back to the pool only when its request was sent, its answer came to
an end and nothing followed it. Whoever reads an answer may stop at any moment; the connection is closed then.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Any, Literal

import httptools

from turnout.core.errors import Broken, NetError, TimedOut, Unreachable

from .deadline import Deadline

# Of an answer that is read whole. Generations are far smaller; images and audio may not be.
WHOLE_BYTES = 64 * 1024 * 1024
# All headers of an answer together; Node takes no more either.
HEADER_BYTES = 16 * 1024
# A longer body is sent in pieces: what is not sent when its caller goes away never is.
PIECE_BYTES = 64 * 1024
# So much of an answer waits here for its reader; after that the peer is kept waiting.
UNREAD_BYTES = 256 * 1024
# Of what a library or a peer says about a failure.
SAID_CHARACTERS = 200

Give = Callable[["Connection"], None]


class _TooLong(Exception):
    """The headers are longer than is taken; the parser passes it on as its own error."""


class Connection(asyncio.Protocol):
    """A socket, and whose answer comes over it."""

    def __init__(self, give: Give, lose: Give) -> None:
        self._give, self._lose = give, lose
        self._transport: asyncio.Transport | None = None
        self._response: Response | None = None
        self._lost: asyncio.Future[None] | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self.gone = False
        """Not to be used again: closed, being closed, or spoiled."""
        self.idle_since = 0.0
        self.address = ""
        """Where it leads, as the pool has checked it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        if self._response is None:
            self.drop()  # an answer that nobody asked for would be taken for the next one's
        else:
            self._response.feed(data)

    def resume_writing(self) -> None:
        if self._response is not None:
            self._response.writable(True)

    def pause_writing(self) -> None:
        if self._response is not None:
            self._response.writable(False)

    def connection_lost(self, exc: Exception | None) -> None:
        response, self._response, self._transport = self._response, None, None
        self.gone = True
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._lost is not None and not self._lost.done():
            self._lost.set_result(None)
        if response is not None:
            response.lose(exc)
        self._lose(self)

    def begin(self, response: Response) -> None:
        self._response = response

    def write(self, data: bytes | memoryview) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def look_by(self, at: float) -> None:
        """Have the exchange looked at by then. An alarm that is set for sooner stays: most waits are over long before
        their time, and setting a new one for each costs more than one that rings for nothing."""
        if self._alarm is None or at < self._alarm.when():
            if self._alarm is not None:
                self._alarm.cancel()
            self._alarm = asyncio.get_running_loop().call_at(at, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        if self._response is not None:
            self._response.look()

    def hold(self, paused: bool) -> None:
        """Let the peer wait until its words are read, or go on."""
        if self._transport is not None and not self._transport.is_closing():
            if paused:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def release(self) -> None:
        """The exchange is over, and well."""
        self._response = None
        self._give(self)

    def drop(self) -> None:
        """Close it, now: closing in good order waits until all is sent, which a peer can put off for ever."""
        self.gone = True
        self._response = None
        if self._transport is not None:
            if self._transport.get_write_buffer_size():
                self._transport.abort()
            else:
                self._transport.close()

    async def lost(self) -> None:
        """Close it and wait until it is."""
        self.gone = True
        if self._transport is not None:
            self._lost = asyncio.get_running_loop().create_future()
            self._transport.abort()
            await self._lost


class Response:
    """An answer. Use it as a context: leaving it ends the exchange."""

    def __init__(self, connection: Connection, where: str) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        """By lower-case name; one that comes several times is joined by commas."""
        self.unread = 0
        """How many bytes wait for their reader."""
        self._connection: Connection | None = connection
        self._where = where
        self._loop = asyncio.get_running_loop()
        # It refers to us: it goes with the connection, or the collector would have to find both.
        self._parser: Any = httptools.HttpResponseParser(self)
        self._parts: list[bytes] = []
        self._waiter: asyncio.Future[bool] | None = None
        self._until = 0.0
        self._state: Literal["head", "body", "whole", "failed", "closed"] = "head"
        self._failure: tuple[type[NetError], str] = (Broken, "")
        self._come = 0
        self._read = 0
        self._sent = False
        self._can_write = True
        self._held = False
        self._stray = False
        connection.begin(self)

    # --- what the connection tells

    def feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # Nobody asked for another protocol: an answer without a body, on a connection nobody uses again.
            self._state, self._stray = "whole", True
        except httptools.HttpParserError as error:
            # After the end it is something nobody asked for, and none of this answer's affair.
            self._stray = True
            if self._state == "head":
                self._fail(Broken, f"what it answered is not HTTP ({said_of(error)})")
            elif self._state == "body":
                self._fail(Broken, f"the answer broke off ({said_of(error)})")
        if self._state == "head":
            self._come += len(data)
            if self._come > HEADER_BYTES:
                self._fail(Broken, f"what it answered is not HTTP (headers of more than {HEADER_BYTES:,} bytes)")
            return
        self._end_exchange()
        self._wake()

    def writable(self, can: bool) -> None:
        self._can_write = can
        if can:
            self._wake()

    def lose(self, error: Exception | None) -> None:
        self._connection = self._parser = None
        said = said_of(error) if error is not None else "connection closed"
        if self._state == "head":
            self._fail(Unreachable, said if error is not None else "it disconnected before it answered")
        elif self._state == "body":
            # An answer without a length ends with its connection: well if that was closed, not if it was torn.
            framed = "content-length" in self.headers or "transfer-encoding" in self.headers
            if framed or error is not None:
                self._fail(Broken, f"the answer broke off ({said})")
            else:
                self._state = "whole"
        self._wake()

    # --- what the parser tells

    def on_message_begin(self) -> None:
        self._stray = self._state != "head"

    def on_header(self, name: bytes, value: bytes) -> None:
        self._read += len(name) + len(value) + 4
        if self._read > HEADER_BYTES:
            raise _TooLong
        if self._state == "head":
            key, told = name.decode("latin-1").lower(), value.decode("latin-1")
            self.headers[key] = f"{self.headers[key]}, {told}" if key in self.headers else told

    def on_headers_complete(self) -> None:
        if self._state == "head":
            self.status = self._parser.get_status_code()
            if self.status >= 200 or self.status == 101:
                self._state = "body"

    def on_body(self, data: bytes) -> None:
        if self._state == "body":
            self._parts.append(data)
            self.unread += len(data)
            if self.unread > UNREAD_BYTES and not self._held and self._connection is not None:
                self._held = True
                self._connection.hold(True)

    def on_message_complete(self) -> None:
        if self._state == "body":
            self._state = "whole"
            self._stray = not self._parser.should_keep_alive()
        elif self._state == "head":
            # 100 Continue and its kin: the answer itself is still to come.
            self.headers.clear()
            self._come = self._read = 0

    # --- how it goes

    async def send(self, head: bytes, body: bytes, deadline: Deadline) -> bool:
        """Write the request and wait until the answer begins; False if it does not in time."""
        connection = self._connection
        assert connection is not None  # noqa: S101 - it was just taken
        if len(body) <= PIECE_BYTES:
            connection.write(head + body)
            self._sent = True
        else:
            connection.write(head)
        rest = memoryview(body)
        while self._state == "head" or (self._state == "body" and self.status < 300 and not self._sent):
            if not self._sent and self._can_write:
                connection.write(rest[:PIECE_BYTES])
                rest = rest[PIECE_BYTES:]
                self._sent = not rest
            elif not await self._wait(deadline.left):
                return False
        if self._state == "failed":
            raise self._raised()
        self._end_exchange()
        return True

    async def __aenter__(self) -> Response:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it, for whoever is reading it too. A connection whose answer did not come to its end is not reused."""
        if self._connection is not None:
            self._connection.drop()
            self._connection = self._parser = None
        if self._state != "failed":
            self._state = "closed"
        self._parts.clear()
        self.unread = 0
        self._wake()

    async def chunks(self, idle_s: float, deadline: Deadline | None = None) -> AsyncIterator[bytes]:
        """The body as it arrives; a silence longer than `idle_s` is an error, and so is no end by the deadline."""
        while True:
            chunk = await self._next(idle_s, deadline)
            if not chunk:
                return
            yield chunk

    async def read(self, deadline: Deadline, idle_s: float, limit: int = WHOLE_BYTES) -> bytes:
        """The whole body."""
        chunk = await self._next(idle_s, deadline)
        if self._state == "whole" and not self._parts and len(chunk) <= limit:
            return chunk
        parts: list[bytes] = []
        size = 0
        while chunk:
            size += len(chunk)
            if size > limit:
                raise Broken(f"{self._where}: the answer is longer than {limit:,} bytes")
            parts.append(chunk)
            chunk = await self._next(idle_s, deadline)
        return b"".join(parts)

    async def _next(self, idle_s: float, deadline: Deadline | None) -> bytes:
        """What has come since; nothing at the end."""
        while True:
            wait_s = idle_s if deadline is None else deadline.within(idle_s)
            if self._state == "closed":
                raise Broken(f"{self._where}: the answer broke off (closed by us)")
            if not wait_s:
                raise TimedOut(f"{self._where}: the answer took too long")
            if self._parts:
                return self._take()
            if self._state == "failed":
                raise self._raised()
            if self._state == "whole":
                return b""
            # Out of time is not the same as silent for too long.
            if not await self._wait(wait_s) and wait_s == idle_s:
                raise TimedOut(f"{self._where}: silent for {idle_s:g} s")

    def _take(self) -> bytes:
        chunk = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self.unread = 0
        if self._held and self._connection is not None:
            self._held = False
            self._connection.hold(False)
        return chunk

    async def _wait(self, wait_s: float) -> bool:
        """Until something happens; False if nothing does in time."""
        if wait_s <= 0:
            return False
        if self._connection is None:  # it was lost this moment, which the caller sees for itself
            return True
        waiter: asyncio.Future[bool] = self._loop.create_future()
        self._waiter, self._until = waiter, self._loop.time() + wait_s
        self._connection.look_by(self._until)
        try:
            return await waiter
        finally:
            self._waiter = None

    def look(self) -> None:
        """See whether whoever waits has waited long enough."""
        if self._waiter is not None and self._connection is not None:
            if self._loop.time() >= self._until:
                _set(self._waiter, False)
            else:
                self._connection.look_by(self._until)

    def _wake(self) -> None:
        if self._waiter is not None:
            _set(self._waiter, True)

    def _fail(self, kind: type[NetError], said: str) -> None:
        self._state, self._failure = "failed", (kind, said)
        if self._connection is not None:
            self._connection.drop()
            self._connection = self._parser = None
        self._wake()

    def _raised(self) -> NetError:
        """A new error each time: one that is kept would keep every frame it saw."""
        kind, said = self._failure
        return kind(f"{self._where}: {said}")

    def _end_exchange(self) -> None:
        """Give the connection back once the answer is whole."""
        connection = self._connection
        if self._state != "whole" or connection is None:
            return
        self._connection = self._parser = None
        if self._held:
            connection.hold(False)
        if self._stray or not self._sent:
            connection.drop()
        else:
            connection.release()


def _set(waiter: asyncio.Future[bool], came: bool) -> None:
    if not waiter.done():
        waiter.set_result(came)


def said_of(error: BaseException) -> str:
    """What an error says, fit for a message."""
    # The first line: what follows is what the peer sent.
    said = str(error).strip().partition("\n")[0].rstrip(":")
    return "".join(one for one in said if one.isprintable())[:SAID_CHARACTERS] or type(error).__name__
