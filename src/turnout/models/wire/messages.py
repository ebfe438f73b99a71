"""Anthropic's messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from turnout.models.price import MOST_TOKENS, Usage
from turnout.models.provider import Wire
from turnout.models.refusal import Refusal
from turnout.text.read import is_wrapped

from .format import (
    UNREADABLE,
    Format,
    Name,
    UsageSoFar,
    count_at,
    mentions,
    prepare,
    read_data_url,
    read_member,
    text_at,
    words_of,
    write_event,
)
from .sse import SseEvent
from .value import Delta, Message, MessagePart, ModelRequest, ModelResponse, PartKind, Sign, StopReason, ToolOffer

# Anthropic's names of errors by status.
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
STOPS: Mapping[Any, StopReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tools",
    "refusal": "filter",
}
SIGNS: Mapping[bytes, Sign] = {
    b"message_start": "prelude",
    b"ping": "prelude",
    b"content_block_start": "prelude",
    b"content_block_delta": "delta",
    b"message_delta": "delta",
    b"message_stop": "end",
    b"error": "error",
}
# Block types with a kind in every format.
PARTS: Mapping[str, PartKind] = {
    "text": "text",
    "image": "image",
    "thinking": "thought",
    "redacted_thinking": "thought",
    "tool_use": "call",
    "server_tool_use": "call",
    "mcp_tool_use": "call",
    "tool_result": "result",
}
# Blocks whose bytes show their length, and pictures, which have a price of their own.
SIZED = frozenset((*PARTS, "mcp_tool_result", "search_result", "web_search_tool_result")) - {"tool_result"}


class Block(Struct):
    type: str = "text"
    text: str = ""
    content: Any = None
    source: Raw = Raw(b"")
    cache_control: Any = None
    id: Any = None
    tool_use_id: Any = None
    name: Any = None
    input: Raw = Raw(b"")

    @property
    def inside(self) -> list[Any]:
        """The blocks of a tool's result."""
        return self.content if isinstance(self.content, list) else []


class BlockType(Struct):
    type: str = ""


class ContextManagement(Struct):
    edits: list[BlockType]


class AnthropicMessage(Struct):
    role: Name
    content: str | list[Block] = ""


class MessageStart(Struct):
    usage: Raw = Raw(b"null")


class MessageEvent(Struct):
    delta: Any = None
    content_block: Any = None
    usage: Raw = Raw(b"null")
    message: Raw = Raw(b"null")


_event = msgspec.json.Decoder(MessageEvent)
_start = msgspec.json.Decoder(MessageStart | None)
_typed = msgspec.json.Decoder(BlockType)
_edits = msgspec.json.Decoder(ContextManagement)
_blocks = msgspec.json.Decoder(list[Block])
_string = msgspec.json.Decoder(str | None)
prepare(list[AnthropicMessage], str | list[Block], BlockType)


