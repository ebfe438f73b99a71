"""What is remembered of a conversation between its turns: who answered, and how much a provider has cached of it.

A turn that brings no new words keeps its tier and model. A turn that does is decided anew, but stays where it is while
leaving would cost more than it saves: a provider bills a cached prompt at a fraction, and a move pays for all of it
again. Memory is bounded and short, and a name is kept as its digest, however long it is; losing it costs money, never
correctness.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

from msgspec import Struct

from turnout.models.price import MILLION, prices_of
from turnout.models.slot import Slot

# Providers keep a cached prompt for five minutes after its last use.
CACHED_S = 300.0
# The shortest prompt providers cache.
CACHED_TOKENS = 1024
REMEMBERED_S = 3600.0
# Each costs half a kilobyte, and going beyond what a processor's cache holds slows every request down.
CONVERSATIONS = 20_000
# What an answer is assumed to be, for comparing two models on the same turn.
ANSWER_TOKENS = 500


class Pin(Struct, frozen=True, gc=False):
    route: str
    slot: str
    provider: str
    confidence: float
    tokens: int
    """Of the conversation when it was last answered."""
    at: float


class Conversations:
    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._pins: OrderedDict[bytes, Pin] = OrderedDict()

    def get(self, tenant: str, conversation: str) -> Pin | None:
        key = _key(tenant, conversation)
        pin = self._pins.get(key)
        if pin is not None and self._now() - pin.at > REMEMBERED_S:
            del self._pins[key]
            return None
        return pin

    def keep(self, tenant: str, conversation: str, route: str, slot: Slot, confidence: float, tokens: int) -> None:
        key = _key(tenant, conversation)
        self._pins[key] = Pin(route, slot.name, slot.provider, confidence, tokens, self._now())
        self._pins.move_to_end(key)
        while len(self._pins) > CONVERSATIONS:
            self._pins.popitem(last=False)

    def is_warm(self, pin: Pin) -> bool:
        """Whether its provider still has the prompt."""
        return pin.tokens >= CACHED_TOKENS and self._now() - pin.at < CACHED_S


def _key(tenant: str, conversation: str) -> bytes:
    """What a tenant's conversation is kept under: a client may name it with twenty megabytes."""
    told = f"{len(tenant)}:{tenant}{conversation}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(told, digest_size=16).digest()


def staying_saves(here: Slot, there: Slot, cached: int, tokens: int) -> bool:
    """Whether one more turn is cheaper where the prompt is cached than where it is not."""
    stay, move = prices_of(here), prices_of(there)
    if stay is None or move is None or here.endpoint == there.endpoint:
        return False
    reread = stay.input_usd if stay.cached_input_usd is None else stay.cached_input_usd
    cached = min(cached, tokens)
    staying = cached * reread + (tokens - cached) * stay.input_usd + ANSWER_TOKENS * stay.output_usd
    moving = tokens * move.input_usd + ANSWER_TOKENS * move.output_usd
    return staying / MILLION <= moving / MILLION
