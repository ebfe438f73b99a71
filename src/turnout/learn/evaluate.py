"""Evaluates the local layers of a profile on labelled questions: each by itself, and all of them as a cascade."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from turnout.core.embed import Embeds
from turnout.core.errors import LearnError
from turnout.core.query import Query
from turnout.core.router import Router

from .bound import PairedComparison, clopper_pearson, compare_paired
from .card import ModelCard, percent, render_card
from .dataset import Examples, hash_examples
from .metric import auroc, brier, coverage_at, ece, or_none
from .train import PRECISION
from .trial import LayerTrial, Trial, decide_local, load_serving, models_of, read_labelled, try_layers

# Decisions timed for the median; more would not change it.
TIMED = 2000
# The usual level of an interval: 95 %.
DELTA = 0.05


class LayerFigures(Struct, frozen=True):
    """One layer, asked about every question."""

    id: str
    calibrated: bool
    """Its confidence claims to be a probability."""
    answered: int
    right: int
    accepted: int
    """Answers that pass its gate, including those to questions that an earlier layer would decide."""
    accepted_right: int
    ece: float | None
    brier: float | None
    auroc: float | None
    """How well confidence separates its right answers from its wrong ones."""
    coverage_at_98: float | None
    """The share of all questions, with hindsight."""
    p50_us: float


class CascadeFigures(Struct, frozen=True):
    """All local layers, with the profile's gates."""

    rows: int
    decided: int
    right: int
    accuracy_bounds: tuple[float, float]
    """Bounds at 95 % for the decided questions."""
    ece: float | None
    goes_on: float
    """The share left to a language model or to the fallback."""
    p50_us: float


class Evaluation(Struct, frozen=True):
    layers: tuple[LayerFigures, ...]
    cascade: CascadeFigures
    true: tuple[str, ...]
    said: tuple[str, ...]
    """The cascade's answer to each question; empty where it decides nothing."""


def evaluate(trial: Trial) -> Evaluation:
    gates = trial.gates()
    answers, sure, decided, wrong = decide_local(trial, gates)
    count, right = int(decided.sum()), int((decided & ~wrong).sum())
    cascade = CascadeFigures(
        rows=len(decided),
        decided=count,
        right=right,
        accuracy_bounds=clopper_pearson(right, count, DELTA),
        ece=or_none(ece(~wrong[decided], sure[decided])),
        goes_on=1 - count / max(len(decided), 1),
        p50_us=_time(trial),
    )
    return Evaluation(
        tuple(_measure(tried, gate) for tried, gate in zip(trial.layers, gates, strict=True)),
        cascade,
        trial.labels,
        tuple(answer or "" for answer in answers),
    )


def _measure(tried: LayerTrial, gate: float) -> LayerFigures:
    answered = tried.answered
    right, sure = tried.right[answered], tried.confidence[answered]
    scored = not tried.decisive[answered].all()
    accepted = tried.answers().admits(gate)
    asked = tried.elapsed_ns[tried.elapsed_ns > 0]
    return LayerFigures(
        id=tried.place.id,
        calibrated=tried.calibrated,
        answered=int(answered.sum()),
        right=int(right.sum()),
        accepted=int(accepted.sum()),
        accepted_right=int(tried.right[accepted].sum()),
        ece=or_none(ece(right, sure)) if scored else None,
        brier=or_none(brier(right, sure)),
        auroc=or_none(auroc(right, sure)) if scored else None,
        coverage_at_98=coverage_at(tried.right, tried.confidence, precision=PRECISION)[0],
        p50_us=float(np.median(asked)) / 1000 if asked.size else 0.0,
    )


