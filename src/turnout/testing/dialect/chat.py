"""OpenAI's chat completions, as OpenAI says them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..fault import Part
from ..reply import Received, words
from .said import CREATED, OpenAI, Said, Wanted, cut, encode


class Chat(OpenAI):
    def refusal(self, request: Received, wanted: Wanted) -> str:
        if not wanted.model:
            return "you must provide a model parameter"
        return "" if len(wanted.messages) else "Missing required parameter: 'messages'."

    def whole(self, said: Said) -> bytes:
        content = None if said.calls and not said.pieces else said.text
        message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None, "annotations": []}
        if said.thinking:
            message["reasoning_content"] = said.thinking
        if said.calls:
            message["tool_calls"] = [
                {"id": id, "type": "function", "function": {"name": call.name, "arguments": call.json}}
                for id, call in said.calls
            ]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._finish(said)}
        head = {"id": f"chatcmpl-{said.number:08d}", "object": "chat.completion", "created": CREATED}
        tail = {"service_tier": "default", "system_fingerprint": "fp_scripted"}
        return encode({**head, "model": said.model, "choices": [choice], "usage": self._usage(said), **tail})

    def stream(self, said: Said) -> Iterator[Part]:
        head: dict[str, Any] = {"id": f"chatcmpl-{said.number:08d}", "object": "chat.completion.chunk"}
        head |= {"created": CREATED, "model": said.model, "service_tier": "default"}
        head["system_fingerprint"] = "fp_scripted"
        # Asked for usage, OpenAI names it in every chunk, and only the last one has any.
        tail = {"usage": None} if said.with_usage else {}

        def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            return b"data: " + encode({**head, "choices": [choice], **tail}) + b"\n\n"

        opening = None if said.calls and not said.pieces else ""
        yield Part("prelude", chunk({"role": "assistant", "content": opening, "refusal": None}))
        for piece in words(said.thinking):
            yield Part("delta", chunk({"reasoning_content": piece}))
        for piece in said.pieces:
            yield Part("delta", chunk({"content": piece}))
        for index, (id, call) in enumerate(said.calls):
            start = {"index": index, "id": id, "type": "function", "function": {"name": call.name, "arguments": ""}}
            yield Part("delta", chunk({"tool_calls": [start]}))
            for piece in cut(call.json):
                yield Part("delta", chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
        yield Part("between", chunk({}, self._finish(said)))
        if said.with_usage:
            last = {**head, "choices": [], "usage": self._usage(said)}
            yield Part("between", b"data: " + encode(last) + b"\n\n")
        yield Part("end", b"data: [DONE]\n\n")

    def error_event(self, message: str) -> bytes:
        return b"data: " + self.error(500, message) + b"\n\n"

    def _finish(self, said: Said) -> str:
        return "tool_calls" if said.calls and said.finish == "stop" else said.finish

    def _usage(self, said: Said) -> dict[str, Any]:
        return {
            "prompt_tokens": said.tokens_in,
            "completion_tokens": said.tokens_out,
            "total_tokens": said.tokens_in + said.tokens_out,
            "prompt_tokens_details": {"cached_tokens": said.cached, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": 0,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        }
