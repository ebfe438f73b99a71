"""Below ASGI: how much and how long a request's head may be, who is told when a client leaves, and the quick way to say
that there is no room.

The parser itself would collect a header for ever. And under five times too much load most of what a server does is to
refuse: a refusal that goes through the whole house costs a twelfth of an answer, one from here a fiftieth.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from turnout.apps.gateway.gateway import FORMATS
from turnout.apps.gateway.wire import Format

from .admission import Admission
from .wire import PRESENCE, Presence

# From the first byte of a connection, or of the next request on it, to the end of the headers.
HEAD_S = 10.0
# When to come back, in turn: clients that are all told the same come back together.
WAITS_S = (1, 2, 3)


class BoundedHead(HttpToolsProtocol):
    """Ends a connection whose head is too long, or does not come."""

    limit = 64 * 1024
    admission: Admission | None = None
    """Whom to ask whether there is room; None: there always is."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._presence = Presence()
        self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)
        self._presence.leave()

    def data_received(self, data: bytes) -> None:
        if self.admission is not None and self.admission.is_full and self._refuse(self.admission, data):
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
        if cycle is not None and not cycle.response_complete:
            return False
        end = data.find(b"\r\n\r\n")
        found = _ASKED.match(data)
        length = _LENGTH.search(data, 0, end + 2) if found is not None and end > 0 else None
        if found is None or length is None or len(data) != end + 4 + int(length[1]):
            return False
        admission.refused += 1
        self._unset_keepalive_if_required()
        self.transport.write(_REFUSALS[found[1] == b"messages"][admission.refused % len(WAITS_S)])
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)
        return True

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._timer.cancel()
        if self.admission is not None:
            self.admission.expect(self.loop)
        super().on_headers_complete()
        self.scope[PRESENCE] = self._presence  # type: ignore[literal-required]

    def _begin(self) -> None:
        if hasattr(self, "_timer"):
            self._timer.cancel()
        self._in_head, self._come = True, 0
        self._timer: Any = self.loop.call_later(HEAD_S, self._give_up)

    def _give_up(self) -> None:
        if self._in_head and not self.transport.is_closing():
            self.transport.close()


def bounded(limit: int, admission: Admission | None = None) -> type[BoundedHead]:
    """The protocol with that many bytes for a head, and somebody to ask whether there is room."""
    return type("BoundedHead", (BoundedHead,), {"limit": limit, "admission": admission})


def _written(form: Format, wait_s: int) -> bytes:
    body = form.error(
        503, "overloaded_error", f"there is no room for more requests just now: try again in {wait_s} s", ""
    )
    head = f"HTTP/1.1 503 Service Unavailable\r\nretry-after: {wait_s}\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


_ASKED = re.compile(rb"POST /v1/(chat/completions|messages|responses|route) HTTP/1\.1\r\n")
_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]{1,9})\r\n", re.IGNORECASE)
_REFUSALS = [[_written(FORMATS[wire], wait) for wait in WAITS_S] for wire in ("openai-chat", "anthropic-messages")]
