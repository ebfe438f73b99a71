"""Cuts a stream of bytes into server-sent events; an incomplete event waits for the next chunk."""

from __future__ import annotations

import re
from typing import NamedTuple

from turnout.core.errors import Broken

# The largest event a provider sends is a whole response with its images; ten megabytes is an attack.
EVENT_BYTES = 8 * 1024 * 1024

# The ends of a line and of a blank line. Atomic: the halves of a CRLF are never two line ends.
_END = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")


class SseEvent(NamedTuple):
    name: bytes
    data: bytes
    raw: bytes
    """Its bytes, with the blank line that ends it."""


class Events:
    """Cuts a stream into events. Each line may end with LF, CRLF or CR, and the stream may be cut anywhere.

    A CR ends its line at once, because the next byte may take minutes. If that is an LF, it belongs to the same line
    end and becomes an event without name and data, so that all events together are the stream byte for byte.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        """The beginning of an event that has not ended."""
        self._ended_with_cr = False
        """Whether the last event ended with a CR and nothing has come since."""

    def feed(self, chunk: bytes) -> list[SseEvent]:
        if not chunk:
            return []
        found = []
        if self._ended_with_cr and chunk.startswith(b"\n"):
            found.append(SseEvent(b"", b"", b"\n"))
            chunk = chunk[1:]
        self._ended_with_cr = False
        # Only the new bytes and the three before them, where an end may begin, are searched: a long event takes linear
        # time.
        searched = max(0, len(self._rest) - 3)
        data: bytes | bytearray = chunk
        if self._rest:
            self._rest += chunk
            data = self._rest
        start = 0
        for end in _END.finditer(data, searched):
            found.append(read_event(bytes(data[start : end.end()])))
            start = end.end()
        self._ended_with_cr = 0 < start == len(data) and data.endswith(b"\r")
        if data is chunk:
            self._rest += chunk[start:]
        else:
            del self._rest[:start]
        if len(self._rest) > EVENT_BYTES:
            raise Broken(f"an event of the stream is longer than {EVENT_BYTES:,} bytes")
        return found


def read_event(raw: bytes) -> SseEvent:
    """The name and data of one event; a comment has neither."""
    if raw.startswith(b"data: ") and raw.count(b"\n") == 2 and b"\r" not in raw:  # nearly all of them
        return SseEvent(b"", raw[6:-2], raw)
    name, data = b"", []
    for line in raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"event":
            name = value
        elif field == b"data":
            data.append(value)
    return SseEvent(name, b"\n".join(data), raw)
