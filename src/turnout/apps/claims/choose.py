"""How a response mode becomes a decision of the profile, made by the router's usual loop with a layer of this library.

If a model is configured, the router agent decides, and its failure means a new claim. Otherwise the local layers
decide, over the same cards and with the same guards. Either way the decision is logged with its reasons like any other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from msgspec.structs import replace

from turnout.core.decision import Decision, new_id
from turnout.core.layer import Layer
from turnout.core.profile import PlacedLayer, Profile
from turnout.core.query import Query, Reading
from turnout.core.router import Router
from turnout.core.verdict import Gate, Reason, Verdict
from turnout.models.slot import Slot, Slots

from .local import ClaimChoice
from .router_agent import RouterAgent

PROFILE = "claims"
AGENT = "agent.v1"
# The default model of the router agent, if its provider is configured.
PROVIDER, MODEL = "anthropic", "claude-haiku-4-5"


class LocalChoice(Layer):
    """Returns a choice that was made before the router runs, because looking up cards blocks."""

    def __init__(self, choice: ClaimChoice) -> None:
        self.choice = choice

    def __call__(self, reading: Reading) -> Verdict:
        mode, sure = self.choice.mode, self.choice.confidence
        return Verdict((mode,), sure, sure, {mode: sure}, self.choice.reasons)


def router_slot(profile: Profile, slots: Slots) -> Slot | None:
    """The model of the router agent: that of the slot the profile names; else the default model, if its provider is
    configured; else None, and the local layers decide."""
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
    # The default model, with the key and the address of another model of that provider.
    base = configured[0]
    endpoint = base.endpoint._replace(id=ident)
    return replace(
        base, name=name or PROVIDER, model=MODEL, id=ident, prices=None, context_tokens=None, endpoint=endpoint
    )


def agent_seconds(profile: Profile) -> float:
    """The agent's time limit in the profile."""
    place = _agent_place(profile)
    return min(place.deadline_ms if place is not None else profile.deadline_ms, profile.deadline_ms) / 1000


def _agent_place(profile: Profile) -> PlacedLayer | None:
    return next((place for place in profile.layers if place.kind == AGENT), None)


def with_agent(profile: Profile, agent: RouterAgent) -> Router:
    """A router in which only this agent decides."""
    place = _agent_place(profile)
    gate = place.gate if place is not None else Gate()
    layer = PlacedLayer("agent", AGENT, "network", "A", gate, 1000 * agent_seconds(profile), agent)
    return Router(_only(profile, layer))


def with_choice(profile: Profile, choice: ClaimChoice) -> Router:
    """A router that takes a choice made locally."""
    layer = PlacedLayer("cards", "cards.v1", "free", "E", Gate(), profile.deadline_ms, LocalChoice(choice))
    return Router(_only(profile, layer))


def _only(profile: Profile, layer: PlacedLayer) -> Profile:
    # The hash covers everything that can change a decision, and this is not the profile on file.
    digest = hashlib.blake2b(f"{profile.hash} {layer.kind}".encode(), digest_size=8).hexdigest()
    return replace(profile, hash=digest, layers=(layer,), split=None, adjust=())


def undecided(profile: Profile, query: Query) -> Decision:
    """The decision that is logged if a request ends before its question is decided: the profile's fallback."""
    remark = Reason("router.undecided", "the question was left before it was decided")
    route = profile.fallback.route
    return Decision(profile, query, (route,), 0.0, 0.0, "fallback", "F-", remarks=(remark,), id=new_id())


def signals_in(profile: Profile) -> Callable[[str], frozenset[str]]:
    """A function that names the profile's signals in a text."""

    def find(text: str) -> frozenset[str]:
        codes = (profile.patterns[hit].code for hit in profile.read(Query(text)).hits)
        return frozenset(code.removeprefix("signals.") for code in codes)

    return find
