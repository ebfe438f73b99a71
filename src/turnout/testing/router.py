"""Readings, profiles and routers built in code, for tests of the engine without TOML.

Everything has a default, so that a test states only what matters to it. The hash of a profile built here covers its
data only: two with the same data and different layers have the same hash, unlike profiles from files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypedDict, Unpack

import msgspec

from turnout.core.contract import Rule
from turnout.core.layer import Cost, Judge, Layer, adapt
from turnout.core.policy import Policy
from turnout.core.profile import Adjust, Default, Fallback, Part, PlacedLayer, Profile
from turnout.core.query import Query, Reading
from turnout.core.router import Router
from turnout.core.verdict import Gate, Who
from turnout.text.fold import fold

ROUTES = ("first", "second", "third")
DEADLINE_MS = 350.0


class ProfileFields(TypedDict, total=False):
    """The fields of a profile that a test may set; the others follow from its layers and routes."""

    name: str
    policies: Mapping[str, Policy]
    fallback: Fallback
    off: Default | None
    blank: Default | None
    ordered: bool
    deadline_ms: float
    contract: tuple[Rule, ...]
    adjust: tuple[Adjust, ...]
    split: Callable[[Reading], tuple[Part, ...]] | None
    read: Callable[[Query], Reading]
    mute: Callable[[Reading, frozenset[str]], Reading]


def make_reading(
    text: str | Query = "", *, hits: tuple[int, ...] = (), notes: tuple[str, ...] = (), muted: Iterable[str] = ()
) -> Reading:
    """The reading of a text or a query, folded, with the given hits and notes."""
    query = Query(text) if isinstance(text, str) else text
    words = query.text or next((turn.text for turn in reversed(query.turns) if turn.role == "user"), "")
    folded = fold(words)
    return Reading(query, words, folded.text, folded.units, hits, notes, frozenset(muted))


def place(
    layer: Layer | Judge | None,
    id: str = "",
    *,
    cost: Cost | None = None,
    who: Who = "R",
    gate: Gate | None = None,
    deadline_ms: float = DEADLINE_MS,
    held_text: str = "",
) -> PlacedLayer:
    """A layer in a profile. A coroutine is a network layer by default; None stands for a kind that is not installed."""
    call = None if layer is None else adapt(layer)
    if cost is None:
        cost = "network" if call is not None and call.awaits else "free"
    return PlacedLayer(
        id=id,
        kind="testing.v1",
        cost=cost,
        who=who,
        gate=gate or Gate(),
        deadline_ms=deadline_ms,
        call=call,
        held_text=held_text,
        needs="install" if call is None else call.judges_by,
    )


def make_profile(
    layers: Iterable[Layer | Judge | PlacedLayer] = (),
    routes: tuple[str, ...] = ROUTES,
    **fields: Unpack[ProfileFields],
) -> Profile:
    """A profile with these layers, asked in this order; a layer without an id is called `layer0`, `layer1`, …"""
    placed = tuple(_named(layer, number) for number, layer in enumerate(layers))
    policies = {route: Policy() for route in routes} | dict(fields.get("policies", {}))
    given: dict[str, Any] = {"name": "testing", "fallback": Fallback(routes[0]), "read": make_reading, "mute": _mute}
    # `adjust` has functions in it.
    plain = {name: value for name, value in fields.items() if not callable(value) and name != "adjust"}
    heads = [(layer.id, layer.cost, layer.who, layer.gate, layer.deadline_ms) for layer in placed]
    data = msgspec.json.encode([routes, plain, heads], order="sorted")
    given |= {
        **fields,
        "hash": hashlib.sha256(data).hexdigest()[:16],
        "description": "",
        "routes": routes,
        "layers": placed,
        "policies": policies,
        "declared": tuple(place.call.validate for place in placed if place.call and place.needs == "declared"),
        "encoded_policies": {route: msgspec.Raw(msgspec.json.encode(policy)) for route, policy in policies.items()},
    }
    return Profile(**given)


def make_router(
    layers: Iterable[Layer | Judge | PlacedLayer] = (),
    routes: tuple[str, ...] = ROUTES,
    **fields: Unpack[ProfileFields],
) -> Router:
    """The router of such a profile."""
    return Router(make_profile(layers, routes, **fields))


def _named(layer: Layer | Judge | PlacedLayer, number: int) -> PlacedLayer:
    placed = layer if isinstance(layer, PlacedLayer) else place(layer)
    return placed if placed.id else msgspec.structs.replace(placed, id=f"layer{number}")


def _mute(reading: Reading, muted: frozenset[str]) -> Reading:
    return msgspec.structs.replace(reading, muted=reading.muted | muted)
