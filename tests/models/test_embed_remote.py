"""Vectors from a server, over real HTTP: what is sent, what is believed of the answer, and what happens without one."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from embedding import WIDTH, WordEmbeds, embeddings
from turnout.core.embed import Embeds
from turnout.core.errors import Broken, EgressRefused, EmbedderError, NetError, TimedOut, Unreachable
from turnout.models import remote
from turnout.models.remote import BATCH, CHARACTERS, RemoteEmbeds, remote_embedder
from turnout.models.secret import SecretPlace
from turnout.models.slot import SlotFile, load_slots, make_slot
from turnout.net.client import Client
from turnout.net.egress import Egress
from turnout.testing import Fault, Reply, ScriptedProvider

KEY = "sk-canary-19cc02dd"
TEXTS = ["Where is my parcel?", "my parcel is late", "Define entropy"]


@contextlib.asynccontextmanager
async def served(width: int = 0, deadline_ms: float = 5000, **slot: Any) -> AsyncIterator[tuple[RemoteEmbeds, Any]]:
    async with ScriptedProvider(embeddings) as provider:
        filled = make_slot("embedder", SlotFile(**({"model": "mine/bge-m3", "base_url": provider.base_url} | slot)))
        assert filled.origin is not None
        client = Client(Egress(frozenset((filled.origin,))))
        try:
            yield RemoteEmbeds(filled, client, width=width, deadline_ms=deadline_ms), provider
        finally:
            await client.close()


def test_rows_come_in_order_and_of_length_one() -> None:
    async def scenario() -> None:
        async with served() as (embedder, provider):
            typed: Embeds = embedder
            assert (typed.name, typed.width) == ("remote:bge-m3", 0)
            rows = await embedder.fetch(TEXTS)
            assert rows == pytest.approx(WordEmbeds().embed(TEXTS), abs=1e-6)
            assert (rows.dtype, typed.width) == (np.float32, WIDTH)
            assert rows[0] @ rows[1] > rows[0] @ rows[2]
            (request,) = provider.requests
            assert request.path == "/v1/embeddings"
            assert request.body == {"model": "bge-m3", "input": TEXTS, "encoding_format": "float"}
            assert "authorization" not in request.headers

    asyncio.run(scenario())


def test_many_texts_are_several_requests_and_blank_ones_are_none() -> None:
    texts = [f"text {number}" if number % 5 else " \n"[: number % 2] for number in range(200)]

    async def scenario() -> None:
        async with served() as (embedder, provider):
            assert (await embedder.fetch([])).shape == (0, 0)
            assert (await embedder.fetch(["", " "])).shape == (2, 0)
            assert provider.received == 0
            rows = await embedder.fetch(texts)
            assert rows == pytest.approx(WordEmbeds().embed(texts), abs=1e-6)
            assert not rows[::5].any()
            assert [len(request.body["input"]) for request in provider.requests] == [BATCH, BATCH, 160 - 2 * BATCH]

    asyncio.run(scenario())


def test_what_is_sent_of_a_text() -> None:
    async def scenario() -> None:
        async with served() as (embedder, provider):
            await embedder.fetch(["x" * 100_000, "a\ud800b", "日本"])
            assert provider.requests[0].body["input"] == ["x" * CHARACTERS, "a?b", "日本"]
            with pytest.raises(TypeError, match="not one text"):
                await embedder.fetch("one text")

    asyncio.run(scenario())


def test_a_thread_may_wait_an_event_loop_may_not() -> None:
    with ScriptedProvider.in_thread(embeddings) as provider:
        slot = make_slot("embedder", SlotFile("mine/x", base_url=provider.base_url))
        embedder = RemoteEmbeds(slot)
        assert embedder.embed(TEXTS) == pytest.approx(WordEmbeds().embed(TEXTS), abs=1e-6)

        async def scenario() -> None:
            with pytest.raises(EmbedderError, match="await fetch"):
                embedder.embed(TEXTS)
            assert (await asyncio.to_thread(embedder.embed, TEXTS)).any()
            assert (await embedder.fetch(TEXTS)).any()

        asyncio.run(scenario())
        assert provider.received == 3


# --- answers that are not believed


def vectors(*rows: Any, index: Any = None) -> Reply:
    numbers = range(len(rows)) if index is None else index
    said = [{"index": number, "embedding": row} for number, row in zip(numbers, rows, strict=True)]
    return Reply(body=json.dumps({"data": said}).encode())


class FailedCase(NamedTuple):
    id: str
    reply: Reply
    error: type[NetError]
    says: str


ONE, TWO = [1.0, 0.0], [0.0, 2.0]
FAILED = [
    FailedCase("500", Reply(status=500, body=b"{}"), Broken, "answered 500"),
    FailedCase("429", Reply(status=429, body=b"{}"), Broken, "answered 429"),
    FailedCase("redirect", Reply(status=302, headers={"location": "http://x/"}, body=b""), Broken, "answered 302"),
    FailedCase("not JSON", Reply(body=b"<html>"), Broken, "not /v1/embeddings"),
    FailedCase("not UTF-8", Reply(body=b'{"data":[{"index":0,"embedding":[1],"x":"\xff"}]}'), Broken, "mine/x"),
    FailedCase("a chat answer", Reply(body=b'{"choices":[]}'), Broken, "not /v1/embeddings"),
    FailedCase("base64", Reply(body=b'{"data":[{"index":0,"embedding":"AAAA"}]}'), Broken, "not /v1/embeddings"),
    FailedCase("deep", Reply(body=b'{"data":' + b"[" * 100_000), Broken, "not /v1/embeddings"),
    FailedCase("no number", Reply(body=b'{"data":[{"index":0,"embedding":[NaN]}]}'), Broken, "not /v1/embeddings"),
    FailedCase("too large a number", Reply(body=b'{"data":[{"index":0,"embedding":[1e999]}]}'), Broken, "mine/x"),
    FailedCase("fewer", vectors(ONE), Broken, "answered 1 vectors, not one for each of 2 texts"),
    FailedCase("more", vectors(ONE, TWO, ONE), Broken, "answered 3 vectors"),
    FailedCase("one twice", vectors(ONE, TWO, index=[0, 0]), Broken, "not one for each of 2 texts"),
    FailedCase("one beyond", vectors(ONE, TWO, index=[0, 2]), Broken, "not one for each of 2 texts"),
    FailedCase("two widths", vectors(ONE, [1.0, 2.0, 3.0]), Broken, "vectors of 2, 3 numbers"),
    FailedCase("no width", vectors([], []), Broken, "vectors of 0 numbers; 1 to 16,384 can be used"),
    FailedCase("far too wide", vectors([1.0] * 20_000, [1.0] * 20_000), Broken, "vectors of 20000 numbers"),
    FailedCase("zeros", vectors(ONE, [0.0, 0.0]), Broken, "without a direction"),
    FailedCase("too long", vectors(ONE, [1e200, 1e200]), Broken, "without a direction"),
    FailedCase("silent", Reply(delay_s=30), TimedOut, "no answer"),
    FailedCase("stalled", Reply(fault=Fault("stall", "before_headers")), TimedOut, ""),
    FailedCase("reset", Reply(fault=Fault("reset", "before_headers")), NetError, ""),
]  # fmt: skip


@pytest.mark.parametrize("case", FAILED, ids=lambda case: case.id)
def test_what_is_not_an_answer_is_an_error(case: FailedCase) -> None:
    async def scenario() -> None:
        async with served(model="mine/x") as (embedder, provider):
            provider.script(case.reply)
            if case.error is TimedOut:
                embedder.deadline_ms = 200.0
            with pytest.raises(case.error) as told:
                await embedder.fetch(["a", "b"])
            assert case.says in str(told.value)
            assert embedder.width == 0, "nothing was learnt from it"
            embedder.deadline_ms = 5000.0
            assert (await embedder.fetch(["a"])).any(), "the next one is asked again"

    asyncio.run(scenario())


def test_an_answer_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "ANSWER_BYTES", 10_000)

    async def scenario() -> None:
        async with served() as (embedder, provider):
            provider.script(Reply(body=b" " * 20_000))
            with pytest.raises(Broken, match="longer than 10,000 bytes"):
                await embedder.fetch(["a"])

    asyncio.run(scenario())


@pytest.mark.parametrize("told", [0, 2])
def test_the_width_does_not_change(told: int) -> None:
    async def scenario() -> None:
        async with served(width=told) as (embedder, provider):
            provider.script(vectors(ONE), vectors([1.0, 2.0, 3.0]), vectors(TWO))
            assert (await embedder.fetch(["a"])).tolist() == [ONE]
            with pytest.raises(Broken, match="vectors of 3 numbers; 2 are expected"):
                await embedder.fetch(["a"])
            assert (await embedder.fetch(["a"])).tolist() == [[0.0, 1.0]]

    asyncio.run(scenario())


def test_after_enough_failures_nothing_is_sent() -> None:
    async def scenario() -> None:
        async with served() as (embedder, provider):
            provider.default = Reply(status=500, body=b"{}")
            for _ in range(embedder.breaker.settings.in_a_row):
                with pytest.raises(Broken):
                    await embedder.fetch(["a"])
            sent = provider.received
            with pytest.raises(Unreachable, match="mine/bge-m3 has failed too often"):
                await embedder.fetch(["a"])
            assert provider.received == sent

    asyncio.run(scenario())


def test_a_caller_that_goes_away_is_no_failure() -> None:
    async def scenario() -> None:
        async with served() as (embedder, provider):
            provider.script(*[Reply(delay_s=30)] * 6)
            for _ in range(6):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(embedder.fetch(["a"]), 0.05)
            assert embedder.breaker.state == "closed"

    asyncio.run(scenario())


# --- where it connects, and with what


def test_a_key_goes_with_it_and_is_never_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBED_KEY", KEY)

    async def scenario() -> None:
        async with served(key=SecretPlace(env="EMBED_KEY")) as (embedder, provider):
            await embedder.fetch(["a"])
            assert provider.requests[0].headers["authorization"] == f"Bearer {KEY}"
            provider.script(Reply(headers={"content-encoding": KEY}, body=b"x"))
            with pytest.raises(Broken) as told:
                await embedder.fetch(["a"])
            assert KEY not in str(told.value)

    asyncio.run(scenario())


def test_it_connects_where_the_configuration_leads() -> None:
    async def scenario() -> None:
        async with served() as (embedder, provider):
            assert embedder.client is not None
            embedder.client.egress.allow(frozenset())
            with pytest.raises(EgressRefused, match="not in the configuration"):
                await embedder.fetch(["a"])
            assert provider.accepted == 0

    asyncio.run(scenario())


def test_the_slot_of_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "turnout.toml"
    file.write_text('[models]\nembedder = "ollama/bge-m3"\n')
    found = remote_embedder(load_slots(file))
    assert found is not None
    assert (found.name, str(found.origin)) == ("remote:bge-m3", "http://127.0.0.1:11434")
    assert remote_embedder(load_slots("")) is None, "nothing stands in for an embedder"
    file.write_text('[models]\nembedder = "openai/text-embedding-3-small"\n')
    with pytest.raises(EmbedderError, match=r"has no key: \$OPENAI_API_KEY is empty"):
        remote_embedder(load_slots(file))
    file.write_text('[models]\nembedder = "demo/demo"\n')
    with pytest.raises(EmbedderError, match="fill the slot 'embedder' with an embedding model"):
        remote_embedder(load_slots(file))


def test_nobody_is_there() -> None:
    async def scenario() -> None:
        async with served() as (embedder, provider):
            provider.refuse()
            with pytest.raises(Unreachable):
                await embedder.fetch(["a"])

    asyncio.run(scenario())


@pytest.mark.parametrize("meant", [False, True])
def test_a_key_is_not_sent_to_a_public_address_over_http(monkeypatch: pytest.MonkeyPatch, meant: bool) -> None:
    monkeypatch.setenv("EMBED_KEY", KEY)

    async def scenario() -> None:
        async with served(key=SecretPlace(env="EMBED_KEY"), plain_http=meant) as (embedder, provider):
            monkeypatch.setattr("turnout.net.egress.is_public", lambda address: True)
            if meant:
                await embedder.fetch(TEXTS)
                assert provider.requests[0].headers["authorization"] == f"Bearer {KEY}"
            else:
                with pytest.raises(NetError, match="a key is not sent there over http"):
                    await embedder.fetch(TEXTS)
                assert provider.received == 0

    asyncio.run(scenario())
