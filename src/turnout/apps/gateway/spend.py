"""The most a request can cost, before it is sent; and what is added to it so that this is true.

Under a budget, what is reserved is what can be spent: the input, counted from its bytes and no longer than the model's
window, and as much output as its limit allows. A request without a limit is given one.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Raw

from turnout.core.verdict import Reason
from turnout.models.output import max_output_tokens, thinks_silently
from turnout.models.price import MILLION, context_of, prices_of
from turnout.models.provider import limit_field
from turnout.models.slot import Slot

from .wire import INPUT, Asked, decoded, most_tokens

# Instructions for using tools that a provider adds (Anthropic's have up to 700).
TOOLS_TOKENS = 1000
# The most a picture is counted as: 4,784 by Anthropic's large models, and 48,169 by OpenAI's small ones.
PICTURE_TOKENS = 5_000
SMALL_PICTURE_TOKENS = 50_000
# What Anthropic's models take on request.
LONG_WINDOW = 1_000_000
# The largest window on offer, for a model whose own is not known.
LARGEST_WINDOW = 2_000_000
# The lowest limit every format takes (OpenAI's responses refuse less), and no answer is shorter in fact.
LEAST_TOKENS = 16


class Bound(NamedTuple):
    """The most one attempt can cost."""

    input_usd: float
    """Of the input, and of tools the provider runs."""
    output_usd: float
    """Of each token of output, over all the answers asked for."""
    limit: int
    """Tokens of each answer."""
    added: bool
    """The limit is ours: the request has none."""

    @property
    def usd(self) -> float:
        return self.input_usd + self.limit * self.output_usd


FREE = Bound(0.0, 0.0, 0, added=False)


def bound(asked: Asked, slot: Slot, remembered: int | None, left_usd: float) -> Bound:
    """The most a request can cost at a slot whose price is known. `remembered` is how many tokens the answer had that
    the request follows, `left_usd` what may be spent: a limit of ours is no higher than that affords."""
    tokens = input_tokens(asked, slot, remembered)
    prices = prices_of(slot, tokens)
    assert prices is not None  # noqa: S101 - `unbounded` has said so
    read = max(prices.input_usd, prices.write_1h_usd) if asked.extras.caches else prices.input_usd
    input_usd = tokens * read / MILLION + (slot.hosted_tools_usd or 0.0 if asked.extras.hosted else 0.0)
    output_usd = prices.output_usd * asked.extras.choices / MILLION
    if asked.max_tokens is not None:
        return Bound(input_usd, output_usd, asked.max_tokens, added=False)
    window = window_of(asked, slot)
    limit = max_output_tokens(slot)
    if asked.extras.limits:
        # A limit of nothing or less is the provider's to refuse. It makes no call cheaper.
        return Bound(input_usd, output_usd, limit, added=False)
    if window is not None:
        # What fits beside the prompt, by its likely length: its greatest one would leave nothing of a full window.
        limit = min(limit, max(LEAST_TOKENS, window - asked.tokens))
    if output_usd > 0:
        affordable = (left_usd - input_usd) / output_usd
        # A hair less: what is calculated back from it must not come out above what is left.
        limit = min(limit, max(LEAST_TOKENS, int(affordable * (1 - 1e-9))))
    return Bound(input_usd, output_usd, limit, added=True)


def input_tokens(asked: Asked, slot: Slot, remembered: int | None) -> int:
    """No fewer tokens than the input can have."""
    extras, window = asked.extras, window_of(asked, slot)
    if extras.unseen or (extras.follows and remembered is None):
        return LARGEST_WINDOW if window is None else window
    picture = SMALL_PICTURE_TOKENS if "mini" in slot.model or "nano" in slot.model else PICTURE_TOKENS
    texts = [asked.fields[name] for name in INPUT[asked.wire] if name in asked.fields]
    most = most_tokens(texts, without=asked.pictures)
    most += asked.images * picture + (TOOLS_TOKENS if asked.tools else 0) + (remembered or 0)
    return most if window is None else min(most, window)


def window_of(asked: Asked, slot: Slot) -> int | None:
    window = context_of(slot)
    return max(window, LONG_WINDOW) if window is not None and asked.extras.long_window else window


def unbounded(asked: Asked, slot: Slot) -> Reason | None:
    """Why a request at this slot has no bound on what it costs, and so is not sent under a budget."""
    extras = asked.extras
    if prices_of(slot) is None:
        return _because(slot, "slot.price", "has no price, and this key has a budget")
    if extras.unpriced:
        return _because(
            slot, "slot.unpriced", f"the price of `{extras.unpriced}` is not known, and this key has a budget"
        )
    if extras.hosted and slot.hosted_tools_usd is None:
        said = f"`{extras.hosted}` runs at the provider for a price without limit, and this key has a budget"
        return _because(slot, "slot.unpriced", f"{said} (hosted_tools_usd in turnout.toml sets one)")
    return None


def additions(asked: Asked, slot: Slot, limit: Bound) -> dict[str, object]:
    """What is added to a request under a budget: a limit where it has none, and a stream's usage."""
    added: dict[str, object] = {}
    field = limit_field(asked.wire, slot.provider)
    # A limit under OpenAI's new name is nothing to a provider that knows only the old one; OpenAI itself knows both.
    if limit.added or (field == "max_tokens" and asked.wire == "openai-chat" and field not in asked.fields):
        added[field] = limit.limit
    if asked.wire == "openai-chat" and asked.stream and not asked.extras.usage:
        theirs = decoded(asked.fields, "stream_options", dict[str, Raw], {})
        added["stream_options"] = {**theirs, "include_usage": True}
    return added


def may_think_unseen(asked: Asked, slot: Slot) -> bool:
    """Whether output may be billed that no event of a stream shows."""
    return asked.extras.thinks or thinks_silently(slot)


def _because(slot: Slot, code: str, why: str) -> Reason:
    return Reason(code, f"{slot.name} ({slot.id}): {why}")
