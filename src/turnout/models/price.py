"""What tokens cost. The price list comes with a library and is read offline; a slot's own prices override it.

A model that is not listed has no price: `None` all the way to the log, never zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from .slot import Prices, Slot, Slots

MILLION = 1_000_000
# More tokens than any exchange has. A provider that reports more is wrong or hostile; the count is capped here.
MOST_TOKENS = 1_000_000_000
# Up to this size every model has one price; some charge more for longer prompts, from 128,000 tokens on.
FLAT_TOKENS = 100_000
# Prices of longer prompts are looked up in steps, rounded up.
STEP_TOKENS = 10_000


class Usage(Struct, frozen=True, gc=False):
    """Tokens of one exchange, as the provider counts them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Of the input, read from the provider's prompt cache."""
    cache_write_tokens: int = 0
    """Of the input, stored in the provider's prompt cache for five minutes."""
    cache_write_1h_tokens: int = 0
    """Of the input, stored there for an hour."""
    final: bool = False
    """Whether it counts the whole answer, or only what was written when it was reported."""

    def before(self, tokens: int) -> Usage:
        """This usage, no longer final if more tokens followed it."""
        return replace(self, final=False) if tokens and self.final else self


def cost_usd(slot: Slot, usage: Usage) -> float | None:
    """What an exchange cost; None if the model has no known price."""
    prices = prices_of(slot, usage.input_tokens)
    if prices is None:
        return None
    if not (usage.cached_tokens or usage.cache_write_tokens or usage.cache_write_1h_tokens):
        return (usage.input_tokens * prices.input_usd + usage.output_tokens * prices.output_usd) / MILLION
    left = usage.input_tokens
    cached = min(usage.cached_tokens, left)
    left -= cached
    written = min(usage.cache_write_tokens, left)
    left -= written
    written_1h = min(usage.cache_write_1h_tokens, left)
    left -= written_1h
    total = left * prices.input_usd + cached * prices.cached_usd + usage.output_tokens * prices.output_usd
    return (total + written * prices.write_usd + written_1h * prices.write_1h_usd) / MILLION


def most_usd(slots: Iterable[Slot], usage: Usage) -> float | None:
    """What an exchange would have cost in the most expensive of these slots; None if no price is known."""
    return max([cost for slot in slots if (cost := cost_usd(slot, usage)) is not None], default=None)


def look_up_prices(slots: Slots) -> Slots:
    """Look up every model now: loading the list takes a third of a second, which no request should wait for."""
    for slot in slots.slots.values():
        prices_of(slot)
    known = {
        name: replace(slot, context_tokens=context_of(slot), is_looked_up=True) for name, slot in slots.slots.items()
    }
    return replace(slots, slots=known)


def prices_of(slot: Slot, input_tokens: int = 0) -> Prices | None:
    """A slot's prices for a prompt of this length."""
    if slot.prices is not None:
        return slot.prices
    size = 1000 if input_tokens <= FLAT_TOKENS else -(-input_tokens // STEP_TOKENS) * STEP_TOKENS
    return _listed(slot.provider, slot.model, size)[0]


def context_of(slot: Slot) -> int | None:
    """The model's context window in tokens, if it is known."""
    if slot.is_looked_up or slot.context_tokens is not None:
        return slot.context_tokens
    return _listed(slot.provider, slot.model, 1000)[1]


@lru_cache(maxsize=512)
def _listed(provider: str, model: str, size: int) -> tuple[Prices | None, int | None]:
    if provider == "demo":
        return Prices(0.0, 0.0), None
    try:
        from genai_prices import Usage as Tokens
        from genai_prices import calc_price
    except ImportError:
        return None, None

    def total(**tokens: int) -> Decimal:
        return calc_price(Tokens(input_tokens=size, **tokens), model_ref=model, provider_id=provider).total_price

    try:
        window = getattr(calc_price(Tokens(), model_ref=model, provider_id=provider).model, "context_window", None)
        read, scale = total(), Decimal(MILLION) / size
        prices = Prices(
            input_usd=float(read * scale),
            output_usd=float((total(output_tokens=size) - read) * scale),
            cached_input_usd=float(total(cache_read_tokens=size) * scale),
            cache_write_usd=float(total(cache_write_tokens=size) * scale),
        )
    except LookupError:
        return None, None
    return prices, window
