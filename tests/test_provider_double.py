"""The scripted provider speaks the real formats, as the providers' own clients judge, and fails in every way."""

import asyncio
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Literal, NamedTuple

import anthropic
import msgspec
import openai
import pytest

from timing import Delays
from turnout.testing import Fault, Received, Reply, ScriptedProvider, ToolCall

WEATHER = ToolCall("weather", {"city": "Bern", "days": [1, 2, 3]}, id="id_1")
TIME = ToolCall("time", {})
RICH = Reply("It is  sunny,\nI think.", tools=[WEATHER, TIME], thinking="Let me look.", usage=(120, 34), cached=100)
USER: Any = [{"role": "user", "content": "How is the weather?"}]
MESSAGES: dict[str, Any] = {"model": "m", "max_tokens": 100, "messages": USER}
# Long enough for any machine, short enough to notice a test that waits for nothing.
PATIENCE_S = 5.0
# Long enough to see that nothing comes, short enough to do it fifty times.
SILENCE_S = 0.03


@contextmanager
def clients() -> Iterator[tuple[ScriptedProvider, openai.OpenAI, anthropic.Anthropic]]:
    with (
        ScriptedProvider.in_thread() as provider,
        openai.OpenAI(base_url=provider.base_url, api_key="k", max_retries=0) as chat,
        anthropic.Anthropic(base_url=provider.origin, api_key="k", max_retries=0) as messages,
    ):
        yield provider, chat, messages


# The formats, as the official clients read them


def test_chat_whole() -> None:
    with clients() as (provider, client, _):
        provider.script(RICH, Reply("x" * 9, finish="length"), Reply(tools=[TIME]))
        told = client.chat.completions.create(model="gpt-x", messages=USER)
        short = client.chat.completions.create(model="gpt-x", messages=USER)
        silent = client.chat.completions.create(model="gpt-x", messages=USER)
        plain = client.chat.completions.create(model="gpt-x", messages=USER)
    choice = told.choices[0]
    assert (told.model, told.object, choice.finish_reason) == ("gpt-x", "chat.completion", "tool_calls")
    assert choice.message.content == RICH.text
    calls: Any = choice.message.tool_calls
    assert [(call.function.name, msgspec.json.decode(call.function.arguments)) for call in calls] == [
        ("weather", WEATHER.arguments),
        ("time", {}),
    ]
    assert calls[0].id == "id_1"
    assert calls[1].id.startswith("call_")
    usage: Any = told.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (120, 34, 154)
    assert usage.prompt_tokens_details.cached_tokens == 100
    assert (short.choices[0].finish_reason, silent.choices[0].message.content) == ("length", None)
    assert plain.choices[0].message.content == "Hello from the scripted provider."
    assert plain.usage is not None
    assert plain.usage.completion_tokens == 8
    assert len({told.id, short.id, silent.id, plain.id}) == 4
    assert told._request_id == "req_00000001"


def test_chat_stream() -> None:
    with clients() as (provider, client, _):
        provider.script(RICH, RICH)
        with client.chat.completions.stream(
            model="gpt-x", messages=USER, stream_options={"include_usage": True}
        ) as events:
            whole: Any = events.get_final_completion()
        raw = list(client.chat.completions.create(model="gpt-x", messages=USER, stream=True))
    message = whole.choices[0].message
    assert (message.content, whole.choices[0].finish_reason) == (RICH.text, "tool_calls")
    assert next((call.id, call.function.name) for call in message.tool_calls) == ("id_1", "weather")
    assert [msgspec.json.decode(call.function.arguments) for call in message.tool_calls] == [WEATHER.arguments, {}]
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (120, 34)
    assert (raw[0].choices[0].delta.role, raw[0].choices[0].delta.content) == ("assistant", "")
    texts = [chunk.choices[0].delta.content for chunk in raw if chunk.choices[0].delta.content]
    assert texts == ["It ", "is  ", "sunny,\n", "I ", "think."]
    assert all(chunk.usage is None for chunk in raw), "usage comes only to who asks for it"
    assert [chunk.choices[0].finish_reason for chunk in raw][-2:] == [None, "tool_calls"]


def test_messages_whole() -> None:
    with clients() as (provider, _, client):
        provider.script(RICH, Reply(tools=[TIME]), Reply("x", finish="length"))
        told = client.messages.create(**MESSAGES)
        silent = client.messages.create(**MESSAGES)
        short = client.messages.create(**MESSAGES)
    thought, text, *calls = told.content
    assert (thought.type, text.type) == ("thinking", "text")
    assert thought.thinking == RICH.thinking
    assert thought.signature
    assert text.text == RICH.text
    assert [(call.type, getattr(call, "input", None)) for call in calls] == [
        ("tool_use", WEATHER.arguments),
        ("tool_use", {}),
    ]
    assert (told.stop_reason, told.model, told.role, told.type) == ("tool_use", "m", "assistant", "message")
    assert (told.usage.input_tokens, told.usage.cache_read_input_tokens, told.usage.output_tokens) == (20, 100, 34)
    assert [block.type for block in silent.content] == ["tool_use"]
    assert short.stop_reason == "max_tokens"
    assert told._request_id == "req_00000001"


