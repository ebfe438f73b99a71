"""What a scripted provider is told to say, and what it was asked: the two values a test deals with."""

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
    """A call of a tool in an answer."""

    name: str
    arguments: Mapping[str, Any] | str = {}
    """A string is sent as it is, whether or not it is JSON."""
    id: str = ""
    """Empty: the provider makes one up, in its own format's style."""

    @property
    def json(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else msgspec.json.encode(self.arguments).decode()


class ScriptedReply(Struct, frozen=True):
    """One answer. The same reply is said in whichever wire format is asked for, streaming or not."""

    text: str | Sequence[str] | None = None
    """A stream has a delta for each word, or for each string of a sequence. None: a greeting, or, with tools, nothing.
    With a status other than 200, it is the message of the error."""
    tools: Sequence[ToolCall] = ()
    thinking: str = ""
    """Comes before the text, signed where the format signs it."""
    usage: tuple[int, int] | None = None
    """Tokens in and out; None: about a quarter of the characters."""
    cached: int = 0
    """Of the tokens in, those read from the provider's cache."""
    finish: Literal["stop", "length"] = "stop"
    delay_s: float = 0.0
    """Before the headers."""
    chunk_delay_s: float = 0.0
    """Between deltas. Without it, a stream that has no fault is sent in one piece."""
    status: int = 200
    headers: Mapping[str, str] = {}
    """Added to the usual ones, or in their place; lower case."""
    body: bytes | None = None
    """Exactly these bytes instead of an answer in the wire format, to any path and method."""
    fault: ScriptedFault | None = None

    def pieces(self) -> list[str]:
        """The text, as a stream has it."""
        text = ("" if self.tools else TEXT) if self.text is None else self.text
        pieces = words(text) if isinstance(text, str) else list(text)
        fault = self.fault
        if fault is not None and fault.kind == "big_event" and fault.window != "before_headers":
            pieces.insert(fault.after if fault.window == "after_delta" else 0, "x" * fault.size)
        return pieces


class Received(Struct, eq=False, dict=True):
    """A request, and what became of it. Times are `time.monotonic()`."""

    connection: int
    """Which connection it came on: 1 is the first."""
    method: str
    path: str
    """With its query string."""
    head: bytes
    """The request line and the headers as they came."""
    raw: bytes
    """The body as it came."""
    at: float
    """When the last byte of it was here."""
    finished_at: float | None = None
    """When the last byte of the answer was written; None if that never happened."""
    closed_at: float | None = None
    """When the client closed the connection, if this was the last request on it and the provider did not."""

    @property
    def is_abandoned(self) -> bool:
        """The client left before the answer was complete."""
        return self.closed_at is not None and self.finished_at is None

    @cached_property
    def headers(self) -> dict[str, str]:
        """Names in lower case; what came twice is joined with a comma."""
        found: dict[str, str] = {}
        for line in self.head.decode("latin-1").split("\r\n")[1:]:
            name, _, value = line.partition(":")
            name, value = name.lower(), value.strip()
            found[name] = f"{found[name]}, {value}" if name in found else value
        return found

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
    """A text in the pieces a stream has it in. Joined, they are the text."""
    return _PIECE.findall(text)


Entry = ScriptedReply | Callable[[Received], ScriptedReply]
"""An entry of a script: a reply, or a function that makes one of the request."""
