"""An answer of our own in a client's format, written while it is generated.

A format writes a stream from an iterator of pieces; this class feeds it one piece at a time and returns what it has
written so far. Invariant: all the bytes together are those the format writes from all pieces at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from turnout.models.price import Usage

from .format import Format, most_tokens


class LiveStream:
    """One answer, event by event."""

    def __init__(self, form: Format, ident: str, model: str, input_tokens: int) -> None:
        self._pieces: deque[str] = deque()
        self._written: list[str] = []
        self._input_tokens = input_tokens
        self._events = form.write_stream(ident, model, self._waiting(), self._used)

    def _waiting(self) -> Iterator[str]:
        while self._pieces:
            yield self._pieces.popleft()

    def _used(self) -> Usage:
        return Usage(self._input_tokens, most_tokens(self._written))

    def feed(self, text: str) -> bytes:
        """The events of a piece, and the opening events before the first one."""
        self._pieces.append(text)
        self._written.append(text)
        out = b""
        while self._pieces:
            out += next(self._events)
        return out

    def end(self) -> bytes:
        return b"".join(self._events)
