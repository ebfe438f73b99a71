"""Which slots may answer, in which order, and why each of the others may not.

The chain is the policy's. A slot is skipped, with a reason, when it does not speak the client's format, lacks its key,
cannot take images or tools, is too small for the prompt, is above the caller's ceiling, has no bound on its price while
the caller has a budget, or belongs to another provider than the one whose signed state the conversation carries.
"""

from __future__ import annotations

from typing import NamedTuple

from turnout.apps.caller import Caller
from turnout.core.profile import Profile
from turnout.core.verdict import Reason
from turnout.models.price import context_of
from turnout.models.slot import Endpoint, Slot, Slots
from turnout.models.spend import because, unbounded
from turnout.models.wire.value import ModelRequest

# What an answer may need where the client does not say.
ANSWER_TOKENS = 1024


class ChainSlot(NamedTuple):
    route: str
    """The tier it serves."""
    slot: Slot


class Chain(NamedTuple):
    candidates: tuple[ChainSlot, ...]
    skipped: tuple[Reason, ...]
    pinned: str = ""
    """Why the conversation stays where it is; empty if it does not, or need not."""


def choose(
    profile: Profile, slots: Slots, request: ModelRequest, route: str, caller: Caller, *, provider: str | None = None
) -> Chain:
    """The chain of a route. `provider` binds it to one, where the conversation carries that provider's state."""
    chain = profile.policies[route].chain or (route,)
    if caller.ceiling is not None:
        allowed = profile.routes_up_to(caller.ceiling)
        chain = tuple(name for name in chain if name in allowed)
    candidates: list[ChainSlot] = []
    skipped: list[Reason] = []
    seen: set[Endpoint] = set()
    for name in chain:
        wanted = profile.policies[name].model or name.lower()
        slot = slots.slots.get(wanted) or slots.find(wanted)
        if slot is None:
            skipped.append(Reason("slot.missing", f"{wanted}: no such slot is configured"))
            continue
        if slot.endpoint in seen:
            continue
        why = unfit(slot, request, caller, provider)
        if why is None:
            candidates.append(ChainSlot(name, slot))
            seen.add(slot.endpoint)
        else:
            skipped.append(why)
    return Chain(tuple(candidates), tuple(skipped))


def unfit(slot: Slot, request: ModelRequest, caller: Caller, provider: str | None = None) -> Reason | None:
    """Why a slot cannot take a request; None if it can."""
    if slot.needs_key:
        return because(slot, "slot.key", f"its key is missing, {slot.needs_key} is empty")
    if request.wire not in slot.wires:
        return because(slot, "slot.wire", f"does not speak {request.wire}, only {', '.join(slot.wires)}")
    if provider is not None and slot.provider != provider:
        return because(slot, "slot.bound", f"the conversation carries state only {provider} can read")
    if request.images and not slot.images:
        return because(slot, "slot.images", "takes no images")
    if request.tools and not slot.tools:
        return because(slot, "slot.tools", "takes no tools")
    window = slot.context_tokens if slot.is_learnt else context_of(slot)
    needed = request.tokens + (request.max_tokens or ANSWER_TOKENS)
    if window is not None and needed > window:
        return because(slot, "slot.window", f"about {needed:,} tokens do not fit into its {window:,}")
    return unbounded(request, slot) if caller.budget.is_limited else None
