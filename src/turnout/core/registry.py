"""Which kinds of layer exist, and how a driver may run each.

A kind is a versioned name and a factory: typed config and supplies in, a callable out, no I/O. Ours register here by
being imported from `turnout.layers`; others through the entry-point group `turnout.layers`. A profile names kinds,
never Python paths.
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
    """Collects what a layer wants found; the whole profile is then scanned in one pass."""

    def add(self, pattern: Any, code: str) -> int:
        """The id under which a reading's `hits` will name this pattern. `code` is what a counterfactual mutes."""
        ...


class Supplies(Struct, frozen=True):
    """What the house hands to a factory."""

    routes: tuple[str, ...]
    phrases: Phrases
    models: Asks | None = None
    """Who puts questions to language models; None: nothing does."""
    deadline_ms: float = 350.0
    """How long the layer being built may take."""
    profile: str = ""
    """The name of the profile being built."""
    beside: Path | None = None
    """The folder of the profile's file: where relative paths in it start."""
    embedder: Embeds | None = None
    """Who turns texts into vectors; None: nothing does."""
    find_student: Callable[[str | None], Path | None] | None = None
    """The folder of the trained model this layer is to serve: the one of that digest, or the champion."""


class Kind(Struct, frozen=True):
    name: str
    cost: Cost
    who: Who
    config: type[Struct]
    build: Callable[[Any, Supplies], Layer | Adjust]
    stage: Stage
    factory: Callable[..., Any]
    by_app: bool = False
    """An application puts the layer in its place, with what is its own; a profile alone does without."""

    def faults(self, config: Struct, routes: tuple[str, ...]) -> list[tuple[str, str]]:
        """What is wrong with a config beyond its types, as (where, message); a config class may have `faults`."""
        find = getattr(config, "faults", None)
        return [] if find is None else list(find(routes))

    def produces(self, config: Struct) -> set[str] | None:
        """The routes that a layer with this config can choose; None: any, for all that is known."""
        find = getattr(config, "produces", None)
        return None if find is None else set(find())


_kinds: dict[str, Kind] = {}
_broken: dict[str, str] = {}
_discovered: list[bool] = []
F = TypeVar("F", bound=Callable[..., Any])


def kind(
    name: str, *, cost: Cost = "free", who: Who = "R", stage: Stage = "layer", by_app: bool = False
) -> Callable[[F], F]:
    """Register a factory `(config, supplies) -> layer` under a versioned name; `(config) -> layer` will do as well.

    With `stage="adjust"` the factory makes an adjustment, which changes the routes after the cascade. With `by_app` an
    application puts the layer in its place.
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
    """All kinds installed here, by name; the first call imports what entry points name."""
    if not _discovered:
        _discovered.append(True)
        for entry in metadata.entry_points(group=GROUP):
            failed = contain(entry.load)
            if isinstance(failed, Fault):
                _broken[entry.name] = failed.detail
    return _kinds


def is_brought_by_app(name: str) -> bool:
    """Whether layers of a kind are an application's to bring."""
    found = kinds().get(name)
    return found is not None and found.by_app


def broken() -> Mapping[str, str]:
    """Entry points that could not be imported, and why: their kinds are missing."""
    kinds()
    return _broken
