"""The most a request can cost, before it is sent; and what is added to it so that this is true.

Under a budget, what is reserved is what can be spent: the input, counted from its bytes and no longer than the model's
window, and as much output as its limit allows. A request without a limit is given one.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Raw

from turnout.core.verdict import Reason

from .output import max_output_tokens, thinks_silently
from .price import MILLION, context_of, prices_of
from .provider import limit_field
from .slot import Slot
from .wire.format import decoded, most_tokens
from .wire.value import ModelRequest

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


def bound(request: ModelRequest, slot: Slot, remembered: int | None, left_usd: float) -> Bound:
    """The most a request can cost at a slot whose price is known. `remembered` is how many tokens the answer had that
    the request follows, `left_usd` what may be spent: a limit of ours is no higher than that affords."""
    tokens = input_tokens(request, slot, remembered)
    prices = prices_of(slot, tokens)
    assert prices is not None  # noqa: S101 - `unbounded` has said so
    read = max(prices.input_usd, prices.write_1h_usd) if request.caches else prices.input_usd
    input_usd = tokens * read / MILLION + (slot.hosted_tools_usd or 0.0 if request.hosted else 0.0)
    output_usd = prices.output_usd * request.choices / MILLION
    if request.max_tokens is not None:
        return Bound(input_usd, output_usd, request.max_tokens, added=False)
    window = window_of(request, slot)
    limit = max_output_tokens(slot)
    if request.has_limit:
        # A limit of nothing or less is the provider's to refuse. It makes no call cheaper.
        return Bound(input_usd, output_usd, limit, added=False)
    if window is not None:
        # What fits beside the prompt, by its likely length: its greatest one would leave nothing of a full window.
        limit = min(limit, max(LEAST_TOKENS, window - request.tokens))
    if output_usd > 0:
        affordable = (left_usd - input_usd) / output_usd
        # A hair less: what is calculated back from it must not come out above what is left.
        limit = min(limit, max(LEAST_TOKENS, int(affordable * (1 - 1e-9))))
    return Bound(input_usd, output_usd, limit, added=True)


def input_tokens(request: ModelRequest, slot: Slot, remembered: int | None) -> int:
    """No fewer tokens than the input can have."""
    window = window_of(request, slot)
    if request.is_unsized or (request.follows and remembered is None):
        return LARGEST_WINDOW if window is None else window
    picture = SMALL_PICTURE_TOKENS if "mini" in slot.model or "nano" in slot.model else PICTURE_TOKENS
    most = most_tokens(request.input, without=request.images)
    most += len(request.images) * picture + (TOOLS_TOKENS if request.tools else 0) + (remembered or 0)
    return most if window is None else min(most, window)


def window_of(request: ModelRequest, slot: Slot) -> int | None:
    window = context_of(slot)
    return max(window, LONG_WINDOW) if window is not None and request.long_window else window


def unbounded(request: ModelRequest, slot: Slot) -> Reason | None:
    """Why a request at this slot has no bound on what it costs, and so is not sent under a budget."""
    if prices_of(slot) is None:
        return because(slot, "slot.price", "has no price, and this key has a budget")
    if request.unpriced:
        return because(
            slot, "slot.unpriced", f"the price of `{request.unpriced}` is not known, and this key has a budget"
        )
    if request.hosted and slot.hosted_tools_usd is None:
        said = f"`{request.hosted}` runs at the provider for a price without limit, and this key has a budget"
        return because(slot, "slot.unpriced", f"{said} (hosted_tools_usd in turnout.toml sets one)")
    return None


def additions(request: ModelRequest, slot: Slot, limit: Bound) -> dict[str, object]:
    """What is added to a request under a budget: a limit where it has none, and a stream's usage."""
    added: dict[str, object] = {}
    field = limit_field(request.wire, slot.provider)
    # A limit under OpenAI's new name is nothing to a provider that knows only the old one; OpenAI itself knows both.
    if limit.added or (field == "max_tokens" and request.wire == "openai-chat" and field not in request.fields):
        added[field] = limit.limit
    if request.wire == "openai-chat" and request.stream and not request.wants_usage:
        theirs = decoded(request.fields, "stream_options", dict[str, Raw], {})
        added["stream_options"] = {**theirs, "include_usage": True}
    return added


def may_think_unseen(request: ModelRequest, slot: Slot) -> bool:
    """Whether output may be billed that no event of a stream shows."""
    return request.thinks or thinks_silently(slot)


def because(slot: Slot, code: str, why: str) -> Reason:
    """A reason to skip a slot."""
    return Reason(code, f"{slot.name} ({slot.id}): {why}")
