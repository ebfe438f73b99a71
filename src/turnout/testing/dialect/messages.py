"""Anthropic's messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Raw

from ..fault import BodyPart, Sign
from ..reply import Received, words
from .completion import RequestFields, ScriptedCompletion, cut, encode, event

SIGNATURE = "EqQBCgIYAhIkc2NyaXB0ZWQtcHJvdmlkZXItc2lnbmF0dXJl"
# The type of Anthropic's errors by status.
KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class MessagesDialect:
    call_prefix = "toolu_"

    def refusal(self, request: Received, fields: RequestFields) -> str:
        if "anthropic-version" not in request.headers:
            return "anthropic-version: header is required"
        needed = {"model": fields.model, "messages": bytes(fields.messages), "max_tokens": fields.max_tokens}
        return next((f"{name}: Field required" for name, value in needed.items() if not value), "")

    def whole(self, answer: ScriptedCompletion) -> bytes:
        content: list[dict[str, Any]] = []
        if answer.thinking:
            content.append({"type": "thinking", "thinking": answer.thinking, "signature": SIGNATURE})
        if answer.pieces:
            content.append({"type": "text", "text": answer.text})
        content += [
            {"type": "tool_use", "id": id, "name": call.name, "input": Raw(call.json.encode())}
            for id, call in answer.calls
        ]
        tail = {"stop_reason": self._finish(answer), "stop_sequence": None}
        usage = self._usage(answer, answer.tokens_out)
        return encode({**self._head(answer), "content": content, **tail, "usage": usage})

    def stream(self, answer: ScriptedCompletion) -> Iterator[BodyPart]:
        # Anthropic's first event counts one output token.
        usage = self._usage(answer, 1)
        start = {**self._head(answer), "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
        yield BodyPart("prelude", event("message_start", message=start))
        for index, (block, deltas) in enumerate(self._blocks(answer)):
            is_tool = block["type"] == "tool_use"
            sign: Sign = "delta" if is_tool else "between" if index else "prelude"
            yield BodyPart(sign, event("content_block_start", index=index, content_block=block))
            if not (index or is_tool):
                yield BodyPart("prelude", event("ping"))
            for delta in deltas:
                yield BodyPart("delta", event("content_block_delta", index=index, delta=delta))
            yield BodyPart("between", event("content_block_stop", index=index))
        ended = {"stop_reason": self._finish(answer), "stop_sequence": None}
        yield BodyPart("between", event("message_delta", delta=ended, usage={"output_tokens": answer.tokens_out}))
        yield BodyPart("end", event("message_stop"))

    def error(self, status: int, message: str) -> bytes:
        kind = KINDS.get(status, "api_error" if status >= 500 else "invalid_request_error")
        return encode({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_scripted"})

    def error_event(self, message: str) -> bytes:
        return event("error", error={"type": "overloaded_error", "message": message})

    def _head(self, answer: ScriptedCompletion) -> dict[str, Any]:
        return {"id": f"msg_{answer.number:08d}", "type": "message", "role": "assistant", "model": answer.model}

    def _blocks(self, answer: ScriptedCompletion) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
        """The content blocks, each as it starts and with its deltas."""
        if answer.thinking:
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in words(answer.thinking)]
            deltas.append({"type": "signature_delta", "signature": SIGNATURE})
            yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
        if answer.pieces:
            yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in answer.pieces]
        for id, call in answer.calls:
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *cut(call.json))]
            yield {"type": "tool_use", "id": id, "name": call.name, "input": {}}, deltas

    def _finish(self, answer: ScriptedCompletion) -> str:
        if answer.finish == "length":
            return "max_tokens"
        return "tool_use" if answer.calls else "end_turn"

    def _usage(self, answer: ScriptedCompletion, written: int) -> dict[str, Any]:
        # Anthropic counts tokens from its cache separately.
        return {
            "input_tokens": answer.tokens_in - answer.cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": answer.cached,
            "output_tokens": written,
            "service_tier": "standard",
        }
