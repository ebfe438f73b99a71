"""Anthropic's messages."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from turnout.apps.caller import Refused
from turnout.core.query import Turn
from turnout.models.price import Usage
from turnout.models.provider import Wire

from .wire import MESSAGES, Asked, Count, Name, Sign, asked, check_count, decoded, members, prepare

# What Anthropic calls an error of each status.
KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class Block(Struct):
    type: str = "text"
    text: str = ""
    content: Any = None


class Message(Struct):
    role: Name
    content: str | list[Block] = ""


class Tokens(Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class Start(Struct):
    usage: Tokens | None = None


class Body(Struct):
    usage: Tokens | None = None
    message: Start | None = None


_body = msgspec.json.Decoder(Body)
prepare(list[Message], str | list[Block])
_BOUND = ("thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use")


class Messages:
    wire: Wire = "anthropic-messages"

    def read(self, body: bytes) -> Asked:
        fields = members(body)
        messages: list[Message] = decoded(fields, "messages", list[Message], [])
        if not messages:
            raise Refused(400, "invalid_request_error", "messages: at least one message is required")
        check_count("messages", len(messages), MESSAGES)
        system = decoded(fields, "system", str | list[Block], "")
        turns = [Turn("system", words(system))] if system else []
        turns += [Turn(message.role, words(message.content)) for message in messages]
        blocks = [block for message in messages if isinstance(message.content, list) for block in message.content]
        last = messages[-1]
        return asked(
            self.wire,
            fields,
            turns,
            fresh=last.role == "user" and bool(words(last.content)),
            images=sum(map(pictures, blocks)),
            bound=any(block.type in _BOUND for block in blocks),
            size=len(fields["messages"]) + len(fields.get("tools", b"")) + len(fields.get("system", b"")),
            max_tokens=decoded(fields, "max_tokens", Count),
        )

    def error(self, status: int, kind: str, message: str, decision: str) -> bytes:
        told = KINDS.get(status, "api_error" if status >= 500 else "invalid_request_error")
        error: dict[str, Any] = {"type": "error", "error": {"type": told, "message": message}}
        return msgspec.json.encode(error | ({"request_id": decision} if decision else {}))

    def error_event(self, kind: str, message: str, decision: str) -> bytes:
        error = {"type": "error", "error": {"type": "api_error", "message": message}}
        return b"event: error\ndata: " + msgspec.json.encode(error) + b"\n\n"

    def sign(self, name: bytes, data: bytes) -> Sign:
        match name:
            case b"content_block_delta" | b"message_delta":
                return "delta"
            case b"message_start" | b"ping":
                return "prelude"
            case b"content_block_start":
                # A tool call's name is in its start: that is news for the client already.
                return "delta" if b'"tool_use"' in data else "prelude"
            case b"message_stop":
                return "end"
            case b"error":
                return "error"
        return "other"

    def stored_as(self, first: bytes) -> str:
        return ""

    def usage(self, data: bytes, so_far: Usage) -> Usage:
        if b'"usage"' not in data:
            return so_far
        body = _body.decode(data)
        told = body.usage or (body.message.usage if body.message is not None else None)
        if told is None:
            return so_far
        read = told.input_tokens
        cached = told.cache_read_input_tokens or 0
        whole = so_far.input_tokens if read is None else read + cached + (told.cache_creation_input_tokens or 0)
        written = so_far.output_tokens if told.output_tokens is None else told.output_tokens
        return Usage(whole, written, cached or so_far.cached_tokens)


def pictures(block: Block) -> int:
    """How many images a block is or, as a tool's result, has."""
    inside = block.content if isinstance(block.content, list) else []
    return [block.type, *(one.get("type") for one in inside if isinstance(one, dict))].count("image")


def words(content: str | list[Block]) -> str:
    if isinstance(content, str):
        return content
    return " ".join(block.text for block in content if block.type == "text" and block.text)