def test_messages_stream() -> None:
    with clients() as (provider, _, client):
        provider.script(RICH, RICH, Reply("Hi"))
        with client.messages.stream(**MESSAGES) as stream:
            events = [event.type for event in stream]
            whole: Any = stream.get_final_message()
        raw = [event.type for event in client.messages.create(**MESSAGES, stream=True)]
        plain: Any = list(client.messages.create(**MESSAGES, stream=True))
    thought, text, weather, clock = whole.content
    assert (thought.thinking, bool(thought.signature), text.text) == (RICH.thinking, True, RICH.text)
    assert (weather.name, weather.id, weather.input, clock.input) == ("weather", "id_1", WEATHER.arguments, {})
    assert whole.stop_reason == "tool_use"
    assert (whole.usage.input_tokens, whole.usage.cache_read_input_tokens, whole.usage.output_tokens) == (20, 100, 34)
    assert {"thinking", "text", "input_json", "signature"} <= set(events)
    assert raw.count("content_block_start") == raw.count("content_block_stop") == 4
    assert (raw[0], raw[-2:]) == ("message_start", ["message_delta", "message_stop"])
    assert [event.type for event in plain] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ], "the client drops pings"
    assert plain[0].message.usage.input_tokens > 0


def test_responses_whole() -> None:
    with clients() as (provider, client, _):
        provider.script(RICH, Reply("x", finish="length"))
        told = client.responses.create(model="m", input="How is the weather?")
        short = client.responses.create(model="m", input="How is the weather?")
    assert [item.type for item in told.output] == ["reasoning", "message", "function_call", "function_call"]
    call: Any = told.output[2]
    assert (call.name, call.call_id, msgspec.json.decode(call.arguments)) == ("weather", "id_1", WEATHER.arguments)
    assert (told.output_text, told.status, told.error) == (RICH.text, "completed", None)
    usage: Any = told.usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (120, 34, 154)
    assert usage.input_tokens_details.cached_tokens == 100
    assert short.incomplete_details is not None
    assert (short.status, short.incomplete_details.reason) == ("incomplete", "max_output_tokens")


def test_responses_stream() -> None:
    with clients() as (provider, client, _):
        provider.script(RICH, RICH, Reply("x", finish="length"))
        with client.responses.stream(model="m", input="How is the weather?") as stream:
            whole: Any = stream.get_final_response()
        events: Any = list(client.responses.create(model="m", input="How is the weather?", stream=True))
        short = list(client.responses.create(model="m", input="How is the weather?", stream=True))
    assert whole.output_text == RICH.text
    assert [item.arguments for item in whole.output if item.type == "function_call"] == [WEATHER.json, "{}"]
    assert whole.usage.total_tokens == 154
    names = [event.type for event in events]
    assert (names[0], names[-1]) == ("response.created", "response.completed")
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert names.count("response.output_item.added") == names.count("response.output_item.done") == 4
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == RICH.text
    assert short[-1].type == "response.incomplete"


def test_the_clients_accept_every_event_in_full() -> None:
    """Their models take anything; that nothing is missing is asked of the schema itself."""
    with clients() as (provider, client, messages):
        provider.default = RICH
        events: list[Any] = [
            client.chat.completions.create(model="m", messages=USER),
            *client.chat.completions.create(model="m", messages=USER, stream=True),
            messages.messages.create(**MESSAGES),
            *messages.messages.create(**MESSAGES, stream=True),
            client.responses.create(model="m", input="x"),
            *client.responses.create(model="m", input="x", stream=True),
        ]
    assert len(events) > 60
    for event in events:
        type(event).model_validate_json(event.model_dump_json(exclude_unset=True, by_alias=True), strict=True)


class Status(NamedTuple):
    status: int
    error: str


STATUSES = [
    Status(400, "BadRequestError"),
    Status(401, "AuthenticationError"),
    Status(403, "PermissionDeniedError"),
    Status(404, "NotFoundError"),
    Status(422, "UnprocessableEntityError"),
    Status(429, "RateLimitError"),
    Status(500, "InternalServerError"),
    Status(503, "InternalServerError"),
]


def test_errors_are_what_the_clients_expect() -> None:
    with clients() as (provider, client, messages):
        for case in STATUSES:
            provider.default = Reply("Too much.", status=case.status, headers={"retry-after": "7"})
            with pytest.raises(openai.APIStatusError) as told:
                client.chat.completions.create(model="m", messages=USER, stream=True)
            assert type(told.value).__name__ == case.error
            assert (told.value.status_code, told.value.response.headers["retry-after"]) == (case.status, "7")
            assert "Too much." in told.value.message
            with pytest.raises(anthropic.APIStatusError) as said:
                messages.messages.create(**MESSAGES)
            assert (said.value.status_code, "Too much." in said.value.message) == (case.status, True)
        provider.default = Reply(status=529)
        with pytest.raises(anthropic.APIStatusError) as said:
            messages.messages.create(**MESSAGES)
        body: Any = said.value.body
        assert (said.value.status_code, body["error"]["type"]) == (529, "overloaded_error")


