"""A challenger and the champion, each built into the same profile. Only the folder of the model differs."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path as File
from typing import Any, NamedTuple

from msgspec import Struct

from turnout.config.cases import Case, read_cases
from turnout.config.champion import champion_digest, find_model, layers_with_models
from turnout.config.check import layer_id
from turnout.config.load import apply_settings, read_chain
from turnout.config.name import warn_of
from turnout.config.resolve import build
from turnout.config.settings import settings_file
from turnout.core.embed import Embeds
from turnout.core.errors import LearnError, suggest
from turnout.core.profile import PlacedLayer, Profile
from turnout.core.query import Query
from turnout.core.router import Router
from turnout.core.verdict import Verdict

from .registry import RegisteredModel, find_candidate

STUDENT, GAIN = "student.v1", "gain.v1"
TRAINED = (STUDENT, GAIN)
"""The kinds of layers that serve a model of the registry."""


class Contest(Struct, frozen=True):
    profile: str
    """The profile's own name, as on the shelf."""
    typed: str
    """The profile as the user typed it, for commands in hints."""
    layer: str
    kind: str
    challenger: RegisteredModel
    champion: str
    """A digest, or `shipped`."""
    new: Router
    old: Router | None
    """None if nothing serves yet."""
    cases: list[Case]
    plain: Router
    """The profile as it decides now, with the champion or without a model."""


def open_contest(
    profile: str | os.PathLike[str],
    *,
    layer: str | None = None,
    digest: str | None = None,
    embedder: Embeds | None = None,
    config: str | os.PathLike[str] | None = None,
) -> Contest:
    """The challenger with that digest, or the newest one, and the champion. What serves does not change."""
    plain = build_with(profile, embedder=embedder, config=config)
    name, entry = find_trained(plain.name, plain.resolved["layers"], layer)
    train = f"turnout train -p {shlex.quote(str(profile))}"
    challenger = find_candidate(plain.name, name, digest, train)
    if challenger.champion:
        raise LearnError(f"{challenger.digest} serves already: name another, or train one ({train})")
    old = Router(plain) if find_model(dict(plain.resolved), name, None) is not None else None
    if old is not None:
        place_of(old, name)  # a champion that cannot be asked is an error, unlike no champion
    cases = read_chain(profile).cases
    return Contest(
        plain.name,
        str(profile),
        name,
        entry["kind"],
        challenger,
        champion_digest(plain.name, name),
        Router(build_with(profile, name, challenger.folder, embedder=embedder, config=config)),
        old,
        read_cases(cases) if cases is not None and cases.is_file() else [],
        Router(plain),
    )


def place_of(router: Router, layer: str) -> PlacedLayer:
    """The layer; raises LearnError if no model in it can be asked here."""
    profile = router.profile
    placed = next((placed for placed in profile.layers if placed.id == layer), None)
    if placed is None:
        known = ", ".join(placed.id for placed in profile.layers)
        raise LearnError(f"profile {profile.name!r} has no layer {layer!r} (it has: {known})")
    if placed.cost == "network":
        why = "its vectors come from a server: compare it where the embedder is installed (turnout-build-minilm)"
        raise LearnError(f"{profile.name}/{layer} cannot be asked here, {why}")
    if placed.call is None:
        why = placed.absent or f"no installed package provides {placed.kind}"
        raise LearnError(f"{profile.name}/{layer} has no model in its place: {why}")
    return placed


def asker(router: Router, layer: str) -> Callable[[str], Verdict | None]:
    """A function that asks the model of this layer alone about a text."""
    call, read = place_of(router, layer).call, router.profile.read

    def ask(text: str) -> Verdict | None:
        verdict = call(read(Query(text))) if call is not None else None
        return verdict if isinstance(verdict, Verdict) else None

    return ask


def build_with(
    profile: str | os.PathLike[str],
    layer: str | None = None,
    folder: File | None = None,
    *,
    embedder: Embeds | None = None,
    config: str | os.PathLike[str] | None = None,
    instead: bool = False,
) -> Profile:
    """The profile with the model of that folder in a layer; without a folder, as it is.

    `instead` also replaces a model that the layer's own table names, which a promotion cannot.
    """
    chain = apply_settings(read_chain(profile), settings_file(config))
    warn_of(chain.notices, stacklevel=2)
    students = {} if folder is None or layer is None else {layer: folder.absolute()}
    for entry in chain.document.tree["layers"] if students and not instead else ():
        if layer_id(entry) == layer and ("model" in entry or "artefact" in entry):
            advice = "no promotion reaches it: take `model` and `artefact` out of its table"
            raise LearnError(f"the profile {profile} names the model of its layer {layer!r} itself, so {advice}")
    return build(
        chain.document, chain.remarks, embedder=embedder, beside=chain.beside, students=students, notices=chain.notices
    )


class ServingLayer(NamedTuple):
    """A profile as it serves."""

    router: Router
    layer: str
    """The id of the trained layer."""
    digest: str | None
    """The digest of its model; None if it has none."""


def open_serving(
    profile: str | os.PathLike[str],
    *,
    layer: str | None = None,
    embedder: Embeds | None = None,
    config: str | os.PathLike[str] | None = None,
) -> ServingLayer:
    built = build_with(profile, embedder=embedder, config=config)
    name, _ = find_trained(built.name, built.resolved["layers"], layer)
    served = any(placed.id == name and placed.call is not None for placed in built.layers)
    return ServingLayer(Router(built), name, champion_digest(built.name, name) if served else None)


def find_layer(
    profile: str, entries: Iterable[Mapping[str, Any]], kinds: tuple[str, ...], name: str | None = None, hint: str = ""
) -> tuple[str, Mapping[str, Any]]:
    """The id and the table of the layer of these kinds; `hint` says what to do if there is none."""
    layers = {layer_id(entry): entry for entry in entries if entry.get("kind") in kinds}
    what = f"{' or '.join(kinds)} layer"
    if name is not None and name not in layers:
        known = suggest(name, layers) or (f" (it has: {', '.join(layers)})" if layers else "")
        raise LearnError(f"profile {profile!r} has no {what} {name!r}{known}")
    if not layers:
        raise LearnError(f"profile {profile!r} has no {what}{hint}")
    if name is None and len(layers) > 1:
        raise LearnError(f"profile {profile!r} has several of {what}: --layer {' or --layer '.join(layers)}")
    chosen = name or next(iter(layers))
    return chosen, layers[chosen]


def find_trained(
    profile: str, entries: Iterable[Mapping[str, Any]], name: str | None = None
) -> tuple[str, Mapping[str, Any]]:
    """The layer that serves a model of the registry. Of several, the only one with models of the user's own, else the
    first."""
    trained = {layer_id(entry): entry for entry in entries if entry.get("kind") in TRAINED}
    if name is None and len(trained) > 1:
        own = [layer for layer in trained if layer in layers_with_models(profile)]
        name = own[0] if len(own) == 1 else next(iter(trained))
    return find_layer(profile, trained.values(), TRAINED, name, ": nothing in it is trained")
