"""A server with four scripted providers behind it, and one way to ask it with either official client library."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import anthropic
import openai

from serving import RunningServer, serving
from toml_router import LOCAL
from turnout.apps.gateway.choose import Conversations
from turnout.store import Outcome
from turnout.store.keys import Key
from turnout.testing import Received, Reply, ScriptedProvider
from turnout.web.auth import digest
from turnout.web.key import new_credential, spell

Api = Literal["chat", "messages", "responses"]
TIERS = ("simple", "medium", "complex", "reasoning")
WIRES = '["openai-chat", "anthropic-messages", "openai-responses"]'
PATIENCE_S = 10.0


class World:
    """The server, and the provider behind each tier."""

    def __init__(self, served: RunningServer, providers: Mapping[str, ScriptedProvider], database: Path) -> None:
        self.served = served
        self.providers = providers
        self.database = database

    def reset(self) -> None:
        """Forget what earlier tests have done to providers, breakers and conversations."""
        for provider in self.providers.values():
            provider._script.clear()
            provider._requests.clear()
            provider.default = Reply()
            provider.accept()
        self.served.server.runtime.models.breakers.clear()
        self.served.gateway.conversations = Conversations()

    def received(self, tier: str) -> list[Received]:
        return self.providers[tier].requests

    @property
    def asked(self) -> list[str]:
        """The tiers whose providers were asked."""
        return [tier for tier in TIERS for _ in self.providers[tier].requests]

    def outcome(self, decision: str, tenant: str = "") -> Outcome:
        """How a decision ended; a stream's is written a moment after its client has the last event."""
        until = time.monotonic() + PATIENCE_S
        while True:
            assert self.served.store.flush(PATIENCE_S)
            found = self.served.store.records(tenant).outcome(decision)
            if found is not None:
                return found
            assert time.monotonic() < until, "nobody has written down how it ended"
            time.sleep(0.01)

    def wait_for(self, outcomes: int) -> None:
        until = time.monotonic() + PATIENCE_S
        while self.rows()[1] < outcomes and time.monotonic() < until:
            time.sleep(0.01)

    def rows(self) -> tuple[int, int]:
        """How many decisions and outcomes there are, and that they belong together."""
        assert self.served.store.flush(PATIENCE_S)
        with contextlib.closing(sqlite3.connect(self.database)) as database:
            decisions = [row[0] for row in database.execute("select id from decisions")]
            outcomes = [row[0] for row in database.execute("select decision_id from outcomes")]
        assert len(set(decisions)) == len(decisions)
        assert len(set(outcomes)) == len(outcomes)
        assert set(outcomes) <= set(decisions)
        return len(decisions), len(outcomes)

    def add_key(self, **fields: Any) -> str:
        """A key; its secret as a client sends it. The server needs one from now on."""
        credential = new_credential()
        server = self.served.server
        key = Key(credential.key_id, digest(credential.secret, server.auth.pepper), "test", **fields)
        self.served.store.keys.add(key)
        server.auth.forget()
        return spell(credential)


def slot(name: str, provider: ScriptedProvider | str, price: float = 1.0, more: str = "") -> str:
    """A slot's table. Each tier is its own provider, more expensive than the one below."""
    url = provider if isinstance(provider, str) else provider.base_url
    prices = f"{{ input_usd = {price}, output_usd = {price * 5}, cached_input_usd = {price / 10} }}"
    told = more if "wires" in more else f"wires = {WIRES}\n{more}"
    told = told if "prices" in more else f"prices = {prices}\n{told}"
    return f'[models.{name}]\nmodel = "{name}-co/{name}-model"\nbase_url = "{url}"\n{told}\n'


@contextlib.contextmanager
def world_of(
    folder: Path,
    settings: str = f'profile = "{LOCAL}"',
    more: Mapping[str, str] | None = None,
    extra: str = "",
    *,
    server: str,
) -> Iterator[World]:
    """`settings` are the server's; `more` is what a tier's slot says beside the usual; `extra` goes to the end."""
    with contextlib.ExitStack() as stack:
        providers = {tier: stack.enter_context(ScriptedProvider.in_thread()) for tier in TIERS}
        prices = dict(zip(TIERS, (1.0, 2.0, 4.0, 8.0), strict=True))
        slots = [slot(tier, providers[tier], prices[tier], (more or {}).get(tier, "")) for tier in TIERS]
        text = f"[server]\n{settings}\ndrain_s = 2.0\n" + "".join(slots) + extra
        served = stack.enter_context(serving(folder, text, server=server))
        yield World(served, providers, folder / "turnout.db")


class SdkAnswer(NamedTuple):
    text: str
    tools: list[tuple[str, Any]]
    """Names and arguments, as the library gives them."""
    headers: Mapping[str, str]
    raw: Any
    """The library's own object, or the list of its events."""


