"""A layer's answer and the gate it must pass.

A verdict states routes, how sure the layer is, and the raw evidence. It knows no threshold: whether it is good enough is
the gate's business, and the gate belongs to the profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

Who = Literal["D", "R", "S", "K", "E", "L", "A", "C", "F", "N"]
"""Who decided: Declared, Rule, Signals, Keyword, Embedding, LLM, Agent, Cache, Fallback, None (router off or blank)."""

How = Literal["-", "l", "t", "e", "i", "x", "k", "h"]
"""How: clean, low, timeout, error, invalid, breaker, clamped, held verdict used."""


class Reason(Struct, frozen=True, gc=False):
    """Why, twice: a stable dotted code for programs and a sentence for people."""

    code: str
    text: str


class Verdict(Struct, frozen=True, gc=False):
    routes: tuple[str, ...]
    confidence: float
    margin: float = 0.0
    scores: Mapping[str, float] = {}
    reasons: tuple[Reason, ...] = ()
    evidence: tuple[object, ...] = ()
    """What the layer saw, raw; its `explain` renders it when somebody asks. Values only: ids, counts, numbers."""
    decisive: bool = False
    """Stands whatever the gate asks, as an override or a hard rule does."""
    calibrated: bool = False
    """False: `confidence` is a score on [0, 1], not a fitted probability."""


class Gate(Struct, frozen=True, gc=False):
    """When a verdict is good enough. Both comparisons are `>=`."""

    confidence: float = 0.0
    margin: float = 0.0

    def admits(self, verdict: Verdict) -> bool:
        return verdict.decisive or (verdict.confidence >= self.confidence and verdict.margin >= self.margin)


class Fault(Struct, frozen=True, gc=False):
    """Why a layer gave no verdict although it was asked, or was not asked at all."""

    kind: Literal["timeout", "error", "invalid", "breaker", "skipped"]
    detail: str


Answer = Verdict | Fault | None
"""What a driver hands back for a layer: its verdict, a fault, or nothing (the layer passes)."""


def check_verdict(verdict: Any, routes: tuple[str, ...]) -> Answer:  # noqa: ANN401 - whatever a layer returned
    """The verdict if a profile with these routes can use it, else the fault that says why not."""
    if verdict is None or type(verdict) is Fault:
        return verdict  # type: ignore[no-any-return]
    if type(verdict) is not Verdict:
        return Fault("invalid", f"returned {type(verdict).__name__}, not a Verdict or None")
    for route in verdict.routes or ("",):
        if route in routes:
            continue
        return Fault("invalid", f"chose {list(verdict.routes)}, not routes of this profile")
    # NaN fails both comparisons, which is what we want of it.
    if not (0.0 <= verdict.confidence <= 1.0 and verdict.margin >= 0.0):
        return Fault("invalid", f"confidence {verdict.confidence}, margin {verdict.margin} are out of range")
    return verdict
