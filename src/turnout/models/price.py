"""What tokens cost. The list comes with a library and is read offline; a slot's own prices go before it.

A model nobody knows has no price. That is `None` all the way to the log, never zero.
"""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from .slot import Prices, Slot, Slots

MILLION = 1_000_000


class Usage(Struct, frozen=True, gc=False):
    """Tokens of one exchange, as the provider counts them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Of the input, read from the provider's prompt cache."""


def cost_usd(slot: Slot, usage: Usage) -> float | None:
    """What an exchange cost; None if nobody knows the model's price."""
    prices = prices_of(slot)
    if prices is None:
        return None
    cached_price = prices.input_usd if prices.cached_input_usd is None else prices.cached_input_usd
    cached = min(usage.cached_tokens, usage.input_tokens)
    fresh = usage.input_tokens - cached
    return (fresh * prices.input_usd + cached * cached_price + usage.output_tokens * prices.output_usd) / MILLION


def learn(slots: Slots) -> None:
    """Look every model up now: the list takes a third of a second to load, which nobody should wait for later."""
    for slot in slots.slots.values():
        context_of(slot)
        prices_of(slot)


def prices_of(slot: Slot) -> Prices | None:
    return slot.prices if slot.prices is not None else _listed(slot.provider, slot.model)[0]


def context_of(slot: Slot) -> int | None:
    """How many tokens fit into the model, if anybody knows."""
    return slot.context_tokens if slot.context_tokens is not None else _listed(slot.provider, slot.model)[1]


@lru_cache(maxsize=512)
def _listed(provider: str, model: str) -> tuple[Prices | None, int | None]:
    if provider == "demo":
        return Prices(0.0, 0.0), None
    try:
        from genai_prices import Usage as Tokens
        from genai_prices import calc_price
    except ImportError:
        return None, None
    # The list has tiers for long prompts; a thousand tokens is well within the first of them.
    thousand = 1000
    try:
        read = calc_price(Tokens(input_tokens=thousand), model_ref=model, provider_id=provider)
        written = calc_price(Tokens(output_tokens=thousand), model_ref=model, provider_id=provider)
        cached = calc_price(
            Tokens(input_tokens=thousand, cache_read_tokens=thousand), model_ref=model, provider_id=provider
        )
    except LookupError:
        return None, None
    scale = MILLION / thousand
    prices = Prices(
        float(read.total_price) * scale, float(written.total_price) * scale, float(cached.total_price) * scale
    )
    return prices, getattr(read.model, "context_window", None)
