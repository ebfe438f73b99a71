"""What a client or a provider calls a thing may be twenty megabytes long, and is not kept in memory for that."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gateway.bench import bench_of
from turnout.apps.gateway.choose import CONVERSATIONS, Conversations
from turnout.core.model import Prompt, Reply
from turnout.core.registry import Supplies
from turnout.layers.llm import Llm, LlmConfig
from turnout.models.slot import SlotFile, make_slot
from turnout.net.client import Client, Request
from turnout.net.egress import Egress, origin_of
from turnout.testing import ScriptedProvider, make_reading
from turnout.text.ngram import LONGEST_WORD, Ngrams, _inside
from turnout.text.read import extract
from turnout.web.auth import host_name

LONG = 20 * 1024 * 1024
MEGABYTE = 1024 * 1024


def kept(act: Callable[[int], object], times: int = 3) -> int:
    """How many bytes are there more after so many calls than after one before them."""
    act(0)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(1, times + 1):
            act(number)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def long(number: int) -> str:
    return f"{number}" + "x" * LONG


class NamedCase(NamedTuple):
    id: str
    wire: Any
    more: Callable[[int], dict[str, Any]]


NAMED = [
    NamedCase("previous_response_id", "openai-responses", lambda number: {"previous_response_id": long(number)}),
    NamedCase("prompt_cache_key", "openai-chat", lambda number: {"prompt_cache_key": long(number)}),
    NamedCase("user", "openai-chat", lambda number: {"user": long(number)}),
    NamedCase("a-member", "openai-chat", lambda number: {long(number): 1}),
    NamedCase("metadata", "anthropic-messages", lambda number: {"metadata": {"user_id": long(number)}}),
]


@pytest.mark.alike(2)
@pytest.mark.parametrize("case", NAMED, ids=lambda case: case.id)
def test_what_a_request_names_is_not_kept(tmp_path: Path, case: NamedCase) -> None:
    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            loop = asyncio.get_running_loop()

            async def ask(number: int) -> None:
                told = await bench.ask("simple", wire=case.wire, **(case.more(number) if number else {}))
                assert told.status in (200, 400), "taken, or refused for its length"
                bench.forget()
                assert await loop.run_in_executor(None, bench.store.flush, 10.0)

            await ask(0)
            gc.collect()
            tracemalloc.start()
            try:
                before = tracemalloc.get_traced_memory()[0]
                for number in (1, 2, 3, 0):  # the double has the last one before it
                    await ask(number)
                gc.collect()
                grown = tracemalloc.get_traced_memory()[0] - before
            finally:
                tracemalloc.stop()
            assert grown < MEGABYTE

    asyncio.run(scenario())


def test_a_model_of_twenty_megabytes_is_not_kept(tmp_path: Path) -> None:
    """Neither as a tier nor as `provider/model`."""

    async def scenario() -> None:
        async with bench_of(tmp_path) as bench:
            await bench.ask("simple")
            gc.collect()
            tracemalloc.start()
            try:
                before = tracemalloc.get_traced_memory()[0]
                for model in (long(1), f"simple-co/{long(2)}", "simple"):
                    assert (await bench.ask(model)).status in (200, 400)
                    bench.forget()
                assert bench.store.flush(10.0)
                gc.collect()
                grown = tracemalloc.get_traced_memory()[0] - before
            finally:
                tracemalloc.stop()
            assert grown < MEGABYTE

    asyncio.run(scenario())


def test_every_conversation_there_is_room_for_takes_little() -> None:
    slot = make_slot("simple", SlotFile("demo/demo"))
    conversations = Conversations()

    def keep(number: int) -> None:
        for one in range(CONVERSATIONS if number else 1):
            name = conversations.name("tenant" * 50, f"{one}" * 100)
            conversations.keep("tenant" * 50, name, "SIMPLE", slot, 0.9, 10)

    assert kept(keep, 1) < 10 * MEGABYTE
    found = conversations.get("tenant" * 50, conversations.name("tenant" * 50, f"{CONVERSATIONS - 1}" * 100))
    assert found is not None
    assert found.slot == "simple"


TWO = [(("t", "1c"), ("t1", "c")), (("", "tc"), ("t", "c")), (("1:", ""), ("", "1:"))]
# Of these even the digests are the same.
TWO += [(("t\0x", "c"), ("t", "x\0c")), (("t?", "c"), ("t\ud800", "c"))]


@pytest.mark.parametrize(("a", "b"), TWO)
def test_two_tenants_never_share_a_pin(a: tuple[str, str], b: tuple[str, str]) -> None:
    conversations = Conversations()
    conversations.keep(a[0], conversations.name(*a), "SIMPLE", make_slot("simple", SlotFile("demo/demo")), 0.9, 10)
    assert conversations.get(a[0], conversations.name(*a)) is not None
    assert conversations.get(b[0], conversations.name(*b)) is None


def test_what_the_log_calls_a_conversation_stays() -> None:
    """A conversation that goes on after an upgrade is the same one; and without the log's key nobody can tell which."""
    assert Conversations(b"k" * 32).name("tenant", "a conversation") == "80a094913461707d6a2a2f651a573205"
    assert Conversations(b"l" * 32).name("tenant", "a conversation") != "80a094913461707d6a2a2f651a573205"


def test_a_host_that_is_too_long_to_be_one_is_not_kept() -> None:
    assert kept(lambda number: host_name(long(number))) < MEGABYTE
    assert host_name("a" * 253 + ":65535") == "a" * 253
    assert host_name("a" * 300) == ""


def test_headers_a_client_chooses_are_not_kept() -> None:
    async def scenario() -> None:
        async with ScriptedProvider() as provider:
            origin = origin_of(provider.base_url)
            client = Client(Egress(frozenset((origin,))))
            tracemalloc.start()
            before = 0
            for number in range(100):
                headers = {"anthropic-beta": f"{number}" + "x" * 60_000}
                request = Request(origin, "/v1/messages", b"{}", headers=headers)
                (await client.open(request, 5.0)).close()
                provider._requests.clear()
                if number == 9:
                    gc.collect()
                    before = tracemalloc.get_traced_memory()[0]
            gc.collect()
            grown = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()
            await client.close()
            assert grown < MEGABYTE

    asyncio.run(scenario())


def test_long_words_are_kept_as_far_as_they_are_read() -> None:
    ngrams = Ngrams(characters=65_536)
    assert kept(lambda number: ngrams.of(f"w{number}w" + "x" * 65_000), 100) < MEGABYTE
    before = _inside.cache_info().misses
    assert ngrams.of("y" * LONGEST_WORD)[0]
    ngrams.of("y" * (LONGEST_WORD + 1))
    assert _inside.cache_info().misses == before + 1, "what is not read makes no difference"


def test_the_last_question_is_not_kept() -> None:
    assert kept(lambda number: extract(long(number)), 1) < MEGABYTE


class NoPhrases:
    def add(self, pattern: Any, code: str) -> int:
        return 0


class Says:
    def has(self, slot: str) -> bool:
        return True

    def is_open(self, slot: str) -> bool:
        return False

    async def ask(self, name: str, prompt: Prompt) -> Reply:
        return Reply("a", "m/m", 0.0)


def test_what_a_model_was_asked_is_kept_as_a_digest() -> None:
    layer = Llm(LlmConfig(characters=LONG), Supplies(("a", "b"), NoPhrases()), Says())
    assert kept(lambda number: asyncio.run(layer(make_reading(long(number))))) < MEGABYTE  # type: ignore[arg-type]
    assert len(layer._kept) == 4
