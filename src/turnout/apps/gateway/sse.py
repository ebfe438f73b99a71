"""Server-sent events, taken from a stream of bytes as they come: whole events out, the rest kept for the next piece."""

from __future__ import annotations

import re
from typing import NamedTuple

from turnout.core.errors import Broken

# The largest event a provider sends is a whole response in one piece, images included; ten megabytes is an attack.
EVENT_BYTES = 8 * 1024 * 1024

_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")


class Event(NamedTuple):
    name: bytes
    data: bytes
    raw: bytes
    """As it came, with the blank line that ends it."""


class Events:
    """Cuts a stream into events. A line may end with LF, CRLF or CR; so may the stream be cut anywhere."""

    def __init__(self) -> None:
        self._rest = bytearray()
        """What has come of an event that has not ended."""

    def feed(self, chunk: bytes) -> list[Event]:
        # Only what is new is searched, with the three bytes an end may have begun in: a long event takes linear time.
        searched = max(0, len(self._rest) - 3)
        data: bytes | bytearray = chunk
        if self._rest:
            self._rest += chunk
            data = self._rest
        found = []
        start = 0
        for end in _END.finditer(data, searched):
            found.append(read_event(bytes(data[start : end.end()])))
            start = end.end()
        if data is chunk:
            self._rest += chunk[start:]
        else:
            del self._rest[:start]
        if len(self._rest) > EVENT_BYTES:
            raise Broken(f"an event of the stream is longer than {EVENT_BYTES:,} bytes")
        return found


def read_event(raw: bytes) -> Event:
    """The name and data of one event; a comment has neither."""
    if raw.startswith(b"data: ") and raw.endswith(b"\n\n") and raw.count(b"\n") == 2:  # nearly all of them
        return Event(b"", raw[6:-2].rstrip(b"\r"), raw)
    name, data = b"", []
    for line in raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"event":
            name = value
        elif field == b"data":
            data.append(value)
    return Event(name, b"\n".join(data), raw)
