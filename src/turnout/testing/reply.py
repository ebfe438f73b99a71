"""The replies of a scripted provider, and the requests it received: the two values a test deals with."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import msgspec
from msgspec import Struct

from .fault import ScriptedFault

TEXT = "Hello from the scripted provider."

_PIECE = re.compile(r"\S+\s*|\s+")


class ToolCall(Struct, frozen=True):
    """A tool call in an answer."""

    name: str
    arguments: Mapping[str, Any] | str = {}
    """A string is sent as it is, whether or not it is JSON."""
    id: str = ""
    """Empty: the provider makes one in its format's style."""

    @property
    def json(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else msgspec.json.encode(self.arguments).decode()


class ScriptedReply(Struct, frozen=True):
    """One answer, sent in the wire format of the request, streaming or not."""

    text: str | Sequence[str] | None = None
    """A stream has a delta for each word, or for each string of a sequence. None: a greeting or, with tools, nothing.
    With a status other than 200, the error message."""
    tools: Sequence[ToolCall] = ()
    thinking: str = ""
    """Comes before the text, signed if the format signs it."""
    usage: tuple[int, int] | None = None
    """Tokens in and out; None: about a quarter of the characters."""
    cached: int = 0
    """Of the tokens in, those read from the provider's cache."""
    finish: Literal["stop", "length"] = "stop"
    delay_s: float = 0.0
    """Before the headers."""
    chunk_delay_s: float = 0.0
    """Between deltas. Without it, a stream without a fault is sent in one piece."""
    status: int = 200
    headers: Mapping[str, str] = {}
    """Added to the usual headers, or replacing them; lower case."""
    body: bytes | None = None
    """Exactly these bytes instead of an answer in a wire format, for any path and method."""
    fault: ScriptedFault | None = None

    def pieces(self) -> list[str]:
        """The text in the pieces of a stream."""
        text = ("" if self.tools else TEXT) if self.text is None else self.text
        pieces = words(text) if isinstance(text, str) else list(text)
        fault = self.fault
        if fault is not None and fault.kind == "big_event" and fault.window != "before_headers":
            pieces.insert(fault.after if fault.window == "after_delta" else 0, "x" * fault.size)
        return pieces


class Received(Struct, eq=False, dict=True):
    """A request, and what happened to it. Times are `time.monotonic()`."""

    connection: int
    """The number of its connection: 1 is the first."""
    method: str
    path: str
    """With its query string."""
    head: bytes
    """The raw request line and headers."""
    raw: bytes
    """The raw body."""
    at: float
    """When its last byte arrived."""
    finished_at: float | None = None
    """When the last byte of the answer was written; None if it never was."""
    closed_at: float | None = None
    """When the client closed the connection, if this was the last request on it and the provider did not."""

    @property
    def is_abandoned(self) -> bool:
        """The client left before the answer was complete."""
        return self.closed_at is not None and self.finished_at is None

    @cached_property
    def headers(self) -> dict[str, str]:
        """By lower-case name; repeated headers are joined with a comma."""
        headers: dict[str, str] = {}
        for line in self.head.decode("latin-1").split("\r\n")[1:]:
            name, _, value = line.partition(":")
            name, value = name.lower(), value.strip()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return headers

    @cached_property
    def body(self) -> Any:
        """The body, parsed; None if it is not JSON."""
        try:
            return msgspec.json.decode(self.raw)
        except msgspec.DecodeError:
            return None

    def __repr__(self) -> str:
        return f"<{self.method} {self.path}, {len(self.raw)} bytes, on connection {self.connection}>"


def words(text: str) -> list[str]:
    """A text in the pieces of a stream: each word with the white space after it."""
    return _PIECE.findall(text)


Entry = ScriptedReply | Callable[[Received], ScriptedReply]
"""An entry of a script: a reply, or a function that makes one for the request."""
