"""The types of a profile file. Each kind of layer has its own type for the rest of a layer's table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from turnout.core.contract import Rule
from turnout.core.policy import Count, Policy
from turnout.core.profile import Default, Fallback
from turnout.core.verdict import Gate

Milliseconds = Annotated[float, Meta(gt=0.0)]


class LayerHead(Struct, frozen=True, omit_defaults=True):
    """What every layer's table has; the other keys belong to its kind."""

    kind: str
    id: str = ""
    """Its name in traces; the kind's first word when left out."""
    accept: Gate = Gate()
    deadline_ms: Milliseconds | None = None
    max_shift: Count | None = None
    """If routes are ordered: how many routes it may move a decision from the best verdict held before it."""
    optional: bool = False
    """Load the profile even if no installed package provides the kind; the layer then passes."""
    held_text: str = ""
    """What people read when the gate held a verdict back; `{confidence}` stands for the number."""


class AdjustHead(Struct, frozen=True, omit_defaults=True):
    kind: str
    id: str = ""


class TextConfig(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    fold: Literal["unicode", "javascript"] = "unicode"
    unwrap: bool = False
    """Strip what clients wrap around the user's own words, from `turns`."""
    inherit: bool = False
    """Read a follow-up ("yes, go ahead") together with the turn it continues, from `turns`."""


class SplitConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How a compound question is split before any layer sees it."""

    compound: bool = True
    """Split at conjunctions between two questions, and between sentences that can each be decided alone."""
    conditions: bool = False
    """A leading "if X, Y" asks X."""


class ProfileFile(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    name: str
    routes: Annotated[tuple[str, ...], Meta(min_length=1)]
    layers: Annotated[tuple[Mapping[str, Any], ...], Meta(min_length=1)]
    fallback: Fallback
    policy: Mapping[str, Policy]
    description: str = ""
    extends: str | None = None
    ordered: bool = False
    """The routes are listed from the cheapest to the most expensive."""
    enabled: bool = True
    off: Default | None = None
    """What every query gets while `enabled` is false."""
    blank: Default | None = None
    deadline_ms: Milliseconds = 400.0
    cases: str | None = None
    """Golden cases, a JSONL file beside this one."""
    text: TextConfig = TextConfig()
    split: SplitConfig | None = None
    settings: Mapping[str, str] = {}
    """Names that a user may set in `turnout.toml`, and the place in this file that each one sets."""
    adjust: tuple[Mapping[str, Any], ...] = ()
    contract: tuple[Rule, ...] = ()


NOT_HASHED = ("description", "extends", "cases", "settings")
"""Keys that cannot change a decision, and so are not part of a profile's hash."""
