"""The router that chooses sources: the profile's, with what only this installation knows.

That is, which sources there are (the model is offered no other, and one that the profile does not name is a route,
too), what the things of the home and the services are called, and what a model chose before: its choices are kept for
an hour, in the store as well. What people said of such a question comes first, what is said of a source last. A
profile's hash stands for everything that can change a decision, so names and routes
change it.
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
from turnout.core.profile import Placed, Profile
from turnout.core.query import Query, Reading
from turnout.core.router import Router
from turnout.core.verdict import Fault, Gate, Reason, Verdict
from turnout.layers.llm import Llm
from turnout.layers.student import Student

from .cache import Cache
from .names import Names, spell
from .preference import Described, PastChoices, ReadPast
from .source import Source

# The specification's: a model's choice is kept for an hour, a thousand of them.
CHOICE_S, CHOICES = 3600.0, 1000


class Choice(Struct, frozen=True):
    """What a model chose, and which."""

    routes: tuple[str, ...]
    confidence: float
    model: str


_choice = msgspec.json.Decoder(Choice)


class RememberedChoice(Layer):
    """A model that is asked each question once an hour."""

    def __init__(self, llm: Llm, cache: Cache, profile: str) -> None:
        self.llm = llm
        self.cache = cache
        self.profile = profile

    async def __call__(self, reading: Reading) -> Verdict | Fault | None:
        if not reading.folded:
            return None
        tenant, key = reading.query.tenant or "", (self.profile, self.llm.system, reading.folded)
        kept = await self.cache.get(tenant, key)
        if kept is not None:
            choice = _choice.decode(kept)
            scores = dict.fromkeys(choice.routes, choice.confidence)
            told = (Reason("llm.answer", f"{choice.model} said {' + '.join(choice.routes)} before"),)
            evidence = (choice.model, 0.0)
            sure = choice.confidence
            return Verdict(choice.routes, sure, sure, scores, told, evidence=evidence, who="C")
        verdict = await self.llm(reading)
        if isinstance(verdict, Verdict):
            choice = Choice(verdict.routes, verdict.confidence, str(verdict.evidence[0]))
            self.cache.put(tenant, key, msgspec.json.encode(choice), CHOICE_S)
        return verdict

    def demand(self, query: Query) -> Demand:
        return self.llm.demand(query)


def choosing(router: Router, sources: Mapping[str, Source], cache: Cache, read_past: ReadPast | None = None) -> Router:
    """The router for these sources; `read_past` reads what people said of past decisions."""
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
    # A source that cannot be asked has no description, and is offered to nobody.
    described = {name: said for name in profile.routes if name in sources and (said := sources[name].description)}
    embedder = next((place.call.embedder for place in profile.layers if type(place.call) is Student), None)
    layers: list[Placed] = []
    for place in profile.layers:
        if read_past is not None and described and place.kind != "declared.v1" and not _is_in(layers, "past"):
            past = PastChoices(described, read_past, embedder)
            layers.append(Placed("past", "past.v1", "network", "E", Gate(), place.deadline_ms, past))
        # Before whoever knows only what questions in general are about.
        if names and place.kind != "declared.v1" and not _is_in(layers, "names"):
            layers.append(Placed("names", "names.v1", "free", "K", Gate(), place.deadline_ms, Names(names)))
        if isinstance(place.call, Llm) and described:
            kept = RememberedChoice(place.call.offering(described), cache, profile.hash)
            layers.append(replace(place, call=kept))
        else:
            layers.append(place)
    if fitting := [name for name in own if name in described]:
        fits = Described(described, fitting, embedder)
        layers.append(Placed("described", "described.v1", "cpu", "E", Gate(), profile.deadline_ms, fits))
    return Router(replace(profile, layers=tuple(layers)))


def _is_in(layers: list[Placed], name: str) -> bool:
    return any(one.id == name for one in layers)


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
