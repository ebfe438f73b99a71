"""An application asks a model: in both formats, with tools, a schema and images, as it comes; all of it is paid for."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from gateway.bench import HELLO, Bench, bench_of, caller
from turnout import Query
from turnout.apps.caller import Budget, Caller
from turnout.apps.converse import complete, says, stream_text
from turnout.apps.ledger import Account, Ledger, decide
from turnout.core.errors import Refused
from turnout.models.provider import Wire
from turnout.models.refusal import NoAnswer
from turnout.models.slot import Slot
from turnout.models.wire.value import Message, MessagePart, ToolOffer
from turnout.testing import Fault, Reply, ToolCall

WIRES: tuple[Wire, ...] = ("openai-chat", "anthropic-messages")
PICTURE = "data:image/png;base64,iVBORw0KGgo="
SEARCH = ToolOffer("search", "Finds cards.", {"type": "object", "properties": {"query": {"type": "string"}}})
ASKED = (says("system", "You answer."), says("user", "Why?"))


class Talk(NamedTuple):
    bench: Bench
    account: Account
    slot: Slot

    async def ask(self, messages: Any = ASKED, **more: Any) -> Any:
        return await complete(self.bench.gateway.models, self.slot, messages, self.account, max_tokens=50, **more)

    def sent(self, number: int = -1) -> Any:
        return self.bench.providers["medium"].requests[number].body


@contextlib.asynccontextmanager
async def talking(
    folder: Path, wire: Wire = "openai-chat", *replies: Reply, who: Caller | None = None, **slot: Any
) -> AsyncIterator[Talk]:
    async with bench_of(folder, medium={"wires": (wire,), **slot}) as bench:
        bench.providers["medium"].script(*replies)
        gateway, asker = bench.gateway, who or caller()
        decision = await decide(gateway.router, Query(HELLO), asker, gateway.models.slots, gateway.store)
        with Ledger(bench.store, gateway.models.slots).open(decision, asker) as account:
            yield Talk(bench, account, gateway.models.slots.slots["medium"])


@pytest.mark.parametrize("wire", WIRES)
def test_tools_are_called_and_their_results_go_back(tmp_path: Path, wire: Wire) -> None:
    calls = (ToolCall("search", {"query": "flood"}, "a"), ToolCall("search", {"query": "ark"}, "b"))

    async def scenario() -> None:
        async with talking(tmp_path, wire, Reply("Let me look.", tools=calls), Reply("It did not.")) as talk:
            first = await talk.ask(tools=[SEARCH], temperature=0.1)
            assert (first.text, first.stop) == ("Let me look.", "tools")
            assert [(call.id, call.name, call.text) for call in first.calls] == [
                ("a", "search", '{"query":"flood"}'),
                ("b", "search", '{"query":"ark"}'),
            ]
            answer = Message("assistant", (MessagePart(text=first.text), *first.calls))
            results = [Message("tool", (MessagePart("result", "nothing", call.id),)) for call in first.calls]
            second = await talk.ask([*ASKED, answer, *results], tools=[SEARCH])
            assert (second.text, second.calls, second.stop) == ("It did not.", (), "stop")
            sent = talk.sent()
            assert talk.sent(0)["temperature"] == 0.1
        if wire == "openai-chat":
            assert [one["role"] for one in sent["messages"]] == ["system", "user", "assistant", "tool", "tool"]
            assert sent["messages"][2]["tool_calls"][1]["function"] == {
                "name": "search",
                "arguments": '{"query":"ark"}',
            }
            assert sent["messages"][4] == {"role": "tool", "tool_call_id": "b", "content": "nothing"}
            assert sent["tools"][0]["function"]["parameters"] == SEARCH.schema
        else:
            assert [one["role"] for one in sent["messages"]] == ["user", "assistant", "user"]
            blocks = sent["messages"][1]["content"]
            assert [block["type"] for block in blocks] == ["text", "tool_use", "tool_use"]
            assert blocks[2]["input"] == {"query": "ark"}
            assert [block["tool_use_id"] for block in sent["messages"][2]["content"]] == ["a", "b"]
            assert sent["tools"][0]["input_schema"] == SEARCH.schema

    asyncio.run(scenario())


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("structured", [True, False])
def test_a_reply_to_a_schema_is_the_object(tmp_path: Path, wire: Wire, structured: bool) -> None:
    schema = {"type": "object", "properties": {"mode": {"type": "string"}}}
    by_call = structured and wire == "anthropic-messages"
    reply = Reply(tools=[ToolCall("verdict", {"mode": "novel"})]) if by_call else Reply('{"mode":"novel"}')

    async def scenario() -> None:
        async with talking(tmp_path, wire, reply, structured=structured) as talk:
            assert (await talk.ask(schema=schema)).text == '{"mode":"novel"}'
            assert ("one JSON object" in str(talk.sent())) is not structured

    asyncio.run(scenario())


@pytest.mark.parametrize("wire", WIRES)
def test_an_image_is_sent_as_the_format_has_it(tmp_path: Path, wire: Wire) -> None:
    page = Message("user", (MessagePart(text="What is this?"), MessagePart("image", images=(PICTURE,))))

    async def scenario() -> None:
        async with talking(tmp_path, wire) as talk:
            await talk.ask([page])
            words, image = talk.sent()["messages"][0]["content"]
        assert words == {"type": "text", "text": "What is this?"}
        if wire == "openai-chat":
            assert image == {"type": "image_url", "image_url": {"url": PICTURE}}
        else:
            assert image["source"] == {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}

    asyncio.run(scenario())


@pytest.mark.parametrize("wire", WIRES)
def test_words_come_as_they_are_written_and_can_be_left(tmp_path: Path, wire: Wire) -> None:
    async def scenario() -> None:
        slow = Reply("one two three four five", chunk_delay_s=0.05)
        async with talking(tmp_path, wire, Reply("one two three"), slow) as talk:
            models, who = talk.bench.gateway.models, talk.account
            stream = stream_text(models, talk.slot, ASKED, who, max_tokens=9)
            assert [piece async for piece in stream] == ["one ", "two ", "three"]
            assert stream.ended == "answered"
            left = stream_text(models, talk.slot, ASKED, who, max_tokens=9)
            async for piece in left:
                assert piece == "one "
                break
            await left.aclose()
            assert left.ended == "cancelled"
            assert not models.live
            asked = talk.bench.providers["medium"].requests[-1]
            for _ in range(100):
                if asked.is_abandoned:
                    break
                await asyncio.sleep(0.01)
            assert asked.is_abandoned

    asyncio.run(scenario())


def test_an_account_pays_for_every_call_and_states_their_sum(tmp_path: Path) -> None:
    budget = Budget(1.0)

    async def scenario() -> None:
        replies = [Reply("a", usage=(1000, 10)), Reply(status=500), Reply("b", usage=(500, 20))]
        async with talking(tmp_path, "openai-chat", *replies, who=caller(budget=budget)) as talk:
            await talk.ask()
            with pytest.raises(NoAnswer, match="500"):
                await talk.ask()
            await talk.ask()
            assert budget.reserved_usd > 0  # the last is booked when the account is closed
            talk.account.close()
            outcome = talk.bench.outcome(talk.account.decision.id)
            assert (outcome.input_tokens, outcome.output_tokens, outcome.attempts) == (1500, 30, 3)
            assert (outcome.slot, outcome.ended) == ("medium", "answered")
            # 2 and 10 dollars a million.
            assert outcome.cost_usd == pytest.approx((1500 * 2 + 30 * 10) / 1e6)
            assert budget.spent_usd == pytest.approx(outcome.cost_usd)
            assert budget.reserved_usd == 0
            assert talk.bench.rows() == (1, 1)

    asyncio.run(scenario())


class UnansweredCase(NamedTuple):
    id: str
    says: str
    reply: Reply = Reply()
    slot: Mapping[str, Any] = MappingProxyType({})


UNANSWERED = [
    UnansweredCase("a refusal", "refused: no such thing", Reply("no such thing", status=400)),
    UnansweredCase("an outage", "answered 503", Reply(status=503)),
    UnansweredCase("another format", "not its own format", Reply(body=b'{"hello": "there"}')),
    UnansweredCase("half of it", "broke off|ended|closed", Reply(fault=Fault("cut", "before_delta"))),
    UnansweredCase("no images", "takes no images", slot={"images": False}),
]


@pytest.mark.parametrize("case", UNANSWERED, ids=lambda case: case.id)
def test_no_answer_is_a_sentence(tmp_path: Path, case: UnansweredCase) -> None:
    page = Message("user", (MessagePart(text="?"), MessagePart("image", images=(PICTURE,))))

    async def scenario() -> None:
        async with talking(tmp_path, "openai-chat", case.reply, case.reply, **case.slot) as talk:
            with pytest.raises(NoAnswer, match=case.says):
                await talk.ask([page])

    asyncio.run(scenario())


def test_a_model_without_a_price_is_not_asked_under_a_budget(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with talking(tmp_path, who=caller(budget=Budget(1.0)), prices=None) as talk:
            with pytest.raises(Refused, match="no price"):
                await talk.ask()
            assert talk.bench.providers["medium"].requests == []

    asyncio.run(scenario())


def test_a_model_that_thinks_is_sent_no_temperature(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with talking(tmp_path, model="openai/gpt-5") as talk:
            await talk.ask()
            assert "temperature" not in talk.sent()

    asyncio.run(scenario())
