"""A provider that follows a script: a real HTTP/1.1 server on loopback, for everything that asks a model.

It speaks OpenAI's chat completions and responses and Anthropic's messages, chosen by the end of the path, and it can
fail in every way providers do (`Fault`). Nothing is patched or simulated: a client sees real sockets.

    >>> from turnout.testing import Fault, Reply, ScriptedProvider
    >>> with ScriptedProvider.in_thread() as provider:
    ...     provider.script(Reply("COMPLEX", usage=(40, 1)), Reply(status=429, headers={"retry-after": "1"}))
    ...     provider.default = Reply(fault=Fault("stall", "after_delta"))
    ...     provider.base_url.startswith("http://127.0.0.1:")
    True

A script is a queue; when it is empty the default answers. Requests are answered on the event loop the provider runs on,
in the order they come on each connection. In a thread of its own (`in_thread`) it can be used by blocking clients;
every method and attribute may be used from any thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import struct
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from types import TracebackType
from typing import Self, cast

from .dialect import compose
from .fault import Close, Pause, Step, play
from .reply import Entry, Received, ScriptedReply

HOST = "127.0.0.1"
BACKLOG = 4096
# The newest requests that are remembered: a benchmark sends millions.
KEEP = 10_000
# How long a thread waits for the event loop to do something that takes microseconds.
PATIENCE_S = 10.0

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE)
_LAST = re.compile(rb" HTTP/1\.0(?:\r\n|\Z)|\r\nconnection:[ \t]*close", re.IGNORECASE)
_NO_LINGER = struct.pack("ii", 1, 0)


class ScriptedProvider:
    """A server that answers from a script. Use it with `async with`, or with `with ScriptedProvider.in_thread()`."""

    def __init__(self, default: Entry | None = None, *, script: Iterable[Entry] = (), keep: int = KEEP) -> None:
        self.default: Entry = default or ScriptedReply()
        """Answers when the script is empty."""
        self.port = 0
        self.received = 0
        """How many requests came in total."""
        self.accepted = 0
        """How many connections came in total."""
        self._script = deque(script)
        self._requests: deque[Received] = deque(maxlen=keep)
        self._lock = threading.Lock()
        self._connections: set[_Connection] = set()
        self._failure: BaseException | None = None
        self._listener: socket.socket | None = None
        self._arriving: set[asyncio.Task[object]] = set()

    @classmethod
    @contextlib.contextmanager
    def in_thread(
        cls, default: Entry | None = None, *, script: Iterable[Entry] = (), keep: int = KEEP
    ) -> Iterator[Self]:
        """The same with its own event loop in its own thread."""
        provider = cls(default, script=script, keep=keep)
        started = threading.Event()
        stop = asyncio.Event()

        async def serve() -> None:
            async with provider:
                started.set()
                await stop.wait()

        with ThreadPoolExecutor(1, "scripted-provider") as thread:
            served = thread.submit(lambda: asyncio.run(serve()))
            served.add_done_callback(lambda _: started.set())
            started.wait()
            if served.done():
                served.result()
            try:
                yield provider
            finally:
                provider._loop.call_soon_threadsafe(stop.set)
            served.result()

    @property
    def origin(self) -> str:
        """The base URL for Anthropic's client."""
        return f"http://{HOST}:{self.port}"

    @property
    def base_url(self) -> str:
        """The base URL for other clients."""
        return f"{self.origin}/v1"

    @property
    def requests(self) -> list[Received]:
        """The requests so far, oldest first; at most the newest `keep`."""
        with self._lock:
            return list(self._requests)

    @property
    def open_connections(self) -> int:
        """How many connections are open now."""
        return len(self._connections)

    def script(self, *entries: Entry) -> None:
        """Add answers to the script."""
        with self._lock:
            self._script.extend(entries)

    def release(self) -> None:
        """End every pause, now and later: stalls, delays and those of a drip."""
        self._on_loop(self._released.set)

    def refuse(self) -> None:
        """Close the port, as if there were no server, and all idle connections."""

        def close() -> None:
            self._stop_listening()
            for connection in list(self._connections):
                if connection.is_idle:
                    connection.close()

        self._on_loop(close)

    def accept(self) -> None:
        """Open the port again."""
        self._on_loop(self._listen)

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._ident = threading.get_ident()
        self._released = asyncio.Event()
        self._listen()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_listening()
        if self._arriving:
            await asyncio.wait(self._arriving)
        for connection in list(self._connections):
            connection.close(at_once=True)
        while self._connections:
            await asyncio.sleep(0)
        if self._failure is not None and error is None:
            raise RuntimeError("a function of the script failed; its client saw a broken connection") from self._failure

    # An asyncio server that is closed while a connection arrives leaks it half open. Hence these three methods.

    def _listen(self) -> None:
        if self._listener is None:
            self._listener = socket.create_server((HOST, self.port), backlog=BACKLOG)
            self._listener.setblocking(False)
            self.port = self._listener.getsockname()[1]
            self._loop.add_reader(self._listener, self._take_connections, self._listener)

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._loop.remove_reader(self._listener)
            self._listener.close()
            self._listener = None

    def _take_connections(self, listener: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError, InterruptedError, ConnectionAbortedError):
            while True:
                taken, _ = listener.accept()
                taken.setblocking(False)
                arriving: asyncio.Task[object] = self._loop.create_task(
                    self._loop.connect_accepted_socket(lambda: _Connection(self), taken)
                )
                self._arriving.add(arriving)
                arriving.add_done_callback(self._arriving.discard)

    def _on_loop(self, act: Callable[[], None]) -> None:
        if threading.get_ident() == self._ident:
            act()
            return

        async def there() -> None:
            act()

        asyncio.run_coroutine_threadsafe(there(), self._loop).result(PATIENCE_S)

    def _reply_to(self, request: Received) -> ScriptedReply:
        with self._lock:
            self.received += 1
            self._requests.append(request)
            entry = self._script.popleft() if self._script else self.default
        if isinstance(entry, ScriptedReply):
            return entry
        done = False
        try:
            reply = entry(request)
            done = True
        finally:
            if not done:
                # Raised again on exit from the provider, where the test sees it.
                self._failure = sys.exc_info()[1]
        return reply

    async def _pause(self, seconds: float | None) -> None:
        if seconds == 0 or self._released.is_set():
            await asyncio.sleep(0)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._released.wait()


