"""Faults on the way to and from a provider, each at a chosen moment of an answer.

An answer is a list of parts; playing it yields the steps of a server: bytes to send, a pause, or the end of the
connection. A fault changes only the steps, so that every fault works for every wire format, streaming or not. There are
three moments: before the headers, after them but before the first delta, and after some deltas. Without streaming, the
first delta is the first half of the body.

A refused connection is not here, because no request arrives: see `ScriptedProvider.refuse`. For a status, see
`Reply.status`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Literal, NamedTuple, get_args

from msgspec import Struct

Window = Literal["before_headers", "before_delta", "after_delta"]
FaultKind = Literal[
    "reset",
    "cut",
    "stall",
    "drip",
    "endless",
    "big_event",
    "half_json",
    "error_event",
    "wrong_type",
    "duplicate_done",
]
Sign = Literal["prelude", "delta", "between", "end"]

# Twice what any provider sends in one event, images apart.
BIG_BYTES = 10 * 1024 * 1024
# A client may lose bytes it has not read when a reset arrives: this is time to read them.
SETTLE_S = 0.02

WINDOWS: dict[FaultKind, tuple[Window, ...]] = dict.fromkeys(get_args(FaultKind), get_args(Window)) | {
    "half_json": ("before_delta", "after_delta"),
    "error_event": ("before_delta", "after_delta"),
    "wrong_type": ("before_headers",),
    "duplicate_done": ("after_delta",),
}
"""When each fault can happen."""

_PAGE = b"<!doctype html><title>Welcome</title><h1>Please sign in to this network</h1>"


class ScriptedFault(Struct, frozen=True):
    """One thing that goes wrong with one answer.

    - `reset`: the connection is reset (RST).
    - `cut`: the connection ends (FIN) in the middle of an event or of the body; with `clean`, only the answer ends
      there, and its framing is right.
    - `stall`: silence for some `seconds`, or until the provider is released; then the answer goes on.
    - `drip`: from here on one byte at a time, every `seconds` (1).
    - `endless`: no end. Headers; then comments; then the same delta again and again. In between, `seconds` (0).
    - `big_event`: a header, or a delta, of `size` bytes.
    - `half_json`: half an event, or half a body, and then a proper end.
    - `error_event`: the provider says that it failed, in the stream, or with status 200 instead of the body.
    - `wrong_type`: a page of HTML with status 200.
    - `duplicate_done`: the last event twice, or the second half of the body.
    """

    kind: FaultKind
    at: Window | Literal[""] = ""
    """Empty: the earliest moment at which this kind can happen."""
    after: int = 1
    """With `after_delta`: how many deltas come first."""
    seconds: float | None = None
    size: int = BIG_BYTES
    clean: bool = False

    def __post_init__(self) -> None:
        if self.kind not in WINDOWS:
            raise ValueError(f"{self.kind!r} is not a fault; there are {', '.join(WINDOWS)}")
        if self.window not in WINDOWS[self.kind]:
            raise ValueError(f"{self.kind} cannot happen {self.at!r}, only {' or '.join(WINDOWS[self.kind])}")

    @property
    def window(self) -> Window:
        """The moment at which it happens."""
        return self.at or WINDOWS[self.kind][0]

    @classmethod
    def every(cls) -> list[ScriptedFault]:
        """Every kind at every moment it can happen."""
        return [cls(kind, at) for kind, windows in WINDOWS.items() for at in windows]


class BodyPart(NamedTuple):
    """A piece of an answer's body: an event of a stream, or half of a whole body."""

    sign: Sign
    data: bytes


class ScriptedResponse(NamedTuple):
    """An answer without a fault."""

    status: int
    headers: Mapping[str, str]
    parts: Sequence[BodyPart]
    is_stream: bool
    error: bytes
    """The provider's message that it failed: an event, or a body."""


class Pause(NamedTuple):
    seconds: float | None
    """None: until the provider is released."""


class Close(NamedTuple):
    reset: bool = False


Step = bytes | Pause | Close


def halves(body: bytes) -> list[BodyPart]:
    """The two parts of a body that is not a stream."""
    middle = len(body) // 2
    return [BodyPart("delta", body[:middle]), BodyPart("end", body[middle:])]


