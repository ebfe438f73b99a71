"""OpenAI's chat completions."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from turnout.apps.caller import Refused
from turnout.core.query import Turn
from turnout.models.price import Usage
from turnout.models.provider import Wire
from turnout.models.refusal import Refusal

from .wire import (
    MESSAGES,
    Asked,
    Extras,
    Name,
    Sign,
    asked,
    check_count,
    count_at,
    decoded,
    error_object,
    hosted_tool,
    is_fresh,
    members,
    mentions,
    prepare,
    read_count,
    read_tools,
    read_usage,
    said,
)

# Members that are billed otherwise than by the listed price of a token.
UNPRICED = ("audio", "prediction", "search_parameters", "web_search_options", "plugins", "models", "extra_body")
LIMITS = ("max_completion_tokens", "max_tokens")
# What a `service_tier` may be without costing more than the list says.
TIERS = ("auto", "default", "flex", "standard")


# Parts that are as long as their bytes are.
TEXTS = ("text", "input_text", "output_text", "refusal", "summary_text", "reasoning_text")


class Part(Struct):
    type: str = "text"
    text: str | None = ""
    image_url: Raw = Raw(b"")

    @property
    def is_picture(self) -> bool:
        return self.type in ("image_url", "input_image", "image")

    @property
    def is_unseen(self) -> bool:
        """How long it is, its bytes do not tell; a picture has a price of its own."""
        return not self.is_picture and self.type not in TEXTS


class Message(Struct):
    role: Name
    content: str | list[Part] | None = None
    tool_calls: Raw = Raw(b"null")


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
    finish_reason: Any = None


class Chunk(Struct):
    choices: list[Choice] | None = None
    usage: Raw = Raw(b"null")
    error: Any = None


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
        parts = [part for message in messages if isinstance(message.content, list) for part in message.content]
        # Which of the two counts is the provider's to say.
        limit = max(read_count(fields, name) or 0 for name in LIMITS) or None
        return asked(
            self.wire,
            fields,
            turns,
            fresh=is_fresh(turns),
            images=sum(part.is_picture for part in parts),
            pictures=(part.image_url for part in parts if part.is_picture),
            bound=any(bytes(message.tool_calls) != b"null" for message in messages),
            max_tokens=limit,
            extras=Extras(
                choices=max(read_count(fields, "n") or 1, read_count(fields, "best_of") or 1),
                limits=bool(mentions(fields, LIMITS)),
                unseen=any(part.is_unseen for part in parts),
                thinks=thinks(fields),
                usage=decoded(fields, "stream_options", StreamOptions, StreamOptions()).include_usage is True,
                hosted=hosted_tool(read_tools(fields), ("function", "custom")),
                unpriced=mentions(fields, UNPRICED) or audio(parts) or faster(fields),
            ),
        )

    def error(self, status: int, kind: str, message: str, decision: str, refusal: Refusal | None = None) -> bytes:
        return msgspec.json.encode({"error": error_object(kind, message, decision, refusal)})

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
        for choice in chunk.choices or ():
            delta = choice.delta
            if choice.finish_reason or (delta is not None and any(msgspec.structs.astuple(delta))):
                return "delta"
        return "prelude"

    def stored_as(self, first: bytes) -> str:
        return ""

    def usage(self, data: bytes, so_far: Usage) -> Usage:
        if b'"usage"' not in data:
            return so_far
        chunk = _chunk.decode(data)
        told = read_usage(chunk.usage)
        if told is None:
            return so_far
        read = count_at(told, "prompt_tokens")
        # Some count a model's thoughts in the total alone.
        written = max(count_at(told, "completion_tokens"), count_at(told, "total_tokens") - read)
        # Some tell in every chunk how far they are.
        final = not chunk.choices or any(choice.finish_reason for choice in chunk.choices)
        return Usage(read, written, count_at(told, "prompt_tokens_details", "cached_tokens"), final=final)

    def written(self, name: bytes, data: bytes) -> int:
        if not data or data == b"[DONE]":
            return 0
        deltas = [choice.delta for choice in _chunk.decode(data).choices or () if choice.delta is not None]
        return sum(said(value) for delta in deltas for value in msgspec.structs.astuple(delta))

    def is_usage(self, data: bytes) -> bool:
        if b'"usage"' not in data:
            return False
        chunk = _chunk.decode(data)
        return not chunk.choices and read_usage(chunk.usage) is not None


class StreamOptions(Struct):
    include_usage: bool | None = False


def thinks(fields: dict[str, Raw]) -> bool:
    """Whether the request itself asks the model to think."""
    effort = fields.get("reasoning_effort", Raw(b"null"))
    return bytes(effort) not in (b"null", b'"none"') or bool(mentions(fields, ("reasoning", "thinking")))


def audio(parts: list[Part]) -> str:
    """Sound has prices of its own."""
    return next((part.type for part in parts if "audio" in part.type or "video" in part.type), "")


def faster(fields: dict[str, Raw]) -> str:
    """A service that costs more than the list says."""
    tier = decoded(fields, "service_tier", str, "auto")
    return "" if tier in TIERS else f"service_tier {tier[:40]!r}"


def text_of(content: str | list[Part] | None) -> str:
    """The words of a message: text parts joined with a space."""
    if content is None or isinstance(content, str):
        return content or ""
    return " ".join(part.text for part in content if part.type in ("text", "input_text", "output_text") and part.text)
