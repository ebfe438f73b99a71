"""Below ASGI: how much and how long a request's head may be, who is told when a client leaves, the quick way to answer,
and a quicker one to say that there is no room.

The parser itself would collect a header for ever. An answer that is whole needs none of ASGI's messages. And under five
times too much load most of what a server does is to refuse: a refusal that goes through the whole house costs a twelfth
of an answer, one from here a fiftieth.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from http import HTTPStatus
from math import inf
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from turnout.apps.gateway.gateway import FORMATS
from turnout.apps.gateway.wire import Format

from .admission import Admission
from .wire import DIRECT, PRESENCE, Presence

# From the first byte of a connection, or of the next request on it, to the end of the headers.
HEAD_S = 10.0
_STATUS = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
# When to come back, in turn: clients that are all told the same come back together.
WAITS_S = (1, 2, 3)
# Heads of requests that were refused, to be told again; they hold credentials, and go when there are this many.
HEADS_KEPT = 1024
# A longer one is read like any other request's.
HEAD_BYTES = 4096


class BoundedHead(HttpToolsProtocol):
    """Ends a connection whose head is too long, or does not come."""

    limit = 64 * 1024
    admission: Admission | None = None
    """Whom to ask whether there is room; None: there always is."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._presence = Presence()
        self._await_head()
        self._timer = self.loop.call_later(HEAD_S, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)
        self._presence.leave()

    def data_received(self, data: bytes) -> None:
        admission = self.admission
        if admission is not None and admission.is_full and self._refuse(admission, data):
            return
        # A head is short: of what comes at once only the beginning can be one.
        endless = len(data) > self.limit and self._in_head and data.find(b"\r\n\r\n", 0, self.limit) < 0
        if not endless:
            super().data_received(data)
        if self._in_head and not self.transport.is_closing():
            self._come += len(data)
            if endless or self._come > self.limit:
                self.send_400_response(f"The head of a request is at most {self.limit} bytes long.")

    def _refuse(self, admission: Admission, data: bytes) -> bool:
        """Answer a whole request without reading it: one that came in one piece, between two others."""
        cycle: Any = self.cycle  # None before the first request
        if (cycle is not None and not cycle.response_complete) or (self._in_head and self._come):
            return False
        # Clients say nearly the same each time: what a head means is looked up more often than it is read.
        head = data[: data.find(b"\r\n\r\n", 0, HEAD_BYTES) + 4]
        known = _HEADS.get(head)
        if known is None:
            if len(_HEADS) >= HEADS_KEPT:
                _HEADS.clear()
            known = _HEADS[head] = _read_head(head)
        size, refusals = known
        if len(data) != size:
            return False
        admission.refused += 1
        self.transport.write(refusals[admission.refused % len(WAITS_S)])
        self._until = self.loop.time() + self.timeout_keep_alive
        return True

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await_head()

    def on_headers_complete(self) -> None:
        self._in_head, self._until = False, inf
        if self.admission is not None:
            self.admission.expect(self.loop)
        super().on_headers_complete()
        self.scope[PRESENCE] = self._presence  # type: ignore[literal-required]
        if self.scope["method"] != "HEAD":
            self.scope[DIRECT] = Direct(self.cycle)  # type: ignore[literal-required]

    def on_response_complete(self) -> None:
        """Go on with what has come meanwhile, or wait for more."""
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            self.flow.resume_reading()
            if self.pipeline:
                self._start_asgi_task(*self.pipeline.pop())
            else:
                self._until = self.loop.time() + self.timeout_keep_alive

    # One timer for a connection's whole life, which looks whether its time is up: most of what is waited for comes
    # soon, and setting a timer costs more than looking at the clock.

    def _await_head(self) -> None:
        self._in_head, self._come = True, 0
        self._until = self.loop.time() + HEAD_S

    def _look(self) -> None:
        left = self._until - self.loop.time()
        if left > 0:
            self._timer = self.loop.call_later(min(left, HEAD_S), self._look)
        elif not self.transport.is_closing():
            self.transport.close()


class Direct:
    """A request's quick way in and out: what is here whole is read and written as a whole."""

    __slots__ = ("_cycle",)

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle

    def body(self) -> bytes | None:
        """The whole body, if it has come; it can be had once."""
        cycle = self._cycle
        if cycle.more_body or cycle.disconnected:
            return None
        body, cycle.body = bytes(cycle.body), bytearray()
        return body

    def answer(self, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> bool:
        """Write an answer; False if that is not possible now, and nothing was written."""
        cycle = self._cycle
        if cycle.disconnected or cycle.response_started or cycle.flow.write_paused:
            return False
        lines = [b"%b: %b\r\n" % pair for pair in headers]
        lines.append(b"content-length: %d\r\n" % len(body))
        if not cycle.keep_alive:
            lines.append(b"connection: close\r\n")
        head = b"".join(lines)
        # Each header is one line: the line ends that are there are ours.
        if head.count(b"\n") != len(lines) or head.count(b"\r") != len(lines) or b"\0" in head:
            raise ValueError("a header of the answer holds a line end or a NUL")
        cycle.response_started = cycle.response_complete = True
        cycle.transport.write(b"%b%b\r\n%b" % (_STATUS[status], head, body))
        cycle.message_event.set()
        if not cycle.keep_alive:
            cycle.transport.close()
        cycle.on_response()
        return True


def bounded(limit: int, admission: Admission | None = None) -> type[BoundedHead]:
    """The protocol with that many bytes for a head, and somebody to ask whether there is room."""
    return type("BoundedHead", (BoundedHead,), {"limit": limit, "admission": admission})


def _written(form: Format, wait_s: int) -> bytes:
    body = form.error(
        503, "overloaded_error", f"there is no room for more requests just now: try again in {wait_s} s", ""
    )
    head = f"HTTP/1.1 503 Service Unavailable\r\nretry-after: {wait_s}\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


def _read_head(head: bytes) -> tuple[int, list[bytes]]:
    """How long a request is in all, and what it is refused with; no length for what is not to be refused here."""
    refusals = _REFUSALS.get(head[: head.find(b"\r") + 1])
    length = _length(head, len(head) - 4)
    return (len(head) + length, refusals) if refusals is not None and length >= 0 else (-1, [])


def _length(data: bytes, end: int) -> int:
    """What a head says of the body that follows it; nothing that could be one if it does not say."""
    # As nearly every client writes it; the pattern is for the others, and much slower.
    at = data.find(b"\r\ncontent-length: ", 0, end)
    if at < 0:
        at = data.find(b"\r\nContent-Length: ", 0, end)
    said = data[at + 18 : data.find(b"\r", at + 18)] if at >= 0 else b""
    if not said.isdigit():
        found = _LENGTH.search(data, 0, end + 2)
        said = found[1] if found is not None else b""
    return int(said) if 0 < len(said) < 10 else -1


_HEADS: dict[bytes, tuple[int, list[bytes]]] = {}
_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]{1,9})\r\n", re.IGNORECASE)
_WRITTEN: dict[str, list[bytes]] = {
    wire: [_written(FORMATS[wire], wait) for wait in WAITS_S] for wire in ("openai-chat", "anthropic-messages")
}
_REFUSALS = {
    f"POST /v1/{path} HTTP/1.1\r".encode(): _WRITTEN["anthropic-messages" if path == "messages" else "openai-chat"]
    for path in ("chat/completions", "messages", "responses", "route")
}
"""By the first line of a request, what it is refused with, each wait in turn."""
