"""One of our own questions, put to a model over real HTTP."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest

from turnout.core.errors import Broken, NetError, TimedOut, Unreachable
from turnout.core.model import Prompt
from turnout.models.ask import Models
from turnout.models.secret import SecretPlace
from turnout.models.slot import Prices, SlotFile, Slots, make_slot
from turnout.net.client import Client
from turnout.net.egress import Egress
from turnout.testing import Fault, Reply, ScriptedProvider, ToolCall

PROMPT = Prompt("sort it", "a question", 12, 400.0)
KEY = "sk-canary-77aa01bb"


@contextlib.asynccontextmanager
async def asked(**slot: Any) -> AsyncIterator[tuple[Models, ScriptedProvider]]:
    async with ScriptedProvider() as provider:
        usual = {"model": "tiny-co/tiny", "base_url": provider.base_url}
        slots = Slots({"classifier": make_slot("classifier", SlotFile(**(usual | slot)))})
        client = Client(Egress(slots.origins))
        try:
            yield Models(slots, client), provider
        finally:
            await client.close()


class SaidCase(NamedTuple):
    id: str
    wire: str
    reply: Reply
    text: str
    cost: float | None = 0.0003


PRICES = Prices(2.0, 10.0)
SAID = [
    SaidCase("chat", "openai-chat", Reply("SIMPLE", usage=(100, 10)), "SIMPLE"),
    SaidCase("messages", "anthropic-messages", Reply("SIMPLE", usage=(100, 10)), "SIMPLE"),
    SaidCase("messages-thinking", "anthropic-messages", Reply("SIMPLE", thinking="hm", usage=(100, 10)), "SIMPLE"),
    SaidCase(
        "tool", "anthropic-messages", Reply(tools=[ToolCall("verdict", {"mode": "x"})], usage=(100, 10)), '{"mode":"x"}'
    ),
    SaidCase("empty", "openai-chat", Reply("", usage=(100, 10)), ""),
    SaidCase("no-usage", "openai-chat", Reply(body=b'{"choices":[{"message":{"content":"X"}}]}'), "X", None),
    SaidCase(
        "null-content", "openai-chat", Reply(body=b'{"choices":[{"message":{"content":null}}],"usage":null}'), "", None
    ),
]


@pytest.mark.parametrize("case", SAID, ids=lambda case: case.id)
def test_a_reply_is_text_and_has_a_price(case: SaidCase) -> None:
    async def scenario() -> None:
        async with asked(wires=(case.wire,), prices=PRICES) as (models, provider):
            provider.default = case.reply
            reply = await models.ask("classifier", PROMPT)
            assert (reply.text, reply.model) == (case.text, "tiny-co/tiny")
            assert reply.cost_usd == (None if case.cost is None else pytest.approx(case.cost))
            assert models.breaker(models.slots.slots["classifier"]).state == "closed"

    asyncio.run(scenario())


class FailedCase(NamedTuple):
    id: str
    reply: Reply
    error: type[NetError]


ODD_USAGE = b'{"choices":[{"message":{"content":"X"}}],"usage":{"prompt_tokens":"many"}}'
FAILED = [
    FailedCase("status", Reply(status=500), Broken),
    FailedCase("refused", Reply(status=401), Broken),
    FailedCase("page", Reply(fault=Fault("wrong_type")), Broken),
    FailedCase("half", Reply(fault=Fault("half_json")), Broken),
    FailedCase("cut", Reply(fault=Fault("cut", "after_delta")), Broken),
    FailedCase("stall", Reply(fault=Fault("stall", "after_delta")), TimedOut),
    FailedCase("silence", Reply(fault=Fault("stall")), TimedOut),
    FailedCase("huge", Reply("x" * 300_000), Broken),
    FailedCase("odd-usage", Reply(body=ODD_USAGE), Broken),
    FailedCase("nested", Reply(body=b'{"a":' * 20_000), Broken),
    FailedCase("a-list", Reply(body=b"[1]"), Broken),
    FailedCase("no-choices", Reply(body=b'{"choices":[]}'), Broken),
]


@pytest.mark.parametrize("case", FAILED, ids=lambda case: case.id)
def test_what_is_no_reply_is_an_error(case: FailedCase) -> None:
    async def scenario() -> None:
        async with asked() as (models, provider):
            provider.default = case.reply
            with pytest.raises(case.error):
                await models.ask("classifier", PROMPT)

    asyncio.run(scenario())


def test_nobody_there() -> None:
    async def scenario() -> None:
        async with asked() as (models, provider):
            provider.refuse()
            with pytest.raises(Unreachable):
                await models.ask("classifier", PROMPT)
            with pytest.raises(Broken, match="no model fills the slot 'other'"):
                await models.ask("other", PROMPT)

    asyncio.run(scenario())


def test_a_key_goes_to_its_provider_and_into_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINY_KEY", KEY)

    async def scenario() -> None:
        for wire, header in (("openai-chat", "authorization"), ("anthropic-messages", "x-api-key")):
            async with asked(wires=(wire,), key=SecretPlace(env="TINY_KEY")) as (models, provider):
                await models.ask("classifier", PROMPT)
                assert KEY in provider.requests[0].headers[header]
                provider.default = Reply(f"your key {KEY} is bad", status=401)
                with pytest.raises(Broken) as told:
                    await models.ask("classifier", PROMPT)
                assert KEY not in str(told.value)

    asyncio.run(scenario())


def test_which_slots_can_be_asked() -> None:
    missing = make_slot("simple", SlotFile("openai/x", key=SecretPlace(env="NO_KEY_HERE")))
    slots = {"classifier": make_slot("classifier", SlotFile("ollama/tiny")), "simple": missing}
    slots["main"] = make_slot("main", SlotFile("demo/demo"))
    models = Models(Slots(slots), Client(Egress()))
    has = {name: models.has(name) for name in ("classifier", "router", "simple", "main", "ollama/tiny", "nothing")}
    assert has == {
        "classifier": True,
        "router": True,
        "simple": False,
        "main": False,
        "ollama/tiny": True,
        "nothing": False,
    }
    assert not models.is_open("nothing")


def test_a_breaker_is_the_models_own() -> None:
    async def scenario() -> None:
        async with asked() as (models, provider):
            provider.default = Reply(status=500)
            for _ in range(5):
                assert not models.is_open("classifier")
                with pytest.raises(Broken):
                    await models.ask("classifier", PROMPT)
            assert models.is_open("classifier")
            assert models.is_open("tiny-co/tiny"), "whatever it is called by"

    asyncio.run(scenario())


@pytest.mark.parametrize("status", [400, 403, 404, 409, 413, 422])
def test_what_the_question_provokes_opens_no_breaker(status: int) -> None:
    """The classifier reads every tenant's text, and its breaker may be a tier's as well."""

    async def scenario() -> None:
        async with asked() as (models, provider):
            provider.default = Reply("your text is refused", status=status)
            for _ in range(6):
                with pytest.raises(Broken, match=f"tiny-co/tiny answered {status}"):
                    await models.ask("classifier", PROMPT)
            assert not models.is_open("classifier")

    asyncio.run(scenario())


def test_an_error_says_which_model_and_its_cause_says_where() -> None:
    async def scenario() -> None:
        async with asked() as (models, provider):
            for fault, said in (("reset", "could not be reached"), ("stall", "did not answer in time")):
                provider.default = Reply(fault=Fault(fault))  # type: ignore[arg-type]
                with pytest.raises(NetError) as told:
                    await models.ask("classifier", PROMPT)
                assert str(told.value) == f"tiny-co/tiny {said}"
                assert "127.0.0.1" in str(told.value.__cause__)

    asyncio.run(scenario())


def test_a_caller_that_goes_away_blames_nobody() -> None:
    async def scenario() -> None:
        async with asked() as (models, provider):
            provider.default = Reply(fault=Fault("stall"))
            for _ in range(6):
                task = asyncio.ensure_future(models.ask("classifier", PROMPT))
                await asyncio.sleep(0.02)
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            assert not models.is_open("classifier")

    asyncio.run(scenario())


@pytest.mark.parametrize("meant", [False, True])
def test_a_key_is_not_sent_to_a_public_address_over_http(monkeypatch: pytest.MonkeyPatch, meant: bool) -> None:
    """Whatever the name was when the settings were read: where it leads is known when the connection is there."""
    monkeypatch.setenv("ASKED_KEY", KEY)

    async def scenario() -> None:
        async with asked(key=SecretPlace(env="ASKED_KEY"), plain_http=meant) as (models, provider):
            monkeypatch.setattr("turnout.net.egress.is_public", lambda address: True)
            if meant:
                await models.ask("classifier", PROMPT)
                assert provider.requests[0].headers["authorization"] == f"Bearer {KEY}"
            else:
                with pytest.raises(NetError, match="could not be reached") as told:
                    await models.ask("classifier", PROMPT)
                assert "a key is not sent there over http" in str(told.value.__cause__)
                assert KEY not in f"{told.value} {told.value.__cause__}"
                assert provider.received == 0

    asyncio.run(scenario())
