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
from turnout.models.slot import Slot, Slots

from .spend import unbounded
from .wire import Asked

# What an answer may need where the client does not say.
ANSWER_TOKENS = 1024


class Candidate(NamedTuple):
    route: str
    """The tier it serves."""
    slot: Slot


class Choice(NamedTuple):
    candidates: tuple[Candidate, ...]
    skipped: tuple[Reason, ...]


def choose(
    profile: Profile, slots: Slots, asked: Asked, route: str, caller: Caller, *, provider: str | None = None
) -> Choice:
    """The chain of a route. `provider` binds it to one, where the conversation carries that provider's state."""
    allowed = profile.routes_up_to(caller.ceiling)
    chain = [name for name in profile.policies[route].chain or (route,) if name in allowed]
    candidates: list[Candidate] = []
    skipped: list[Reason] = []
    for name in chain:
        wanted = profile.policies[name].model or name.lower()
        slot = slots.find(wanted)
        if slot is None:
            skipped.append(Reason("slot.missing", f"{wanted}: no such slot is configured"))
            continue
        if slot.endpoint in [one.slot.endpoint for one in candidates]:
            continue
        why = unfit(slot, asked, caller, provider)
        if why is None:
            candidates.append(Candidate(name, slot))
        else:
            skipped.append(why)
    return Choice(tuple(candidates), tuple(skipped))


def unfit(slot: Slot, asked: Asked, caller: Caller, provider: str | None = None) -> Reason | None:
    """Why a slot cannot take a request; None if it can."""
    if not slot.usable:
        return _because(slot, "slot.key", f"its key is missing, {slot.needs_key} is empty")
    if asked.wire not in slot.wires:
        return _because(slot, "slot.wire", f"does not speak {asked.wire}, only {', '.join(slot.wires)}")
    if provider is not None and slot.provider != provider:
        return _because(slot, "slot.bound", f"the conversation carries state only {provider} can read")
    if asked.images and not slot.images:
        return _because(slot, "slot.images", "takes no images")
    if asked.tools and not slot.tools:
        return _because(slot, "slot.tools", "takes no tools")
    window = context_of(slot)
    needed = asked.tokens + (asked.max_tokens or ANSWER_TOKENS)
    if window is not None and needed > window:
        return _because(slot, "slot.window", f"about {needed:,} tokens do not fit into its {window:,}")
    return unbounded(asked, slot) if caller.budget.is_limited else None


def _because(slot: Slot, code: str, why: str) -> Reason:
    return Reason(code, f"{slot.name} ({slot.id}): {why}")
