"""How much and how long a request's head may be. The parser itself would collect a header for ever."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# From the first byte of a connection, or of the next request on it, to the end of the headers.
HEAD_S = 10.0


class TooLong(Exception):
    """A head is longer than is taken; the parser turns it into a 400."""


class BoundedHead(HttpToolsProtocol):
    """Ends a connection whose head is too long, or does not come."""

    limit = 64 * 1024

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_head and not self.transport.is_closing():
            self._come += len(data)
            if self._come > self.limit:
                self.send_400_response(f"The head of a request is at most {self.limit} bytes long.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._timer.cancel()
        super().on_headers_complete()

    def _begin(self) -> None:
        if hasattr(self, "_timer"):
            self._timer.cancel()
        self._in_head, self._come, self._read = True, 0, 0
        self._timer: Any = self.loop.call_later(HEAD_S, self._give_up)

    def _count(self, size: int) -> None:
        self._read += size
        if self._read > self.limit:
            raise TooLong

    def _give_up(self) -> None:
        if self._in_head and not self.transport.is_closing():
            self.transport.close()


def bounded(limit: int) -> type[BoundedHead]:
    """The protocol with that many bytes for a head."""
    return type("BoundedHead", (BoundedHead,), {"limit": limit})
