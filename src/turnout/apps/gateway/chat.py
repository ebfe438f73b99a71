"""OpenAI's chat completions."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from turnout.apps.caller import Refused
from turnout.core.query import Turn
from turnout.models.price import Usage
from turnout.models.provider import Wire

from .wire import MESSAGES, Asked, Count, Name, Sign, asked, check_count, decoded, error_object, members, prepare


class Part(Struct):
    type: str = "text"
    text: str = ""


class Message(Struct):
    role: Name
    content: str | list[Part] | None = None
    tool_calls: Raw = Raw(b"null")


class Detail(Struct):
    cached_tokens: int | None = 0


class Tokens(Struct):
    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0
    prompt_tokens_details: Detail | None = None


class Body(Struct):
    usage: Tokens | None = None


class Delta(Struct):
    content: Any = None
    tool_calls: Any = None
    function_call: Any = None
    refusal: Any = None
    reasoning: Any = None
    reasoning_content: Any = None
    audio: Any = None


class Choice(Struct):
    delta: Delta | None = None
    finish_reason: str | None = None


class Chunk(Struct):
    choices: list[Choice] = []
    error: Any = None


_body = msgspec.json.Decoder(Body)
_chunk = msgspec.json.Decoder(Chunk)
prepare(list[Message])


class Chat:
    wire: Wire = "openai-chat"

    def read(self, body: bytes) -> Asked:
        fields = members(body)
        if "messages" not in fields:
            raise Refused(400, "invalid_request_error", "messages: a chat completion needs at least one message")
        messages: list[Message] = decoded(fields, "messages", list[Message], [])
        if not messages:
            raise Refused(400, "invalid_request_error", "messages: a chat completion needs at least one message")
        check_count("messages", len(messages), MESSAGES)
        turns = [Turn("system" if m.role == "developer" else m.role, text_of(m.content)) for m in messages]
        images = sum(
            part.type in ("image_url", "input_image", "image")
            for message in messages
            if isinstance(message.content, list)
            for part in message.content
        )
        # Which of the two counts is the provider's to say.
        limit = max(decoded(fields, name, Count, 0) for name in ("max_completion_tokens", "max_tokens")) or None
        decoded(fields, "n", Count)
        return asked(
            self.wire,
            fields,
            turns,
            fresh=messages[-1].role == "user",
            images=images,
            bound=any(bytes(message.tool_calls) != b"null" for message in messages),
            size=len(fields["messages"]) + len(fields.get("tools", b"")),
            max_tokens=limit,
        )

    def error(self, status: int, kind: str, message: str, decision: str) -> bytes:
        return msgspec.json.encode({"error": error_object(kind, message, decision)})

    def error_event(self, kind: str, message: str, decision: str) -> bytes:
        return b"data: " + msgspec.json.encode({"error": error_object(kind, message, decision)}) + b"\n\n"

    def sign(self, name: bytes, data: bytes) -> Sign:
        if data == b"[DONE]":
            return "end"
        if not data:
            return "other"
        chunk = _chunk.decode(data)
        if chunk.error is not None:
            return "error"
        for choice in chunk.choices:
            delta = choice.delta
            if choice.finish_reason or (delta is not None and any(msgspec.structs.astuple(delta))):
                return "delta"
        return "prelude"

    def stored_as(self, first: bytes) -> str:
        return ""

    def usage(self, data: bytes, so_far: Usage) -> Usage:
        if b'"usage"' not in data:
            return so_far
        told = _body.decode(data).usage
        if told is None:
            return so_far
        cached = told.prompt_tokens_details.cached_tokens if told.prompt_tokens_details is not None else 0
        return Usage(told.prompt_tokens or 0, told.completion_tokens or 0, cached or 0)


def text_of(content: str | list[Part] | None) -> str:
    """The words of a message: text parts joined with a space."""
    if content is None or isinstance(content, str):
        return content or ""
    return " ".join(part.text for part in content if part.type in ("text", "input_text", "output_text") and part.text)
