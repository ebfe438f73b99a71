"""What goes wrong reaches the official client libraries as their own exceptions, with a sentence that says what."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import anthropic
import openai
import pytest

from e2e.sdk_world import TIERS, Api, World, anthropic_client, ask, openai_client, world_of
from toml_router import LOCAL
from turnout.testing import Fault, Reply

HELLO = "hello"
PROOF = "Prove the theorem formally, step by step, and derive the proof."
BOTH: tuple[Api, ...] = ("chat", "messages", "responses")
# The name each library gives a status, where it has one of its own.
NAMES = {400: "BadRequestError", 401: "AuthenticationError", 403: "PermissionDeniedError", 404: "NotFoundError"}
NAMES |= {422: "UnprocessableEntityError", 429: "RateLimitError"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, server: str) -> Iterator[World]:
    more = dict.fromkeys(TIERS, "first_token_s = 0.8\nidle_s = 0.8\ntotal_s = 1.6")
    more["simple"] += "\ncontext_tokens = 1200"
    more["medium"] += "\ncontext_tokens = 3000"
    more["complex"] += "\ncontext_tokens = 6000\ntools = false"
    settings = f'profile = "{LOCAL}"\nbody_bytes = 60_000'
    with world_of(tmp_path_factory.mktemp("world"), settings, more=more, server=server) as world:
        yield world


@pytest.fixture
def world(running: World) -> World:
    running.reset()
    return running


def caught(api: Api, status: int, act: Callable[[], Any]) -> Any:
    """The library's exception, of the class it has for this status."""
    library: Any = anthropic if api == "messages" else openai
    with pytest.raises(library.APIStatusError) as told:
        act()
    assert told.value.status_code == status
    name = NAMES.get(status, "InternalServerError" if status >= 500 else "APIStatusError")
    assert isinstance(told.value, getattr(library, name))
    return told.value


class Case(NamedTuple):
    id: str
    status: int
    says: str
    """In the exception's message."""
    replies: Mapping[str, Reply]
    """What each tier's provider answers."""
    ended: str = "failed"
    model: str = "simple"
    stream: bool = False
    attempts: int = 3
    apis: tuple[Api, ...] = BOTH
    content: str = HELLO
    more: Mapping[str, Any] = MappingProxyType({})


def each(reply: Reply) -> Mapping[str, Reply]:
    return dict.fromkeys(TIERS, reply)


CASES = [
    Case("upstream-400", 400, "no such parameter: zz", each(Reply("no such parameter: zz", status=400)), attempts=1),
    Case("upstream-400-stream", 400, "too warm", each(Reply("too warm", status=400)), attempts=1, stream=True),
    Case("upstream-413", 413, "too many tokens", each(Reply("too many tokens", status=413)), attempts=1),
    Case("upstream-422", 422, "not a schema", each(Reply("not a schema", status=422)), attempts=1),
    Case("upstream-400-without-words", 400, "without saying why", each(Reply(status=400, body=b"<p>")), attempts=1),
    Case("all-401", 502, "simple-co/simple-model answered 401", each(Reply("bad key", status=401))),
    Case("all-429", 429, "every model is busy", each(Reply("slow down", status=429))),
    Case("all-500", 502, "no model answered", each(Reply("oh no", status=500))),
    Case("all-529-stream", 502, "answered 529", each(Reply("overloaded", status=529)), stream=True),
    Case("mixed", 502, "medium-co/medium-model answered 503", {"simple": Reply(status=429), "medium": Reply(status=503), "complex": Reply(status=404)}),  # noqa: E501
    Case("silent", 504, "no model answered in time", each(Reply(fault=Fault("stall")))),
    Case("silent-stream", 504, "no model answered in time", each(Reply(fault=Fault("stall", "before_delta"))), stream=True),  # noqa: E501
    Case("broken", 502, "instead of JSON", each(Reply(fault=Fault("wrong_type")))),
    Case("error-in-200", 502, "no model answered", each(Reply(fault=Fault("error_event")))),
    Case("reset", 502, "no model answered", each(Reply(fault=Fault("reset"))), model="reasoning", attempts=2),
    Case("too-long", 413, "tokens do not fit into its 1,200", {}, "refused", attempts=0, content="word " * 5000),
    Case("no-tools", 503, "complex (complex-co/complex-model): takes no tools", {}, "refused", "complex-co/complex-model", attempts=0, more={"tools": [{"x": 1}]}),  # noqa: E501
]  # fmt: skip
SCENARIOS = [(case, api) for case in CASES for api in case.apis]


