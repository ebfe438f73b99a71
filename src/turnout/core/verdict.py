"""A layer's answer and the gate it must pass.

A verdict states routes, how sure the layer is, and the raw evidence. It knows no threshold: whether it is good enough
is the gate's business, and the gate belongs to the profile.

Where a layer, an adjustment, a splitter or an `explain` fails instead of answering, its failure becomes a value here,
too: routing, and reading a decision, may not fail.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, get_args

from msgspec import Raw, Struct
from msgspec.structs import force_setattr

Who = Literal["D", "R", "S", "K", "E", "L", "A", "C", "F", "N"]
"""Who decided: Declared, Rule, Signals, Keyword, Embedding, LLM, Agent, Cache, Fallback, None (router off or blank)."""

How = Literal["-", "l", "t", "e", "i", "x", "k", "h"]
"""How: clean, low, timeout, error, invalid, breaker, clamped, held verdict used."""


class Reason(Struct, frozen=True, gc=False):
    """Why, twice: a stable dotted code for programs and a sentence for people."""

    code: str
    text: str


class Verdict(Struct, frozen=True, eq=False):
    routes: tuple[str, ...]
    confidence: float
    margin: float = 0.0
    scores: Mapping[str, float] = {}
    reasons: tuple[Reason, ...] = ()
    evidence: tuple[object, ...] = ()
    """What the layer saw, raw; its `explain` renders it on demand. Values only: ids, counts, numbers."""
    decisive: bool = False
    """Stands whatever the gate asks, as an override or a hard rule does."""
    calibrated: bool = False
    """False: `confidence` is a score on [0, 1], not a fitted probability."""
    who: Who | None = None
    """Who decided, where it is not the layer's own kind: an answer kept from before is the cache's."""
    adds: Mapping[str, float] = {}
    """What each reason adds to the score of the first route, or to the only score, by its code; where that is known."""
    _sound: tuple[str, ...] | None = None
    _explained: tuple[object, str, tuple[Reason, ...]] | None = None
    _encoded: Raw | None = None

    def __eq__(self, other: object) -> bool:
        # What is kept for speed is no part of the value.
        return isinstance(other, Verdict) and self._content() == other._content()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.routes, self.confidence, self.margin, self.evidence))

    def _content(self) -> tuple[object, ...]:
        stated = (self.routes, self.confidence, self.margin, dict(self.scores), self.reasons, self.evidence)
        return (*stated, self.decisive, self.calibrated, self.who, dict(self.adds))


keep = force_setattr
"""The one cache in core: what was found out about a verdict or a decision stays with it, in a field of its own that is
no part of the value. A layer that sees the same evidence again may return the same verdict, whose soundness, reasons
and JSON form are known by then.

Such a value must be tracked by the garbage collector if what is kept leads back to it: the reasons of a verdict are
kept with their layer, and the layer may keep the verdict."""


class Gate(Struct, frozen=True, gc=False):
    """When a verdict is good enough. Both comparisons are `>=`."""

    confidence: float = 0.0
    margin: float = 0.0

    def admits(self, verdict: Verdict) -> bool:
        return verdict.decisive or (verdict.confidence >= self.confidence and verdict.margin >= self.margin)


FaultKind = Literal["timeout", "error", "invalid", "breaker", "skipped"]


class Fault(Struct, frozen=True, gc=False):
    """Why a layer gave no verdict although it was asked, or was not asked at all."""

    kind: FaultKind
    detail: str
    evidence: tuple[object, ...] = ()
    """As a verdict's: an answer that is none may have cost something all the same."""


Answer = Verdict | Fault | None
"""What a driver hands back for a layer: its verdict, a fault, or nothing (the layer passes)."""


def check_verdict(verdict: object, routes: tuple[str, ...]) -> Answer:
    """The verdict if a profile with these routes can use it, else the fault that says why not."""
    if type(verdict) is Verdict:
        if verdict._sound is routes:
            return verdict
        if (mistake := next(find_mistakes(verdict, routes), None)) is not None:
            return Fault("invalid", mistake)
        keep(verdict, "_sound", routes)
        return verdict
    if verdict is None or (type(verdict) is Fault and verdict.kind in _FAULTS):
        return verdict
    return Fault("invalid", f"returned {type(verdict).__name__}, not a Verdict or None")


_FAULTS = frozenset(get_args(FaultKind))
_MOST = sys.float_info.max


def find_mistakes(verdict: Any, routes: tuple[str, ...]) -> Iterator[str]:
    """What is wrong with a verdict. Its annotations are not to be trusted: layers are other people's code."""
    chosen, confidence, margin = verdict.routes, verdict.confidence, verdict.margin
    if not isinstance(chosen, tuple) or not chosen or not all(map(routes.__contains__, chosen)):
        yield f"chose {_show(list(chosen) if isinstance(chosen, tuple) else chosen)}, not routes of this profile"
    # NaN fails every comparison, which is what we want of it.
    if not (_is_number(confidence) and 0.0 <= confidence <= 1.0):
        yield f"confidence {_show(confidence)} is not between 0 and 1"
    if not (_is_number(margin) and margin >= 0.0):
        yield f"margin {_show(margin)} is not a number from 0 up"
    if type(verdict.reasons) is not tuple or any(type(reason) is not Reason for reason in verdict.reasons):
        yield "its reasons are not a tuple of Reason"
    for field, numbers in (("scores", verdict.scores), ("adds", verdict.adds)):
        if not (type(numbers) is dict or isinstance(numbers, Mapping)) or not all(map(_is_number, numbers.values())):
            yield f"its {field} are not numbers by name"
    if type(verdict.evidence) is not tuple:
        yield "its evidence is not a tuple"


def _is_number(value: object) -> bool:
    # Compared, which NaN fails and an integer beyond every float does not break.
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -_MOST <= value <= _MOST


def _show(value: object) -> str:
    return repr(value)[:80]


# --- what fails instead of answering

# An error's message may hold the whole question; a trace is no place for it.
MESSAGE_CHARACTERS = 200


def contain(call: Callable[..., Any], *arguments: object) -> Any:
    """What the call returns, or the fault that says how it failed."""
    try:
        return call(*arguments)
    # Called inline, it cannot be cancelled from outside: a CancelledError is the plug-in's own, an error like others.
    except (Exception, asyncio.CancelledError) as error:
        return to_fault(error)


def to_fault(error: BaseException) -> Fault:
    name = type(error).__name__
    message = contain_message(error)
    return Fault("error", f"{name}: {message}" if message else name)


def contain_message(error: BaseException) -> str:
    try:
        message = str(error)
    except Exception:
        return "(its message cannot be read)"
    return readable(message[:MESSAGE_CHARACTERS])


def readable(text: str) -> str:
    """The text as it can be written down: a lone surrogate has no UTF-8 form."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
