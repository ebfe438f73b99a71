"""Changes numbers of a profile: gates, weights, the edges of bands.

The changes are TOML that extends the profile, so the same text works in the playground and, saved to a file,
permanently. Weights that must add up to one still do: those that were not moved are scaled.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from turnout.config.document import extend, from_source
from turnout.config.load import apply_settings, read_chain
from turnout.config.resolve import build
from turnout.config.settings import settings_file
from turnout.config.write import toml_comment, toml_text, toml_value
from turnout.core.embed import Embeds
from turnout.core.errors import QueryError
from turnout.core.model import Asks
from turnout.core.profile import Profile

# Of weights and edges as they are written.
DECIMALS = 4


class Knob(Struct, frozen=True):
    """A number of a profile that can be moved."""

    path: str
    """`student.accept.confidence`, `signals.weight.codePresence`, `signals.edge.0`, `fallback.held`"""
    label: str
    value: float
    low: float
    high: float


def find_knobs(profile: Profile) -> tuple[Knob, ...]:
    return tuple(_knobs(profile.resolved))


def _knobs(resolved: Mapping[str, Any]) -> Iterator[Knob]:
    for entry in resolved.get("layers", ()):
        layer = entry.get("id")
        if not isinstance(layer, str):
            continue
        accept = entry.get("accept", {})
        for name in ("confidence", "margin"):
            if name in accept:
                yield Knob(f"{layer}.accept.{name}", f"{layer}: the gate needs {name}", float(accept[name]), 0.0, 1.0)
        if (bands := entry.get("bands")) is not None:
            edges = [float(edge) for edge in bands["edges"]]
            room = max(edges[-1] - edges[0], 0.5)
            for place, edge in enumerate(edges):
                label = f"{layer}: {bands['routes'][place + 1]} begins at"
                yield Knob(f"{layer}.edge.{place}", label, edge, edges[0] - room, edges[-1] + room)
            for signal in entry.get("signals", ()):
                label = f"{layer}: weight of {signal.get('label') or signal['id']}"
                yield Knob(f"{layer}.weight.{signal['id']}", label, float(signal["weight"]), 0.0, 0.9)
    held = resolved.get("fallback", {}).get("held")
    if held is not None:
        yield Knob("fallback.held", "a held verdict is used from", float(held), 0.0, 1.0)


def read_changes(knobs: Sequence[Knob], form: Mapping[str, str]) -> dict[str, float]:
    """The changed values by the knobs' paths; raises QueryError for a value that is not a number or out of range."""
    changes: dict[str, float] = {}
    for knob in knobs:
        text = form.get(knob.path, "")
        if not text.strip():
            continue
        try:
            value = float(text)
        except ValueError:
            raise QueryError(f"{knob.label}: {text[:40]!r} is not a number") from None
        if not math.isfinite(value) or not knob.low <= value <= knob.high:
            raise QueryError(f"{knob.label}: {text[:40]} is not between {knob.low:g} and {knob.high:g}")
        if abs(value - knob.value) > 10**-DECIMALS / 2:
            changes[knob.path] = round(value, DECIMALS)
    return changes


def write_changes(profile: Profile, base: str, changes: Mapping[str, float]) -> str:
    """The TOML that extends the profile with these changes."""
    lines = [toml_comment(f"{profile.name} with {len(changes)} of its numbers changed"), f"extends = {toml_text(base)}"]
    lines.append(f"name = {toml_text(profile.name)}")
    if (held := changes.get("fallback.held")) is not None:
        lines.append(f"fallback = {toml_value({'held': held})}")
    for entry in profile.resolved.get("layers", ()):
        lines += _write_layer(entry, changes)
    return "\n".join(lines) + "\n"


def _write_layer(entry: Mapping[str, Any], changes: Mapping[str, float]) -> list[str]:
    layer = str(entry.get("id"))
    own = {path.removeprefix(f"{layer}."): value for path, value in changes.items() if path.startswith(f"{layer}.")}
    if not own:
        return []
    lines = ["", "[[layers]]", f"id = {toml_text(layer)}"]
    gate = {name: own[f"accept.{name}"] for name in ("confidence", "margin") if f"accept.{name}" in own}
    if gate:
        lines.append(f"accept = {toml_value(gate)}")
    if any(path.startswith("edge.") for path in own):
        edges = [own.get(f"edge.{place}", float(edge)) for place, edge in enumerate(entry["bands"]["edges"])]
        lines.append(f"bands = {toml_value({'edges': edges})}")
    moved = {path.removeprefix("weight."): value for path, value in own.items() if path.startswith("weight.")}
    if moved:
        for signal, weight in _balanced({one["id"]: float(one["weight"]) for one in entry["signals"]}, moved).items():
            lines += ["", "[[layers.signals]]", f"id = {toml_text(signal)}", f"weight = {toml_value(weight)}"]
    return lines


def _balanced(weights: Mapping[str, float], moved: Mapping[str, float]) -> dict[str, float]:
    """All weights; those that were not moved are scaled so that the sum is one, and the largest absorbs rounding."""
    rest = {name: weight for name, weight in weights.items() if name not in moved}
    room, had = 1.0 - math.fsum(moved.values()), math.fsum(rest.values())
    if room < 0.0 or (not rest and abs(room) > 1e-6) or (had <= 0.0 < room):
        raise QueryError(f"the weights that were moved add up to {1.0 - room:.4g}: they must leave room within 1")
    scaled = {name: round(weight * room / had, DECIMALS) if had else 0.0 for name, weight in rest.items()}
    if scaled:
        largest = max(scaled, key=lambda name: scaled[name])
        left = 1.0 - math.fsum((*moved.values(), *scaled.values()))
        scaled[largest] = round(scaled[largest] + left, DECIMALS + 2)
    return {**scaled, **moved}


def tune(
    base: str,
    text: str,
    *,
    config: str | os.PathLike[str] | None = None,
    models: Asks | None = None,
    embedder: Embeds | None = None,
) -> Profile:
    """The base profile as this TOML changes it; raises a ConfigError with every mistake in the TOML."""
    chain = apply_settings(read_chain(base), settings_file(config))
    document = extend(chain.document, from_source(text, "playground.toml"))
    return build(document, chain.remarks, models, embedder, chain.beside)
