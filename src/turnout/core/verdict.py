"""A layer's answer and the gate it must pass.

A verdict has routes, a confidence and the raw evidence. It knows no threshold: the gate, which belongs to the profile,
says whether it is good enough.

When a layer, an adjustment, a splitter or an `explain` raises, the error becomes a `Fault`: neither routing nor
rendering a decision may fail.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from math import isfinite
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, Raw, Struct
from msgspec.structs import force_setattr

from .policy import Share

Who = Literal["D", "R", "S", "K", "E", "L", "A", "C", "F", "N"]
"""Who decided: Declared, Rule, Signals, Keyword, Embedding, LLM, Agent, Cache, Fallback, None (router off or blank)."""

How = Literal["-", "l", "t", "e", "i", "x", "k", "h"]
"""How: clean, low, timeout, error, invalid, breaker, clamped, held verdict used."""


class Reason(Struct, frozen=True, gc=False):
    """Why: a stable dotted code for programs and a sentence for people."""

    code: str
    text: str


class Verdict(Struct, frozen=True, eq=False):
    """A layer's answer."""

    routes: tuple[str, ...]
    confidence: float
    margin: float = 0.0
    scores: Mapping[str, float] = {}
    reasons: tuple[Reason, ...] = ()
    evidence: tuple[object, ...] = ()
    """What the layer saw, raw; its `explain` renders it on demand. Values only: ids, counts, numbers."""
    decisive: bool = False
    """Passes every gate, as an override or a hard rule does."""
    calibrated: bool = False
    """Whether `confidence` is a fitted probability; otherwise it is a score on [0, 1]."""
    who: Who | None = None
    """Who decided, if it is not the layer's own kind: `C` for a cached answer."""
    adds: Mapping[str, float] = {}
    """What each reason adds to the first route's score (or the only score), by its code, where that is known."""
    _valid_for: tuple[str, ...] | None = None
    """The routes this verdict was checked against and is valid for."""
    _explained: tuple[object, str, tuple[Reason, ...]] | None = None
    """The layer's place, how the layer ended, and the reasons rendered for that."""
    _encoded: Raw | None = None
    """The JSON form."""

    def __eq__(self, other: object) -> bool:
        # The cached fields are not part of the value.
        return isinstance(other, Verdict) and self._content() == other._content()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.routes, self.confidence, self.margin, self.evidence))

    def _content(self) -> tuple[object, ...]:
        stated = (self.routes, self.confidence, self.margin, dict(self.scores), self.reasons, self.evidence)
        return (*stated, self.decisive, self.calibrated, self.who, dict(self.adds))


keep = force_setattr
"""Caches a computed value in a private field of a verdict or decision; the only mutation in core. A layer that sees
the same evidence again may return the same verdict, which by then is validated, explained and encoded.

`Verdict` must not be `gc=False`: `_explained` refers to the layer, which may refer back to the verdict."""


class Gate(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """When a verdict is good enough. Both comparisons are `>=`."""

    confidence: Share = 0.0
    margin: Annotated[float, Meta(ge=0.0)] = 0.0

    def admits(self, verdict: Verdict) -> bool:
        return verdict.decisive or (verdict.confidence >= self.confidence and verdict.margin >= self.margin)


FaultKind = Literal["timeout", "error", "invalid", "breaker", "skipped"]


class Fault(Struct, frozen=True, gc=False):
    """Why a layer gave no verdict: it failed, or was not asked."""

    kind: FaultKind
    detail: str
    evidence: tuple[object, ...] = ()
    """As for a verdict: a failed call may still have cost something."""


Answer = Verdict | Fault | None
"""What a driver sends back for a layer: its verdict, a fault, or None if the layer passes."""


def check_verdict(verdict: object, routes: tuple[str, ...]) -> Answer:
    """The verdict if it is valid for a profile with these routes, else a fault that says why not."""
    if type(verdict) is Verdict:
        if verdict._valid_for is routes:
            return verdict
        if (mistake := next(find_mistakes(verdict, routes), None)) is not None:
            return Fault("invalid", mistake)
        keep(verdict, "_valid_for", routes)
        return verdict
    if verdict is None or (type(verdict) is Fault and verdict.kind in _FAULTS):
        return verdict
    return Fault("invalid", f"returned {type(verdict).__name__}, not a Verdict or None")


_FAULTS = frozenset(get_args(FaultKind))
_MOST = sys.float_info.max


def find_mistakes(verdict: Any, routes: tuple[str, ...]) -> Iterator[str]:
    """What is wrong with a verdict. Third-party layers may ignore the annotations."""
    chosen, confidence, margin = verdict.routes, verdict.confidence, verdict.margin
    if not isinstance(chosen, tuple) or not chosen or not all(map(routes.__contains__, chosen)):
        yield f"chose {show(list(chosen) if isinstance(chosen, tuple) else chosen)}, not routes of this profile"
    # NaN fails every comparison.
    if not (_is_number(confidence) and 0.0 <= confidence <= 1.0):
        yield f"confidence {show(confidence)} is not between 0 and 1"
    if not (_is_number(margin) and margin >= 0.0):
        yield f"margin {show(margin)} is not a number from 0 up"
    if type(verdict.reasons) is not tuple or any(type(reason) is not Reason for reason in verdict.reasons):
        yield "its reasons are not a tuple of Reason"
    for field, numbers in (("scores", verdict.scores), ("adds", verdict.adds)):
        if not (type(numbers) is dict or isinstance(numbers, Mapping)) or not _are_numbers(tuple(numbers.values())):
            yield f"its {field} are not numbers by name"
    if type(verdict.evidence) is not tuple:
        yield "its evidence is not a tuple"


def _are_numbers(values: Collection[object]) -> bool:
    if {float}.issuperset(map(type, values)):  # nearly always, and much faster
        return all(map(isfinite, values))  # type: ignore[arg-type]
    return all(map(_is_number, values))


def _is_number(value: object) -> bool:
    # A comparison, because NaN fails it and an integer too large for a float does not raise.
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -_MOST <= value <= _MOST


# --- errors as values

# An error's message may quote the whole question, which does not belong in a trace.
MESSAGE_CHARACTERS = 200


def contain(call: Callable[..., Any], *arguments: object) -> Any:
    """What the call returns, or a fault that says how it failed."""
    try:
        return call(*arguments)
    # An inline call cannot be cancelled from outside, so a CancelledError is the plug-in's own, an ordinary error.
    except (Exception, asyncio.CancelledError) as error:
        return to_fault(error)


def to_fault(error: BaseException) -> Fault:
    name = type(error).__name__
    message = _message_of(error)
    return Fault("error", f"{name}: {message}" if message else name)


def _message_of(error: BaseException) -> str:
    try:
        message = str(error)
    except Exception:
        return "(its message cannot be read)"
    return readable(message[:MESSAGE_CHARACTERS])


def show(value: object) -> str:
    """A plug-in's value, as a message quotes it; its `repr` may fail too."""
    return readable(str(contain(repr, value))[:80])


def readable(text: str) -> str:
    """The text with lone surrogates replaced: they have no UTF-8 form."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
