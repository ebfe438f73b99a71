"""OpenAI's responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..fault import BodyPart, Sign
from ..reply import Received, words
from .completion import CREATED, OpenAIDialect, RequestFields, ScriptedCompletion, cut, encode, event

# The fields of an item that is still empty.
_EMPTY: dict[str, dict[str, Any]] = {
    "message": {"content": []},
    "function_call": {"arguments": ""},
    "reasoning": {"summary": []},
}


class ResponsesDialect(OpenAIDialect):
    def refusal(self, request: Received, fields: RequestFields) -> str:
        if not fields.model:
            return "Missing required parameter: 'model'."
        return "" if len(fields.input) else "Missing required parameter: 'input'."

    def whole(self, answer: ScriptedCompletion) -> bytes:
        return encode(self._response(answer, [item for item, _ in self._items(answer)]))

    def stream(self, answer: ScriptedCompletion) -> Iterator[BodyPart]:
        start = {"response": self._response(answer, None)}
        events: list[tuple[Sign, str, dict[str, Any]]] = [
            ("prelude", "response.created", start),
            ("prelude", "response.in_progress", start),
        ]
        items = list(self._items(answer))
        for index, (item, deltas) in enumerate(items):
            added = {**item, "status": "in_progress", **_EMPTY[item["type"]]}
            events.append(("between", "response.output_item.added", {"output_index": index, "item": added}))
            events += self._item_events(item, deltas, {"item_id": item["id"], "output_index": index})
            events.append(("between", "response.output_item.done", {"output_index": index, "item": item}))
        whole = self._response(answer, [item for item, _ in items])
        events.append(("end", f"response.{whole['status']}", {"response": whole}))
        for number, (sign, name, fields) in enumerate(events):
            yield BodyPart(sign, event(name, sequence_number=number, **fields))

    def error_event(self, message: str) -> bytes:
        # In the reference these fields are beside the type. OpenAI really sends them inside `error`, and its own
        # client raises only then.
        error = {"type": "server_error", "code": "server_error", "message": message, "param": None}
        return event("error", sequence_number=0, error=error)

    def _item_events(
        self, item: dict[str, Any], deltas: list[str], at: dict[str, Any]
    ) -> Iterator[tuple[Sign, str, dict[str, Any]]]:
        """The events between the start and the end of an item."""
        if item["type"] == "function_call":
            for piece in deltas:
                yield "delta", "response.function_call_arguments.delta", {**at, "delta": piece}
            done = {**at, "name": item["name"], "arguments": item["arguments"]}
            yield "between", "response.function_call_arguments.done", done
            return
        is_text = item["type"] == "message"
        part: dict[str, Any] = item["content" if is_text else "summary"][0]
        around = "response.content_part" if is_text else "response.reasoning_summary_part"
        name = "response.output_text" if is_text else "response.reasoning_summary_text"
        place = {**at, "content_index" if is_text else "summary_index": 0}
        more: dict[str, Any] = {"logprobs": []} if is_text else {}
        yield "between", f"{around}.added", {**place, "part": {**part, "text": ""}}
        for piece in deltas:
            yield "delta", f"{name}.delta", {**place, "delta": piece, **more}
        yield "between", f"{name}.done", {**place, "text": part["text"], **more}
        yield "between", f"{around}.done", {**place, "part": part}

    def _items(self, answer: ScriptedCompletion) -> Iterator[tuple[dict[str, Any], list[str]]]:
        """The output items, each with its deltas."""
        number, status = answer.number, "incomplete" if answer.finish == "length" else "completed"
        if answer.thinking:
            summary = [{"type": "summary_text", "text": answer.thinking}]
            yield {"id": f"rs_{number:08d}", "type": "reasoning", "summary": summary}, words(answer.thinking)
        if answer.pieces:
            part = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
            item = {"id": f"msg_{number:08d}", "type": "message", "status": status, "role": "assistant"}
            yield {**item, "content": [part]}, answer.pieces
        for index, (id, call) in enumerate(answer.calls):
            item = {"id": f"fc_{number:08d}{index:04d}", "type": "function_call", "status": status, "call_id": id}
            yield {**item, "name": call.name, "arguments": call.json}, cut(call.json)

    def _response(self, answer: ScriptedCompletion, output: list[dict[str, Any]] | None) -> dict[str, Any]:
        """The response object; without output, one in progress."""
        status, details, usage = "in_progress", None, None
        if output is not None:
            status = "completed" if answer.finish == "stop" else "incomplete"
            details = {"reason": "max_output_tokens"} if answer.finish == "length" else None
            usage = {
                "input_tokens": answer.tokens_in,
                "input_tokens_details": {"cached_tokens": answer.cached, "cache_write_tokens": 0},
                "output_tokens": answer.tokens_out,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": answer.tokens_in + answer.tokens_out,
            }
        return {
            "id": f"resp_{answer.number:08d}",
            "object": "response",
            "created_at": CREATED,
            "status": status,
            "error": None,
            "incomplete_details": details,
            "instructions": None,
            "metadata": {},
            "model": answer.model,
            "output": output or [],
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "usage": usage,
        }
