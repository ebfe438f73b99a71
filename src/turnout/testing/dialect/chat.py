"""OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..fault import BodyPart
from ..reply import Received, words
from .completion import CREATED, OpenAIDialect, RequestFields, ScriptedCompletion, cut, encode


class ChatDialect(OpenAIDialect):
    def refusal(self, request: Received, fields: RequestFields) -> str:
        if not fields.model:
            return "you must provide a model parameter"
        return "" if len(fields.messages) else "Missing required parameter: 'messages'."

    def whole(self, answer: ScriptedCompletion) -> bytes:
        content = None if answer.calls and not answer.pieces else answer.text
        message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None, "annotations": []}
        if answer.thinking:
            message["reasoning_content"] = answer.thinking
        if answer.calls:
            message["tool_calls"] = [
                {"id": id, "type": "function", "function": {"name": call.name, "arguments": call.json}}
                for id, call in answer.calls
            ]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._finish(answer)}
        head = {"id": f"chatcmpl-{answer.number:08d}", "object": "chat.completion", "created": CREATED}
        tail = {"service_tier": "default", "system_fingerprint": "fp_scripted"}
        return encode({**head, "model": answer.model, "choices": [choice], "usage": self._usage(answer), **tail})

    def stream(self, answer: ScriptedCompletion) -> Iterator[BodyPart]:
        head: dict[str, Any] = {"id": f"chatcmpl-{answer.number:08d}", "object": "chat.completion.chunk"}
        head |= {"created": CREATED, "model": answer.model, "service_tier": "default"}
        head["system_fingerprint"] = "fp_scripted"
        # Asked for usage, OpenAI names it in every chunk, and only the last one has any.
        tail = {"usage": None} if answer.with_usage else {}

        def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            return b"data: " + encode({**head, "choices": [choice], **tail}) + b"\n\n"

        opening = None if answer.calls and not answer.pieces else ""
        yield BodyPart("prelude", chunk({"role": "assistant", "content": opening, "refusal": None}))
        for piece in words(answer.thinking):
            yield BodyPart("delta", chunk({"reasoning_content": piece}))
        for piece in answer.pieces:
            yield BodyPart("delta", chunk({"content": piece}))
        for index, (id, call) in enumerate(answer.calls):
            start = {"index": index, "id": id, "type": "function", "function": {"name": call.name, "arguments": ""}}
            yield BodyPart("delta", chunk({"tool_calls": [start]}))
            for piece in cut(call.json):
                yield BodyPart("delta", chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
        yield BodyPart("between", chunk({}, self._finish(answer)))
        if answer.with_usage:
            last = {**head, "choices": [], "usage": self._usage(answer)}
            yield BodyPart("between", b"data: " + encode(last) + b"\n\n")
        yield BodyPart("end", b"data: [DONE]\n\n")

    def error_event(self, message: str) -> bytes:
        return b"data: " + self.error(500, message) + b"\n\n"

    def _finish(self, answer: ScriptedCompletion) -> str:
        return "tool_calls" if answer.calls and answer.finish == "stop" else answer.finish

    def _usage(self, answer: ScriptedCompletion) -> dict[str, Any]:
        return {
            "prompt_tokens": answer.tokens_in,
            "completion_tokens": answer.tokens_out,
            "total_tokens": answer.tokens_in + answer.tokens_out,
            "prompt_tokens_details": {"cached_tokens": answer.cached, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": 0,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        }