def _time(trial: Trial) -> float:
    """The median time of a decision by local layers, reading included, in microseconds."""
    router = Router(trial.profile)
    step = max(1, len(trial.texts) // TIMED)
    taken = [router.route_sync(Query(text)).elapsed_ns for text in trial.texts[::step]]
    return float(np.median(taken)) / 1000 if taken else 0.0


class Comparison(NamedTuple):
    """Several models of a profile on the same questions."""

    examples: Examples
    trials: list[Trial]
    evaluations: list[Evaluation]
    paired: tuple[PairedComparison, PairedComparison] | None
    """The second model against the first: their answers, and their cascades. None for a single model."""


def evaluate_models(
    name: str,
    source: str | None = None,
    models: Sequence[str] = (),
    *,
    embedder: Embeds | None = None,
    config: str | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Comparison:
    """Evaluate a profile as it serves, or with the models of these folders, on questions none has learnt from."""
    profiles = [load_serving(name, model=model, embedder=embedder, config=config) for model in models or (None,)]
    examples = read_labelled(source, profiles)
    trials = [try_layers(profile, examples.texts, examples.labels, progress) for profile in profiles]
    paired = None
    if len(trials) > 1:
        layer = next(iter(models_of(profiles[-1])), None)
        if layer is None or layer not in models_of(profiles[0]):
            raise LearnError("one of the two models is not served (see the remarks of turnout check): nothing compares")
        paired = compare_trials(trials[0], trials[1], layer)
    return Comparison(examples, trials, [evaluate(trial) for trial in trials], paired)


def compare_trials(old: Trial, new: Trial, layer: str) -> tuple[PairedComparison, PairedComparison]:
    """Compare two models of one layer on the same questions, by their answers and by their cascades.

    A cascade succeeds on a question if it decides it correctly.
    """
    if old.texts != new.texts:
        raise ValueError("two models are compared on the same questions")
    one = next(tried.right for tried in new.layers if tried.place.id == layer)
    other = next(tried.right for tried in old.layers if tried.place.id == layer)
    cascades = [decide_local(trial, trial.gates()) for trial in (new, old)]
    right = [cascade.decided & ~cascade.wrong for cascade in cascades]
    return compare_paired(one, other, DELTA), compare_paired(right[0], right[1], DELTA)


def draw_evaluation(trial: Trial, evaluation: Evaluation, examples: Examples, source: str | None) -> str:
    """The card of the trained layer, judged on these questions."""
    # The layer that serves a trained model, else the one that answers most by a score.
    scored = [tried for tried in trial.layers if tried.answered.any() and not tried.decisive.all()]
    tried = max(scored, key=lambda tried: (tried.calibrated, int(tried.answered.sum())), default=None)
    if tried is None:
        raise LearnError("--card: no layer answers by a score here, so there is nothing to draw")
    rows = np.flatnonzero(tried.answered)
    profile, cascade = trial.profile, evaluation.cascade
    digest = models_of(profile).get(tried.place.id)
    facts = [("profile", f"{profile.name} {profile.hash}, layer {tried.place.id}"), ("kind", tried.place.kind)]
    if digest is not None:
        facts.append(("model", digest))
    facts.append(("judged on", f"{len(trial.labels):,} questions, sha256 {hash_examples(examples.rows)[:16]}"))
    meaning = "its confidence is fitted" if tried.calibrated else "its confidence is a score, no probability"
    limits = [
        f"{count:,} questions are outside every route ({label}): any answer to them is wrong"
        for label, count in trial.foreign.items()
    ]
    limits.append("Figures hold for questions like these, and for this model alone.")
    return render_card(
        ModelCard(
            title=f"{profile.name} · {tried.place.id}",
            what=profile.description or "what a profile's layer decides",
            true=[trial.labels[row] for row in rows],
            said=[tried.routes[row] or "" for row in rows],
            confidence=tried.confidence[rows].tolist(),
            labels=profile.routes,
            judged_on=source or "held out from training",
            facts=facts,
            fitted=[("confidence", meaning)],
            metrics=[
                ("local layers decide", percent(cascade.decided / max(cascade.rows, 1)), "all of them together"),
                ("of that, right", percent(cascade.right / max(cascade.decided, 1)), "with the profile's gates"),
                ("median decision", f"{cascade.p50_us:,.0f} µs", "reading included, no model asked"),
            ],
            gate=tried.place.gate.confidence,
            limits=limits[:20],
            repeat=[f"turnout evaluate {source or ''} -p {profile.name} --card card.html"],
        )
    )
