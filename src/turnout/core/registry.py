"""Which kinds of layer exist, and how a driver may run each.

A kind is a versioned name and a factory: typed config and supplies in, a callable out, no I/O. Built-in kinds register
when `turnout.layers` is imported, others through the entry-point group `turnout.layers`. A profile names kinds, never
Python paths.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from msgspec import Struct

from .embed import Embeds
from .layer import Cost, Layer, adapt
from .model import Asks
from .profile import Adjust
from .verdict import Fault, Who, contain

GROUP = "turnout.layers"

Stage = Literal["layer", "adjust"]


class Phrases(Protocol):
    """Collects the patterns of all layers, so that a text is scanned for them in one pass."""

    def add(self, pattern: Any, code: str) -> int:
        """Add a pattern; returns its id in a reading's `hits`. A counterfactual mutes it by `code`."""
        ...


class Supplies(Struct, frozen=True):
    """What a factory gets besides its config."""

    routes: tuple[str, ...]
    phrases: Phrases
    models: Asks | None = None
    """Asks language models, if any can be asked."""
    deadline_ms: float = 350.0
    """How long the layer being built may take."""
    profile: str = ""
    """The name of the profile being built."""
    beside: Path | None = None
    """The folder of the profile's file: relative paths in it start here."""
    embedder: Embeds | None = None
    """Turns texts into vectors, if there is an embedder."""
    find_student: Callable[[str | None], Path | None] | None = None
    """Finds the folder of the trained model to serve: by its digest, or the champion."""


class Kind(Struct, frozen=True):
    name: str
    cost: Cost
    who: Who
    config: type[Struct]
    build: Callable[[Any, Supplies], Layer | Adjust]
    stage: Stage
    factory: Callable[..., Any]
    by_app: bool = False
    """An application replaces the layer with its own; without the application it passes."""

    def faults(self, config: Struct, routes: tuple[str, ...]) -> list[tuple[str, str]]:
        """What else is wrong with a config of the right types, as (where, message); asks the config's `faults`."""
        find = getattr(config, "faults", None)
        return [] if find is None else list(find(routes))

    def produces(self, config: Struct) -> set[str] | None:
        """The routes that a layer with this config can choose; None if that is not known."""
        find = getattr(config, "produces", None)
        return None if find is None else set(find())


_kinds: dict[str, Kind] = {}
_broken: dict[str, str] = {}
_discovered: list[bool] = []
F = TypeVar("F", bound=Callable[..., Any])


def kind(
    name: str, *, cost: Cost = "free", who: Who = "R", stage: Stage = "layer", by_app: bool = False
) -> Callable[[F], F]:
    """Register a factory `(config, supplies) -> layer` or `(config) -> layer` under a versioned name.

    With `stage="adjust"` the factory makes an adjustment, which changes the routes after the cascade. With `by_app` an
    application replaces the layer with its own.
    """

    def register(factory: F) -> F:
        parameters = list(inspect.signature(factory).parameters)
        config = typing.get_type_hints(factory)[parameters[0]]

        def build(config: Struct, supplies: Supplies) -> Layer | Adjust:
            made = factory(config, supplies) if len(parameters) > 1 else factory(config)
            return adapt(made) if stage == "layer" else made

        known = _kinds.get(name)
        if known is not None and _origin(known.factory) != _origin(factory):
            raise ValueError(f"kind {name!r} is taken by {_origin(known.factory)}: give this one another name")
        _kinds[name] = Kind(name, cost, who, config, build, stage, factory, by_app)
        return factory

    return register


def _origin(factory: Callable[..., Any]) -> str:
    return f"{factory.__module__}.{factory.__qualname__}"


def kinds() -> Mapping[str, Kind]:
    """All installed kinds by name; the first call imports the entry points."""
    if not _discovered:
        _discovered.append(True)
        for entry in metadata.entry_points(group=GROUP):
            loaded = contain(entry.load)
            if isinstance(loaded, Fault):
                _broken[entry.name] = loaded.detail
    return _kinds


def is_brought_by_app(name: str) -> bool:
    """Whether an application replaces layers of this kind with its own."""
    registered = kinds().get(name)
    return registered is not None and registered.by_app


def broken() -> Mapping[str, str]:
    """Entry points that could not be imported, and why."""
    kinds()
    return _broken