def test_an_error_in_the_stream_is_what_the_clients_expect() -> None:
    with clients() as (provider, client, messages):
        provider.default = Reply(fault=Fault("error_event", "after_delta"))
        with pytest.raises(openai.APIError, match="had an error"):
            list(client.chat.completions.create(model="m", messages=USER, stream=True))
        with pytest.raises(anthropic.APIStatusError) as said:
            list(messages.messages.create(**MESSAGES, stream=True))
        assert "overloaded_error" in str(said.value.body)
        with pytest.raises(openai.APIError, match="had an error"):
            list(client.responses.create(model="m", input="x", stream=True))


def test_the_clients_retry_as_they_do() -> None:
    """Two retries by default, after what `retry-after-ms` says; the third answer is the answer."""
    soon = Reply(status=503, headers={"retry-after-ms": "1"})
    with (
        ScriptedProvider.in_thread(script=[soon, soon, Reply("At last.")]) as provider,
        openai.OpenAI(base_url=provider.base_url, api_key="k") as client,
    ):
        told = client.chat.completions.create(model="m", messages=USER)
        assert told.choices[0].message.content == "At last."
        retries = [request.headers["x-stainless-retry-count"] for request in provider.requests]
    assert retries == ["0", "1", "2"]


# A raw client, for what the official ones hide


PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}


def request_for(wire: str, stream: bool, **fields: Any) -> bytes:
    asked: dict[str, Any] = {"model": "m", "stream": stream, **fields}
    asked |= {"input": "hello"} if wire == "responses" else {"messages": [{"role": "user", "content": "hello"}]}
    asked |= {"max_tokens": 9} if wire == "messages" else {}
    body = msgspec.json.encode(asked)
    head = f"POST {PATHS[wire]} HTTP/1.1\r\nHost: x\r\nAnthropic-Version: 2023-06-01\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class SeenAnswer(NamedTuple):
    """What a client saw of an answer."""

    head: bytes
    body: bytes
    ended: str
    """`whole`: all of it came; `closed`, `reset`: the connection ended before; `open`: more may come."""
    reads: int


class Client:
    """One connection, read until the answer is whole, the connection ends, or nothing more is wanted."""

    def __init__(self, provider: ScriptedProvider) -> None:
        self.provider = provider

    async def __aenter__(self) -> "Client":
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.provider.port)
        return self

    async def __aexit__(self, *error: object) -> None:
        self.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()

    def close(self) -> None:
        self.writer.close()

    async def ask(
        self, wire: str = "chat", stream: bool = True, until: Callable[[bytes], bool] | None = None
    ) -> SeenAnswer:
        """Send a request and read the answer; with `until`, only so far, and then listen to the silence."""
        self.writer.write(request_for(wire, stream))
        return await self.read(until)

    async def read(self, until: Callable[[bytes], bool] | None = None) -> SeenAnswer:
        got, reads, wait = b"", 0, PATIENCE_S
        while True:
            if until is not None and until(got):
                until, wait = None, SILENCE_S
            try:
                data = await asyncio.wait_for(self.reader.read(1 << 20), wait)
            except ConnectionResetError:
                return self._seen(got, "reset", reads)
            except TimeoutError:
                assert wait == SILENCE_S, f"nothing came for long after {got[-200:]!r}"
                return self._seen(got, "open", reads)
            if not data:
                return self._seen(got, "closed", reads)
            got, reads = got + data, reads + 1
            if len(got) > 30_000_000 or (wait == SILENCE_S and reads > 200):
                return self._seen(got, "open", reads)
            if is_whole(got):
                return self._seen(got, "whole", reads)

    def _seen(self, got: bytes, ended: str, reads: int) -> SeenAnswer:
        head, _, body = got.partition(b"\r\n\r\n")
        return SeenAnswer(head, dechunk(body) if b"chunked" in head else body, ended, reads)


