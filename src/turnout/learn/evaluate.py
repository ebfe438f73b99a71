"""How good the local layers of a profile are on labelled questions: each by itself, and all of them as a cascade."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from turnout.core.query import Query
from turnout.core.router import Router

from .bound import Paired, clopper_pearson, compare_paired
from .metric import auroc, brier, coverage_at, ece
from .trial import Trial, Tried, decide_local

# What a gate is usually asked for.
PRECISION = 0.98
# Decisions timed for the median; more do not change it.
TIMED = 2000
# One chance in twenty, as everywhere an interval says nothing else.
DELTA = 0.05


class LayerFigures(Struct, frozen=True):
    """One layer, asked about every question."""

    id: str
    calibrated: bool
    """Its confidence claims to be a probability."""
    answered: int
    right: int
    accepted: int
    """Answers that pass its gate, whether or not an earlier layer would have decided."""
    accepted_right: int
    ece: float | None
    brier: float | None
    auroc: float | None
    """How well confidence tells its right answers from its wrong ones."""
    coverage_at_98: float | None
    """Of all questions, with hindsight."""
    p50_us: float


class CascadeFigures(Struct, frozen=True):
    """All local layers, with the profile's gates."""

    rows: int
    decided: int
    right: int
    accuracy_bounds: tuple[float, float]
    """Of what is decided, at 95 %."""
    ece: float | None
    goes_on: float
    """The share that is left to a language model, or to the fallback."""
    p50_us: float


class Evaluation(Struct, frozen=True):
    layers: tuple[LayerFigures, ...]
    cascade: CascadeFigures
    true: tuple[str, ...]
    said: tuple[str, ...]
    """What the cascade says of each question; empty where it goes on."""


def evaluate(trial: Trial) -> Evaluation:
    gates = trial.gates()
    answers, decided, wrong = decide_local(trial, gates)
    sure = np.full(len(decided), np.nan)
    free = np.ones(len(decided), bool)
    for tried, layer, gate in zip(trial.layers, trial.said(), gates, strict=True):
        mine = free & layer.admits(gate)
        sure[mine] = tried.confidence[mine]
        free &= ~mine
    count, right = int(decided.sum()), int((decided & ~wrong).sum())
    cascade = CascadeFigures(
        rows=len(decided),
        decided=count,
        right=right,
        accuracy_bounds=clopper_pearson(right, count, DELTA),
        ece=_number(ece(~wrong[decided], sure[decided])),
        goes_on=1 - count / max(len(decided), 1),
        p50_us=_time(trial),
    )
    return Evaluation(
        tuple(_measure(tried, gate) for tried, gate in zip(trial.layers, gates, strict=True)),
        cascade,
        trial.labels,
        tuple(answer or "" for answer in answers),
    )


def _measure(tried: Tried, gate: float) -> LayerFigures:
    there = tried.answered
    right, sure = tried.right[there], tried.confidence[there]
    accepted = tried.said().admits(gate)
    asked = tried.elapsed_ns[tried.elapsed_ns > 0]
    return LayerFigures(
        id=tried.place.id,
        calibrated=tried.calibrated,
        answered=int(there.sum()),
        right=int(right.sum()),
        accepted=int(accepted.sum()),
        accepted_right=int(tried.right[accepted].sum()),
        ece=_number(ece(right, sure)) if not tried.decisive[there].all() else None,
        brier=_number(brier(right, sure)),
        auroc=_number(auroc(right, sure)) if not tried.decisive[there].all() else None,
        coverage_at_98=coverage_at(tried.right, tried.confidence, precision=PRECISION)[0],
        p50_us=float(np.median(asked)) / 1000 if asked.size else 0.0,
    )


def _time(trial: Trial) -> float:
    """The median decision, reading included; local layers only."""
    router = Router(trial.profile)
    step = max(1, len(trial.texts) // TIMED)
    taken = [router.route_sync(Query(text)).elapsed_ns for text in trial.texts[::step]]
    return float(np.median(taken)) / 1000 if taken else 0.0


def compare_trials(old: Trial, new: Trial, layer: str) -> tuple[Paired, Paired]:
    """Two models of one layer on the same questions: their answers, and the cascades they stand in.

    A cascade does well by a question if it decides it rightly; one that goes on is neither wrong nor decided.
    """
    if old.texts != new.texts:
        raise ValueError("two models are compared on the same questions")
    one = next(tried.right for tried in new.layers if tried.place.id == layer)
    other = next(tried.right for tried in old.layers if tried.place.id == layer)
    cascades = []
    for trial in (new, old):
        _, decided, wrong = decide_local(trial, trial.gates())
        cascades.append(decided & ~wrong)
    return compare_paired(one, other, DELTA), compare_paired(cascades[0], cascades[1], DELTA)


def main_layer(trial: Trial) -> Tried | None:
    """The layer a card is about: the one that serves a trained model, else the one that answers most by a score."""
    scored = [tried for tried in trial.layers if tried.answered.any() and not tried.decisive.all()]
    return max(scored, key=lambda tried: (tried.calibrated, int(tried.answered.sum())), default=None)


def answers_of(trial: Trial, tried: Tried) -> tuple[Sequence[str], Sequence[str], Sequence[float]]:
    """True labels, answers and confidence, where the layer has one."""
    rows = np.flatnonzero(tried.answered)
    return (
        [trial.labels[row] for row in rows],
        [tried.routes[row] or "" for row in rows],
        tried.confidence[rows].tolist(),
    )


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
