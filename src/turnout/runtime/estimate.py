"""Estimates what a question costs that local layers do not decide, from a profile, its slots and some questions."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from turnout.config.check import layer_id, own_keys
from turnout.core.profile import Profile
from turnout.layers.llm import LlmConfig, system_prompt
from turnout.learn.trial import is_network
from turnout.models.price import Usage, cost_usd
from turnout.models.slot import load_slots
from turnout.text.tokens import estimate


class QuestionCost(msgspec.Struct, frozen=True):
    layer: str
    usd: float | None
    """None if the price is unknown."""
    deadline_ms: float


def cost_of_rest(profile: Profile, texts: Sequence[str], config: str | None) -> QuestionCost | None:
    """The cost of the profile's first network layer for a question of median length; None if it has no such layer."""
    place = next((place for place in profile.layers if is_network(place)), None)
    if place is None:
        return None
    usd = None
    if place.kind == "llm.v1":
        entry = next(entry for entry in profile.resolved["layers"] if layer_id(entry) == place.id)
        layer = msgspec.convert(own_keys(entry), LlmConfig)
        slots = load_slots(config)
        slot = slots.by_id(layer.model) if layer.model else slots.find(layer.slot)
        if slot is not None and slot.usable and slot.provider != "demo":
            lengths = sorted(min(len(text), layer.characters) for text in texts)
            units = len(system_prompt(layer, profile.routes)) + lengths[len(lengths) // 2]
            usd = cost_usd(slot, Usage(estimate(units), layer.max_tokens))
    return QuestionCost(place.id, usd, place.deadline_ms)
