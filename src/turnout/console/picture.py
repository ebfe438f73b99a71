"""A decision as a page shows it: the terminal's picture as numbers for the shapes of a template.

It has the content and the words of an explanation. Widths are percent, for attributes of SVG shapes, because pages may
not have inline styles.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from turnout.core.policy import Policy
from turnout.core.verdict import Verdict
from turnout.explain.explanation import Explanation, LayerExplanation, Question, spell

from .shape import tone

# Scores shown; of the others only the number is shown, as a profile may have many routes.
SHOWN_SCORES = 8

# The colour for how a layer ended; others are bad.
TONES = {"accepted": "good", "held": "warn", "passed": "", "skipped": "", "not asked": ""}


class Piece(Struct, frozen=True):
    """A piece of the question, with the codes of the signals that matched there."""

    text: str
    codes: str = ""


class SignalBar(Struct, frozen=True):
    text: str
    matched: str
    added: float | None
    start: float = 0.0
    width: float = 0.0


class ScoreBar(Struct, frozen=True):
    route: str
    score: float
    width: float
    won: bool


class GateBar(Struct, frozen=True):
    label: str
    found: float
    needed: float
    enough: bool

    @property
    def width(self) -> float:
        return _percent(self.found)

    @property
    def mark(self) -> float:
        return _percent(self.needed)


class Band(Struct, frozen=True):
    route: str
    start: float
    width: float
    won: bool
    edge: float | None
    """Its lower edge; the first band has none."""


class Ruler(Struct, frozen=True):
    """A score among its bands."""

    score: float
    place: float
    bands: tuple[Band, ...]


class Station(Struct, frozen=True):
    """One layer of the decision."""

    layer: str
    ended: str
    tone: str
    routes: str
    elapsed_us: float
    fault: str
    signals: tuple[SignalBar, ...] = ()
    ruler: Ruler | None = None
    scores: tuple[ScoreBar, ...] = ()
    more_scores: int = 0
    gates: tuple[GateBar, ...] = ()
    decisive: bool = False
    held_text: str = ""


class DecisionPicture(Struct, frozen=True):
    """All that a page shows of a decision."""

    decision: Explanation
    question: tuple[Piece, ...]
    stations: tuple[Station, ...]
    tone: str
    who: str
    how: str
    remarks: tuple[str, ...]
    policy: tuple[tuple[str, str], ...]
    instruction: str
    what_if: tuple[tuple[str, float, str], ...] | None
    """The routes and the confidence without a signal, and that signal; None if that would need a new decision."""
    parts: tuple[DecisionPicture, ...]

    @property
    def routes(self) -> str:
        return " + ".join(self.decision.routes)

    @property
    def sureness(self) -> str:
        """The score, called confidence only if it is a fitted probability."""
        return f"{'confidence' if self.decision.calibrated else 'score'} {self.decision.confidence:.2f}"


def draw(decision: Explanation) -> DecisionPicture:
    who, how = spell(decision.outcome)
    policy = _policy(decision.policy)
    instruction = policy.pop("instruction", "")
    return DecisionPicture(
        decision,
        tuple(_pieces(decision.question)),
        tuple(_station(step, decision.question) for step in decision.trace),
        tone(decision.outcome),
        who,
        how,
        tuple(remark.text for remark in decision.remarks),
        tuple(policy.items()),
        instruction,
        _what_if(decision),
        tuple(map(draw, decision.parts)),
    )


def _pieces(question: Question) -> Iterator[Piece]:
    """The question, cut where a match begins or ends."""
    text = question.excerpt
    cuts = sorted({0, len(text), *(at for span in question.spans for at in (span.start, span.end))})
    for start, end in itertools.pairwise(cuts):
        codes = dict.fromkeys(span.code for span in question.spans if span.start <= start and end <= span.end)
        yield Piece(text[start:end], ", ".join(codes))


def _station(step: LayerExplanation, question: Question) -> Station:
    verdict = step.verdict
    how = TONES.get(step.ended, "bad")
    if verdict is None:
        return Station(step.layer, step.ended, how, "", step.elapsed_us, step.fault)
    ruler = _ruler(step, verdict)
    ranked = sorted(verdict.scores.items(), key=lambda item: -item[1]) if ruler is None else []
    scale = max([1.0, *(score for _, score in ranked[:1])])
    scores = tuple(
        ScoreBar(route, score, _percent(score / scale), route in verdict.routes)
        for route, score in ranked[:SHOWN_SCORES]
    )
    return Station(
        step.layer,
        step.ended,
        how,
        " + ".join(verdict.routes),
        step.elapsed_us,
        "",
        tuple(_signals(step, verdict, question)),
        ruler,
        scores,
        max(len(ranked) - SHOWN_SCORES, 0),
        tuple(_gates(step, verdict)),
        verdict.decisive,
        step.held_text,
    )


def _signals(step: LayerExplanation, verdict: Verdict, question: Question) -> Iterator[SignalBar]:
    weights = {reason.code: verdict.adds[reason.code] for reason in step.fired if reason.code in verdict.adds}
    largest = max(map(abs, weights.values()), default=1.0) or 1.0
    axis = 50.0 if min(weights.values(), default=0.0) < 0 else 0.0
    for reason in step.fired:
        matched = "" if reason.text.endswith(")") else question.matched(reason.code)
        added = weights.get(reason.code)
        if added is None:
            yield SignalBar(reason.text, matched, None)
            continue
        width = max(abs(added) / largest * (100.0 - axis), 1.0)
        yield SignalBar(reason.text, matched, added, axis - width if added < 0 else axis, width)


def _ruler(step: LayerExplanation, verdict: Verdict) -> Ruler | None:
    bands = step.bands
    if bands is None or len(verdict.scores) != 1:
        return None
    edges, value = bands.edges, step.score
    span = edges[-1] - edges[0]
    # The outer bands are open; they get the width of an average inner one, or more if the value lies further out.
    room = span / (len(edges) - 1) if span else max(abs(edges[0]), 0.25)
    low, high = min(edges[0] - room, value - room / 8), max(edges[-1] + room, value + room / 8)

    def place(x: float) -> float:
        return (x - low) / (high - low) * 100.0

    starts = [0.0, *map(place, edges)]
    ends = [*map(place, edges), 100.0]
    drawn = zip(bands.routes, starts, ends, [None, *edges], strict=True)
    shown = tuple(Band(name, start, end - start, name == verdict.routes[0], edge) for name, start, end, edge in drawn)
    return Ruler(value, place(value), shown)


def _gates(step: LayerExplanation, verdict: Verdict) -> Iterator[GateBar]:
    gate, name = step.gate, "confidence" if verdict.calibrated else "score"
    yield GateBar(name, verdict.confidence, gate.confidence, verdict.confidence >= gate.confidence)
    if gate.margin > 0.0:
        yield GateBar("margin", verdict.margin, gate.margin, verdict.margin >= gate.margin)


def _policy(policy: Policy) -> dict[str, str]:
    facts: dict[str, Any] = msgspec.to_builtins(policy)
    facts |= facts.pop("extra", {})
    return {name: _text(value) for name, value in facts.items()}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value)) or "none"
    return msgspec.json.encode(value).decode()


def _what_if(decision: Explanation) -> tuple[tuple[str, float, str], ...] | None:
    if decision.counterfactuals is None:
        return None
    texts = {reason.code: reason.text for step in decision.trace for reason in step.reasons}
    return tuple(
        (" + ".join(other.routes), other.confidence, texts.get(other.signal, other.signal))
        for other in decision.counterfactuals
    )


def _percent(share: float) -> float:
    return max(0.0, min(share, 1.0)) * 100.0
