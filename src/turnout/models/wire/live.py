"""An answer of our own in a client's format, written while it comes about.

A format writes a stream from its pieces; here it is handed one piece at a time, and what it has written up to there
goes out. Invariant: the bytes together are what the format would have written of all pieces at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from turnout.models.price import Usage

from .format import Format, most_tokens


class LiveStream:
    """One answer under way."""

    def __init__(self, form: Format, ident: str, model: str, input_tokens: int) -> None:
        self._pieces: deque[str] = deque()
        self._said: list[str] = []
        self._input_tokens = input_tokens
        self._events = form.write_stream(ident, model, self._fed(), self._used)

    def _fed(self) -> Iterator[str]:
        while self._pieces:
            yield self._pieces.popleft()

    def _used(self) -> Usage:
        return Usage(self._input_tokens, most_tokens(self._said))

    def feed(self, text: str) -> bytes:
        """What is sent of a piece, and of what comes before the first one."""
        self._pieces.append(text)
        self._said.append(text)
        out = b""
        while self._pieces:
            out += next(self._events)
        return out

    def end(self) -> bytes:
        return b"".join(self._events)