class MessagesFormat(Format):
    wire: Wire = "anthropic-messages"
    messages_member = ("messages", list[AnthropicMessage])
    missing_error = "at least one message is required"
    system = ("system", str | list[Block])
    input = ("messages", "system", "tools", "output_format", "output_config")
    unpriced = ("speed", "inference_geo")
    client_tools = ("custom", "bash_", "text_editor_", "computer_", "memory_")
    hosted = ("mcp_servers", "container")

    def read_terms(self, request: ModelRequest, marked: Sequence[MessagePart]) -> ModelRequest:
        request = super().read_terms(request, marked)
        return replace(request, caches=True) if "cache_control" in request.fields else request

    def surcharge(self, fields: Mapping[str, Raw], parts: Sequence[MessagePart]) -> str:
        """Clearing old parts of a conversation costs nothing, summarising them does."""
        if not mentions(fields, ("context_management",)):
            return ""
        try:
            edits = _edits.decode(fields["context_management"]).edits
        except UNREADABLE:
            return "context_management"
        return "" if all(edit.type.startswith("clear_") for edit in edits) else "context_management"

    def read_messages(self, sent: list[AnthropicMessage], system: str | list[Block] | None) -> list[Message]:
        opening = [Message("system", _parts(system))] if system else []
        return opening + [Message(message.role, _parts(message.content)) for message in sent]

    def is_fresh(self, messages: Sequence[Message]) -> bool:
        """Whether the last message has the user's words. A client may add instructions after it, and notes of its own
        to a tool's results."""
        last = next((message for message in reversed(messages) if message.role != "system"), messages[-1])
        texts = [part.text for part in last.parts if part.kind == "text" and part.text]
        if any(part.kind == "result" for part in last.parts):
            texts = [text for text in texts if not is_wrapped(text.strip())]
        return last.role == "user" and bool(texts)

    def thinks(self, fields: Mapping[str, Raw]) -> bool:
        asked: BlockType = read_member(fields, "thinking", BlockType, BlockType("disabled"))
        return asked.type != "disabled"

    def write_request(
        self,
        messages: Sequence[Message],
        max_tokens: int,
        schema: Mapping[str, Any] | None = None,
        tools: Sequence[ToolOffer] = (),
        temperature: float = 0,
    ) -> dict[str, Any]:
        system = "\n\n".join(message.text for message in messages if message.role == "system")
        fields: dict[str, Any] = {"system": system, "messages": _write_messages(messages), "max_tokens": max_tokens}
        fields["temperature"] = temperature
        if tools:
            fields["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.schema} for tool in tools
            ]
        if schema is not None:
            fields["tools"] = [{"name": "verdict", "description": "State the verdict.", "input_schema": schema}]
            fields["tool_choice"] = {"type": "tool", "name": "verdict"}
        return fields

    def read_parts(self, response: ModelResponse) -> tuple[list[MessagePart], StopReason]:
        stop = _string.decode(response.fields.get("stop_reason", b"null"))
        return [_part(block) for block in _blocks.decode(response.fields["content"])], STOPS.get(stop, "other")

    def count(self, counts: Mapping[str, Any], so_far: Usage) -> Usage:
        final = counts.get("output_tokens") is not None
        written = count_at(counts, "output_tokens") if "output_tokens" in counts else so_far.output_tokens
        if counts.get("input_tokens") is None:
            return replace(so_far, output_tokens=written, final=final)
        cached = count_at(counts, "cache_read_input_tokens")
        stored = count_at(counts, "cache_creation_input_tokens")
        hour = min(stored, count_at(counts, "cache_creation", "ephemeral_1h_input_tokens"))
        whole = min(count_at(counts, "input_tokens") + cached + stored, MOST_TOKENS)
        return Usage(whole, written, cached, stored - hour, hour, final)

    def read_event(self, event: SseEvent, so_far: Usage) -> Delta:
        sign = SIGNS.get(event.name, "other")
        if not event.name or not event.data:
            return Delta(sign, so_far)
        piece = _event.decode(event.data)
        delta = piece.delta if isinstance(piece.delta, dict) else {}
        tokens = 0
        if event.name in (b"content_block_delta", b"content_block_start"):
            tokens = words_of(piece.delta) + words_of(piece.content_block)
            # The start of a tool call has its name, which the client shows.
            if isinstance(piece.content_block, dict) and piece.content_block.get("type") == "tool_use":
                sign = "delta"
        usage = so_far.before(tokens)
        if b'"usage"' in event.data:
            start = _start.decode(piece.message)
            if start is None:
                usage = self.read_usage(piece.usage, usage) or usage
            else:
                # The usage at a stream's start is not final.
                usage = replace(self.read_usage(start.usage, usage) or usage, final=False)
        stop = text_at(delta.get("stop_reason"))
        return Delta(sign, usage, text_at(delta.get("text")), tokens, STOPS.get(stop, "other") if stop else None)

    def write_response(self, ident: str, model: str, text: str, usage: Usage) -> bytes:
        told = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
        stop = {"stop_reason": "end_turn", "stop_sequence": None, "usage": told}
        return msgspec.json.encode({**_head(ident, model), "content": [{"type": "text", "text": text}], **stop})

    def write_stream(self, ident: str, model: str, pieces: Iterable[str], used: UsageSoFar) -> Iterator[bytes]:
        told = {"input_tokens": used().input_tokens, "output_tokens": 1}
        start = {"stop_reason": None, "stop_sequence": None, "usage": told}
        yield write_event("message_start", message={**_head(ident, model), "content": [], **start})
        yield write_event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        for piece in pieces:
            yield write_event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
        yield write_event("content_block_stop", index=0)
        stop = {"stop_reason": "end_turn", "stop_sequence": None}
        yield write_event("message_delta", delta=stop, usage={"output_tokens": used().output_tokens})
        yield write_event("message_stop")

    def write_error(self, status: int, kind: str, message: str, decision: str, refusal: Refusal | None = None) -> bytes:
        told = KINDS.get(status, "api_error" if status >= 500 else "invalid_request_error")
        if refusal is not None and refusal.kind:
            told = refusal.kind
        error: dict[str, Any] = {"type": "error", "error": {"type": told, "message": message}}
        return msgspec.json.encode(error | ({"request_id": decision} if decision else {}))

    def write_error_event(self, kind: str, message: str, decision: str) -> bytes:
        return write_event("error", error={"type": "api_error", "message": message})


