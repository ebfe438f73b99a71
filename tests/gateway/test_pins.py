"""A conversation stays where its prompt is cached, while that is cheaper; and with whoever can read what it carries."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from gateway.bench import HELLO, PROOF, bench_of, caller
from turnout.apps.gateway import choose
from turnout.apps.gateway.choose import CACHED_S, REMEMBERED_S, Conversations, staying_saves
from turnout.models.slot import Prices, Slot, SlotFile, make_slot
from turnout.models.wire.chat import ChatFormat
from turnout.models.wire.messages import MessagesFormat
from turnout.models.wire.responses import ResponsesFormat
from turnout.testing import Reply, ToolCall


def slot(name: str, prices: Prices | None) -> Slot:
    return make_slot(name, SlotFile(f"{name}-co/x", base_url="http://127.0.0.1:1/v1", prices=prices))


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


# --- money


class Money(NamedTuple):
    id: str
    here: Prices | None
    there: Prices | None
    cached: int
    tokens: int
    stays: bool


DEAR = Prices(3.0, 15.0, 0.3)
CHEAP = Prices(0.3, 2.5, 0.03)
MONEY = [
    # 500 tokens of answer: dear 0.0075, cheap 0.00125
    Money("short-and-cheap-elsewhere", DEAR, CHEAP, 2000, 2100, False),
    Money("long-but-still-cheap-elsewhere", DEAR, CHEAP, 100_000, 100_100, False),
    Money("no-cheaper-to-move-up", CHEAP, DEAR, 2000, 2100, True),
    Money("half-the-price-is-not-enough", DEAR, Prices(1.5, 15.0), 100_000, 101_000, True),
    Money("but-uncached-it-is", DEAR, Prices(1.5, 15.0), 0, 101_000, False),
    Money("a-tenth-cached-balances", Prices(1.0, 1.0, 0.1), Prices(0.1, 1.0), 1000, 1000, True),
    Money("one-new-token-tips-it", Prices(1.0, 1.0, 0.1), Prices(0.1, 1.0), 1000, 1001, False),
    Money("no-discount-known", Prices(1.0, 1.0), Prices(0.9, 1.0), 100_000, 100_000, False),
    Money("free-here", Prices(0.0, 0.0), CHEAP, 0, 5000, True),
    Money("more-cached-than-sent", DEAR, Prices(0.31, 15.0), 900_000, 10_000, True),
    Money("price-here-unknown", None, CHEAP, 5000, 5000, False),
    Money("price-there-unknown", DEAR, None, 5000, 5000, False),
]


@pytest.mark.parametrize("case", MONEY, ids=lambda case: case.id)
def test_whether_staying_saves(case: Money) -> None:
    assert staying_saves(slot("here", case.here), slot("there", case.there), case.cached, case.tokens) is case.stays


def test_the_same_model_is_no_move() -> None:
    here = slot("here", DEAR)
    assert not staying_saves(here, here, 5000, 5000)


# --- memory


def test_a_pin_expires() -> None:
    clock = Clock()
    kept = Conversations(now=clock)
    kept.keep("t", "c", "SIMPLE", slot("here", DEAR), 0.9, 5000)
    pin = kept.get("t", "c")
    assert pin is not None
    assert (pin.route, pin.slot, pin.provider, pin.tokens) == ("SIMPLE", "here", "here-co", 5000)
    assert kept.is_warm(pin)
    clock.now += CACHED_S - 0.1
    assert kept.is_warm(pin)
    clock.now += 0.2
    assert not kept.is_warm(pin)
    assert kept.get("t", "c") is pin, "remembered after the provider has forgotten"
    clock.now = 1000.0 + REMEMBERED_S
    assert kept.get("t", "c") is pin
    clock.now += 0.1
    assert kept.get("t", "c") is None
    assert not kept._pins


def test_a_pin_belongs_to_a_tenant() -> None:
    kept = Conversations()
    kept.keep("a", "c", "SIMPLE", slot("here", DEAR), 0.9, 10)
    assert kept.get("b", "c") is None
    assert kept.get("a", "d") is None


def test_a_short_prompt_is_never_warm() -> None:
    kept = Conversations()
    kept.keep("", "c", "SIMPLE", slot("here", DEAR), 0.9, choose.CACHED_TOKENS - 1)
    pin = kept.get("", "c")
    assert pin is not None
    assert not kept.is_warm(pin)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "CONVERSATIONS", 3)
    kept = Conversations()
    for name in "abcd":
        kept.keep("", name, "SIMPLE", slot("here", DEAR), 0.9, 10)
    kept.keep("", "b", "SIMPLE", slot("here", DEAR), 0.9, 10)
    kept.keep("", "e", "SIMPLE", slot("here", DEAR), 0.9, 10)
    assert [name for name in "abcde" if kept.get("", name) is not None] == ["b", "d", "e"]
    kept.keep("", "f", "SIMPLE", slot("here", DEAR), 0.9, 10)
    assert [name for name in "abcdef" if kept.get("", name) is not None] == ["b", "e", "f"], "the oldest goes"


# --- which requests belong together


def of(form: Any, **members: Any) -> Any:
    return form.read(msgspec.json.encode({"model": "auto"} | members))


def test_later_instructions_do_not_begin_another_conversation() -> None:
    system, later = {"role": "system", "content": "be brief"}, {"role": "system", "content": "the date has changed"}
    answer = {"role": "assistant", "content": "yes"}
    chat = [of(ChatFormat(), messages=[system, user("a"), *more]) for more in ([], [later], [answer, user("b"), later])]
    assert len({one.conversation for one in chat}) == 1
    told = [of(MessagesFormat(), system="be brief", messages=[user("a"), *more]) for more in ([later], [answer, later])]
    assert len({one.conversation for one in told}) == 1


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def test_a_conversation_is_known_by_its_beginning() -> None:
    chat, system = ChatFormat(), {"role": "system", "content": "be brief"}
    answer = {"role": "assistant", "content": "yes"}
    first = of(chat, messages=[system, user("a")])
    assert of(chat, messages=[system, user("a"), answer, user("b")]).conversation == first.conversation
    assert of(chat, messages=[system, user("a")], temperature=1).conversation == first.conversation
    others = [
        of(chat, messages=[user("a")]),
        of(chat, messages=[system, user("b")]),
        of(chat, messages=[{"role": "system", "content": "be long"}, user("a")]),
        of(chat, messages=[system, user("a")], prompt_cache_key="mine"),
    ]
    assert len({first.conversation, *(one.conversation for one in others)}) == 5
    brief = of(MessagesFormat(), system="be brief", messages=[user("a")])
    parts = of(MessagesFormat(), system=[{"type": "text", "text": "be brief"}], messages=[user("a")])
    assert brief.conversation == parts.conversation
    stored = of(ResponsesFormat(), input="b", previous_response_id="resp_1")
    assert (stored.conversation, stored.bound) == ("resp_1", True)
    assert not of(ResponsesFormat(), input="b", previous_response_id=None).bound


class CarriedCase(NamedTuple):
    id: str
    asked: Any
    bound: bool
    fresh: bool


def said(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def given(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def chat(*messages: Any) -> Any:
    return of(ChatFormat(), messages=messages)


def messages(*turns: Any) -> Any:
    return of(MessagesFormat(), messages=turns)


def responses(*items: Any) -> Any:
    return of(ResponsesFormat(), input=items)


A, B = user("a"), user("b")
CALLED = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function"}]}
THOUGHT = said({"type": "thinking", "thinking": "", "signature": "s"})
RESULT = {"type": "tool_result", "tool_use_id": "t"}
NOTE = {"type": "text", "text": "<system-reminder>\nProve it step by step.\n</system-reminder>\n"}
LATER = {"role": "system", "content": "The date has changed."}
CARRIED = [
    CarriedCase("chat", chat(A), False, True),
    CarriedCase("chat-tool", chat(A, CALLED, {"role": "tool", "content": "x"}), True, False),
    CarriedCase("chat-after-a-tool", chat(A, CALLED, B), True, True),
    CarriedCase("chat-null", chat(A, CALLED | {"tool_calls": None}, B), False, True),
    CarriedCase("thinking", messages(A, THOUGHT, B), True, True),
    CarriedCase("redacted", messages(A, said({"type": "redacted_thinking", "data": "x"}), B), True, True),
    CarriedCase("tool-use", messages(A, said({"type": "tool_use", "id": "t"}), given(RESULT)), True, False),
    CarriedCase("result-with-words", messages(given(RESULT, {"type": "text", "text": "and?"})), False, True),
    CarriedCase("prefill", messages(A, {"role": "assistant", "content": "{"}), False, False),
    CarriedCase("result-with-a-note", messages(given(RESULT, NOTE, NOTE)), False, False),
    CarriedCase(
        "result-with-a-note-and-words", messages(given(RESULT, NOTE, {"type": "text", "text": "and?"})), False, True
    ),
    CarriedCase("note-without-a-result", messages(given(NOTE)), False, True),
    CarriedCase("instructions-after-words", messages(A, LATER), False, True),
    CarriedCase("instructions-after-a-result", messages(A, given(RESULT), LATER), False, False),
    CarriedCase("instructions-alone", messages(LATER), False, False),
    CarriedCase("chat-instructions-after-words", chat(A, {"role": "developer", "content": "x"}), False, True),
    CarriedCase("chat-instructions-after-a-tool", chat(A, CALLED, {"role": "tool"}, LATER), True, False),
    CarriedCase("responses-instructions-after-words", responses(A, {"role": "developer", "content": "x"}), False, True),
    CarriedCase("responses", of(ResponsesFormat(), input="a"), False, True),
    CarriedCase("reasoning", responses(A, {"type": "reasoning", "encrypted_content": "x"}, B), True, True),
    CarriedCase("output", responses(A, {"type": "function_call"}, {"type": "function_call_output"}), True, False),
]


@pytest.mark.parametrize("case", CARRIED, ids=lambda case: case.id)
def test_what_a_conversation_carries(case: CarriedCase) -> None:
    assert (case.asked.bound, case.asked.fresh) == (case.bound, case.fresh)


# --- in the gateway

LONG = "word " * 2000
CALL = Reply(tools=[ToolCall("look", {})], usage=(3000, 10))


def turns(*texts: str) -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    return [{"role": roles[number % 2], "content": text} for number, text in enumerate(texts)]


def test_a_warm_prompt_stays_while_that_saves(tmp_path: Path) -> None:
    # Complex costs 4 (0.4 cached) and simple 3: a long prompt is cheaper where it is cached.
    cheap = {"prices": Prices(3.0, 15.0, 0.3)}

    async def scenario() -> None:
        async with bench_of(tmp_path, simple=cheap) as bench:
            clock = Clock()
            bench.gateway.conversations = Conversations(now=clock)
            bench.providers["complex"].default = Reply(usage=(2600, 20))
            await bench.ask("complex", LONG)
            second = turns(LONG, "ok", HELLO)
            told = await bench.ask("auto", second)
            assert (told.slot, told.headers["x-turnout-pinned"], told.headers["x-turnout-route"]) == (
                "complex",
                "cache",
                "SIMPLE",
            )
            happened = bench.outcome(told)
            assert (happened.extra["pinned"], happened.fallback) == ("cache", None)
            # Forced, it goes where it is told to.
            assert (await bench.ask("simple", second)).slot == "simple"
            # A turn that needs a higher tier gets it.
            await bench.ask("complex", LONG)
            told = await bench.ask("auto", turns(LONG, "ok", PROOF))
            assert (told.slot, "x-turnout-pinned" in told.headers) == ("reasoning", False)
            # Cold, there is nothing to stay for.
            await bench.ask("complex", LONG)
            clock.now += CACHED_S
            assert (await bench.ask("auto", second)).slot == "simple"
            # Another tenant's conversation is another.
            await bench.ask("complex", LONG)
            assert (await bench.ask("auto", second, who=caller(tenant="other"))).slot == "simple"

    asyncio.run(scenario())


def test_a_cheap_move_is_made(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path, simple={"prices": Prices(0.1, 0.5)}) as bench:
            bench.providers["complex"].default = Reply(usage=(2600, 20))
            await bench.ask("complex", LONG)
            assert (await bench.ask("auto", turns(LONG, "ok", HELLO))).slot == "simple"

    asyncio.run(scenario())


def tool_turn(*more: dict[str, Any]) -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
    answered = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    return [{"role": "user", "content": PROOF}, *answered, *more]


def test_a_turn_without_words_keeps_its_place(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            bench.providers["reasoning"].default = CALL
            await bench.ask("auto", PROOF, "anthropic-messages")
            told = await bench.ask("auto", tool_turn(), "anthropic-messages")
            assert (told.slot, told.headers["x-turnout-pinned"], told.headers["x-turnout-outcome"]) == (
                "reasoning",
                "turn",
                "C-",
            )
            assert bench.outcome(told).extra["method"] == "pinned"
            skipped: list[Any] = bench.outcome(told).extra.get("skipped", [])
            assert skipped == []
            # A tier the client names itself is what it gets.
            bench.providers["reasoning"].default = Reply("fine")
            told = await bench.ask("simple", tool_turn(), "anthropic-messages")
            assert told.headers["x-turnout-route"] == "SIMPLE"
            # One it may not name is refused, and not silently another.
            told = await bench.ask("simple", tool_turn(), "anthropic-messages", caller(may_force=False))
            assert told.status == 403
            # A name nobody knows is no tier.
            told = await bench.ask("claude-x", tool_turn(), "anthropic-messages", caller(may_force=False))
            assert told.headers["x-turnout-pinned"] == "turn"
            # Without memory of it, it is decided like any other.
            bench.gateway.conversations = Conversations()
            assert (await bench.ask("auto", tool_turn(), "anthropic-messages")).status == 200

    asyncio.run(scenario())


def test_words_before_a_clients_instructions_are_decided(tmp_path: Path) -> None:
    """Claude Code sends a system message after what its user has typed."""
    later = {"role": "system", "content": "# Environment: a terminal"}

    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            first = await bench.ask("auto", [user(HELLO), later], "anthropic-messages")
            more = [user(HELLO), later, {"role": "assistant", "content": "hi"}, user(PROOF), later]
            told = await bench.ask("auto", more, "anthropic-messages")
            assert (first.slot, told.slot) == ("simple", "reasoning")
            assert "x-turnout-pinned" not in told.headers

    asyncio.run(scenario())


def test_a_clients_note_beside_a_result_is_no_new_question(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            bench.providers["simple"].default = CALL
            await bench.ask("auto", HELLO, "anthropic-messages")
            call = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
            told = await bench.ask("auto", [user(HELLO), said(call), given(RESULT, NOTE), LATER], "anthropic-messages")
            assert (told.slot, told.headers["x-turnout-pinned"]) == ("simple", "turn")

    asyncio.run(scenario())


def test_a_key_with_a_lower_ceiling_does_not_inherit_a_place(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            bench.providers["reasoning"].default = CALL
            await bench.ask("auto", PROOF, "anthropic-messages", caller(tenant="t"))
            bench.forget()
            low = caller(tenant="t", ceiling="MEDIUM")
            for content in (tool_turn(), tool_turn({"role": "user", "content": PROOF})):
                await bench.ask("auto", content, "anthropic-messages", low)
            assert not {"complex", "reasoning"} & set(bench.asked)

    asyncio.run(scenario())


def test_signed_state_is_not_sent_elsewhere(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            bench.providers["reasoning"].default = CALL
            await bench.ask("auto", PROOF, "anthropic-messages")
            bench.forget()
            # New words that would go to SIMPLE; nobody in its chain can read the call, so it stays.
            told = await bench.ask("auto", tool_turn({"role": "user", "content": HELLO}), "anthropic-messages")
            assert (told.status, told.slot, told.headers["x-turnout-route"]) == (200, "reasoning", "SIMPLE")
            assert told.headers["x-turnout-pinned"] == "bound"
            happened = bench.outcome(told)
            assert [one["code"] for one in happened.extra["skipped"]] == ["slot.bound"] * 3
            assert "only reasoning-co can read" in happened.extra["skipped"][0]["text"]
            # If its provider fails, nobody else is sent what they cannot read.
            bench.providers["reasoning"].default = Reply(status=500)
            told = await bench.ask("auto", tool_turn(), "anthropic-messages")
            assert (told.status, bench.asked) == (502, ["reasoning", "reasoning"])

    asyncio.run(scenario())


def test_the_same_provider_may_take_over(tmp_path: Path) -> None:
    """Two models of one provider read each other's state."""

    async def scenario() -> None:
        async with bench_of(tmp_path, simple={"model": "reasoning-co/small"}) as bench:
            bench.providers["reasoning"].default = CALL
            await bench.ask("auto", PROOF, "anthropic-messages")
            told = await bench.ask("auto", tool_turn({"role": "user", "content": HELLO}), "anthropic-messages")
            assert (told.slot, bench.outcome(told).extra["skipped"][0]["code"]) == ("simple", "slot.bound")

    asyncio.run(scenario())


def test_a_slot_that_was_taken_away_is_no_place(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            await bench.ask("auto", PROOF, "anthropic-messages")
            slots = bench.gateway.models.slots
            rest = {name: one for name, one in slots.slots.items() if name != "reasoning"}
            bench.gateway.models.slots = type(slots)(rest)
            bench.gateway = bench.gateway.under(bench.gateway.router, bench.gateway.models)
            told = await bench.ask("auto", [*tool_turn()[:1], *tool_turn()[2:]], "anthropic-messages")
            assert told.status == 503
            told = await bench.ask("auto", HELLO, "anthropic-messages")
            assert told.slot == "simple"

    asyncio.run(scenario())


def test_only_an_answer_makes_a_place(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            bench.providers["reasoning"].default = Reply(status=500)
            await bench.ask("auto", PROOF)
            assert not bench.gateway.conversations._pins

    asyncio.run(scenario())
