"""A model that needs no key, no network and no weights, so that everything runs end to end from the first minute.

It answers in the wire format it is asked in, streaming or not, always the same to the same question, and says what it
is. It is not intelligent, and its tokens cost nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from .provider import Wire

# Characters a token has in English, about; the demonstration has no tokenizer.
TOKEN_CHARACTERS = 4

_json = msgspec.json.encode


def answer(slot: str, question: str) -> str:
    """What the demonstration model says."""
    asked = " ".join(question.split())
    short = asked if len(asked) <= 120 else asked[:119] + "…"
    return (
        f"This is Turnout's built-in demonstration model, standing in for the slot “{slot}”. "
        f"You asked: “{short}” "
        "A real model would answer here: name one in turnout.toml, or set a provider's key."
    )


def respond(wire: Wire, slot: str, model: str, question: str, stream: bool) -> list[bytes]:
    """The body of an answer: one piece, or the events of a stream."""
    text = answer(slot, question)
    ident = hashlib.sha256(f"{slot}\0{question}".encode("utf-8", "replace")).hexdigest()[:24]
    asked, said = max(1, len(question) // TOKEN_CHARACTERS), max(1, len(text) // TOKEN_CHARACTERS)
    speak = {"openai-chat": _chat, "anthropic-messages": _messages, "openai-responses": _responses}[wire]
    return list(speak(ident, model, text, asked, said, stream))


def _pieces(text: str) -> list[str]:
    words = text.split(" ")
    return [" ".join(words[i : i + 4]) + (" " if i + 4 < len(words) else "") for i in range(0, len(words), 4)]


def _chat(ident: str, model: str, text: str, asked: int, said: int, stream: bool) -> Iterator[bytes]:
    usage = {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}
    head: dict[str, Any] = {"id": f"chatcmpl-{ident}", "created": 0, "model": model}
    if not stream:
        message = {"role": "assistant", "content": text}
        choices = [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}]
        yield _json({**head, "object": "chat.completion", "choices": choices, "usage": usage})
        return
    head["object"] = "chat.completion.chunk"
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}, *({"content": p} for p in _pieces(text))]
    for delta in deltas:
        choices = [{"index": 0, "delta": delta, "finish_reason": None}]
        yield b"data: " + _json({**head, "choices": choices}) + b"\n\n"
    yield b"data: " + _json({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}) + b"\n\n"
    yield b"data: " + _json({**head, "choices": [], "usage": usage}) + b"\n\n"
    yield b"data: [DONE]\n\n"


def _messages(ident: str, model: str, text: str, asked: int, said: int, stream: bool) -> Iterator[bytes]:
    head: dict[str, Any] = {"id": f"msg_{ident}", "type": "message", "role": "assistant", "model": model}
    if not stream:
        content = [{"type": "text", "text": text}]
        usage = {"input_tokens": asked, "output_tokens": said}
        yield _json({**head, "content": content, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage})
        return
    start = {"stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": asked, "output_tokens": 1}}
    yield _event("message_start", message={**head, "content": [], **start})
    yield _event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for piece in _pieces(text):
        yield _event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
    yield _event("content_block_stop", index=0)
    stop = {"stop_reason": "end_turn", "stop_sequence": None}
    yield _event("message_delta", delta=stop, usage={"output_tokens": said})
    yield _event("message_stop")


def _responses(ident: str, model: str, text: str, asked: int, said: int, stream: bool) -> Iterator[bytes]:
    usage = {"input_tokens": asked, "output_tokens": said, "total_tokens": asked + said}
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"id": f"item_{ident}", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    head: dict[str, Any] = {"id": f"resp_{ident}", "object": "response", "created_at": 0, "model": model}
    fixed: dict[str, Any] = {
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "tools": [],
    }
    fixed |= {"parallel_tool_calls": True, "temperature": None, "top_p": None, "tool_choice": "auto"}
    done = {**head, **fixed, "status": "completed", "output": [item], "usage": usage}
    if not stream:
        yield _json(done)
        return
    begun = {**head, **fixed, "status": "in_progress", "output": [], "usage": None}
    place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    events: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": begun}),
        ("response.in_progress", {"response": begun}),
        ("response.output_item.added", {"output_index": 0, "item": {**item, "status": "in_progress", "content": []}}),
        ("response.content_part.added", {**place, "part": {**part, "text": ""}}),
        *(("response.output_text.delta", {**place, "delta": piece, "logprobs": []}) for piece in _pieces(text)),
        ("response.output_text.done", {**place, "text": text, "logprobs": []}),
        ("response.content_part.done", {**place, "part": part}),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": done}),
    ]
    for number, (name, fields) in enumerate(events):
        yield _event(name, sequence_number=number, **fields)


def _event(kind: str, **fields: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), _json({"type": kind, **fields}))