def ask(
    world: World,
    api: Api,
    model: str,
    content: Any,
    *,
    stream: bool = False,
    asynchronous: bool = False,
    key: str = "none",
    **more: Any,
) -> SdkAnswer:
    """One request with the official library; whatever it raises is raised."""
    if asynchronous:
        return asyncio.run(_ask_async(world, api, model, content, stream, key, more))
    with _client(world, api, key) as client:
        raw = _create(client, api)(**arguments(api, model, content, stream, more))
        parsed = raw.parse()
        told = list(parsed) if stream else parsed
    return _answered(api, stream, told, raw.headers)


async def _ask_async(
    world: World, api: Api, model: str, content: Any, stream: bool, key: str, more: dict[str, Any]
) -> SdkAnswer:
    url = world.served.url
    client: Any
    if api == "messages":
        client = anthropic.AsyncAnthropic(base_url=url, api_key=key, max_retries=0, timeout=PATIENCE_S)
    else:
        client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, timeout=PATIENCE_S)
    async with client:
        raw = await _create(client, api)(**arguments(api, model, content, stream, more))
        parsed = raw.parse()
        parsed = await parsed if asyncio.iscoroutine(parsed) else parsed  # Anthropic's library awaits, OpenAI's not
        told = [event async for event in parsed] if stream else parsed
    return _answered(api, stream, told, raw.headers)


def openai_client(world: World, key: str = "none") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{world.served.url}/v1", api_key=key, max_retries=0, timeout=PATIENCE_S)


def anthropic_client(world: World, key: str = "none") -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=world.served.url, api_key=key, max_retries=0, timeout=PATIENCE_S)


def _client(world: World, api: Api, key: str) -> Any:
    return anthropic_client(world, key) if api == "messages" else openai_client(world, key)


def _create(client: Any, api: Api) -> Any:
    surface = {"chat": lambda: client.chat.completions, "messages": lambda: client.messages}
    return surface.get(api, lambda: client.responses)().with_raw_response.create


def arguments(api: Api, model: str, content: Any, stream: bool, more: dict[str, Any]) -> dict[str, Any]:
    """What the library is called with. `content` is the user's message, or a list of messages."""
    whole = isinstance(content, list) and bool(content) and ("role" in content[0] or "call_id" in content[0])
    messages = content if whole else [{"role": "user", "content": content}]
    told: dict[str, Any] = {"model": model} | ({"stream": True} if stream else {})
    if api == "responses":
        told["input"] = content if isinstance(content, str) else messages
    else:
        told["messages"] = messages
    if api == "messages":
        told["max_tokens"] = 64
    return told | more


def _answered(api: Api, stream: bool, told: Any, headers: Mapping[str, str]) -> SdkAnswer:
    read = {"chat": (_chat, _chat_stream), "messages": (_messages, _messages_stream)}
    whole, events = read.get(api, (_responses, _responses_stream))
    text, tools = events(told) if stream else whole(told)
    return SdkAnswer(text, tools, headers, told)


Said = tuple[str, list[tuple[str, Any]]]


def _chat(told: Any) -> Said:
    message = told.choices[0].message
    return message.content or "", [(call.function.name, call.function.arguments) for call in message.tool_calls or []]


def _chat_stream(events: list[Any]) -> Said:
    text, names, pieces = "", {}, {}
    for event in events:
        for choice in event.choices:
            text += choice.delta.content or ""
            for call in choice.delta.tool_calls or []:
                if call.function.name:
                    names[call.index] = call.function.name
                pieces[call.index] = pieces.get(call.index, "") + (call.function.arguments or "")
    return text, [(names[index], pieces[index]) for index in names]


def _messages(told: Any) -> Said:
    text = "".join(block.text for block in told.content if block.type == "text")
    return text, [(block.name, block.input) for block in told.content if block.type == "tool_use"]


def _messages_stream(events: list[Any]) -> Said:
    text, names, pieces = "", {}, {}
    for event in events:
        if event.type == "content_block_start" and event.content_block.type == "tool_use":
            names[event.index] = event.content_block.name
        if event.type == "content_block_delta":
            if event.delta.type == "text_delta":
                text += event.delta.text
            if event.delta.type == "input_json_delta":
                pieces[event.index] = pieces.get(event.index, "") + event.delta.partial_json
    return text, [(names[index], pieces.get(index, "")) for index in names]


def _responses(told: Any) -> Said:
    calls = [item for item in told.output if item.type == "function_call"]
    return told.output_text, [(call.name, call.arguments) for call in calls]


def _responses_stream(events: list[Any]) -> Said:
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    done = [event.item for event in events if event.type == "response.output_item.done"]
    return text, [(item.name, item.arguments) for item in done if item.type == "function_call"]
