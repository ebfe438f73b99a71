"""The router that chooses sources: the profile's, with what only this installation knows.

That is, which sources there are (the model is offered no other, and one that the profile does not name is a route,
too), what the things of the home and the services are called, and what a model chose before: its choices are kept for
an hour, in the store as well. A profile's hash stands for everything that can change a decision, so names and routes
change it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
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
from turnout.text.fold import fold

from .cache import Cache
from .home import ordinary
from .source import Source

# The specification's: a model's choice is kept for an hour, a thousand of them.
CHOICE_S, CHOICES = 3600.0, 1000
# Words of the longest name that is looked for.
LONGEST_NAME = 6
# Words of a name, not counting those for kinds of things, that nobody says together by accident.
TELLING = 2
_words = re.compile(r"\w+(?:'\w+)*").findall


class Choice(Struct, frozen=True):
    """What a model chose, and which."""

    routes: tuple[str, ...]
    confidence: float
    model: str


_choice = msgspec.json.Decoder(Choice)


class Names(Layer):
    """Names that mean a source: of what is in the home, of what is watched.

    A name of several telling words is no accident. A shorter one decides only a question that says nothing but
    ordinary words besides ("where is Joseph", "is Plex up"), and a word for a kind of thing ("gas") names nothing.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names
        """Each folded name with its source."""

    def __call__(self, reading: Reading) -> Verdict | None:
        words = [word.removesuffix("'s") for word in _words(reading.folded)]
        spans = ((at, at + size) for at in range(len(words)) for size in range(1, LONGEST_NAME + 1))
        found: dict[str, str] = {}
        for start, end in spans:
            name = " ".join(words[start:end])
            if name in self.names and _decides(words[start:end], [*words[:start], *words[end:]]):
                found[self.names[name]] = name
        if not found:
            return None
        reasons = tuple(Reason(f"name.{source}", f"{name!r} is known to {source}") for source, name in found.items())
        return Verdict(tuple(found), 1.0, 1.0, dict.fromkeys(found, 1.0), reasons)


def _decides(name: Sequence[str], others: Sequence[str]) -> bool:
    known = ordinary()
    telling = sum(word not in known for word in name)
    if len(name) == 1 and not telling:
        return False
    return telling >= TELLING or all(word in known for word in others)


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


def choosing(router: Router, sources: Mapping[str, Source], cache: Cache) -> Router:
    """The router for these sources."""
    profile = _with_routes(router.profile, sources)
    names = {
        " ".join(part.removesuffix("'s") for part in _words(fold(word).text)): name
        for name, source in sources.items()
        if name in profile.routes
        for word in source.words()
    }
    names.pop("", None)
    if names:
        profile = replace(profile, hash=_hash(profile.hash, sorted(names.items())))
    # A source that cannot be asked has no description, and is offered to nobody.
    described = {name: said for name in profile.routes if name in sources and (said := sources[name].description)}
    layers: list[Placed] = []
    for place in profile.layers:
        # Before whoever knows only what questions in general are about.
        if names and place.kind != "declared.v1" and not any(one.id == "names" for one in layers):
            layers.append(Placed("names", "names.v1", "free", "K", Gate(), place.deadline_ms, Names(names)))
        if isinstance(place.call, Llm) and described:
            kept = RememberedChoice(place.call.offering(described), cache, profile.hash)
            layers.append(replace(place, call=kept))
        else:
            layers.append(place)
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
