"""Three formats, one set of values: the same conversation, the same answer and the same stream read alike."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import pytest

from turnout.core.errors import Refused
from turnout.models.generate import write_body
from turnout.models.price import Usage
from turnout.models.provider import WIRES, Wire
from turnout.models.wire import FORMATS
from turnout.models.wire.format import PLAIN
from turnout.models.wire.sse import Events
from turnout.models.wire.value import Delta, Message, MessagePart, ModelRequest

PNG = "data:image/png;base64,AAAA"


def read(wire: Wire, **members: Any) -> ModelRequest:
    return FORMATS[wire].read(msgspec.json.encode({"model": "auto"} | members))


def shape(request: ModelRequest) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Who says what: the role, and of each part its kind, words and id."""
    return [(one.role, [(part.kind, part.text, part.id) for part in one.parts]) for one in request.messages]


def function(name: str, arguments: str) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}


CHAT = read(
    "openai-chat",
    messages=[
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": PNG}]},
        {"role": "assistant", "content": None, "tool_calls": [function("find", '{"x":1}')]},
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
    ],
)
MESSAGES = read(
    "anthropic-messages",
    system="be brief",
    messages=[
        {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image", "source": {"data": "AAAA"}}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "find", "input": {"x": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "found"}]},
    ],
)
RESPONSES = read(
    "openai-responses",
    instructions="be brief",
    input=[
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "look"}, {"type": "input_image", "image_url": PNG}],
        },
        {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"x":1}'},
        {"type": "function_call_output", "call_id": "c1", "output": "found"},
    ],
)


def test_a_conversation_reads_alike() -> None:
    asked = [("system", [("text", "be brief", "")]), ("user", [("text", "look", ""), ("image", "", "")])]
    call = ("call", '{"x":1}', "c1")
    assert shape(CHAT) == [*asked, ("assistant", [("text", "", ""), call]), ("tool", [("text", "found", "c1")])]
    assert shape(MESSAGES) == [*asked, ("assistant", [call]), ("user", [("result", "", "c1")])]
    assert shape(RESPONSES) == [*asked, ("", [call]), ("", [("result", "", "c1")])]
    for request in (CHAT, MESSAGES, RESPONSES):
        (name,) = [part.name for message in request.messages for part in message.parts if part.kind == "call"]
        assert name == "find"
        assert (request.bound, request.fresh, len(request.images)) == (True, False, 1)
        assert request.turns[:2] == CHAT.turns[:2]
        assert request.last_words == "look" or request is MESSAGES


@pytest.mark.parametrize("wire", WIRES)
def test_what_is_passed_on_stays_as_it_was(wire: Wire) -> None:
    field = "input" if wire == "openai-responses" else "messages"
    raw = rb'{ "messages" :[ {"content": "caf\u00e9" , "role":"user"} ],"x" : { "y":1.0e0 }, "model":"auto"}'
    raw = raw.replace(b"messages", field.encode())
    passed = write_body(FORMATS[wire].read(raw), "other")
    members = msgspec.json.decode(passed, type=dict[str, msgspec.Raw])
    assert bytes(members[field]) == rb'[ {"content": "caf\u00e9" , "role":"user"} ]'
    assert bytes(members["x"]) == b'{ "y":1.0e0 }'
    assert bytes(members["model"]) == b'"other"'


PLAIN_VALUES = {"stream": True, "temperature": 0.5, "top_p": 1, "stop": ["x"], "seed": 7, "user": "ada"}
PLAIN_VALUES |= {"max_tokens": 9, "max_completion_tokens": 8, "max_output_tokens": 7}


@pytest.mark.parametrize("wire", WIRES)
def test_what_is_plain_needs_no_second_look(wire: Wire) -> None:
    """Members that are not looked at change nothing about a request's price, tools or provider."""
    form = FORMATS[wire]
    words = {"input": "hi"} if wire == "openai-responses" else {"messages": [{"role": "user", "content": "hi"}]}
    said = {"system": "short", "instructions": "short"}
    request = form.read(msgspec.json.encode({"model": "auto", **words, **said, **PLAIN_VALUES}))
    assert set(request.fields) <= PLAIN
    assert form.read_terms(request, []) == request
    assert not PLAIN & {"tools", "prompt_cache_key", *form.unpriced, *form.hosted, *form.choices}


class Odd(NamedTuple):
    id: str
    wire: Wire
    members: dict[str, Any]


def given(*parts: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(parts)}]}


ODD = [
    Odd("calls-are-no-list", "openai-chat", {"messages": [{"role": "assistant", "tool_calls": {"id": 1}}]}),
    Odd("calls-of-nothing", "openai-chat", {"messages": [{"role": "assistant", "tool_calls": [None, {"id": 3}]}]}),
    Odd("id-is-a-number", "openai-chat", {"messages": [{"role": "tool", "tool_call_id": 7, "content": "x"}]}),
    Odd("document-from-nowhere", "anthropic-messages", given({"type": "document", "source": "here"})),
    Odd("document-of-no-type", "anthropic-messages", given({"type": "document", "source": {"type": 7}})),
    Odd("call-without-names", "anthropic-messages", given({"type": "tool_use", "id": 1, "name": None, "input": 5})),
    Odd("part-of-no-type", "openai-responses", {"input": [{"type": "function_call_output", "output": [{"type": 5}]}]}),
    Odd("arguments-are-none", "openai-responses", {"input": [{"type": "function_call", "arguments": {}}]}),
]