def _parts(content: str | list[Block]) -> tuple[MessagePart, ...]:
    return (MessagePart(text=content),) if isinstance(content, str) else tuple(map(_part, content))


def _part(block: Block) -> MessagePart:
    kind = PARTS.get(block.type, "other")
    if kind == "text" and block.cache_control is None:
        return MessagePart(text=block.text)
    return MessagePart(
        kind,
        text=bytes(block.input).decode() if kind == "call" else block.text,
        id=text_at(block.tool_use_id if kind == "result" else block.id),
        name=text_at(block.name) or block.type,
        images=_images(block),
        is_bound=kind in ("thought", "call"),
        is_unsized=_is_unsized(block),
        is_cached=block.cache_control is not None
        or any(isinstance(one, dict) and "cache_control" in one for one in block.inside),
    )


def _write_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Our own messages in this format. Consecutive tool results are put into one user message."""
    written: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system":
            continue
        role = "user" if message.role == "tool" else message.role
        plain = all(part.kind == "text" for part in message.parts)
        # Empty text is refused.
        parts = [part for part in message.parts if part.kind != "text" or part.text]
        content: Any = message.text if plain else [_write_block(part) for part in parts]
        if written and written[-1]["role"] == role and message.role == "tool" and isinstance(content, list):
            written[-1]["content"] += content
        else:
            written.append({"role": role, "content": content})
    return written


def _write_block(part: MessagePart) -> dict[str, Any]:
    match part.kind:
        case "call":
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": Raw(part.text.encode() or b"{}")}
        case "result":
            return {"type": "tool_result", "tool_use_id": part.id, "content": part.text}
        case "image":
            media, data = read_data_url(str(part.images[0]))
            return {"type": "image", "source": {"type": "base64", "media_type": media, "data": data}}
        case _:
            return {"type": "text", "text": part.text}


def _images(block: Block) -> tuple[Raw | str, ...]:
    """The images of a block or of a tool's result: an inline image's bytes, nothing of one that is referred to."""
    found: list[Raw | str] = [block.source] if block.type == "image" else []
    for one in block.inside:
        if isinstance(one, dict) and one.get("type") == "image":
            source = one.get("source")
            data = source.get("data") if isinstance(source, dict) else None
            found.append(data if isinstance(data, str) else "")
    return tuple(found)


def _is_unsized(block: Block) -> bool:
    """Whether a block's bytes do not show the length of its input: a document, or something its provider has or
    fetches."""
    if block.type == "tool_result":
        return any(not isinstance(one, dict) or one.get("type") not in SIZED for one in block.inside)
    if block.type == "document" and block.source:
        try:
            return _typed.decode(block.source).type != "text"
        except UNREADABLE:
            return True  # unknown
    return block.type not in SIZED


def _head(ident: str, model: str) -> dict[str, Any]:
    return {"id": f"msg_{ident}", "type": "message", "role": "assistant", "model": model}
