"""A layer's answer and the gate it must pass.

A verdict states routes, how sure the layer is, and the raw evidence. It knows no threshold: whether it is good enough
is the gate's business, and the gate belongs to the profile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Raw, Struct, json
from msgspec.structs import force_setattr

Who = Literal["D", "R", "S", "K", "E", "L", "A", "C", "F", "N"]
"""Who decided: Declared, Rule, Signals, Keyword, Embedding, LLM, Agent, Cache, Fallback, None (router off or blank)."""

How = Literal["-", "l", "t", "e", "i", "x", "k", "h"]
"""How: clean, low, timeout, error, invalid, breaker, clamped, held verdict used."""


class Reason(Struct, frozen=True, gc=False):
    """Why, twice: a stable dotted code for programs and a sentence for people."""

    code: str
    text: str


class Verdict(Struct, frozen=True, gc=False, eq=False):
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
    _encoded: Raw | None = None
    _explained: tuple[Reason, ...] | None = None
    _held: tuple[Reason, ...] | None = None

    @property
    def encoded(self) -> Raw:
        """The JSON form. A layer that sees the same evidence again may return the same verdict, so it is kept."""
        encoded = self._encoded
        if encoded is None:
            encoded = Raw(_encode(VerdictForm(self.routes, self.confidence, self.margin, self.scores)))
            force_setattr(self, "_encoded", encoded)
        return encoded

    def explained(self, explain: Callable[[Verdict], tuple[Reason, ...]] | None) -> tuple[Reason, ...]:
        """All reasons: those the layer gave and those its `explain` renders from the evidence, once."""
        reasons = self._explained
        if reasons is None:
            reasons = self.reasons if explain is None else self.reasons + explain(self)
            # A function of the rest, so nobody can see it change.
            force_setattr(self, "_explained", reasons)
        return reasons

    def explained_held(
        self, explain: Callable[[Verdict], tuple[Reason, ...]] | None, gate: Gate, text: str
    ) -> tuple[Reason, ...]:
        """The same for a verdict its gate held back, which is one reason more."""
        reasons = self._held
        if reasons is None:
            text = text or (
                f"below the gate: confidence {{confidence}} (needs {gate.confidence:.2f}), "
                f"margin {self.margin:.2f} (needs {gate.margin:.2f})"
            )
            held = Reason("gate.held", text.replace("{confidence}", f"{self.confidence:.2f}"))
            reasons = (*self.explained(explain), held)
            force_setattr(self, "_held", reasons)
        return reasons

    def __eq__(self, other: object) -> bool:
        # What is kept for speed is no part of the value.
        return isinstance(other, Verdict) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash((self.routes, self.confidence, self.margin, self.evidence))

    def _content(self) -> tuple[object, ...]:
        stated = (self.routes, self.confidence, self.margin, dict(self.scores), self.reasons, self.evidence)
        return (*stated, self.decisive, self.calibrated)


class VerdictForm(Struct, frozen=True, gc=False):
    """A verdict in the JSON form of a decision's trace."""

    routes: tuple[str, ...]
    confidence: float
    margin: float
    scores: Mapping[str, float]


_encode = json.Encoder().encode


class Gate(Struct, frozen=True, gc=False):
    """When a verdict is good enough. Both comparisons are `>=`."""

    confidence: float = 0.0
    margin: float = 0.0
    _encoded: Raw | None = None

    @property
    def encoded(self) -> Raw:
        """The JSON form."""
        encoded = self._encoded
        if encoded is None:
            encoded = Raw(_encode({"confidence": self.confidence, "margin": self.margin}))
            force_setattr(self, "_encoded", encoded)
        return encoded

    def admits(self, verdict: Verdict) -> bool:
        return verdict.decisive or (verdict.confidence >= self.confidence and verdict.margin >= self.margin)


class Fault(Struct, frozen=True, gc=False):
    """Why a layer gave no verdict although it was asked, or was not asked at all."""

    kind: Literal["timeout", "error", "invalid", "breaker", "skipped"]
    detail: str


Answer = Verdict | Fault | None
"""What a driver hands back for a layer: its verdict, a fault, or nothing (the layer passes)."""


def check_verdict(verdict: object, routes: tuple[str, ...]) -> Answer:
    """The verdict if a profile with these routes can use it, else the fault that says why not."""
    if type(verdict) is Verdict:
        for route in verdict.routes or ("",):
            if route not in routes:
                return Fault("invalid", f"chose {list(verdict.routes)}, not routes of this profile")
        # NaN fails both comparisons, which is what we want of it.
        if 0.0 <= verdict.confidence <= 1.0 and verdict.margin >= 0.0:
            return verdict
        return Fault("invalid", f"confidence {verdict.confidence}, margin {verdict.margin} are out of range")
    if verdict is None or isinstance(verdict, Fault):
        return verdict
    return Fault("invalid", f"returned {type(verdict).__name__}, not a Verdict or None")