@pytest.mark.alike(5)
@pytest.mark.parametrize(("case", "api"), SCENARIOS, ids=[f"{case.id}-{api}" for case, api in SCENARIOS])
def test_a_failure_is_the_librarys_own_exception(world: World, case: Case, api: Api) -> None:
    for tier, reply in case.replies.items():
        world.providers[tier].default = reply
    before = world.rows()
    asked = lambda: ask(world, api, case.model, case.content, stream=case.stream, extra_body=dict(case.more))  # noqa: E731
    error = caught(api, case.status, asked)
    assert case.says in error.message
    decision = error.response.headers["x-turnout-decision"]
    happened = world.outcome(decision)
    assert (happened.ended, happened.slot, happened.cost_usd) == (case.ended, None, None)
    assert happened.attempts == case.attempts
    assert world.rows() == (before[0] + 1, before[1] + 1)


class Cut(NamedTuple):
    id: str
    fault: Fault


CUTS = [
    Cut("reset", Fault("reset", "after_delta", 3)),
    Cut("cut", Fault("cut", "after_delta", 3)),
    Cut("cut-clean", Fault("cut", "after_delta", 3, clean=True)),
    Cut("half", Fault("half_json", "after_delta", 3)),
    Cut("stall", Fault("stall", "after_delta", 3)),
    Cut("error", Fault("error_event", "after_delta", 3)),
]


@pytest.fixture(scope="module")
def running_unhurried(tmp_path_factory: pytest.TempPathFactory, server: str) -> Iterator[World]:
    more = dict.fromkeys(TIERS, "first_token_s = 60.0\nidle_s = 1.0\ntotal_s = 60.0")
    with world_of(tmp_path_factory.mktemp("unhurried"), more=more, server=server) as world:
        yield world


@pytest.fixture
def unhurried(running_unhurried: World) -> World:
    """Nothing but silence within a stream is too late: a first token that is would be the next model's to send."""
    running_unhurried.reset()
    return running_unhurried


@pytest.mark.alike(4)
@pytest.mark.parametrize("api", BOTH)
@pytest.mark.parametrize("case", CUTS, ids=lambda case: case.id)
def test_a_stream_that_breaks_raises(unhurried: World, case: Cut, api: Api) -> None:
    """What came so far has come; the end is an exception, never as if the answer were complete."""
    world = unhurried
    world.providers["simple"].default = Reply("one two three four", fault=case.fault, chunk_delay_s=0.15)
    library: Any = anthropic if api == "messages" else openai
    with pytest.raises(library.APIError) as told:
        ask(world, api, "auto", HELLO, stream=True, asynchronous=case.id in ("cut", "error"))
    assert not isinstance(told.value, library.APIConnectionError), "the connection to the server is fine"
    assert str(told.value)
    assert world.asked == ["simple"]
    world.rows()
    newest = next(world.served.store.records("").decisions())
    assert world.outcome(newest.id).ended == "failed"


# --- requests that are wrong


class Wrong(NamedTuple):
    id: str
    path: str
    body: bytes
    status: int
    says: str


CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
USER = {"role": "user", "content": HELLO}


def spelled(**members: Any) -> bytes:
    return json.dumps(members).encode()


def asking(messages: list[Any], **members: Any) -> bytes:
    return spelled(model="auto", messages=messages, **members)


