"""OpenAI's responses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from turnout.models.price import Usage
from turnout.models.provider import Wire

from .chat import OpenAIFormat, OpenAIPart, error_object, read_content
from .format import Name, UsageSoFar, mentions, name_in, prepare, text_at, words_of, write_event
from .sse import SseEvent
from .value import Delta, Message, MessagePart, ModelRequest, ModelResponse, PartKind, Sign, StopReason

# Item types with a kind in every format.
ITEMS: Mapping[str, PartKind] = {
    "reasoning": "thought",
    "function_call": "call",
    "custom_tool_call": "call",
    "function_call_output": "result",
    "custom_tool_call_output": "result",
}
# Items whose bytes show their length.
SIZED = {*ITEMS, "message", "web_search_call", "computer_call", "mcp_list_tools", "mcp_call"}
SIZED |= {f"{tool}_{end}" for tool in ("local_shell", "shell", "apply_patch") for end in ("call", "call_output")}
PRELUDE = (b"response.created", b"response.in_progress", b"response.queued", b"response.content_part.added")
SIGNS: Mapping[bytes, Sign] = {
    **dict.fromkeys(PRELUDE, "prelude"),
    b"response.completed": "end",
    b"response.incomplete": "end",
    b"response.failed": "error",
    b"error": "error",
}
# Why an answer is incomplete.
STOPS: Mapping[Any, StopReason] = {"max_output_tokens": "length", "content_filter": "filter"}
# An id by which a later request may refer to an answer.
_STORED = re.compile(r"resp_[A-Za-z0-9_-]{1,200}")


class Item(Struct):
    type: str = "message"
    role: Name = ""
    content: str | list[OpenAIPart] | None = None
    output: Any = None
    call_id: Any = None
    name: Any = None
    arguments: Any = None


class ResponseHead(Struct):
    id: Any = None
    usage: Raw = Raw(b"null")
    incomplete_details: Any = None


class ResponsesEvent(Struct):
    delta: Any = None
    response: Raw = Raw(b"null")


_event = msgspec.json.Decoder(ResponsesEvent)
_head = msgspec.json.Decoder(ResponseHead | None)
_items = msgspec.json.Decoder(list[Item])
_any = msgspec.json.Decoder()
prepare(str | list[Item])


class ResponsesFormat(OpenAIFormat):
    wire: Wire = "openai-responses"
    messages_member = ("input", str | list[Item])
    missing_error = "a response needs some"
    may_be_empty = True
    items = "input items"
    system = ("instructions", str)
    input = ("input", "instructions", "tools", "text", "prompt")
    limits = ("max_output_tokens",)
    # Billed otherwise, or after the connection has ended.
    unpriced = ("context_management", "background", "plugins", "models", "extra_body", "search_parameters")
    client_tools = ("function", "custom", "local_shell", "shell", "apply_patch", "computer")

    def read_terms(self, request: ModelRequest, marked: Sequence[MessagePart]) -> ModelRequest:
        request = super().read_terms(request, marked)
        follows = name_in(request.fields, "previous_response_id")
        is_unsized = request.is_unsized or bool(mentions(request.fields, ("conversation", "prompt")))
        if not follows:
            return replace(request, is_unsized=is_unsized)
        return replace(request, is_unsized=is_unsized, follows=True, bound=True, conversation=follows)

    def read_messages(self, sent: str | list[Item] | None, system: str | None) -> list[Message]:
        items = sent if isinstance(sent, list) else [Item(role="user", content=sent or "")]
        opening = [Message("system", (MessagePart(text=system),))] if system else []
        return opening + [_message(item) for item in items]

    def read_response(self, body: bytes) -> ModelResponse:
        response = super().read_response(body)
        return replace(response, id=_stored(_any.decode(response.fields.get("id", b"null"))))

    def read_parts(self, response: ModelResponse) -> tuple[list[MessagePart], StopReason]:
        items = [_message(item) for item in _items.decode(response.fields["output"])]
        details = _any.decode(response.fields.get("incomplete_details", b"null"))
        parts = [part for item in items for part in item.parts]
        return parts, _stop(details, calls=any(part.kind == "call" for part in parts))

    def read_event(self, event: SseEvent, so_far: Usage) -> Delta:
        name, data = event.name, event.data
        sign = SIGNS.get(name, "delta" if name.startswith(b"response.") else "other")
        if name == b"response.output_item.added" and b'"function_call"' not in data:
            sign = "prelude"
        if not name or not data:
            return Delta(sign, so_far)
        piece = _event.decode(data)
        sent = piece.delta if name.endswith(b".delta") else None
        tokens = words_of(sent)
        usage = so_far.before(tokens)
        head = _head.decode(piece.response)
        if head is not None:
            usage = self.read_usage(head.usage, usage) or usage
        text = text_at(sent) if name == b"response.output_text.delta" else ""
        if head is None:
            return Delta(sign, usage, text, tokens)
        stop = _stop(head.incomplete_details, calls=b'"function_call"' in data) if sign == "end" else None
        return Delta(sign, usage, text, tokens, stop, _stored(head.id))

    def write_response(self, ident: str, model: str, text: str, usage: Usage) -> bytes:
        return msgspec.json.encode(_whole(ident, model, text, usage))

    def write_stream(self, ident: str, model: str, pieces: Iterable[str], used: UsageSoFar) -> Iterator[bytes]:
        for number, (name, fields) in enumerate(_events(ident, model, pieces, used)):
            yield write_event(name, sequence_number=number, **fields)

    def write_error_event(self, kind: str, message: str, decision: str) -> bytes:
        # Flat as in OpenAI's reference and nested as its servers send it: the SDK raises only for the nested form.
        flat = {"code": kind, "message": message, "param": None, "sequence_number": 0}
        return write_event("error", **flat, error=error_object(kind, message, decision))


def _events(ident: str, model: str, pieces: Iterable[str], used: UsageSoFar) -> Iterator[tuple[str, dict[str, Any]]]:
    begun = _whole(ident, model, "", used()) | {"status": "in_progress", "output": [], "usage": None}
    (item,) = _whole(ident, model, "", used())["output"]
    place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    yield "response.output_item.added", {"output_index": 0, "item": {**item, "status": "in_progress", "content": []}}
    yield "response.content_part.added", {**place, "part": item["content"][0]}
    text = ""
    for piece in pieces:
        text += piece
        yield "response.output_text.delta", {**place, "delta": piece, "logprobs": []}
    done = _whole(ident, model, text, used())
    (item,) = done["output"]
    yield "response.output_text.done", {**place, "text": text, "logprobs": []}
    yield "response.content_part.done", {**place, "part": item["content"][0]}
    yield "response.output_item.done", {"output_index": 0, "item": item}
    yield "response.completed", {"response": done}


def _message(item: Item) -> Message:
    role = "system" if item.role == "developer" else item.role
    if item.type in ("message", ""):
        parts = read_content(item.content)
        if item.content is None or not item.type:
            # It refers to a message that its provider keeps.
            parts += (MessagePart("other", name="message", is_unsized=True),)
        return Message(role, parts)
    kind = ITEMS.get(item.type, "other")
    head = MessagePart(
        kind,
        text_at(item.arguments),
        text_at(item.call_id),
        text_at(item.name) or item.type,
        is_bound=True,
        is_unsized=item.type not in SIZED,
    )
    return Message(role, (head, *_inside(item)))


def _inside(item: Item) -> tuple[MessagePart, ...]:
    """The parts of an item's content, or of a tool's output."""
    if item.content is not None:
        return read_content(item.content)
    output = [one for one in item.output if isinstance(one, dict)] if isinstance(item.output, list) else []
    encode = msgspec.json.encode
    parts = [OpenAIPart(str(one.get("type", "")), image_url=Raw(encode(one.get("image_url", "")))) for one in output]
    return read_content(parts)


def _stored(ident: Any) -> str:
    return ident if isinstance(ident, str) and _STORED.fullmatch(ident) else ""


def _stop(details: Any, *, calls: bool) -> StopReason:
    if not isinstance(details, dict):
        return "tools" if calls else "stop"
    return STOPS.get(details.get("reason"), "other")


def _whole(ident: str, model: str, text: str, usage: Usage) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"id": f"item_{ident}", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    read, written = usage.input_tokens, usage.output_tokens
    told = {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
    whole: dict[str, Any] = {"id": f"resp_{ident}", "object": "response", "created_at": 0, "model": model}
    whole |= {"error": None, "incomplete_details": None, "instructions": None, "metadata": {}, "tools": []}
    whole |= {"parallel_tool_calls": True, "temperature": None, "top_p": None, "tool_choice": "auto"}
    return whole | {"status": "completed", "output": [item], "usage": told}
