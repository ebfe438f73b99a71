"""The most a request can cost, before it is sent, and the members that are added to make that true.

Under a budget, the reserved amount is the most that can be spent: the input, counted from its bytes and capped by the
model's window, and as much output as the limit allows. A request without a limit gets one.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Raw

from turnout.core.verdict import Reason

from .output import max_output_tokens, thinks_silently
from .price import MILLION, context_of, prices_of
from .provider import limit_field
from .slot import Slot
from .wire.format import most_tokens, read_member
from .wire.value import ModelRequest

# Instructions for using tools, which a provider adds (Anthropic's have up to 700).
TOOLS_TOKENS = 1000
# The most a picture counts: 4,784 tokens in Anthropic's large models, 48,169 in OpenAI's small ones.
PICTURE_TOKENS = 5_000
SMALL_MODEL_PICTURE_TOKENS = 50_000
# The long window that Anthropic's models have on request.
LONG_WINDOW = 1_000_000
# The largest window of any model, for one whose window is not known.
LARGEST_WINDOW = 2_000_000
# The lowest limit every format accepts (OpenAI's responses refuse less).
LEAST_TOKENS = 16


class Bound(NamedTuple):
    """The most one attempt can cost."""

    input_usd: float
    """For the input, and for tools the provider runs."""
    output_usd: float
    """For one token of output in each of the answers asked for."""
    limit: int
    """The most tokens of each answer."""
    added: bool
    """Whether the limit is ours, because the request has none."""

    @property
    def usd(self) -> float:
        return self.input_usd + self.limit * self.output_usd


def bound(request: ModelRequest, slot: Slot, remembered: int | None, left_usd: float) -> Bound:
    """The most a request can cost in a slot whose price is known. `remembered` is the length in tokens of the answer
    that the request follows, `left_usd` what may be spent: a limit of ours is no higher than that affords."""
    tokens = input_tokens(request, slot, remembered)
    prices = prices_of(slot, tokens)
    assert prices is not None  # noqa: S101 - `unbounded` has checked it
    read = max(prices.input_usd, prices.write_1h_usd) if request.caches else prices.input_usd
    input_usd = tokens * read / MILLION + (slot.hosted_tools_usd or 0.0 if request.hosted else 0.0)
    output_usd = prices.output_usd * request.choices / MILLION
    if request.max_tokens is not None:
        return Bound(input_usd, output_usd, request.max_tokens, added=False)
    window = window_of(request, slot)
    limit = max_output_tokens(slot)
    if request.has_limit:
        # A limit of zero or less is for the provider to refuse. It makes no call cheaper.
        return Bound(input_usd, output_usd, limit, added=False)
    if window is not None:
        # What fits beside the prompt by its likely length: the greatest possible length would fill the window.
        limit = min(limit, max(LEAST_TOKENS, window - request.tokens))
    if output_usd > 0:
        affordable = (left_usd - input_usd) / output_usd
        # Slightly less, so that rounding cannot make the bound exceed what is left.
        limit = min(limit, max(LEAST_TOKENS, int(affordable * (1 - 1e-9))))
    return Bound(input_usd, output_usd, limit, added=True)


def input_tokens(request: ModelRequest, slot: Slot, remembered: int | None) -> int:
    """The most tokens the input can have."""
    window = window_of(request, slot)
    if request.is_unsized or (request.follows and remembered is None):
        return LARGEST_WINDOW if window is None else window
    picture = SMALL_MODEL_PICTURE_TOKENS if "mini" in slot.model or "nano" in slot.model else PICTURE_TOKENS
    most = most_tokens(request.input, without=request.images)
    most += len(request.images) * picture + (TOOLS_TOKENS if request.tools else 0) + (remembered or 0)
    return most if window is None else min(most, window)


def window_of(request: ModelRequest, slot: Slot) -> int | None:
    window = context_of(slot)
    return max(window, LONG_WINDOW) if window is not None and request.long_window else window


def unbounded(request: ModelRequest, slot: Slot) -> Reason | None:
    """Why the cost of a request in this slot has no bound, so that it is not sent under a budget; None if it has."""
    if prices_of(slot) is None:
        return because(slot, "slot.price", "has no price, and this key has a budget")
    if request.unpriced:
        return because(
            slot, "slot.unpriced", f"the price of `{request.unpriced}` is not known, and this key has a budget"
        )
    if request.hosted and slot.hosted_tools_usd is None:
        why = f"`{request.hosted}` runs at the provider for a price without limit, and this key has a budget"
        return because(slot, "slot.unpriced", f"{why} (hosted_tools_usd in turnout.toml sets one)")
    return None


def additions(request: ModelRequest, slot: Slot, limit: Bound) -> dict[str, object]:
    """The members added to a request under a budget: a limit where it has none, and a stream's usage."""
    added: dict[str, object] = {}
    field = limit_field(request.wire, slot.provider)
    # A provider that knows only the old name ignores a limit under OpenAI's new one; OpenAI itself knows both.
    if limit.added or (field == "max_tokens" and request.wire == "openai-chat" and field not in request.fields):
        added[field] = limit.limit
    if request.wire == "openai-chat" and request.stream and not request.wants_usage:
        theirs = read_member(request.fields, "stream_options", dict[str, Raw], {})
        added["stream_options"] = {**theirs, "include_usage": True}
    return added


def may_think_unseen(request: ModelRequest, slot: Slot) -> bool:
    """Whether output may be billed that is not streamed."""
    return request.thinks or thinks_silently(slot)


def because(slot: Slot, code: str, why: str) -> Reason:
    """A reason to skip a slot."""
    return Reason(code, f"{slot.name} ({slot.id}): {why}")
