"""Code shared by the three wire formats: a reply that is ready to be written, and how an event is written."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from ..reply import ToolCall

# Any time will do; a fixed one makes equal answers equal.
CREATED = 1_750_000_000
NOTHING = Raw(b"")

encode = msgspec.json.encode


class UsageOption(Struct):
    include_usage: bool = False


class RequestFields(Struct):
    """The fields of a request that a provider needs to answer it."""

    model: str = ""
    stream: bool | None = None
    stream_options: UsageOption | None = None
    messages: Raw = NOTHING
    input: Raw = NOTHING
    max_tokens: int | None = None


class ScriptedCompletion(NamedTuple):
    """A reply with all fields filled in that its script left open."""

    number: int
    model: str
    pieces: list[str]
    calls: list[tuple[str, ToolCall]]
    """With their ids."""
    thinking: str
    tokens_in: int
    tokens_out: int
    cached: int
    finish: str
    with_usage: bool
    """Whether the request asked for usage in the stream."""

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class OpenAIDialect:
    """Code shared by OpenAI's two formats."""

    call_prefix = "call_"

    def error(self, status: int, message: str) -> bytes:
        kind = "server_error" if status >= 500 else "requests" if status == 429 else "invalid_request_error"
        return encode({"error": {"message": message, "type": kind, "param": None, "code": _CODES.get(status)}})


_CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}


def event(kind: str, **fields: Any) -> bytes:
    """A server-sent event with a name, which its data has as well."""
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), encode({"type": kind, **fields}))


def cut(text: str, length: int = 8) -> list[str]:
    """The arguments of a tool call in pieces of equal length, as a stream has them."""
    return [text[i : i + length] for i in range(0, len(text), length)]