@pytest.mark.parametrize("case", ODD, ids=lambda case: case.id)
def test_what_is_odd_is_the_providers_to_refuse(case: Odd) -> None:
    request = read(case.wire, **case.members)
    assert msgspec.json.decode(write_body(request, "auto")) == {"model": "auto"} | case.members


@pytest.mark.parametrize("wire", WIRES)
def test_what_no_provider_would_take_is_refused(wire: Wire) -> None:
    for members in ({}, {"messages": 5, "input": 5}, {"messages": [], "input": None}):
        if wire == "openai-responses" and members.get("input", 0) is None:
            continue
        with pytest.raises(Refused):
            read(wire, **members)


# --- answers

USAGE = Usage(7, 3)


@pytest.mark.parametrize("wire", WIRES)
def test_an_answer_that_is_written_is_read(wire: Wire) -> None:
    form = FORMATS[wire]
    response = form.read_response(form.write_response("1", "m", "one two", USAGE))
    parts, stop = form.read_parts(response)
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (7, 3)
    assert ([part.text for part in parts], stop) == (["one two"], "stop")
    assert bytes(response.fields.get("error", b"null")) == b"null"
    assert response.id == ("resp_1" if wire == "openai-responses" else "")


@pytest.mark.parametrize("wire", WIRES)
def test_a_stream_that_is_written_is_read(wire: Wire) -> None:
    form, usage = FORMATS[wire], Usage()
    deltas: list[Delta] = []
    for event in Events().feed(b"".join(form.write_stream("1", "m", ["one ", "two"], lambda: USAGE))):
        deltas.append(form.read_event(event, usage))
        usage = deltas[-1].usage
    assert "".join(delta.text for delta in deltas) == "one two"
    assert [delta.stop for delta in deltas if delta.stop is not None] == ["stop"]
    assert (usage.input_tokens, usage.output_tokens, usage.final) == (7, 3, True)
    assert [delta.sign for delta in deltas].index("delta") > 0
    assert deltas[0].sign == "prelude"
    assert deltas[-1].sign == "end"
    assert {delta.id for delta in deltas} - {""} == ({"resp_1"} if wire == "openai-responses" else set())


@pytest.mark.parametrize("wire", WIRES[:2])
@pytest.mark.parametrize("schema", [None, {"type": "object"}])
def test_a_request_that_is_written_is_read(wire: Wire, schema: Any) -> None:
    form = FORMATS[wire]
    messages = [Message("system", (MessagePart(text="sort"),)), Message("user", (MessagePart(text="this"),))]
    request = read(wire, **form.write_request(messages, 12, schema))
    assert list(request.messages) == messages
    assert (request.max_tokens, request.stream, request.fresh) == (12, False, True)


class Stop(NamedTuple):
    wire: Wire
    theirs: str
    stop: str


STOPS = [
    Stop("openai-chat", "stop", "stop"),
    Stop("openai-chat", "length", "length"),
    Stop("openai-chat", "tool_calls", "tools"),
    Stop("openai-chat", "content_filter", "filter"),
    Stop("openai-chat", "tired", "other"),
    Stop("anthropic-messages", "end_turn", "stop"),
    Stop("anthropic-messages", "stop_sequence", "stop"),
    Stop("anthropic-messages", "max_tokens", "length"),
    Stop("anthropic-messages", "tool_use", "tools"),
    Stop("anthropic-messages", "refusal", "filter"),
    Stop("anthropic-messages", "pause_turn", "other"),
    Stop("openai-responses", "max_output_tokens", "length"),
    Stop("openai-responses", "content_filter", "filter"),
    Stop("openai-responses", "tired", "other"),
]


@pytest.mark.parametrize("case", STOPS, ids=lambda case: f"{case.wire}-{case.theirs}")
def test_why_an_answer_ended(case: Stop) -> None:
    form = FORMATS[case.wire]
    whole: dict[str, Any]
    match case.wire:
        case "openai-chat":
            whole = {"choices": [{"message": {"content": "x"}, "finish_reason": case.theirs}]}
            event = f'data: {{"choices":[{{"delta":{{}},"finish_reason":"{case.theirs}"}}]}}\n\n'
        case "anthropic-messages":
            whole = {"content": [{"type": "text", "text": "x"}], "stop_reason": case.theirs}
            event = f'event: message_delta\ndata: {{"delta":{{"stop_reason":"{case.theirs}"}}}}\n\n'
        case "openai-responses":
            details = {"incomplete_details": {"reason": case.theirs}}
            whole = {"output": [{"role": "assistant", "content": "x"}]} | details
            event = f"event: response.incomplete\ndata: {msgspec.json.encode({'response': details}).decode()}\n\n"
    assert form.read_parts(form.read_response(msgspec.json.encode(whole)))[1] == case.stop
    (one,) = Events().feed(event.encode())
    assert form.read_event(one, Usage()).stop == case.stop
