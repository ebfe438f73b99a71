"""Vectors from a server that speaks OpenAI's `/v1/embeddings`, such as Ollama with bge-m3.

One attempt, one deadline and one breaker, as for a question to a model. The vectors are checked (one for each text, in
order, of one width, finite) and normalised to length 1, which not every server does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from turnout.core.embed import Embeds
from turnout.core.errors import Broken, EmbedderError, NetError, Unreachable
from turnout.net.circuit import Breaker
from turnout.net.client import Client, Request
from turnout.net.deadline import Deadline
from turnout.net.egress import Egress, Proxy

from .embed import find_embedder
from .refusal import NoAnswer, read_refusal, rule_for
from .slot import Slot, Slots

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

SLOT = "embedder"
PATH = "/embeddings"
# Servers take hundreds; at 64 short texts a model on a laptop still answers within a second or two.
BATCH = 64
# As much of a text as a local embedder reads, so that a student sees the same part of it.
CHARACTERS = 8192
# A batch on a cold server, which may have to load its model first.
DEADLINE_MS = 30_000.0
# 64 vectors of 8,192 numbers, each written with up to 24 characters.
ANSWER_BYTES = 16 * 1024 * 1024
# More than any model has: a larger width is a mistake or an attack.
WIDEST = 16_384


class _VectorRow(Struct, frozen=True):
    embedding: list[float]
    index: int


class _Vectors(Struct, frozen=True):
    data: list[_VectorRow]


_decoder = msgspec.json.Decoder(_Vectors)


class RemoteEmbeds(Embeds):
    """The embedder that fills a slot. Event loops await `fetch`; other threads call `embed`."""

    def __init__(
        self,
        slot: Slot,
        client: Client | None = None,
        *,
        width: int = 0,
        deadline_ms: float = DEADLINE_MS,
        proxy: Proxy | None = None,
    ) -> None:
        if slot.origin is None:
            raise EmbedderError(f"{slot.id} has no vectors: fill the slot {slot.name!r} with an embedding model")
        if not slot.usable:
            raise EmbedderError(f"{slot.id} has no key: {slot.needs_key} is empty")
        self.slot = slot
        self.origin = slot.origin
        self.proxy = proxy
        self.client = client
        """Belongs to the event loop that calls `fetch`; without one, each call makes its own."""
        self.deadline_ms = deadline_ms
        self.breaker = Breaker()
        self._width = width

    @property
    def name(self) -> str:
        return f"remote:{self.slot.model}"

    @property
    def width(self) -> int:
        """The configured width, or the first answer's; 0 before that."""
        return self._width

    def embed(self, texts: Sequence[str], /) -> Array:
        """As `fetch`, for a thread that may block."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self._fetch_apart(texts))
        raise EmbedderError("embed waits for a server and would stop the event loop it is called on: await fetch")

    async def fetch(self, texts: Sequence[str]) -> Array:
        """A row for each text; raises NetError."""
        if self.client is None:
            return await self._fetch_apart(texts)
        return await self._fetch(texts, self.client)

    async def _fetch_apart(self, texts: Sequence[str]) -> Array:
        client = Client(Egress(frozenset((self.origin,)), self.proxy))
        try:
            return await self._fetch(texts, client)
        finally:
            await client.close()

    async def _fetch(self, texts: Sequence[str], client: Client) -> Array:
        import numpy as np

        if isinstance(texts, str):
            raise TypeError("a list of texts is embedded, not one text: [text]")
        asked = [number for number, text in enumerate(texts) if text and not text.isspace()]
        found: list[Array] = []
        for start in range(0, len(asked), BATCH):
            # Lone surrogates cannot be sent.
            cut = (texts[number][:CHARACTERS] for number in asked[start : start + BATCH])
            batch = [text.encode("utf-8", "replace").decode("utf-8") for text in cut]
            found.append(self._read(await self._ask(batch, client), len(batch)))
        rows = np.zeros((len(texts), self._width), np.float32)
        if found:
            rows[asked] = np.concatenate(found)
        return rows

    async def _ask(self, texts: list[str], client: Client) -> bytes:
        slot, breaker = self.slot, self.breaker
        if not breaker.allows():
            raise Unreachable(f"{slot.id} has failed too often: nothing is sent to it just now")
        body = msgspec.json.encode({"model": slot.model, "input": texts, "encoding_format": "float"})
        headers = {"content-type": "application/json", "accept": "application/json"}
        key = ("authorization", f"Bearer {slot.key.reveal()}") if slot.key is not None else None
        request = Request(
            self.origin, slot.path + PATH, body, headers=headers, credential=key, plain_http=slot.plain_http
        )
        deadline = Deadline.after(self.deadline_ms / 1000)
        answered, counts, probe = False, True, breaker.state != "closed"
        try:
            async with await client.open(request, deadline.left) as response:
                raw = await response.read(deadline, ANSWER_BYTES)
                if response.status != 200:
                    counts = rule_for(read_refusal(response.status, raw), slot.model).counts
                    raise NoAnswer(f"{slot.id} answered {response.status}")
            answered = True
        except NetError as error:
            if counts:
                breaker.failed(probe=probe)
            raise type(error)(slot.hide(str(error))) from None  # without the key
        finally:
            if answered:
                breaker.succeeded(probe=probe)
            elif probe:
                breaker.forgive()
        return raw

    def _read(self, raw: bytes, count: int) -> Array:
        """The vectors of an answer, in the order they were asked for."""
        import numpy as np

        model = self.slot.id
        try:
            answer = _decoder.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Broken(f"{model} answered something that is not /v1/embeddings ({type(error).__name__})") from None
        rows = sorted(answer.data, key=lambda row: row.index)
        if [row.index for row in rows] != list(range(count)):
            raise Broken(f"{model} answered {len(rows)} vectors, not one for each of {count} texts")
        widths = {len(row.embedding) for row in rows}
        width = self._width or min(widths)
        if widths != {width} or not 0 < width <= WIDEST:
            found = ", ".join(map(str, sorted(widths)))
            expected = f"{width} are expected" if 0 < width <= WIDEST else f"1 to {WIDEST:,} can be used"
            raise Broken(f"{model} answered vectors of {found} numbers; {expected}")
        vectors = np.array([row.embedding for row in rows], np.float64)
        with np.errstate(over="ignore"):  # an infinite length is refused below
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not (lengths > 0).all():
            raise Broken(f"{model} answered a vector without a direction: all zeros, or too large")
        self._width = width
        unit: Array = (vectors / lengths).astype(np.float32)
        return unit


def remote_embedder(slots: Slots, client: Client | None = None) -> RemoteEmbeds | None:
    """The embedder of the slot `embedder`, if one is configured."""
    slot = slots.find(SLOT)
    return None if slot is None else RemoteEmbeds(slot, client, proxy=slots.proxy)


def choose_embedder(slots: Slots, client: Client | None = None) -> Embeds | None:
    """The configured embedder if it can be used, else the installed one if there is one."""
    slot = slots.find(SLOT)
    if slot is not None and slot.origin is not None and slot.usable:
        return remote_embedder(slots, client)
    return find_embedder()
