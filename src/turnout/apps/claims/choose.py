"""How a question's response mode becomes a decision: through the one loop, with what only this library knows.

Where a model is configured for it, the router agent decides, and a failure of it is a new claim. Otherwise the local
layers do, over the same cards and with the same guards. Either way it is a decision of the profile's, logged like any
other, with reasons.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from msgspec.structs import replace

from turnout.core.decision import Decision, new_id
from turnout.core.layer import Layer
from turnout.core.profile import Placed, Profile
from turnout.core.query import Query, Reading
from turnout.core.router import Router
from turnout.core.verdict import Gate, Reason, Verdict
from turnout.models.slot import Slot, Slots

from .local import ClaimChoice
from .router_agent import RouterAgent

PROFILE = "claims"
AGENT = "agent.v1"
# What fills the slot of the router agent by default, where that provider is configured.
PROVIDER, MODEL = "anthropic", "claude-haiku-4-5"


class ChosenLocally(Layer):
    """What was found in the cards: looked up beside the event loop, before the loop asks."""

    def __init__(self, choice: ClaimChoice) -> None:
        self.choice = choice

    def __call__(self, reading: Reading) -> Verdict:
        choice = self.choice
        return Verdict(
            (choice.mode,), choice.confidence, choice.confidence, {choice.mode: choice.confidence}, choice.reasons
        )


def router_slot(profile: Profile, slots: Slots) -> Slot | None:
    """Who the router agent asks: what fills the slot that the profile names; else its default model, where that
    provider is configured; else none, and the local layers decide."""
    layers = profile.resolved.get("layers", ())
    name = next((one.get("slot", "") for one in layers if one.get("kind") == AGENT), "")
    named = slots.slots.get(name)
    if named is not None:
        return named if named.usable and named.provider != "demo" else None
    configured = [one for one in slots.slots.values() if one.provider == PROVIDER and one.usable]
    if not configured:
        return None
    ident = f"{PROVIDER}/{MODEL}"
    same = next((one for one in configured if one.id == ident), None)
    if same is not None:
        return same
    # Another model of the same provider: its key and its place are those of the default.
    base = configured[0]
    endpoint = base.endpoint._replace(id=ident)
    return replace(
        base, name=name or PROVIDER, model=MODEL, id=ident, prices=None, context_tokens=None, endpoint=endpoint
    )


def agent_seconds(profile: Profile) -> float:
    """How long the profile lets its agent take."""
    place = _agent_place(profile)
    return min(place.deadline_ms if place is not None else profile.deadline_ms, profile.deadline_ms) / 1000


def _agent_place(profile: Profile) -> Placed | None:
    return next((place for place in profile.layers if place.kind == AGENT), None)


def with_agent(profile: Profile, agent: RouterAgent) -> Router:
    """The router in which this agent alone decides."""
    place = _agent_place(profile)
    gate = place.gate if place is not None else Gate()
    layer = Placed("agent", AGENT, "network", "A", gate, 1000 * agent_seconds(profile), agent)
    return Router(_only(profile, layer))


def with_choice(profile: Profile, choice: ClaimChoice) -> Router:
    """The router in which the cards alone decide."""
    layer = Placed("cards", "cards.v1", "free", "E", Gate(), profile.deadline_ms, ChosenLocally(choice))
    return Router(_only(profile, layer))


def _only(profile: Profile, layer: Placed) -> Profile:
    # Its hash stands for everything that can change a decision: this is another profile than the one on file.
    digest = hashlib.blake2b(f"{profile.hash} {layer.kind}".encode(), digest_size=8).hexdigest()
    return replace(profile, hash=digest, layers=(layer,), split=None, adjust=())


def undecided(profile: Profile, query: Query) -> Decision:
    """What is logged of a question that is left before it is decided: it was asked, and what it would have got."""
    said = Reason("router.undecided", "the question was left before it was decided")
    route = profile.fallback.route
    return Decision(profile, query, (route,), 0.0, 0.0, "fallback", "F-", remarks=(said,), id=new_id())


def signals_in(profile: Profile) -> Callable[[str], frozenset[str]]:
    """What the profile's signals find in a text, by their names."""

    def find(text: str) -> frozenset[str]:
        codes = (profile.patterns[hit].code for hit in profile.read(Query(text)).hits)
        return frozenset(code.removeprefix("signals.") for code in codes)

    return find
