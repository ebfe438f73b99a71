"""A demonstration model without key, network or weights, so that everything runs end to end from the first minute.

It answers in the wire format of the request, streaming or not, and gives the same answer to the same question. The
answer says that it is a demonstration. Its tokens cost nothing.
"""

from __future__ import annotations

import hashlib

from turnout.text.fence import outside

from .price import Usage
from .provider import Wire
from .wire import FORMATS
from .wire.format import TOKEN_CHARACTERS


def answer(slot: str, question: str) -> str:
    """The demonstration model's answer."""
    asked = " ".join(outside(question).split())
    short = asked if len(asked) <= 120 else asked[:119] + "…"
    return (
        f"This is Turnout's built-in demonstration model, standing in for the slot “{slot}”. "
        f"You asked: “{short}” "
        "A real model would answer here: name one in turnout.toml, or set a provider's key."
    )


def respond(wire: Wire, slot: str, model: str, question: str, stream: bool) -> list[bytes]:
    """The body of an answer: one piece, or the events of a stream."""
    text, form = answer(slot, question), FORMATS[wire]
    ident = hashlib.sha256(f"{slot}\0{question}".encode("utf-8", "replace")).hexdigest()[:24]
    usage = Usage(max(1, len(question) // TOKEN_CHARACTERS), max(1, len(text) // TOKEN_CHARACTERS))
    if stream:
        return list(form.write_stream(ident, model, _pieces(text), lambda: usage))
    return [form.write_response(ident, model, text, usage)]


def _pieces(text: str) -> list[str]:
    words = text.split(" ")
    return [" ".join(words[i : i + 4]) + (" " if i + 4 < len(words) else "") for i in range(0, len(words), 4)]


class DemoExchange:
    """The demonstration model's answer in the shape of a network exchange."""

    status = 200

    def __init__(self, pieces: list[bytes], stream: bool) -> None:
        self.headers = {"content-type": "text/event-stream" if stream else "application/json"}
        self._pieces = iter(pieces)

    def ready(self) -> bytes:
        return b"".join(self._pieces)

    async def next(self) -> bytes:
        return next(self._pieces, b"")

    def close(self) -> None:
        """Does nothing: there is no connection."""
