"""Which layer of a profile is meant: the one of a kind, or the one that is named where there are several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from turnout.config.check import layer_id
from turnout.core.errors import LearnError, suggest

STUDENT, GAIN, SIGNALS = "student.v1", "gain.v1", "signals.v1"
TRAINED = (STUDENT, GAIN)
"""Kinds of layers that serve a model of the registry."""


def find_layer(
    profile: str, entries: Iterable[Mapping[str, Any]], kinds: tuple[str, ...], name: str | None = None, hint: str = ""
) -> tuple[str, Mapping[str, Any]]:
    """The id and the table of the layer of these kinds; `hint` is what to do where there is none."""
    found = {layer_id(entry): entry for entry in entries if entry.get("kind") in kinds}
    what = f"{' or '.join(kinds)} layer"
    if name is not None and name not in found:
        known = suggest(name, found) or (f" (it has: {', '.join(found)})" if found else "")
        raise LearnError(f"profile {profile!r} has no {what} {name!r}{known}")
    if not found:
        raise LearnError(f"profile {profile!r} has no {what}{hint}")
    if name is None and len(found) > 1:
        raise LearnError(f"profile {profile!r} has several of {what}: --layer {' or --layer '.join(found)}")
    chosen = name or next(iter(found))
    return chosen, found[chosen]


def find_trained(
    profile: str, entries: Iterable[Mapping[str, Any]], name: str | None = None
) -> tuple[str, Mapping[str, Any]]:
    """The layer that serves a model of the registry."""
    return find_layer(profile, entries, TRAINED, name, ": nothing in it is trained")