def is_whole(got: bytes) -> bool:
    head, found, body = got.partition(b"\r\n\r\n")
    if not found:
        return False
    if b"chunked" in head:
        return body.endswith(b"\r\n0\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    return length is not None and len(body) >= int(length[1])


def dechunk(body: bytes) -> bytes:
    parts = []
    while body:
        size, found, rest = body.partition(b"\r\n")
        if not found:
            break
        parts.append(rest[: int(size, 16)])
        body = rest[int(size, 16) + 2 :]
    return b"".join(parts)


def json_of(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return None


def has_delta(got: bytes) -> bool:
    return b'"content":"One "' in got


def has_head(got: bytes) -> bool:
    return b"\r\n\r\n" in got


def has_half(got: bytes) -> bool:
    return b"\r\n\r\n{" in got


def has_prelude(got: bytes) -> bool:
    return b'"role":"assistant"' in got


def is_empty(got: bytes) -> bool:
    return not got


def after(count: int) -> Callable[[bytes], bool]:
    return lambda got: len(got) >= count


class Case(NamedTuple):
    fault: Fault
    stream: bool
    until: Callable[[bytes], bool] | None
    ended: str
    holds: Callable[[SeenAnswer], object]

    @property
    def id(self) -> str:
        return f"{self.fault.kind}-{self.fault.window}-{'stream' if self.stream else 'whole'}"


def nothing(seen: SeenAnswer) -> bool:
    return seen.head == seen.body == b""


def only_head(seen: SeenAnswer) -> bool:
    return seen.head.startswith(b"HTTP/1.1 200 OK") and seen.body == b""


def half_body(seen: SeenAnswer) -> bool:
    return seen.body.startswith(b"{") and json_of(seen.body) is None


def prelude(seen: SeenAnswer) -> bool:
    return seen.body.startswith(b"data: ") and has_prelude(seen.body) and not has_delta(seen.body)


def one_delta(seen: SeenAnswer) -> bool:
    return has_delta(seen.body) and b"two" not in seen.body and b"[DONE]" not in seen.body


def cut_event(seen: SeenAnswer) -> bool:
    last = seen.body.split(b"\n\n")[-1]
    return last.startswith(b"data: {") and json_of(last[6:]) is None


def finished(seen: SeenAnswer) -> bool:
    return seen.body.endswith(b"data: [DONE]\n\n") if b"event-stream" in seen.head else json_of(seen.body) is not None


def both(*checks: Callable[[SeenAnswer], object]) -> Callable[[SeenAnswer], bool]:
    return lambda seen: all(check(seen) for check in checks)


BIG = 100_000
BEFORE: Literal["before_headers"] = "before_headers"
HEADERS: Literal["before_delta"] = "before_delta"
DELTA: Literal["after_delta"] = "after_delta"
CASES = [
    *(Case(Fault("reset", BEFORE), stream, None, "reset", nothing) for stream in (True, False)),
    Case(Fault("reset", HEADERS), True, None, "reset", prelude),
    Case(Fault("reset", HEADERS), False, None, "reset", only_head),
    Case(Fault("reset", DELTA), True, None, "reset", one_delta),
    Case(Fault("reset", DELTA), False, None, "reset", half_body),
    *(Case(Fault("cut", BEFORE), stream, None, "closed", nothing) for stream in (True, False)),
    Case(Fault("cut", HEADERS), True, None, "closed", both(prelude, cut_event)),
    Case(Fault("cut", HEADERS), False, None, "closed", half_body),
    Case(Fault("cut", DELTA), True, None, "closed", both(one_delta, cut_event)),
    Case(Fault("cut", DELTA), False, None, "closed", lambda seen: seen.body and json_of(seen.body) is None),
    Case(Fault("cut", HEADERS, clean=True), True, None, "whole", both(prelude, cut_event)),
    Case(Fault("cut", HEADERS, clean=True), False, None, "whole", half_body),
    Case(Fault("cut", DELTA, clean=True), True, None, "whole", both(one_delta, cut_event)),
    *(Case(Fault("stall", BEFORE), stream, is_empty, "open", nothing) for stream in (True, False)),
    Case(Fault("stall", HEADERS), True, has_prelude, "open", prelude),
    Case(Fault("stall", HEADERS), False, has_head, "open", only_head),
    Case(Fault("stall", DELTA), True, has_delta, "open", one_delta),
    Case(Fault("stall", DELTA), False, has_half, "open", half_body),
    *(
        Case(Fault("stall", at, seconds=0.02), s, None, "whole", finished)
        for at in (BEFORE, DELTA)
        for s in (True, False)
    ),
    Case(Fault("drip", BEFORE), True, lambda got: got == b"H", "open", lambda seen: seen.head == b"H"),
    Case(Fault("drip", HEADERS), True, lambda got: got.endswith(b"1\r\nd\r\n"), "open", prelude),
    Case(Fault("drip", HEADERS), False, has_half, "open", lambda seen: seen.body == b"{"),
    Case(Fault("drip", DELTA), True, lambda got: got.endswith(b"1\r\nd\r\n"), "open", one_delta),
    Case(Fault("drip", DELTA), False, has_half, "open", half_body),
    Case(Fault("drip", BEFORE, seconds=0), False, None, "whole", lambda seen: finished(seen) and seen.reads > 9),
    Case(Fault("drip", DELTA, seconds=0), False, None, "whole", lambda seen: finished(seen) and seen.reads > 9),
    *(
        Case(Fault("endless", BEFORE), s, after(BIG), "open", lambda seen: seen.head.count(b"x-padding") > 90)
        for s in (True, False)
    ),
    Case(Fault("endless", HEADERS), True, after(BIG), "open", lambda seen: seen.body.count(b"\n\n: still") > 90),
    Case(Fault("endless", HEADERS), False, after(BIG), "open", lambda seen: len(seen.body) > 90_000),
    Case(Fault("endless", DELTA), True, after(BIG), "open", lambda seen: seen.body.count(b'"One "') > 90),
    Case(Fault("endless", DELTA), False, after(BIG), "open", lambda seen: len(seen.body) > 90_000),
    *(
        Case(Fault("big_event", BEFORE, size=BIG), s, None, "whole", lambda x: finished(x) and len(x.head) > BIG)
        for s in (True, False)
    ),
    Case(
        Fault("big_event", HEADERS),
        True,
        None,
        "whole",
        lambda seen: finished(seen) and max(map(len, seen.body.split(b"\n\n"))) > 10 * 1024 * 1024,
    ),
    Case(Fault("big_event", HEADERS, size=BIG), False, None, "whole", both(finished, lambda x: len(x.body) > BIG)),
    Case(
        Fault("big_event", DELTA, size=BIG),
        True,
        None,
        "whole",
        lambda seen: (
            finished(seen) and seen.body.index(b'"One "') < seen.body.index(b"xxx") < seen.body.index(b'"two "')
        ),
    ),
    Case(Fault("big_event", DELTA, size=BIG), False, None, "whole", both(finished, lambda x: b"One xxx" in x.body)),
    Case(Fault("half_json", HEADERS), True, None, "whole", lambda x: prelude(x) and x.body.endswith(b"\n\n")),
    Case(Fault("half_json", HEADERS), False, None, "whole", half_body),
    Case(Fault("half_json", DELTA), True, None, "whole", lambda x: one_delta(x) and x.body.endswith(b"\n\n")),
    Case(Fault("half_json", DELTA), False, None, "whole", lambda x: x.body and json_of(x.body) is None),
    Case(Fault("error_event", HEADERS), True, None, "whole", lambda x: prelude(x) and b'data: {"error"' in x.body),
    Case(Fault("error_event", HEADERS), False, None, "whole", lambda x: "error" in json_of(x.body)),
    Case(Fault("error_event", DELTA), True, None, "whole", lambda x: one_delta(x) and b'data: {"error"' in x.body),
    Case(
        Fault("wrong_type"), True, None, "whole", lambda x: b"text/html" in x.head and x.body.startswith(b"<!doctype")
    ),
    Case(Fault("wrong_type"), False, None, "whole", lambda x: b" 200 " in x.head and json_of(x.body) is None),
    Case(Fault("duplicate_done"), True, None, "whole", lambda x: x.body.count(b"data: [DONE]\n\n") == 2),
    Case(Fault("duplicate_done"), False, None, "whole", lambda x: json_of(x.body) is None and len(x.body) > 500),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_fault(case: Case) -> None:
    async def scenario() -> None:
        async with ScriptedProvider(Reply("One two three", fault=case.fault)) as provider:
            async with Client(provider) as client:
                seen = await client.ask("chat", case.stream, case.until)
                assert seen.ended == case.ended, seen
                assert case.holds(seen), seen
            provider.default = Reply()
            async with Client(provider) as client:
                assert finished(await client.ask("chat", case.stream)), "the next one is not hurt"

    asyncio.run(scenario())


def test_every_fault_is_in_the_table() -> None:
    tried = {(case.fault.kind, case.fault.window) for case in CASES}
    assert tried == {(fault.kind, fault.window) for fault in Fault.every()}
    assert len(tried) == 24


def test_every_fault_works_in_every_format() -> None:
    """They are made of steps, not of events; here is the proof that none of them minds what the events are."""
    quick = [msgspec.structs.replace(fault, size=1000) for fault in Fault.every()]

    async def one(provider: ScriptedProvider, wire: str, stream: bool, fault: Fault) -> None:
        if fault.kind in ("stall", "drip", "endless"):
            until = is_empty if fault.window == BEFORE and fault.kind == "stall" else after(1)
        else:
            until = None
        async with Client(provider) as client:
            body = request_for(wire, stream).replace(b"Host: x", b"Host: %d" % quick.index(fault))
            client.writer.write(body)
            seen = await client.read(until)
        broken = {"reset": "reset", "cut": "closed", "stall": "open", "drip": "open", "endless": "open"}
        assert seen.ended == broken.get(fault.kind, "whole"), (wire, stream, fault, seen)

    async def scenario() -> None:
        def choose(request: Received) -> Reply:
            return Reply("One two three", tools=[WEATHER], fault=quick[int(request.headers["host"])])

        async with ScriptedProvider(choose) as provider:
            await asyncio.gather(
                *(one(provider, wire, stream, fault) for wire in PATHS for stream in (True, False) for fault in quick)
            )
            assert provider.received == 24 * 6
            await until_true(lambda: provider.open_connections == 0)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(scenario())


class Bad(NamedTuple):
    id: str
    make: Callable[[], Fault]
    said: str


BAD = [
    Bad("no such fault", lambda: Fault("explode"), "is not a fault; there are reset"),  # type: ignore[arg-type]
    Bad("no such moment", lambda: Fault("wrong_type", DELTA), "cannot happen 'after_delta', only before_headers"),
    Bad("too early", lambda: Fault("half_json", BEFORE), "only before_delta or after_delta"),
]


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.id)
def test_a_fault_that_cannot_be_is_refused_at_once(case: Bad) -> None:
    with pytest.raises(ValueError, match=re.escape(case.said)):
        case.make()


def test_a_fault_happens_where_it_is_told_to() -> None:
    async def scenario() -> None:
        async with ScriptedProvider(Reply("a b c d", fault=Fault("cut", DELTA, after=3, clean=True))) as provider:
            async with Client(provider) as client:
                seen = await client.ask()
            assert (b'"c "' in seen.body, b'"d"' in seen.body) == (True, False)
            provider.default = Reply("a b", fault=Fault("cut", DELTA, after=99, clean=True))
            async with Client(provider) as client:
                seen = await client.ask()
            assert (b'"b"' in seen.body, b"[DONE]" in seen.body) == (True, False)
            provider.default = Reply("", fault=Fault("reset", DELTA))
            async with Client(provider) as client:
                assert (await client.ask()).ended == "reset"

    asyncio.run(scenario())


# What it is told, what it is asked, and who left when


async def until_true(holds: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        await asyncio.sleep(0.001)


def test_the_script_comes_first_then_the_default() -> None:
    def echo(request: Received) -> Reply:
        return Reply(f"{request.body['model']} said {request.body['messages'][0]['content']}")

    async def scenario() -> list[str]:
        async with ScriptedProvider(Reply("default"), script=[Reply("first")]) as provider, Client(provider) as client:
            provider.script(Reply("second"), echo)
            said = []
            for _ in range(4):
                seen = await client.ask(stream=False)
                said.append(json_of(seen.body)["choices"][0]["message"]["content"])
            provider.default = echo
            said.append(json_of((await client.ask(stream=False)).body)["choices"][0]["message"]["content"])
            return said

    assert asyncio.run(scenario()) == ["first", "second", "m said hello", "default", "m said hello"]


def test_requests_are_recorded() -> None:
    async def scenario() -> None:
        async with ScriptedProvider(keep=3) as provider:
            async with Client(provider) as client:
                client.writer.write(
                    b"POST /v1/messages?beta=true HTTP/1.1\r\nX-Api-Key: k\r\nx-twice: 1\r\nX-Twice:2\r\n"
                    b"anthropic-version: 2023-06-01\r\nContent-Length: 60\r\n\r\n"
                    b'{"model": "m", "max_tokens": 1, "messages": [{"role": "u"}]}'
                )
                seen = await client.read()
                assert json_of(seen.body)["type"] == "message"
                request = provider.requests[0]
                assert (request.method, request.path) == ("POST", "/v1/messages?beta=true")
                assert (request.headers["x-api-key"], request.headers["x-twice"]) == ("k", "1, 2")
                assert request.body["max_tokens"] == 1
                assert request.finished_at is not None
                assert request.at <= request.finished_at
                assert repr(request) == "<POST /v1/messages?beta=true, 60 bytes, on connection 1>"
                assert (request.closed_at, provider.open_connections) == (None, 1)
            async with Client(provider) as client:
                for _ in range(4):
                    await client.ask()
            await until_true(lambda: provider.open_connections == 0)
            assert [request.connection for request in provider.requests] == [2, 2, 2], "only the last are kept"
            assert (provider.received, provider.accepted) == (5, 2)
            assert [request.closed_at is None for request in provider.requests] == [True, True, False]
            assert not any(request.is_abandoned for request in provider.requests)

    asyncio.run(scenario())


LEAVING = [
    (Fault("stall", BEFORE), is_empty),
    (Fault("stall", HEADERS), has_head),
    (Fault("stall", DELTA), has_half),
    (Fault("drip", HEADERS), has_head),
    (Fault("endless", DELTA), after(BIG)),
    (Fault("endless", BEFORE), after(BIG)),
]


def test_it_knows_when_a_client_left() -> None:
    async def leave(provider: ScriptedProvider, number: int) -> None:
        async with Client(provider) as client:
            client.writer.write(request_for("chat", False).replace(b"Host: x", b"Host: %d" % number))
            await client.read(LEAVING[number][1])
            request = next(one for one in provider.requests if one.headers["host"] == str(number))
            left = time.monotonic()
            # With data unread, closing resets the connection; without, it ends it.
            client.writer.transport.abort() if number % 2 else client.close()
            await until_true(lambda: request.closed_at is not None)
        assert request.is_abandoned
        assert request.closed_at is not None
        assert 0 <= request.closed_at - left < delays.allow(0.25)

    async def scenario() -> None:
        script = lambda request: Reply(fault=LEAVING[int(request.headers["host"])][0])  # noqa: E731
        async with ScriptedProvider(script) as provider:
            await asyncio.gather(*(leave(provider, number) for number in range(len(LEAVING))))
            await until_true(lambda: provider.open_connections == 0)

    with Delays() as delays:
        asyncio.run(scenario())


def test_a_client_that_does_not_read_is_waited_for() -> None:
    """An endless answer fills the kernel's buffers, and not the provider's memory."""

    async def scenario() -> None:
        async with ScriptedProvider(Reply(fault=Fault("endless", DELTA))) as provider:
            with socket.socket() as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.connect(("127.0.0.1", provider.port))
                client.sendall(request_for("chat", True))
                await until_true(lambda: provider.received)
                connection = next(iter(provider._connections))
                await until_true(lambda: not connection._writable.is_set())
                held = connection._transport.get_write_buffer_size()
                await asyncio.sleep(SILENCE_S)
                assert connection._transport.get_write_buffer_size() == held < 1_000_000

    asyncio.run(scenario())


def test_refuse_and_accept() -> None:
    async def scenario() -> None:
        async with ScriptedProvider() as provider:
            async with Client(provider) as client:
                await client.ask()
                provider.refuse()
                assert (await client.read()).ended == "closed", "idle connections go too"
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", provider.port)
            provider.accept()
            async with Client(provider) as client:
                assert finished(await client.ask())
            assert provider.requests[0].closed_at is None, "it was the provider who closed"
            provider.refuse()
            provider.accept()

    asyncio.run(scenario())
    with ScriptedProvider.in_thread() as provider:
        provider.refuse()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", provider.port))
        provider.accept()
        socket.create_connection(("127.0.0.1", provider.port)).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", provider.port))


def test_refusing_lets_what_is_being_said_finish() -> None:
    async def scenario() -> None:
        async with ScriptedProvider(Reply("a b c", chunk_delay_s=0.01)) as provider, Client(provider) as client:
            client.writer.write(request_for("chat", True))
            await until_true(lambda: provider.received)
            provider.refuse()
            assert finished(await client.read())

    asyncio.run(scenario())


def test_delays() -> None:
    async def scenario() -> None:
        async with ScriptedProvider() as provider, Client(provider) as client:
            provider.script(Reply(delay_s=0.05), Reply("a b c", chunk_delay_s=0.02), Reply("a b", chunk_delay_s=9))
            begun = time.monotonic()
            await client.ask()
            delayed = time.monotonic()
            await client.ask()
            spaced = time.monotonic()
            assert json_of((await client.ask(stream=False)).body), "what is no stream has no deltas to space"
            assert delayed - begun >= 0.05
            assert spaced - delayed >= 0.04

    asyncio.run(scenario())


def test_release() -> None:
    async def scenario() -> None:
        fault = Fault("stall", DELTA)
        async with ScriptedProvider(Reply(fault=fault, delay_s=60)) as provider, Client(provider) as client:
            client.writer.write(request_for("chat", True))
            await until_true(lambda: provider.received)
            provider.release()
            assert finished(await client.read())
            provider.script(Reply(fault=Fault("drip")))
            assert finished(await client.ask()), "and from then on nothing waits"

    asyncio.run(scenario())


def test_exact_bytes() -> None:
    odd = Reply(body=b"\x00\xff", status=204, headers={"content-type": "x/y", "x-odd": "1"})

    async def scenario() -> None:
        async with ScriptedProvider(odd) as provider, Client(provider) as client:
            client.writer.write(b"GET /anything HTTP/1.1\r\n\r\n")
            seen = await client.read()
            assert seen.head.startswith(b"HTTP/1.1 204 No Content\r\ncontent-type: x/y\r\n")
            assert (seen.body, b"x-odd: 1" in seen.head) == (b"\x00\xff", True)
            provider.default = Reply(tools=[ToolCall("f", '{"half":')])
            call = json_of((await client.ask(stream=False)).body)["choices"][0]["message"]["tool_calls"][0]
            assert call["function"]["arguments"] == '{"half":'
            provider.default = Reply(["a b", "", "c"])
            assert (await client.ask()).body.count(b'"delta":{"content":"') == 3

    asyncio.run(scenario())


class Refusal(NamedTuple):
    id: str
    request: bytes
    status: int
    says: bytes


def posted(path: str, body: bytes, head: str = "anthropic-version: 2023-06-01\r\n") -> bytes:
    return f"POST {path} HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


REFUSALS = [
    Refusal("unknown path", posted("/v1/nothing", b"{}"), 404, b"Invalid URL (POST /v1/nothing)"),
    Refusal("wrong method", b"GET /v1/messages HTTP/1.1\r\n\r\n", 404, b"Invalid URL (GET /v1/messages)"),
    Refusal("no JSON", posted("/v1/chat/completions", b"{"), 400, b"could not parse"),
    Refusal("no model", posted("/v1/chat/completions", b'{"messages": []}'), 400, b"model parameter"),
    Refusal("no messages", posted("/v1/chat/completions", b'{"model": "m"}'), 400, b"'messages'"),
    Refusal("no version", posted("/v1/messages", b"{}", head=""), 400, b"anthropic-version: header is required"),
    Refusal("no tokens", posted("/v1/messages", b'{"model": "m", "messages": []}'), 400, b"max_tokens: Field required"),
    Refusal("no input", posted("/v1/responses", b'{"model": "m"}'), 400, b"'input'"),
    Refusal("no response model", posted("/v1/responses", b'{"input": ""}'), 400, b"'model'"),
    Refusal("chunked", b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 411, b""),
    Refusal("not HTTP", b"hello\r\n\r\n", 411, b""),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
def test_a_wrong_request_is_refused_as_providers_do(case: Refusal) -> None:
    async def scenario() -> None:
        async with ScriptedProvider() as provider, Client(provider) as client:
            client.writer.write(case.request)
            seen = await client.read()
            assert seen.head.startswith(f"HTTP/1.1 {case.status} ".encode())
            assert case.says in seen.body

    asyncio.run(scenario())


def test_connections_are_kept_until_told_otherwise() -> None:
    async def scenario() -> None:
        async with ScriptedProvider() as provider:
            async with Client(provider) as client:
                # Two at once, in pieces: answered in order.
                both_at_once = request_for("chat", False) + request_for("messages", False)
                for start in range(0, len(both_at_once), 100):
                    client.writer.write(both_at_once[start : start + 100])
                    await asyncio.sleep(0)
                await until_true(lambda: provider.received == 2)
                client.writer.write(request_for("chat", True).replace(b"Host: x", b"Connection: close"))
                got = await asyncio.wait_for(client.reader.read(), PATIENCE_S)
                assert re.findall(rb"HTTP/1.1 200 OK|chat.completion\b|msg_|DONE", got) == [
                    *(b"HTTP/1.1 200 OK", b"chat.completion"),
                    *(b"HTTP/1.1 200 OK", b"msg_"),
                    *(b"HTTP/1.1 200 OK", *[b"chat.completion"] * 7, b"DONE"),
                ]
            async with Client(provider) as client:
                client.writer.write(request_for("chat", False).replace(b"HTTP/1.1", b"HTTP/1.0"))
                await client.read()
                assert (await client.read()).ended == "closed"

    asyncio.run(scenario())


def test_a_function_that_fails_is_named_in_the_end(caplog: pytest.LogCaptureFixture) -> None:
    def fail(request: Received) -> Reply:
        raise KeyError("temperature")

    async def scenario() -> None:
        async with ScriptedProvider(fail) as provider, Client(provider) as client:
            assert (await client.ask()).ended in ("closed", "reset")

    with pytest.raises(RuntimeError, match="a function of the script failed") as told:
        asyncio.run(scenario())
    assert isinstance(told.value.__cause__, KeyError)

    def blocking() -> None:
        with (
            ScriptedProvider.in_thread(fail) as provider,
            socket.create_connection(("127.0.0.1", provider.port)) as client,
        ):
            client.sendall(request_for("chat", False))
            client.recv(1)

    with pytest.raises(RuntimeError, match="a function of the script failed"):
        blocking()


def test_it_is_safe_from_any_thread() -> None:
    """Eight blocking clients at once, a script that grows meanwhile: every entry is used once."""
    said: list[str] = []

    def ask(provider: ScriptedProvider) -> None:
        with socket.create_connection(("127.0.0.1", provider.port)) as client:
            for _ in range(25):
                client.sendall(request_for("chat", False))
                got = b""
                while not is_whole(got):
                    got += client.recv(1 << 16)
                said.append(json_of(got.partition(b"\r\n\r\n")[2])["choices"][0]["message"]["content"])

    with ScriptedProvider.in_thread(Reply("default")) as provider:
        threads = [threading.Thread(target=ask, args=(provider,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for number in range(100):
            provider.script(Reply(str(number)))
            assert len(provider.requests) <= provider.received
        for thread in threads:
            thread.join()
        left = 200 - len(said) + len([text for text in said if text != "default"])
        assert provider.received == len(provider.requests) == 200
    numbers = [text for text in said if text != "default"]
    assert len(numbers) == len(set(numbers)) == left
    assert not any(thread.name.startswith("scripted-provider") for thread in threading.enumerate())


def test_leaving_ends_everything() -> None:
    async def scenario() -> None:
        async with ScriptedProvider(Reply(fault=Fault("stall"))) as provider:
            _, writer = await asyncio.open_connection("127.0.0.1", provider.port)
            writer.write(request_for("chat", True))
            await until_true(lambda: provider.received)
        assert (provider.open_connections, provider.requests[0].closed_at) == (0, None)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(scenario())
