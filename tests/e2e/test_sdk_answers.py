"""The official client libraries against a running server: what is asked reaches a provider, what it says comes back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from e2e.sdk_world import Api, World, anthropic_client, ask, openai_client, world_of
from turnout.testing import Reply, ToolCall

HELLO = "hello"
PROOF = "Prove the theorem formally, step by step, and derive the proof."
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CHAT_TOOL = {"type": "function", "function": {"name": "weather", "description": "now", "parameters": SCHEMA}}
MESSAGES_TOOL = {"name": "weather", "description": "now", "input_schema": SCHEMA}
RESPONSES_TOOL = {"type": "function", "name": "weather", "parameters": SCHEMA, "strict": False}
CHAT_IMAGE = [
    {"type": "text", "text": HELLO},
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
]
MESSAGES_IMAGE = [
    {"type": "text", "text": HELLO},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
]
RESPONSES_IMAGE = [
    {"type": "input_text", "text": HELLO},
    {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "auto"},
]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, server: str) -> Iterator[World]:
    more = {"simple": "images = false\ntools = true", "complex": "context_tokens = 200_000"}
    with world_of(tmp_path_factory.mktemp("world"), more=more, server=server) as world:
        yield world


@pytest.fixture
def world(running: World) -> World:
    running.reset()
    return running


class Case(NamedTuple):
    id: str
    api: Api
    model: str = "auto"
    content: Any = HELLO
    served: str = "simple"
    """The tier whose provider answers."""
    reply: Reply = Reply("It is four, as ever.")
    stream: bool = False
    asynchronous: bool = False
    more: Mapping[str, Any] = MappingProxyType({})
    says: str = "It is four, as ever."
    calls: Sequence[tuple[str, Any]] = ()
    told: Mapping[str, str] = MappingProxyType({})
    """Response headers, without their prefix."""


CALL = Reply(tools=[ToolCall("weather", {"city": "Oslo"})])
ARGUMENTS = '{"city":"Oslo"}'

CASES = [
    # every surface, streaming and not, both kinds of client
    Case("chat", "chat", told={"route": "SIMPLE", "method": "rule-based", "attempts": "1", "outcome": "S-"}),
    Case("chat-stream", "chat", stream=True, told={"route": "SIMPLE", "layer": "signals"}),
    Case("chat-async", "chat", asynchronous=True),
    Case("chat-async-stream", "chat", stream=True, asynchronous=True),
    Case("messages", "messages", told={"route": "SIMPLE", "model": "simple-co/simple-model", "slot": "simple"}),
    Case("messages-stream", "messages", stream=True),
    Case("messages-async", "messages", asynchronous=True),
    Case("messages-async-stream", "messages", stream=True, asynchronous=True),
    Case("responses", "responses", told={"route": "SIMPLE", "attempts": "1"}),
    Case("responses-stream", "responses", stream=True),
    Case("responses-async", "responses", asynchronous=True),
    Case("responses-async-stream", "responses", stream=True, asynchronous=True),
    # which tier
    Case("auto-reasoning", "chat", content=PROOF, served="reasoning", told={"route": "REASONING"}),
    Case("auto-any-case", "chat", "AUTO", told={"method": "rule-based"}),
    Case("unknown-model-classifies", "chat", "gpt-4o", content=PROOF, served="reasoning"),
    Case("unknown-provider-model-classifies", "messages", "other-co/other-model", content=PROOF, served="reasoning"),
    Case("forced-bare", "chat", "complex", served="complex", told={"method": "forced", "outcome": "D-"}),
    Case("forced-prefixed", "chat", "turnout/medium", served="medium", told={"method": "forced", "route": "MEDIUM"}),
    Case("forced-any-case", "messages", "Turnout/REASONING", served="reasoning", told={"method": "forced"}),
    Case("forced-other-prefix", "chat", "claw-llm-router/Simple", content=PROOF, told={"method": "forced"}),
    Case("forced-upper", "responses", "MEDIUM", served="medium", told={"method": "forced"}),
    Case("named", "chat", "complex-co/complex-model", served="complex", told={"layer": "passthrough"}),
    Case("named-any-case", "messages", "Medium-Co/MEDIUM-model", served="medium", told={"slot": "medium"}),
    Case("named-stream", "responses", "medium-co/medium-model", served="medium", stream=True),
    # what a message is made of
    Case("chat-parts", "chat", content=[{"type": "text", "text": "hello"}, {"type": "text", "text": "there"}]),
    Case("messages-parts", "messages", content=[{"type": "text", "text": HELLO}]),
    Case("responses-parts", "responses", content=[{"type": "input_text", "text": HELLO}]),
    Case("chat-system", "chat", content=[{"role": "system", "content": PROOF}, {"role": "user", "content": HELLO}]),
    Case(
        "chat-developer", "chat", content=[{"role": "developer", "content": PROOF}, {"role": "user", "content": HELLO}]
    ),
    Case("messages-system", "messages", more={"system": PROOF}),
    Case("messages-system-parts", "messages", more={"system": [{"type": "text", "text": PROOF}]}),
    Case("responses-instructions", "responses", more={"instructions": PROOF}),
    Case(
        "responses-developer",
        "responses",
        content=[{"role": "developer", "content": PROOF}, {"role": "user", "content": HELLO}],
    ),
    # images: the simple slot takes none
    Case("chat-image", "chat", content=CHAT_IMAGE, served="medium", told={"route": "SIMPLE", "slot": "medium"}),
    Case("messages-image", "messages", content=MESSAGES_IMAGE, served="medium", stream=True),
    Case("responses-image", "responses", content=RESPONSES_IMAGE, served="medium"),
    # tools
    Case("chat-tool", "chat", reply=CALL, more={"tools": [CHAT_TOOL]}, says="", calls=[("weather", ARGUMENTS)]),
    Case(
        "chat-tool-stream",
        "chat",
        reply=CALL,
        stream=True,
        more={"tools": [CHAT_TOOL]},
        says="",
        calls=[("weather", ARGUMENTS)],
    ),
    Case(
        "messages-tool",
        "messages",
        reply=CALL,
        more={"tools": [MESSAGES_TOOL]},
        says="",
        calls=[("weather", {"city": "Oslo"})],
    ),
    Case(
        "messages-tool-stream",
        "messages",
        reply=CALL,
        stream=True,
        more={"tools": [MESSAGES_TOOL], "tool_choice": {"type": "any"}},
        says="",
        calls=[("weather", ARGUMENTS)],
    ),
    Case(
        "responses-tool",
        "responses",
        reply=CALL,
        more={"tools": [RESPONSES_TOOL]},
        says="",
        calls=[("weather", ARGUMENTS)],
    ),
    Case(
        "responses-tool-stream",
        "responses",
        reply=CALL,
        stream=True,
        more={"tools": [RESPONSES_TOOL]},
        says="",
        calls=[("weather", ARGUMENTS)],
    ),
    # odd but lawful
    Case("empty-stream", "chat", reply=Reply(""), stream=True, says=""),
    Case("emoji", "messages", reply=Reply("naïve 👩‍🔬 ٣"), stream=True, says="naïve 👩‍🔬 ٣"),
    Case("cut-short", "chat", reply=Reply("half an", finish="length"), says="half an"),
    Case("slow-stream", "responses", reply=Reply("a b c", chunk_delay_s=0.02), stream=True, says="a b c"),
    Case("thinking", "messages", reply=Reply("so", thinking="hm"), stream=True, says="so"),
    Case("max-completion-tokens", "chat", more={"max_completion_tokens": 7}),
]


@pytest.mark.alike(3)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_an_answer_comes_through(world: World, case: Case) -> None:
    world.providers[case.served].default = case.reply
    before = world.rows()
    found = ask(
        world, case.api, case.model, case.content, stream=case.stream, asynchronous=case.asynchronous, **case.more
    )
    assert (found.text, found.tools) == (case.says, list(case.calls))
    assert world.asked == [case.served]
    told = {name.removeprefix("x-turnout-"): value for name, value in found.headers.items()}
    assert told["slot"] == case.served
    assert {name: told[name] for name in case.told} == case.told
    assert 0.0 <= float(told["confidence"]) <= 1.0
    happened = world.outcome(told["decision"])
    assert (happened.ended, happened.slot, happened.attempts) == ("answered", case.served, 1)
    assert world.rows() == (before[0] + 1, before[1] + 1)


def test_there_are_enough_scenarios() -> None:
    assert len(CASES) >= 40
    assert len({case.id for case in CASES}) == len(CASES)


# --- bytes


class UntouchedCase(NamedTuple):
    id: str
    path: str
    body: dict[str, Any]


ODD = {"zzz_new": {"b": [1, 2.50, None, {"é": "ü"}], "a": True}, "seed": 7, "metadata": {"k": "v"}}
UNTOUCHED = [
    UntouchedCase(
        "chat", "/chat/completions", {"messages": [{"role": "user", "content": HELLO, "name": "bo", "x": 1}]}
    ),
    UntouchedCase(
        "messages", "/messages", {"messages": [{"role": "user", "content": HELLO}], "max_tokens": 5, "top_k": 3}
    ),
    UntouchedCase("responses", "/responses", {"input": HELLO, "store": False, "reasoning": {"effort": "low"}}),
]


@pytest.mark.parametrize("case", UNTOUCHED, ids=lambda case: case.id)
def test_a_body_passes_untouched_but_for_its_model(world: World, case: UntouchedCase) -> None:
    """Every member as the bytes it was, spacing and number spelling included, in its place."""
    members = {"model": "auto"} | case.body | ODD
    spelled = [f"  {json.dumps(name)} : {json.dumps(value, ensure_ascii=False)}" for name, value in members.items()]
    raw = "{\n" + ",\n".join([*spelled, '"number" : 1.0e+02', '"big": 123456789012345678901234567890']) + "\n}"
    with openai_client(world) as client:
        headers = {"anthropic-version": "2023-06-01", "content-type": "application/json"}
        client.with_options(default_headers=headers).post(case.path, content=raw.encode(), cast_to=object)
    received = world.received("simple")[0]
    assert list(received.body) == [*members, "number", "big"]
    assert received.body["model"] == "simple-model"
    assert {**received.body, "model": "auto"} == json.loads(raw)
    for spelling in ('[1, 2.5, null, {"é": "ü"}]', "1.0e+02", "123456789012345678901234567890"):
        assert spelling.encode() in received.raw


@pytest.mark.parametrize("case", [Case("chat", "chat"), Case("messages", "messages"), Case("responses", "responses")])
def test_definitions_of_tools_pass_through(world: World, case: Case) -> None:
    tool = {"chat": CHAT_TOOL, "messages": MESSAGES_TOOL, "responses": RESPONSES_TOOL}[case.api]
    ask(world, case.api, "auto", HELLO, tools=[tool], extra_body={"parallel": {"x": [1]}})
    body = world.received("simple")[0].body
    assert (body["tools"], body["parallel"]) == ([tool], {"x": [1]})


def test_only_a_clients_version_and_beta_headers_are_passed_on(world: World) -> None:
    sent = {"anthropic-beta": "tools-2026-01-01,other", "anthropic-version": "2099-01-01", "x-turnout-route": "SIMPLE"}
    sent |= {"x-forwarded-for": "8.8.8.8", "cookie": "a=b", "x-secret": "1"}
    ask(world, "messages", "auto", HELLO, extra_headers=sent)
    received = world.received("simple")[0].headers
    assert (received["anthropic-beta"], received["anthropic-version"]) == ("tools-2026-01-01,other", "2099-01-01")
    assert not {"x-forwarded-for", "cookie", "x-secret", "x-turnout-route", "x-api-key", "x-stainless-lang"} & set(
        received
    )
    ask(world, "chat", "auto", HELLO, extra_headers={"openai-beta": "assistants=v2"})
    assert world.received("simple")[1].headers["openai-beta"] == "assistants=v2"
    assert "authorization" not in world.received("simple")[1].headers, "the client's own key goes nowhere"


# --- conversations


class Turns(NamedTuple):
    api: Api
    tool: dict[str, Any]
    second: Any


def chat_results(first: Any) -> list[Any]:
    message = first.choices[0].message
    calls = [call.model_dump() for call in message.tool_calls]
    asked = {"role": "user", "content": PROOF}
    result = {"role": "tool", "tool_call_id": calls[0]["id"], "content": "rain"}
    return [asked, {"role": "assistant", "content": None, "tool_calls": calls}, result]


def messages_results(first: Any) -> list[Any]:
    block = first.content[0]
    asked = {"role": "user", "content": PROOF}
    call = {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": block.id, "content": "rain"}]}
    return [asked, {"role": "assistant", "content": [call]}, result]


def responses_results(first: Any) -> list[Any]:
    item = first.output[0]
    call = {"type": "function_call", "call_id": item.call_id, "name": item.name, "arguments": item.arguments}
    result = {"type": "function_call_output", "call_id": item.call_id, "output": "rain"}
    return [{"role": "user", "content": PROOF}, call, result]


TURNS = [
    Turns("chat", CHAT_TOOL, chat_results),
    Turns("messages", MESSAGES_TOOL, messages_results),
    Turns("responses", RESPONSES_TOOL, responses_results),
]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("case", TURNS, ids=lambda case: case.api)
def test_a_turn_with_a_tools_results_keeps_tier_and_model(world: World, case: Turns, stream: bool) -> None:
    world.providers["reasoning"].script(CALL, Reply("Take an umbrella."))
    first = ask(world, case.api, "auto", PROOF, tools=[case.tool])
    assert first.tools
    second = ask(world, case.api, "auto", case.second(first.raw), tools=[case.tool], stream=stream)
    assert second.text == "Take an umbrella."
    told = second.headers
    assert (told["x-turnout-slot"], told["x-turnout-route"]) == ("reasoning", "REASONING")
    assert (told["x-turnout-method"], told["x-turnout-pinned"]) == ("pinned", "turn")
    assert world.asked == ["reasoning", "reasoning"]


def test_a_stored_response_is_continued_where_it_is(world: World) -> None:
    """`previous_response_id` means something to one provider only, and its turn has none of the earlier words."""
    world.providers["reasoning"].script(CALL, Reply("Take an umbrella."), Reply("Yes."))
    first = ask(world, "responses", "auto", PROOF, tools=[RESPONSES_TOOL])
    result = [{"type": "function_call_output", "call_id": first.raw.output[0].call_id, "output": "rain"}]
    second = ask(world, "responses", "auto", result, stream=True, previous_response_id=first.raw.id)
    assert (second.text, second.headers["x-turnout-pinned"]) == ("Take an umbrella.", "turn")
    ident = second.raw[-1].response.id
    third = ask(world, "responses", "auto", HELLO, previous_response_id=ident)
    assert third.text == "Yes."
    assert world.asked == ["reasoning"] * 3
    skipped = world.outcome(third.headers["x-turnout-decision"]).extra["skipped"]
    assert {reason["code"] for reason in skipped} == {"slot.bound"}


# --- the lists


def test_models_are_listed_and_shown(world: World) -> None:
    with openai_client(world) as client:
        names = [model.id for model in client.models.list()]
        assert names[:3] == ["auto", "ask", "claims"]
        assert names[3:7] == ["turnout/simple", "turnout/medium", "turnout/complex", "turnout/reasoning"]
        assert "simple-co/simple-model" in names
        for name in ("auto", "ask", "turnout/simple", "simple-co/simple-model"):
            assert client.models.retrieve(name).id == name
    with anthropic_client(world) as client:
        assert [model.id for model in client.models.list()] == names
        found = client.models.retrieve("turnout/complex")
        assert (found.id, found.display_name, found.type) == ("turnout/complex", "turnout/complex", "model")


def test_tokens_are_counted(world: World) -> None:
    with anthropic_client(world) as client:
        message: Any = [{"role": "user", "content": "word " * 400}]
        short = client.messages.count_tokens(model="auto", messages=[{"role": "user", "content": HELLO}])
        long = client.messages.count_tokens(model="auto", messages=message, system="be brief")
    assert 1 <= short.input_tokens < 30
    assert 400 <= long.input_tokens <= 700
    assert world.asked == []


# --- images and long prompts


def test_a_slot_without_images_is_skipped_with_a_reason(world: World) -> None:
    found = ask(world, "chat", "auto", CHAT_IMAGE)
    happened = world.outcome(found.headers["x-turnout-decision"])
    assert [reason["code"] for reason in happened.extra["skipped"]] == ["slot.images"]
    assert happened.fallback == "no slot for SIMPLE could be used"


def test_an_image_a_tool_returns_is_an_image(world: World) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [MESSAGES_IMAGE[1]]}
    turns = [
        {"role": "user", "content": HELLO},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    assert ask(world, "messages", "simple", turns).headers["x-turnout-slot"] == "medium"
