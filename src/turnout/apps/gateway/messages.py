"""Anthropic's messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from turnout.apps.caller import Refused
from turnout.core.query import Turn
from turnout.models.price import MOST_TOKENS, Usage
from turnout.models.provider import Wire
from turnout.models.refusal import Refusal
from turnout.text.extract import is_wrapped

from .wire import (
    MESSAGES,
    Asked,
    Extras,
    Name,
    Sign,
    ToolType,
    asked,
    check_count,
    count_at,
    decoded,
    hosted_tool,
    members,
    mentions,
    prepare,
    read_count,
    read_tools,
    read_usage,
    said,
)

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


# Tools that are named by type and yet run at the client.
AT_THE_CLIENT = ("custom", "bash_", "text_editor_", "computer_", "memory_")
# Members that are billed otherwise than by the listed price of a token.
UNPRICED = ("speed", "inference_geo", "context_management")
# Blocks that are as long as their bytes are, and pictures, which have a price of their own.
SEEN = frozenset(
    (
        "text",
        "image",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "server_tool_use",
        "mcp_tool_use",
        "mcp_tool_result",
        "search_result",
        "web_search_tool_result",
    )
)


class Block(Struct):
    type: str = "text"
    text: str = ""
    content: Any = None
    source: Raw = Raw(b"")
    cache_control: Any = None


class Typed(Struct):
    type: str = ""


class Message(Struct):
    role: Name
    content: str | list[Block] = ""


class Start(Struct):
    usage: Raw = Raw(b"null")


class Body(Struct):
    usage: Raw = Raw(b"null")
    message: Start | None = None


class Piece(Struct):
    """An event with words of the model's: the start of a block, or more of it."""

    delta: Any = None
    content_block: Any = None


_body = msgspec.json.Decoder(Body)
_piece = msgspec.json.Decoder(Piece)
_typed = msgspec.json.Decoder(Typed)
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
        opening = system if isinstance(system, list) else []
        tools = read_tools(fields)
        blocks = [block for message in messages if isinstance(message.content, list) for block in message.content]
        return asked(
            self.wire,
            fields,
            turns,
            fresh=is_fresh(messages),
            images=sum(map(pictures, blocks)),
            pictures=(one for block in blocks for one in picture_data(block)),
            bound=any(block.type in _BOUND for block in blocks),
            max_tokens=read_count(fields, "max_tokens"),
            extras=Extras(
                limits=bool(mentions(fields, ("max_tokens",))),
                unseen=any(map(is_unseen, blocks)),
                caches="cache_control" in fields or any(map(caches, (*opening, *blocks, *tools))),
                thinks=decoded(fields, "thinking", Typed, Typed("disabled")).type != "disabled",
                hosted=hosted_tool(tools, AT_THE_CLIENT) or mentions(fields, ("mcp_servers", "container")),
                unpriced=mentions(fields, UNPRICED),
            ),
        )

    def error(self, status: int, kind: str, message: str, decision: str, refusal: Refusal | None = None) -> bytes:
        told = KINDS.get(status, "api_error" if status >= 500 else "invalid_request_error")
        if refusal is not None and refusal.kind:
            told = refusal.kind
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
        told = read_usage(body.usage if body.message is None else body.message.usage)
        if told is None:
            return so_far
        # The last word is at a stream's end or in an answer that is whole; what a stream begins with is only a start.
        final = body.message is None and told.get("output_tokens") is not None
        written = count_at(told, "output_tokens") if "output_tokens" in told else so_far.output_tokens
        if told.get("input_tokens") is None:
            return replace(so_far, output_tokens=written, final=final)
        cached = count_at(told, "cache_read_input_tokens")
        stored = count_at(told, "cache_creation_input_tokens")
        hour = min(stored, count_at(told, "cache_creation", "ephemeral_1h_input_tokens"))
        whole = min(count_at(told, "input_tokens") + cached + stored, MOST_TOKENS)
        return Usage(whole, written, cached, stored - hour, hour, final)

    def written(self, name: bytes, data: bytes) -> int:
        if name not in (b"content_block_delta", b"content_block_start"):
            return 0
        piece = _piece.decode(data)
        return said(piece.delta) + said(piece.content_block)

    def is_usage(self, data: bytes) -> bool:
        return False


def picture_data(block: Block) -> Iterator[Raw | str]:
    """The images a block is or, as a tool's result, has."""
    if block.type == "image":
        yield block.source
    for one in block.content if isinstance(block.content, list) else ():
        source = one.get("source") if isinstance(one, dict) and one.get("type") == "image" else None
        data = source.get("data") if isinstance(source, dict) else None
        if isinstance(data, str):
            yield data


def is_unseen(block: Block) -> bool:
    """Whether a block has input whose length its bytes do not tell: a document, what its provider has or fetches."""
    if block.type == "tool_result":
        inside = block.content if isinstance(block.content, list) else []
        return any(not isinstance(one, dict) or one.get("type") not in SEEN for one in inside)
    if block.type == "document" and block.source:
        return _typed.decode(block.source).type != "text"
    return block.type not in SEEN


def caches(part: Block | ToolType) -> bool:
    """Whether a part of a request is to be cached, or has one that is."""
    inside = part.content if isinstance(part, Block) and isinstance(part.content, list) else []
    return part.cache_control is not None or any(isinstance(one, dict) and "cache_control" in one for one in inside)


def pictures(block: Block) -> int:
    """How many images a block is or, as a tool's result, has."""
    inside = block.content if isinstance(block.content, list) else []
    return [block.type, *(one.get("type") for one in inside if isinstance(one, dict))].count("image")


def is_fresh(messages: list[Message]) -> bool:
    """Whether the last one has words of the user's: a client adds instructions after it, and notes of its own to a
    tool's results."""
    last = next((message for message in reversed(messages) if message.role != "system"), messages[-1])
    if last.role != "user" or isinstance(last.content, str):
        return last.role == "user" and bool(last.content)
    texts = [block.text for block in last.content if block.type == "text" and block.text]
    if any(block.type == "tool_result" for block in last.content):
        texts = [text for text in texts if not is_wrapped(text.strip())]
    return bool(texts)


def words(content: str | list[Block]) -> str:
    if isinstance(content, str):
        return content
    return " ".join(block.text for block in content if block.type == "text" and block.text)
