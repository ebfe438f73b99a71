"""OpenAI's responses."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct

from turnout.apps.caller import Refused
from turnout.core.query import Turn
from turnout.models.price import Usage
from turnout.models.provider import Wire

from .chat import Part, text_of
from .wire import (
    MESSAGES,
    Asked,
    Count,
    Name,
    Sign,
    asked,
    check_count,
    decoded,
    error_object,
    members,
    name_in,
    prepare,
)


class Item(Struct):
    type: str = "message"
    role: Name = ""
    content: str | list[Part] | None = None
    encrypted_content: str | None = None


class Detail(Struct):
    cached_tokens: int | None = 0


class Tokens(Struct):
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    input_tokens_details: Detail | None = None


class Done(Struct):
    usage: Tokens | None = None


class Body(Struct):
    usage: Tokens | None = None
    response: Done | None = None


_body = msgspec.json.Decoder(Body)
prepare(str | list[Item])
_PRELUDE = (b"response.created", b"response.in_progress", b"response.queued", b"response.content_part.added")
# A response's own id; those of its items begin otherwise.
_STORED = re.compile(rb'"id"\s*:\s*"(resp_[A-Za-z0-9_-]{1,200})"')
_END = (b"response.completed", b"response.incomplete")


class Responses:
    wire: Wire = "openai-responses"

    def read(self, body: bytes) -> Asked:
        fields = members(body)
        if "input" not in fields:
            raise Refused(400, "invalid_request_error", "input: a response needs some")
        given = decoded(fields, "input", str | list[Item], "")
        items = [Item(role="user", content=given)] if isinstance(given, str) else given
        check_count("input items", len(items), MESSAGES)
        system = decoded(fields, "instructions", str, "")
        turns = [Turn("system", system)] if system else []
        turns += [Turn("system" if i.role == "developer" else i.role, text_of(i.content)) for i in items if i.role]
        parts = [part for item in items if isinstance(item.content, list) for part in item.content]
        follows = name_in(fields, "previous_response_id")
        return asked(
            self.wire,
            fields,
            turns,
            fresh=bool(items) and items[-1].role == "user",
            images=sum(part.type == "input_image" for part in parts),
            bound=bool(follows) or any(item.type not in ("message", "") for item in items),
            size=len(fields["input"]) + len(fields.get("tools", b"")),
            max_tokens=decoded(fields, "max_output_tokens", Count),
            follows=follows,
        )

    def error(self, status: int, kind: str, message: str, decision: str) -> bytes:
        return msgspec.json.encode({"error": error_object(kind, message, decision)})

    def error_event(self, kind: str, message: str, decision: str) -> bytes:
        # Flat as the reference has it, and nested as the servers send it: the SDK raises only for the second.
        told: dict[str, Any] = {"type": "error", "code": kind, "message": message, "param": None, "sequence_number": 0}
        told["error"] = error_object(kind, message, decision)
        return b"event: error\ndata: " + msgspec.json.encode(told) + b"\n\n"

    def sign(self, name: bytes, data: bytes) -> Sign:
        if name in _PRELUDE or (name == b"response.output_item.added" and b'"function_call"' not in data):
            return "prelude"
        if name in _END:
            return "end"
        if name in (b"error", b"response.failed"):
            return "error"
        return "delta" if name.startswith(b"response.") else "other"

    def stored_as(self, first: bytes) -> str:
        found = _STORED.search(first)
        return found[1].decode() if found is not None else ""

    def usage(self, data: bytes, so_far: Usage) -> Usage:
        if b'"usage"' not in data:
            return so_far
        body = _body.decode(data)
        told = body.usage or (body.response.usage if body.response is not None else None)
        if told is None:
            return so_far
        cached = told.input_tokens_details.cached_tokens if told.input_tokens_details is not None else 0
        return Usage(told.input_tokens or 0, told.output_tokens or 0, cached or 0)
