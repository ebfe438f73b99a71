"""OpenAI's chat completions, and what they have in common with its responses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import astuple, replace

from turnout.models.price import Usage
from turnout.models.provider import Wire
from turnout.models.refusal import Refusal

from .format import UNREADABLE, Format, Name, UsageNames, UsageSoFar, mentions, prepare, read_member, text_at, words_of
from .sse import SseEvent
from .value import Delta, Message, MessagePart, ModelRequest, ModelResponse, PartKind, StopReason, ToolOffer

# The values of `service_tier` that cost no more than the listed price.
TIERS = ("auto", "default", "flex", "standard")
# Parts with text, parts whose bytes show their length, and pictures.
WORDS = ("text", "input_text", "output_text")
SIZED = (*WORDS, "refusal", "summary_text", "reasoning_text")
PICTURES = ("image_url", "input_image", "image")
STOPS: Mapping[Any, StopReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tools",
    "function_call": "tools",
    "content_filter": "filter",
}


class OpenAIPart(Struct):
    type: str = "text"
    text: str | None = ""
    image_url: Raw = Raw(b"")


class ChatMessage(Struct):
    role: Name
    content: str | list[OpenAIPart] | None = None
    tool_calls: Raw = Raw(b"")
    tool_call_id: Any = None


class ChatDelta(Struct):
    content: Any = None
    tool_calls: Any = None
    function_call: Any = None
    refusal: Any = None
    reasoning: Any = None
    reasoning_content: Any = None
    audio: Any = None


class ChatChoice(Struct):
    delta: ChatDelta | None = None
    finish_reason: Any = None


class ChatChunk(Struct):
    choices: list[ChatChoice] | None = None
    usage: Raw = Raw(b"null")
    error: Any = None


class ChatStreamOptions(Struct):
    include_usage: bool | None = False


_chunk = msgspec.json.Decoder(ChatChunk)
_any = msgspec.json.Decoder()
prepare(list[ChatMessage], ChatStreamOptions)


class OpenAIFormat(Format):
    """The common part of OpenAI's two formats."""

    def surcharge(self, fields: Mapping[str, Raw], parts: Sequence[MessagePart]) -> str:
        tier = read_member(fields, "service_tier", str, "auto")
        faster = "" if tier in TIERS else f"service_tier {tier[:40]!r}"
        return next((part.name for part in parts if part.kind == "audio"), faster)

    def write_error(self, status: int, kind: str, message: str, decision: str, refusal: Refusal | None = None) -> bytes:
        return msgspec.json.encode({"error": error_object(kind, message, decision, refusal)})