DEEP = b'{"model":"auto","max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","content":%b%b}]}]}'
WRONG = [
    Wrong("chat-not-json", CHAT, b"{", 400, "not a JSON object"),
    Wrong("messages-not-json", MESSAGES, b"nope", 400, "not a JSON object"),
    Wrong("responses-an-array", RESPONSES, b"[]", 400, "not a JSON object"),
    Wrong("empty", CHAT, b"", 400, "not a JSON object"),
    Wrong("not-utf-8", CHAT, b'{"messages":[{"role":"user","content":""}],"model":"\xff"}', 400, "model"),
    Wrong("no-messages", CHAT, spelled(model="auto"), 400, "messages"),
    Wrong("empty-messages", CHAT, spelled(model="auto", messages=[]), 400, "messages"),
    Wrong("null-messages", MESSAGES, spelled(model="auto", messages=None), 400, "messages"),
    Wrong("no-role", CHAT, spelled(model="auto", messages=[{"content": "x"}]), 400, "role"),
    Wrong("number-as-content", MESSAGES, asking([{"role": "user", "content": 7}]), 400, "content"),
    Wrong("no-input", RESPONSES, spelled(model="auto"), 400, "input"),
    Wrong("no-model", CHAT, spelled(messages=[USER]), 400, "model"),
    Wrong("model-a-number", MESSAGES, spelled(model=7, messages=[USER]), 400, "model"),
    Wrong("stream-a-string", CHAT, spelled(model="auto", messages=[USER], stream="yes"), 400, "stream"),
    Wrong("max-tokens-a-string", MESSAGES, asking([USER], max_tokens="many"), 400, "max_tokens"),
    Wrong("nested-without-end", MESSAGES, DEEP % (b"[" * 9000, b"]" * 9000), 400, "recursion"),
    Wrong("nested-elsewhere", CHAT, b'{"model":"auto","x":' + b"[" * 9000 + b"]" * 9000 + b"}", 400, "recursion"),
    Wrong("too-large", CHAT, asking([{"role": "user", "content": "x" * 70_000}]), 413, "60,000"),
    Wrong("count-tokens-without", "/v1/messages/count_tokens", spelled(model="auto"), 400, "messages"),
    Wrong("no-such-path", "/v1/embeddings", b"{}", 404, "no such path"),
    Wrong("own-interface", "/v1/route", spelled(text="hi", textt="x"), 422, "textt"),
    Wrong("own-interface-not-utf-8", "/v1/route", b'{"text":"\xff"}', 422, "utf-8"),
]  # fmt: skip


@pytest.mark.alike(2)
@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.id)
def test_a_wrong_request_is_told_what_is_wrong(world: World, case: Wrong) -> None:
    api: Api = "messages" if "messages" in case.path and "chat" not in case.path else "chat"
    before = world.rows()
    with anthropic_client(world) if api == "messages" else openai_client(world) as client:
        path = case.path if api == "messages" else case.path.removeprefix("/v1")
        headers = {"content-type": "application/json"}
        sent = lambda: client.post(path, content=case.body, cast_to=object, options={"headers": headers})  # noqa: E731
        error = caught(api, case.status, sent)
    assert case.says in error.message
    body = error.body
    assert body["error"]["message"] if api == "messages" else body["message"]
    assert world.asked == []
    assert world.rows() == before, "nothing was decided"


@pytest.mark.parametrize("api", BOTH)
def test_a_model_that_is_not_there(world: World, api: Api) -> None:
    with anthropic_client(world) if api == "messages" else openai_client(world) as client:
        error = caught(api, 404, lambda: client.models.retrieve("no-such-model"))
    assert "no-such-model" in error.message


# --- prompts that are long


class Long(NamedTuple):
    id: str
    words: int
    served: str
    skipped: list[str]


LONG = [
    Long("fits", 100, "simple", []),
    Long("next", 900, "medium", ["simple (simple-co/simple-model): about 2,"]),
    Long("the-one-after", 2000, "complex", ["simple", "medium"]),
]


@pytest.mark.parametrize("case", LONG, ids=lambda case: case.id)
def test_a_long_prompt_goes_where_it_fits(world: World, case: Long) -> None:
    found = ask(world, "chat", "simple", "word " * case.words)
    assert found.headers["x-turnout-slot"] == case.served
    happened = world.outcome(found.headers["x-turnout-decision"])
    skipped = happened.extra.get("skipped", [])
    assert [one["text"][: len(text)] for one, text in zip(skipped, case.skipped, strict=True)] == case.skipped
    assert {one["code"] for one in skipped} <= {"slot.window"}
    assert (happened.fallback is None) == (case.served == "simple")


# --- keys


@pytest.fixture
def guarded(tmp_path: Path, server: str) -> Iterator[World]:
    with world_of(tmp_path, server=server) as world:
        yield world


