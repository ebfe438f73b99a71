"""The router that chooses sources: the profile's, extended by what only this installation knows.

It offers a model only the configured sources, adds a route for each source that the profile does not name, knows the
names of the home's things and of monitored services, and caches a model's choices for an hour. Feedback on similar
questions comes first, descriptions of sources last. A profile's hash covers everything that can change a decision, so
names and routes change it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from turnout.core.layer import Layer
from turnout.core.model import Demand
from turnout.core.policy import Policy
from turnout.core.profile import PlacedLayer, Profile
from turnout.core.query import Query, Reading
from turnout.core.router import Router
from turnout.core.verdict import Fault, Gate, Reason, Verdict
from turnout.layers.llm import Llm
from turnout.layers.student import Student

from .cache import Cache
from .names import Names, spell
from .preference import DescriptionMatch, PastChoices, ReadPast
from .source import Source

# The specification's lifetime and number of cached choices.
CHOICE_S, CHOICES = 3600.0, 1000


class Choice(Struct, frozen=True):
    """A model's choice of sources."""

    routes: tuple[str, ...]
    confidence: float
    model: str


_choice = msgspec.json.Decoder(Choice)


class RememberedChoice(Layer):
    """A model with its choices cached for an hour."""

    def __init__(self, llm: Llm, cache: Cache, profile: str) -> None:
        self.llm = llm
        self.cache = cache
        self.profile = profile

    async def __call__(self, reading: Reading) -> Verdict | Fault | None:
        if not reading.folded:
            return None
        tenant, key = reading.query.tenant or "", (self.profile, self.llm.system, reading.folded)
        cached = await self.cache.get(tenant, key)
        if cached is not None:
            choice = _choice.decode(cached)
            sure, scores = choice.confidence, dict.fromkeys(choice.routes, choice.confidence)
            reasons = (Reason("llm.answer", f"{choice.model} said {' + '.join(choice.routes)} before"),)
            return Verdict(choice.routes, sure, sure, scores, reasons, evidence=(choice.model, 0.0), who="C")
        verdict = await self.llm(reading)
        if isinstance(verdict, Verdict):
            choice = Choice(verdict.routes, verdict.confidence, str(verdict.evidence[0]))
            self.cache.put(tenant, key, msgspec.json.encode(choice), CHOICE_S)
        return verdict

    def demand(self, query: Query) -> Demand:
        return self.llm.demand(query)


def choosing(router: Router, sources: Mapping[str, Source], cache: Cache, read_past: ReadPast | None = None) -> Router:
    """The router for these sources; `read_past` reads the feedback on past decisions."""
    profile = _with_routes(router.profile, sources)
    own = [name for name in sources if name not in router.profile.routes]
    names = {
        " ".join(spell(word)): name
        for name, source in sources.items()
        if name in profile.routes
        for word in source.words()
    }
    names.pop("", None)
    if names:
        profile = replace(profile, hash=_hash(profile.hash, sorted(names.items())))
    # A source that cannot be asked has no description, and is not offered.
    described = {name: text for name in profile.routes if name in sources and (text := sources[name].description)}
    embedder = next((place.call.embedder for place in profile.layers if type(place.call) is Student), None)
    layers = [
        replace(place, call=RememberedChoice(place.call.offering(described), cache, profile.hash))
        if isinstance(place.call, Llm) and described
        else place
        for place in profile.layers
    ]
    # A declared route comes first; then feedback and names, before layers that know only questions in general.
    first = next((at for at, place in enumerate(layers) if place.kind != "declared.v1"), None)
    if first is not None:
        deadline_ms = layers[first].deadline_ms
        if names:
            layers.insert(first, PlacedLayer("names", "names.v1", "free", "K", Gate(), deadline_ms, Names(names)))
        if read_past is not None and described:
            past = PastChoices(described, read_past, embedder)
            layers.insert(first, PlacedLayer("past", "past.v1", "network", "E", Gate(), deadline_ms, past))
    if fitting := [name for name in own if name in described]:
        match = DescriptionMatch(described, fitting, embedder)
        layers.append(PlacedLayer("described", "described.v1", "cpu", "E", Gate(), profile.deadline_ms, match))
    return Router(replace(profile, layers=tuple(layers)))


def _with_routes(profile: Profile, sources: Mapping[str, Source]) -> Profile:
    """The profile with a route for each source that it does not name."""
    more = {name: Policy(sources=(name,)) for name in sources if name not in profile.routes}
    if not more:
        return profile
    encoded = {name: Raw(msgspec.json.encode(policy)) for name, policy in more.items()}
    return replace(
        profile,
        hash=_hash(profile.hash, sorted(more)),
        routes=(*profile.routes, *more),
        policies={**profile.policies, **more},
        encoded_policies={**profile.encoded_policies, **encoded},
    )


def _hash(profile: str, more: Any) -> str:
    return hashlib.blake2b(profile.encode() + msgspec.json.encode(more), digest_size=8).hexdigest()