class ChatFormat(OpenAIFormat):
    wire: Wire = "openai-chat"
    messages_member = ("messages", list[ChatMessage])
    missing_error = "a chat completion needs at least one message"
    input = ("messages", "tools", "functions", "response_format", "tool_choice")
    limits = ("max_completion_tokens", "max_tokens")
    unpriced = ("audio", "prediction", "search_parameters", "web_search_options", "plugins", "models", "extra_body")
    client_tools = ("function", "custom")
    choices = ("n", "best_of")
    usage = UsageNames("prompt_tokens", "completion_tokens", "prompt_tokens_details")

    def read_terms(self, request: ModelRequest, marked: Sequence[MessagePart]) -> ModelRequest:
        request = super().read_terms(request, marked)
        if "stream_options" not in request.fields:
            return request
        options = read_member(request.fields, "stream_options", ChatStreamOptions, ChatStreamOptions())
        return replace(request, wants_usage=options.include_usage is True)

    def read_messages(self, sent: list[ChatMessage], system: None) -> list[Message]:
        return [_message(one) for one in sent]

    def thinks(self, fields: Mapping[str, Raw]) -> bool:
        effort = bytes(fields.get("reasoning_effort", b"null"))
        return effort not in (b"null", b'"none"') or bool(mentions(fields, ("reasoning", "thinking")))

    def write_request(
        self,
        messages: Sequence[Message],
        max_tokens: int,
        schema: Mapping[str, Any] | None = None,
        tools: Sequence[ToolOffer] = (),
        temperature: float = 0,
    ) -> dict[str, Any]:
        sent = [one for message in messages for one in _write_message(message)]
        fields: dict[str, Any] = {"messages": sent, "max_tokens": max_tokens, "temperature": temperature}
        fields["stream"] = False
        if tools:
            forms = ({"name": tool.name, "description": tool.description, "parameters": tool.schema} for tool in tools)
            fields["tools"] = [{"type": "function", "function": form} for form in forms]
        if schema is not None:
            form = {"name": "verdict", "schema": schema, "strict": True}
            fields["response_format"] = {"type": "json_schema", "json_schema": form}
        return fields

    def read_parts(self, response: ModelResponse) -> tuple[list[MessagePart], StopReason]:
        choice = _any.decode(response.fields["choices"])[0]
        message = choice["message"]
        calls = [_call(call) for call in message.get("tool_calls") or ()]
        text = MessagePart(text=str(message.get("content") or ""))
        return [text, *calls], STOPS.get(choice.get("finish_reason"), "other")

    def read_event(self, event: SseEvent, so_far: Usage) -> Delta:
        if event.data == b"[DONE]":
            return Delta("end", so_far)
        if not event.data:
            return Delta("other", so_far)
        chunk = _chunk.decode(event.data)
        choices = chunk.choices or []
        deltas = [choice.delta for choice in choices if choice.delta is not None]
        values = [value for delta in deltas for value in astuple(delta) if value is not None]
        stop = next((choice.finish_reason for choice in choices if choice.finish_reason), None)
        tokens = sum(map(words_of, values))
        told = self.read_usage(chunk.usage, so_far) if b'"usage"' in event.data else None
        usage = so_far.before(tokens)
        if told is not None:
            # Some providers send the usage so far in every chunk.
            usage = told if stop or not choices else replace(told, final=False)
        text = choices[0].delta.content if choices and choices[0].delta is not None else None
        return Delta(
            "error" if chunk.error is not None else "delta" if stop or any(values) else "prelude",
            usage,
            text_at(text),
            tokens,
            STOPS.get(stop, "other") if stop else None,
            is_usage=told is not None and not choices,
        )

    def write_response(self, ident: str, model: str, text: str, usage: Usage) -> bytes:
        message = {"role": "assistant", "content": text}
        choices = [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}]
        head = _head(ident, model) | {"object": "chat.completion"}
        return msgspec.json.encode({**head, "choices": choices, "usage": _usage(usage)})

    def write_stream(self, ident: str, model: str, pieces: Iterable[str], used: UsageSoFar) -> Iterator[bytes]:
        head = _head(ident, model) | {"object": "chat.completion.chunk"}
        opening: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        for delta in chain(opening, ({"content": one} for one in pieces), ({},)):
            choice = {"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}
            yield _data({**head, "choices": [choice]})
        yield _data({**head, "choices": [], "usage": _usage(used())})
        yield b"data: [DONE]\n\n"

    def write_error_event(self, kind: str, message: str, decision: str) -> bytes:
        return _data({"error": error_object(kind, message, decision)})


def read_content(content: str | list[OpenAIPart] | None, ident: str = "") -> tuple[MessagePart, ...]:
    """The parts of a message; `ident` is the id of the call it answers."""
    if content is None or isinstance(content, str):
        return (MessagePart("text", content or "", ident),)
    return tuple(_part(one, ident) for one in content)


def _part(part: OpenAIPart, ident: str) -> MessagePart:
    if part.type in WORDS:
        return MessagePart(text=part.text or "", id=ident)
    if part.type in PICTURES:
        return MessagePart("image", images=(part.image_url,))
    # Sound has prices of its own.
    kind: PartKind = "audio" if "audio" in part.type or "video" in part.type else "other"
    return MessagePart(kind, name=part.type, is_unsized=part.type not in SIZED)


def _message(message: ChatMessage) -> Message:
    role = "system" if message.role == "developer" else message.role
    ident = message.tool_call_id if isinstance(message.tool_call_id, str) else ""
    parts = read_content(message.content, ident)
    if message.tool_calls and bytes(message.tool_calls) != b"null":
        parts += tuple(_calls(message.tool_calls))
    return Message(role, parts)


def _calls(raw: Raw) -> list[MessagePart]:
    """The calls of a message; one empty call if they are malformed."""
    try:
        calls = _any.decode(raw)
    except UNREADABLE:
        calls = None
    return [_call(one) for one in calls] if isinstance(calls, list) and calls else [_call(None)]


def _call(call: Any) -> MessagePart:
    call = call if isinstance(call, dict) else {}
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    name, arguments = text_at(function.get("name")), text_at(function.get("arguments"))
    return MessagePart("call", arguments, text_at(call.get("id")), name, is_bound=True)


def _write_message(message: Message) -> list[dict[str, Any]]:
    """Our own message in this format; each tool result is a message."""
    results = [part for part in message.parts if part.kind == "result"]
    if results:
        return [{"role": "tool", "tool_call_id": part.id, "content": part.text} for part in results]
    images = [str(image) for part in message.parts for image in part.images]
    calls = [part for part in message.parts if part.kind == "call"]
    content: Any = message.text
    if images:
        words = [{"type": "text", "text": message.text}] if message.text else []
        content = [*words, *({"type": "image_url", "image_url": {"url": image}} for image in images)]
    written: dict[str, Any] = {"role": message.role, "content": content}
    if calls:
        written["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text}}
            for call in calls
        ]
    return [written]


def error_object(kind: str, message: str, decision: str, refusal: Refusal | None = None) -> dict[str, Any]:
    """The object of an error; the decision's id lets an operator find details that a client does not get."""
    told = f"{message} (decision {decision})" if decision else message
    if refusal is not None and refusal.is_told:
        return {"message": told, "type": refusal.kind or kind, "param": refusal.param, "code": refusal.code}
    return {"message": told, "type": kind, "param": None, "code": kind}


def _head(ident: str, model: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{ident}", "created": 0, "model": model}


def _usage(usage: Usage) -> dict[str, int]:
    read, written = usage.input_tokens, usage.output_tokens
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _data(value: Mapping[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"