class _Connection(asyncio.Protocol):
    """One client's connection. A plain answer is written at once; one with a delay or a fault is a task."""

    def __init__(self, provider: ScriptedProvider) -> None:
        self.provider = provider
        self.number = 0
        self.request: Received | None = None
        """The latest one."""
        self._transport: asyncio.Transport
        self._buffer = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._is_last = False
        self._closed_by_us = False
        self._writable = asyncio.Event()
        self._writable.set()

    @property
    def is_idle(self) -> bool:
        return self._task is None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.provider.accepted += 1
        self.number = self.provider.accepted
        self.provider._connections.add(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._advance()

    def eof_received(self) -> None:
        self._client_closed()

    def connection_lost(self, error: Exception | None) -> None:
        self._client_closed()
        self.provider._connections.discard(self)
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def close(self, *, at_once: bool = False, reset: bool = False) -> None:
        self._closed_by_us = True
        if reset:
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        if at_once or reset:
            self._transport.abort()
        else:
            self._transport.close()

    def _client_closed(self) -> None:
        if self.request is not None and self.request.closed_at is None and not self._closed_by_us:
            self.request.closed_at = monotonic()

    def _advance(self) -> None:
        """Answer the requests that have arrived, one after the other."""
        while self._task is None and not self._transport.is_closing():
            request = self._take()
            if request is None:
                return
            self.request = request
            reply = self.provider._reply_to(request)
            answer = compose(reply, request, self.provider.received)
            steps = play(answer, reply.fault, chunk_delay_s=reply.chunk_delay_s)
            if reply.fault is None and not reply.delay_s and (not reply.chunk_delay_s or not answer.is_stream):
                self._transport.write(b"".join([step for step in steps if isinstance(step, bytes)]))
                self._finish(request)
            else:
                self._task = asyncio.create_task(self._perform(request, reply.delay_s, steps))
                self._task.add_done_callback(self._performed)

    def _take(self) -> Received | None:
        """The next request, once it is complete."""
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = bytes(self._buffer[:end])
        length = _LENGTH.search(head)
        size = end + 4 + (int(length[1]) if length else 0)
        if len(self._buffer) < size:
            return None
        raw = bytes(self._buffer[end + 4 : size])
        del self._buffer[:size]
        words = head.partition(b"\r\n")[0].decode("latin-1").split(" ")
        if len(words) != 3 or _CHUNKED.search(head):
            self._transport.write(b"HTTP/1.1 411 Length Required\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            self.close()
            return None
        self._is_last = _LAST.search(head) is not None
        return Received(self.number, words[0], words[1], head, raw, monotonic())

    async def _perform(self, request: Received, delay_s: float, steps: Iterator[Step]) -> None:
        if delay_s:
            await self.provider._pause(delay_s)
        for step in steps:
            match step:
                case Pause():
                    await self.provider._pause(step.seconds)
                case Close():
                    self.close(reset=step.reset)
                    return
                case _:
                    self._transport.write(step)
                    await self._writable.wait()
        self._finish(request)

    def _performed(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled():
            task.result()
            self._advance()

    def _finish(self, request: Received) -> None:
        request.finished_at = monotonic()
        if self._is_last:
            self.close()