def test_keys_are_asked_for_and_obeyed(guarded: World) -> None:
    world = guarded
    good = world.add_key(tenant="acme")
    for api in BOTH:
        assert "key" in caught(api, 401, lambda api=api: ask(world, api, "auto", HELLO, key="sk-nonsense")).message
        assert "key" in caught(api, 401, lambda api=api: ask(world, api, "auto", HELLO, key=good[:-1] + "x")).message
        assert ask(world, api, "auto", HELLO, key=good).headers["x-turnout-slot"] == "simple"
    bound = world.add_key(tenant="acme", may_force=False)
    capped = world.add_key(tenant="acme", ceiling="MEDIUM")
    poor = world.add_key(tenant="acme", budget_usd=0.000001)
    hasty = world.add_key(tenant="acme", per_minute=1)
    shut = world.add_key(tenant="acme", scopes=("route",))
    refused: list[tuple[str, str, int, str]] = [
        (bound, "reasoning", 403, "may not choose a tier"),
        (bound, "medium-co/medium-model", 403, "may not choose"),
        (capped, "turnout/reasoning", 403, "above this key's ceiling MEDIUM"),
        (capped, "complex-co/complex-model", 403, "may not choose"),
        (poor, "auto", 402, "budget"),
        (shut, "auto", 403, "lacks the scope"),
    ]
    for api in BOTH:
        for key, model, status, says in refused:
            error = caught(api, status, lambda api=api, model=model, key=key: ask(world, api, model, HELLO, key=key))
            assert says in error.message
    assert ask(world, "chat", "auto", HELLO, key=hasty).text
    for api in BOTH:
        error = caught(api, 429, lambda api=api: ask(world, api, "auto", HELLO, key=hasty))
        assert "1 times a minute" in error.message
        assert int(error.response.headers["retry-after"]) > 0
    # The ceiling binds `auto` as well, and the chain.
    for tier in TIERS:
        world.providers[tier]._requests.clear()
    found = ask(world, "chat", "auto", PROOF, key=capped)
    assert (found.headers["x-turnout-route"], found.headers["x-turnout-outcome"][1]) == ("MEDIUM", "k")
    world.providers["medium"].default = Reply(status=500)
    error = caught("chat", 502, lambda: ask(world, "chat", "auto", PROOF + " Again.", key=capped))
    assert world.asked == ["medium", "medium"], "the chain does not pass the ceiling"
    with openai_client(world, bound) as client:
        assert [model.id for model in client.models.list()] == ["auto", "ask", "claims"]


def test_no_room(tmp_path: Path, server: str) -> None:
    settings = f'profile = "{LOCAL}"\nrequests = 1\nwaiting = 1\nwait_s = 0.01'
    with world_of(tmp_path, settings, server=server) as world:
        world.providers["simple"].default = Reply("a b c", fault=Fault("stall", "after_delta", 2), chunk_delay_s=0.02)
        with openai_client(world) as client:
            stream = client.chat.completions.create(
                model="auto", messages=[{"role": "user", "content": HELLO}], stream=True
            )
            next(iter(stream))
            for api in BOTH:
                error = caught(api, 503, lambda api=api: ask(world, api, "auto", HELLO))
                assert "try again" in error.message
                assert 1 <= int(error.response.headers["retry-after"]) <= 3
            stream.close()


def test_a_client_that_leaves_is_written_down(unhurried: World) -> None:
    world = unhurried
    world.providers["simple"].default = Reply("word " * 300, chunk_delay_s=0.2)
    before = world.rows()
    with openai_client(world) as client:
        raw = client.chat.completions.with_raw_response.create(
            model="auto", messages=[{"role": "user", "content": HELLO}], stream=True
        )
        stream = raw.parse()
        next(iter(stream))
        stream.close()
    world.wait_for(before[1] + 1)
    assert world.rows() == (before[0] + 1, before[1] + 1)
    happened = world.outcome(raw.headers["x-turnout-decision"])
    assert (happened.ended, happened.slot, happened.extra["estimated_tokens"]) == ("cancelled", "simple", True)
    assert happened.cost_usd is not None
    until = time.monotonic() + 10.0
    while not world.received("simple")[0].is_abandoned and time.monotonic() < until:
        time.sleep(0.02)
    assert world.received("simple")[0].is_abandoned, "the provider is not kept talking"


@pytest.mark.parametrize("api", BOTH)
def test_a_client_that_leaves_before_anything_came(unhurried: World, api: Api) -> None:
    world = unhurried
    world.providers["simple"].default = Reply(delay_s=60.0)
    before = world.rows()
    library: Any = anthropic if api == "messages" else openai
    with pytest.raises(library.APITimeoutError):
        ask(world, api, "auto", HELLO, timeout=0.5)
    world.wait_for(before[1] + 1)
    assert world.rows() == (before[0] + 1, before[1] + 1)
    newest = next(world.served.store.records("").decisions())
    happened = world.outcome(newest.id)
    assert (happened.ended, happened.slot, happened.cost_usd) == ("cancelled", None, None)
