"""OpenAI's responses."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Raw, Struct

from turnout.apps.caller import Refused
from turnout.core.query import Turn
from turnout.models.price import Usage
from turnout.models.provider import Wire
from turnout.models.refusal import Refusal

from .chat import Part, audio, faster, text_of
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
    name_in,
    prepare,
    read_count,
    read_tools,
    read_usage,
    said,
)

# Tools that are named by type and yet run at the client.
AT_THE_CLIENT = ("function", "custom", "local_shell", "shell", "apply_patch", "computer")
# Members that are billed otherwise than by the listed price of a token, or after the connection has ended.
UNPRICED = ("context_management", "background", "plugins", "models", "extra_body", "search_parameters")


# Items that are as long as their bytes are, and as their parts.
SEEN = frozenset(
    (
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "local_shell_call",
        "local_shell_call_output",
        "shell_call",
        "shell_call_output",
        "apply_patch_call",
        "apply_patch_call_output",
        "web_search_call",
        "computer_call",
        "mcp_list_tools",
        "mcp_call",
    )
)


class Item(Struct):
    type: str = "message"
    role: Name = ""
    content: str | list[Part] | None = None
    output: Any = None
    encrypted_content: str | None = None

    @property
    def parts(self) -> list[Part]:
        """Of what it says, or of what a tool gave."""
        if isinstance(self.content, list):
            return self.content
        if isinstance(self.output, list):
            return [Part(one.get("type", ""), image_url=_raw(one)) for one in self.output if isinstance(one, dict)]
        return []

    @property
    def is_unseen(self) -> bool:
        """How long it is, its bytes do not tell: it names another item, or is of a kind that is not known."""
        return self.type not in SEEN or (self.type == "message" and self.content is None)


def _raw(part: dict[str, Any]) -> Raw:
    return Raw(msgspec.json.encode(part.get("image_url", "")))


class Done(Struct):
    usage: Raw = Raw(b"null")


class Body(Struct):
    usage: Raw = Raw(b"null")
    response: Done | None = None


class Piece(Struct):
    delta: Any = None


_body = msgspec.json.Decoder(Body)
_piece = msgspec.json.Decoder(Piece)
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
        parts = [part for item in items for part in item.parts]
        follows = name_in(fields, "previous_response_id")
        return asked(
            self.wire,
            fields,
            turns,
            fresh=is_fresh([Turn("system" if i.role == "developer" else i.role, "") for i in items]),
            images=sum(part.is_picture for part in parts),
            pictures=(part.image_url for part in parts if part.is_picture),
            bound=bool(follows) or any(item.type not in ("message", "") for item in items),
            max_tokens=read_count(fields, "max_output_tokens"),
            extras=Extras(
                limits=bool(mentions(fields, ("max_output_tokens",))),
                follows=bool(follows),
                unseen=bool(mentions(fields, ("conversation", "prompt")))
                or any(part.is_unseen for part in parts)
                or any(item.is_unseen for item in items),
                thinks=bool(mentions(fields, ("reasoning",))),
                hosted=hosted_tool(read_tools(fields), AT_THE_CLIENT),
                unpriced=mentions(fields, UNPRICED) or audio(parts) or faster(fields),
            ),
            follows=follows,
        )

    def error(self, status: int, kind: str, message: str, decision: str, refusal: Refusal | None = None) -> bytes:
        return msgspec.json.encode({"error": error_object(kind, message, decision, refusal)})

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
        told = read_usage(body.usage if body.response is None else body.response.usage)
        if told is None:
            return so_far
        read = count_at(told, "input_tokens")
        written = max(count_at(told, "output_tokens"), count_at(told, "total_tokens") - read)
        return Usage(read, written, count_at(told, "input_tokens_details", "cached_tokens"), final=True)

    def written(self, name: bytes, data: bytes) -> int:
        return said(_piece.decode(data).delta) if name.endswith(b".delta") else 0

    def is_usage(self, data: bytes) -> bool:
        return False