def play(answer: ScriptedResponse, fault: ScriptedFault | None = None, *, chunk_delay_s: float = 0.0) -> Iterator[Step]:
    """The steps of the server. Nothing follows a `Close`."""
    if fault is None or fault.window != "before_headers":
        yield from _message(answer, fault, chunk_delay_s)
        return
    match fault.kind:
        case "reset" | "cut":
            yield Close(reset=fault.kind == "reset")
            return
        case "stall":
            yield Pause(fault.seconds)
        case "drip":
            yield from _drip(_message(answer, None, chunk_delay_s), fault.seconds)
            return
        case "endless":
            yield _head(answer, None).removesuffix(b"\r\n")
            yield from _endless(b"x-padding: %b\r\n" % (b"x" * 1000), fault.seconds)
        case "big_event":
            answer = answer._replace(headers={**answer.headers, "x-padding": "x" * fault.size})
        case "wrong_type":
            headers = {**answer.headers, "content-type": "text/html; charset=utf-8"}
            answer = answer._replace(headers=headers, parts=halves(_PAGE), is_stream=False)
    yield from _message(answer, None, chunk_delay_s)


def _message(answer: ScriptedResponse, fault: ScriptedFault | None, chunk_delay_s: float) -> Iterator[Step]:
    steps = _content(answer, fault, chunk_delay_s)
    if answer.is_stream or (fault is not None and fault.kind == "endless"):
        yield _head(answer, None)
        for step in steps:
            yield b"%x\r\n%b\r\n" % (len(step), step) if isinstance(step, bytes) else step
        yield b"0\r\n\r\n"
        return
    played = list(steps)
    # If the connection breaks, the length is that of the whole body; otherwise, that of the bytes that are sent.
    counted = [part.data for part in answer.parts] if any(isinstance(step, Close) for step in played) else played
    yield _head(answer, sum(len(step) for step in counted if isinstance(step, bytes)))
    yield from played


def _content(answer: ScriptedResponse, fault: ScriptedFault | None, chunk_delay_s: float) -> Iterator[Step]:
    parts = answer.parts
    moment = _moment(parts, fault) if fault is not None else -1
    has_delta = dripping = False
    for number, part in enumerate(parts):
        if number == moment and fault is not None:
            match fault.kind:
                case "reset":
                    yield Pause(SETTLE_S)
                    yield Close(reset=True)
                    return
                case "cut":
                    yield part.data[: max(1, len(part.data) // 2)]
                    if not fault.clean:
                        yield Close()
                    return
                case "half_json":
                    yield part.data[: max(1, len(part.data) // 2)] + (b"\n\n" if answer.is_stream else b"")
                    return
                case "error_event":
                    yield answer.error
                    return
                case "endless":
                    comment = b": still here\n\n" if answer.is_stream else b" " * 1000
                    again = parts[number - 1].data if answer.is_stream and fault.window == "after_delta" else comment
                    yield from _endless(again, fault.seconds)
                case "stall":
                    yield Pause(fault.seconds)
                case "drip":
                    dripping = True
        if part.sign == "delta":
            if has_delta and chunk_delay_s:
                yield Pause(chunk_delay_s)
            has_delta = True
        if dripping and fault is not None:
            yield from _drip([part.data], fault.seconds)
        elif part.data:
            yield part.data
    if fault is not None and fault.kind == "duplicate_done":
        yield parts[-1].data


def _moment(parts: Sequence[BodyPart], fault: ScriptedFault) -> int:
    """The number of the part before which a fault happens."""
    if fault.window == "before_delta":
        return next(number for number, part in enumerate(parts) if part.sign != "prelude")
    deltas = [number for number, part in enumerate(parts) if part.sign == "delta"]
    if not deltas:
        return len(parts) - 1
    return deltas[min(fault.after, len(deltas)) - 1] + 1


def _drip(steps: Iterator[Step] | Sequence[bytes], seconds: float | None) -> Iterator[Step]:
    for step in steps:
        if not isinstance(step, bytes):
            yield step
            continue
        for number in range(len(step)):
            yield step[number : number + 1]
            yield Pause(1.0 if seconds is None else seconds)


def _endless(piece: bytes, seconds: float | None) -> Iterator[Step]:
    while True:
        yield piece
        yield Pause(seconds or 0.0)


def _head(answer: ScriptedResponse, length: int | None) -> bytes:
    framing = "transfer-encoding: chunked" if length is None else f"content-length: {length}"
    fields = "".join([f"{name}: {value}\r\n" for name, value in answer.headers.items()])
    status = f"HTTP/1.1 {answer.status} {_PHRASES.get(answer.status, 'Unknown')}"
    return f"{status}\r\n{fields}{framing}\r\n\r\n".encode("latin-1")


_PHRASES = {status.value: status.phrase for status in HTTPStatus} | {529: "Overloaded"}
