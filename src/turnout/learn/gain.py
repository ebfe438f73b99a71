"""Fits how much better a more expensive tier would answer, from outcomes, with every choice made by cross-validation.

The expected *gain* of an expensive model is the chance that the cheap one is wrong and the expensive one right, less
the chance of the opposite. It is the difference of two ridge regressions, one of each tier's quality, so rows in which
some tiers were not tried can be used too.

Three heads (n-grams, the text's shape, its sentence vector) are fitted separately and mixed by how well each predicts
rows it has not seen. The curve, the thresholds and the confidence all come from such out-of-fold predictions.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path as File
from typing import Any, NamedTuple
from zlib import crc32

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

import turnout
from turnout.config.check import own_keys
from turnout.core.embed import Embeds
from turnout.core.errors import TooFewExamples
from turnout.core.profile import Profile
from turnout.core.query import Query
from turnout.layers.artefact import Embedder
from turnout.layers.gain import GainConfig
from turnout.layers.gain_model import EMBEDDED_CHARACTERS, ConfidenceCurve, GainManifest, Head, Setting
from turnout.text.ngram import Ngrams
from turnout.text.shape import shape_of

from .card import ModelCard, Picture, draw_frontier, identify, percent, render_card
from .contest import GAIN, find_layer
from .fit import Say, count_ngrams, embed_texts
from .frontier import Aim, FrontierPoint, apgr, centre, choose, find_point, measure_kept, trace
from .metric import Flags, Floats, ece, or_none
from .outcome import Outcomes, read_outcomes
from .registry import check_new, keep_model, now
from .scope import fit_scope

FOLDS = 5
# With fewer complete rows the standard error of a mean quality is above 5 points: as wide as the gaps to be found.
LEAST_COMPLETE = 100
# The best ridge penalty does not depend on the number of rows, so it is chosen on at most this many.
CHOSEN_ON = 3000
# Penalties tried, a factor of about three apart: rows of length 1 need 1 to 100, standardised columns more.
PENALTIES: Mapping[Head, tuple[float, ...]] = {
    "ngram": (1.0, 3.0, 10.0, 30.0, 100.0),
    "shape": (10.0, 100.0, 1000.0),
    "vector": (0.3, 1.0, 3.0, 10.0, 30.0),
}
# The tolerance of the solver; a smaller one no longer changes the order of the predictions.
TOLERANCE = 1e-3


class TunedSetting(NamedTuple):
    """One setting with its results on rows it has not seen."""

    setting: Setting
    gains: Floats
    """Out-of-fold, mixed with weights fitted on the other folds."""
    curve: list[FrontierPoint]
    point: FrontierPoint
    metrics: dict[str, Any]


class GainFit(NamedTuple):
    """A model of gains, ready to be written."""

    draft: GainManifest
    """Its manifest, without the profile and the layer."""
    weights: dict[str, npt.NDArray[Any]]
    text: TunedSetting
    vector: TunedSetting | None
    remarks: tuple[str, ...]


class Inputs(NamedTuple):
    """The inputs of the heads for some texts."""

    keys: npt.NDArray[np.int64]
    """A key for each text, the same for the same text."""
    ngram: Any
    """A sparse row for each text."""
    shape: Floats
    vector: npt.NDArray[np.float32] | None


def read_inputs(folded: Sequence[str], embedder: Embeds | None = None, say: Say | None = None) -> Inputs:
    """The inputs of the heads for folded texts."""
    cut = [text[:EMBEDDED_CHARACTERS] for text in folded]
    vector = embed_texts(cut, embedder, say) if embedder is not None else None
    shape = np.array([*map(shape_of, folded)], dtype=np.float64)
    return Inputs(hash_texts(folded), count_ngrams(folded, Ngrams(), np.float32), shape, vector)


def fit_gains(
    outcomes: Outcomes,
    inputs: Inputs,
    *,
    costs: Mapping[str, float] | None = None,
    aim: Aim | None = None,
    embedder: Embedder | None = None,
    seed: int = 0,
    say: Say = lambda _what, _done: None,
) -> GainFit:
    """Fit on outcomes. `costs` are used for rows without a cost; `embedder` made the vectors."""
    aim = aim or Aim()
    complete = outcomes.complete
    if complete.sum() < LEAST_COMPLETE:
        raise TooFewExamples(
            f"{int(complete.sum()):,} rows with an outcome for each of {', '.join(outcomes.tiers)}: thresholds need "
            f"{LEAST_COMPLETE}; let every tier answer more questions, or leave a tier out"
        )
    priced, remark = price_tiers(outcomes, costs)
    remarks = [*outcomes.remarks, remark]
    quality = outcomes.quality
    # Gains over the cheapest tier if every row has all tiers, otherwise qualities. Both give the same gains, and the
    # first needs one regression fewer.
    targets = quality - quality[:, :1] if not np.isnan(quality).any() else quality
    folds = assign_folds(inputs.keys, seed)
    middle, scale = inputs.shape.mean(axis=0), inputs.shape.std(axis=0)
    scale[scale < 1e-9] = 1.0
    shown: dict[Head, Any] = {"ngram": inputs.ngram, "shape": (inputs.shape - middle) / scale}
    if embedder is not None:
        shown["vector"] = inputs.vector
    scope, scope_arrays, passed = fit_scope(shown["shape"], inputs.ngram, shown.get("vector"), folds, seed)
    weights: dict[str, npt.NDArray[Any]] = scope_arrays | {
        "shape_centre": middle.astype(np.float32),
        "shape_scale": scale.astype(np.float32),
    }
    unseen: dict[Head, Floats] = {}
    penalties: dict[str, float] = {}
    for done, (head, rows) in enumerate(shown.items()):
        say("fitting", done / (len(shown) + 1))
        penalty = choose_penalty(rows, targets, folds, PENALTIES[head], seed)
        unseen[head] = predict_unseen(rows, targets, folds, penalty)
        penalties[head] = penalty
        for name, array in zip((head, f"{head}_bias"), fit_ridge(rows, targets, penalty), strict=True):
            weights[name] = array.astype(np.float32)
    paid = np.where(np.isnan(outcomes.costs), np.array(priced), outcomes.costs)[complete] if not remark else None

    def tune(heads: Sequence[Head]) -> TunedSetting:
        read = {head: unseen[head] for head in heads}
        tuned, more = _tune(read, quality, complete, folds, priced, paid, aim, seed)
        remarks.extend(more)
        return tuned

    text = tune(("ngram", "shape"))
    vector = tune(("ngram", "shape", "vector")) if "vector" in shown else None
    say("fitting", 1.0)
    draft = GainManifest(
        profile="",
        layer="",
        tiers=outcomes.tiers,
        costs=priced,
        ngrams=Ngrams(),
        embedder=embedder,
        text=text.setting,
        vector=vector.setting if vector is not None else None,
        aim=str(aim),
        scope=scope,
        metrics=(vector or text).metrics | {"penalties": penalties, "passed": passed},
        counts=outcomes.counts(),
        data_hash=outcomes.digest(),
        profile_hash="",
        seed=seed,
        created=now(),
        turnout=turnout.__version__,
        files={},
    )
    return GainFit(draft, weights, text, vector, tuple(dict.fromkeys(filter(None, remarks))))


def price_tiers(outcomes: Outcomes, costs: Mapping[str, float] | None) -> tuple[tuple[float, ...], str]:
    """The cost of an answer of each tier: from the rows, else as configured, else even steps; with a remark."""
    seen = outcomes.costs
    if not np.isnan(seen).all(axis=0).any():
        return tuple(map(float, np.nanmean(seen, axis=0))), ""
    if costs is not None and all(tier in costs for tier in outcomes.tiers):
        return tuple(float(costs[tier]) for tier in outcomes.tiers), "costs are the profile's: the rows say none"
    steps = tuple(map(float, np.linspace(0.0, 1.0, len(outcomes.tiers))))
    return steps, "what an answer costs is unknown: each tier counts as one step more expensive than the one before"


def hash_texts(folded: Sequence[str]) -> npt.NDArray[np.int64]:
    """A number for each text; white space makes no difference."""
    return np.array([crc32(" ".join(text.split()).encode("utf-8", "replace")) for text in folded], dtype=np.int64)


def assign_folds(keys: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.intp]:
    """The fold of each text. The same text is always in the same fold, so that none is both seen and held out."""
    return np.array([crc32(f"{seed} {key}".encode()) % FOLDS for key in keys.tolist()], dtype=np.intp)


# --- one head


def fit_ridge(rows: Any, targets: Floats, penalty: float) -> tuple[Floats, Floats]:
    """Ridge regression of every column on the rows that have a number in it: the weights and bias of every tier."""
    from sklearn.linear_model import Ridge

    solver = "cholesky" if isinstance(rows, np.ndarray) else "sparse_cg"
    weights = np.zeros((rows.shape[1], targets.shape[1]))
    bias = np.zeros(targets.shape[1])
    known = ~np.isnan(targets)
    for column in range(targets.shape[1]):
        some, wanted = known[:, column], targets[known[:, column], column]
        if wanted.size and np.ptp(wanted) > 0.0:
            fitted = Ridge(penalty, solver=solver, tol=TOLERANCE).fit(rows[some], wanted)
            weights[:, column], bias[column] = fitted.coef_, fitted.intercept_
        elif wanted.size:
            bias[column] = wanted[0]
    return weights, bias


def predict_unseen(rows: Any, targets: Floats, folds: npt.NDArray[np.intp], penalty: float) -> Floats:
    """The prediction for each row by a head that was fitted without its fold."""
    predicted = np.zeros(targets.shape)
    for fold in np.unique(folds):
        held = folds == fold
        weights, bias = fit_ridge(rows[~held], targets[~held], penalty)
        predicted[held] = rows[held] @ weights + bias
    return predicted


def choose_penalty(
    rows: Any, targets: Floats, folds: npt.NDArray[np.intp], penalties: Sequence[float], seed: int
) -> float:
    """The penalty whose out-of-fold predictions correlate best with the gains. The mix fits their scale later."""
    some = np.arange(len(targets))
    if len(some) > CHOSEN_ON:
        some = np.sort(np.random.default_rng(seed).choice(some, CHOSEN_ON, replace=False))
    return max(
        penalties,
        key=lambda penalty: _correlate(predict_unseen(rows[some], targets[some], folds[some], penalty), targets[some]),
    )


def _correlate(predicted: Floats, targets: Floats) -> float:
    """How well differences between tiers are predicted: a correlation, up to a constant factor."""
    given, wanted = _differences(predicted, targets), _differences(targets, targets)
    known = ~np.isnan(wanted)
    given, wanted = given[known], wanted[known]
    size = float(given @ given)
    return float(given @ wanted) / math.sqrt(size) if size > 0.0 else 0.0


def _differences(values: Floats, known: Floats) -> Floats:
    """Values less the mean of their row and then of their column, where `known` has a number."""
    shown = np.where(np.isnan(known), np.nan, values)
    apart = shown - np.nanmean(shown, axis=1, keepdims=True)
    centred: Floats = apart - np.nanmean(apart, axis=0, keepdims=True)
    return centred


# --- the mix, the price and the confidence


def mix_heads(read: Mapping[Head, Floats], quality: Floats) -> tuple[dict[Head, float], Floats]:
    """The weight of each head (never negative) and an offset for each tier, by least squares over gains."""
    from scipy.optimize import lsq_linear

    tiers = quality.shape[1]
    known = ~np.isnan(quality)

    def within(values: Floats) -> Floats:
        shown = np.where(known, values, np.nan)
        return np.asarray((shown - np.nanmean(shown, axis=1, keepdims=True))[known])

    columns = [within(values) for values in read.values()]
    for tier in range(1, tiers):
        marked = np.zeros(quality.shape)
        marked[:, tier] = 1.0
        columns.append(within(marked))
    low = [0.0] * len(read) + [-np.inf] * (tiers - 1)
    # The tiny ridge makes the solution unique if a head is constant.
    design = np.vstack([np.column_stack(columns), 1e-6 * np.eye(len(columns))])
    wanted = np.concatenate([within(quality), np.zeros(len(columns))])
    solution = lsq_linear(design, wanted, bounds=(low, np.inf)).x
    heads = {head: round(float(weight), 6) for head, weight in zip(read, solution, strict=False)}
    return heads, np.concatenate([[0.0], solution[len(read) :]])


def apply_mix(read: Mapping[Head, Floats], heads: Mapping[Head, float], offsets: Floats) -> Floats:
    """The expected gain of every tier over the cheapest, with a row for each text."""
    expected = offsets + sum(weight * read[head] for head, weight in heads.items())
    gains: Floats = expected - expected[:, :1]
    return gains


def _tune(
    read: Mapping[Head, Floats],
    quality: Floats,
    complete: Flags,
    folds: npt.NDArray[np.intp],
    costs: tuple[float, ...],
    paid: Floats | None,
    aim: Aim,
    seed: int,
) -> tuple[TunedSetting, list[str]]:
    """Mix some heads and choose the price for the aim; every figure is measured on held-out rows."""
    gains = np.zeros(quality.shape)
    for fold in np.unique(folds):
        held = folds == fold
        others = {head: values[~held] for head, values in read.items()}
        gains[held] = apply_mix(
            {head: values[held] for head, values in read.items()}, *mix_heads(others, quality[~held])
        )
    heads, offsets = mix_heads(read, quality)
    known, real, folds = gains[complete], quality[complete], folds[complete]
    curve = trace(known, real, np.array(costs), paid)
    point, remark = find_point(curve, aim)
    chosen = choose(known, costs, point.price)
    price = _finite(centre(point.price, known, costs), known, costs)
    tiers = range(len(costs))
    curves = tuple(fit_confidence(known, real, tier) for tier in tiers)
    low, high = measure_kept(chosen, real, costs, seed=seed)
    best, regret = real.max(axis=1), known.max(axis=1) - known[np.arange(len(chosen)), chosen]
    as_good = real[np.arange(len(chosen)), chosen] >= best
    sure = np.zeros(len(chosen))
    for fold in np.unique(folds):
        held = folds == fold
        fitted = [fit_confidence(known[~held], real[~held], tier) for tier in tiers]
        sure[held] = [fitted[tier].at(float(gap)) for tier, gap in zip(chosen[held], regret[held], strict=True)]
    cheapest, costliest = curve[0], curve[-1]
    spread = costliest.cost - cheapest.cost
    metrics: dict[str, Any] = {
        "rows": len(chosen),
        "quality": point.quality,
        "quality_cheapest": cheapest.quality,
        "quality_most_expensive": costliest.quality,
        "quality_best": float(best.mean()),
        "cost": point.cost,
        "cost_cheapest": cheapest.cost,
        "cost_most_expensive": costliest.cost,
        "cost_share": (point.cost - cheapest.cost) / spread if spread else 0.0,
        "kept": point.kept,
        "kept_low": low,
        "kept_high": high,
        "shares": list(point.shares),
        "as_good": float(as_good.mean()),
        "ece": ece(as_good, sure),
    }
    if len(costs) == 2 and real[:, 1].mean() != real[:, 0].mean():
        metrics["apgr"] = apgr(known[:, 1], real[:, 0], real[:, 1])
    metrics = {name: or_none(value) if isinstance(value, float) else value for name, value in metrics.items()}
    remarks = [remark] if remark else []
    if not any(heads.values()):
        remarks.append("nothing in the text tells where a more expensive tier gains: every question gets the same tier")
    return TunedSetting(
        Setting(heads, tuple(map(float, offsets)), price, curves), gains, curve, point, metrics
    ), remarks


def _finite(price: float, gains: Floats, costs: Sequence[float]) -> float:
    """The price as a finite number; an infinite one becomes so large that no gain seen here would pay."""
    if math.isfinite(price):
        return price
    steps = [b - a for a, b in pairwise(sorted(costs)) if b > a]
    # Outcomes are from 0 to 1, so no expected gain is much above 1.
    return math.copysign(10.0 * max(1.0, float(np.abs(gains).max())) / min(steps), price)


def fit_confidence(gains: Floats, quality: Floats, tier: int) -> ConfidenceCurve:
    """The chance that no tier does better than this one, as a curve of the best tier's expected gain over it."""
    from sklearn.linear_model import LogisticRegression

    regret = gains.max(axis=1) - gains[:, tier]
    good = quality[:, tier] >= quality.max(axis=1)
    # The rule of succession keeps a chance that never failed below 1.
    share = (good.sum() + 1.0) / (len(good) + 2.0)
    flat = ConfidenceCurve(math.log(share / (1.0 - share)), 0.0)
    if good.all() or not good.any() or np.ptp(regret) < 1e-9:
        return flat
    fitted = LogisticRegression(C=1e3).fit(regret[:, None], good)
    slope, bias = float(fitted.coef_[0, 0]), float(fitted.intercept_[0])
    # A larger gain elsewhere must not make a tier look better.
    return ConfidenceCurve(bias, slope) if slope <= 0.0 else flat


class GainTraining(NamedTuple):
    """The result of a training: the artefact's folder, its manifest and the fit."""

    folder: File
    manifest: GainManifest
    fitted: GainFit


def find_gain_layer(profile: Profile, name: str | None = None) -> tuple[str, GainConfig]:
    """The id and the configuration of a profile's gain layer."""
    hint = ": outcomes train such a layer, as tiers has"
    layer, entry = find_layer(profile.name, profile.resolved["layers"], (GAIN,), name, hint)
    return layer, msgspec.convert(own_keys(entry), GainConfig)


def train_gains(
    profile: Profile,
    path: str | os.PathLike[str],
    *,
    layer: str | None = None,
    aim: Aim | None = None,
    embedder: Embeds | None = None,
    seed: int = 0,
    out: File | None = None,
    say: Say = lambda _what, _done: None,
) -> GainTraining:
    """Train a profile's gain layer on a file of outcomes and put the model on the shelf as a candidate, or write it to
    `out`, a new folder."""
    name, config = find_gain_layer(profile, layer)
    if out is not None:
        check_new(out)
    outcomes = read_outcomes(path, profile)
    folded = [profile.read(Query(text)).folded for text in outcomes.texts]
    inputs = read_inputs(folded, embedder=embedder, say=say)
    known = Embedder(embedder.name, embedder.width) if embedder is not None else None
    fitted = fit_gains(outcomes, inputs, costs=config.costs or None, aim=aim, embedder=known, seed=seed, say=say)
    draft = replace(fitted.draft, profile=profile.name, layer=name, profile_hash=profile.hash)
    folder, manifest = keep_model(draft, fitted.weights, lambda written: draw_gain_card(written, fitted), out)
    return GainTraining(folder, manifest, fitted)


def draw_gain_card(manifest: GainManifest, fitted: GainFit) -> str:
    """The card of a gain model, with its cost-quality curve. All figures are measured on held-out questions."""
    best, metrics = fitted.vector or fitted.text, manifest.metrics

    def share(name: str) -> str:
        value = metrics.get(name)
        return percent(math.nan if value is None else value)

    curves = [fitted.vector] if fitted.vector is not None else []
    curves.append(fitted.text)
    dashed = "Solid: with vectors, dashed: without; dotted" if fitted.vector is not None else "Dotted"
    first, last = manifest.tiers[0], manifest.tiers[-1]
    figures = [
        (f"always {first}", f"{metrics['quality_cheapest']:.3f}", f"mean cost {metrics['cost_cheapest']:.4g}"),
        ("this model", f"{metrics['quality']:.3f}", f"mean cost {metrics['cost']:.4g}"),
        (
            f"always {last}",
            f"{metrics['quality_most_expensive']:.3f}",
            f"mean cost {metrics['cost_most_expensive']:.4g}",
        ),
        ("always the best, known beforehand", f"{metrics['quality_best']:.3f}", "what no router can beat"),
        ("passed on", share("passed"), "of questions like those it was trained on, held out"),
        ("calibration error", f"{metrics['ece']:.3f}", "of the chance that no other tier would have done better"),
    ]
    if metrics.get("apgr") is not None:
        figures.append(("APGR", f"{metrics['apgr']:.3f}", "average performance gap recovered; random is about .5"))
    figures += [
        (f"answered by {tier}", percent(part), "of the questions")
        for tier, part in zip(manifest.tiers, metrics["shares"], strict=True)
    ]
    what = (
        f"Keeps {share('kept')} of the quality gap (95 % interval {share('kept_low')} to {share('kept_high')}) for "
        f"{share('cost_share')} of the most expensive tier's extra cost, on {metrics['rows']:,} questions held out."
    )
    return render_card(
        ModelCard(
            title=f"{manifest.profile} / {manifest.layer}",
            what=what,
            pictures=[
                Picture(
                    "What does quality cost?",
                    draw_frontier([(tuned.curve, tuned.point) for tuned in curves]),
                    f"{dashed}: tiers chosen at random. The dot is the chosen setting.",
                )
            ],
            facts=identify(manifest),
            data_hash=manifest.data_hash,
            counts=manifest.counts,
            fitted=[
                ("tiers, cheapest first", ", ".join(manifest.tiers)),
                ("costs", ", ".join(f"{cost:.6g}" for cost in manifest.costs)),
                ("aim", manifest.aim),
                ("the price", f"a step up must gain {best.setting.price:.4g} for each unit of cost"),
                ("embedder", manifest.embedder.name if manifest.embedder else "none"),
                ("seed", str(manifest.seed)),
            ],
            metrics=figures,
            limits=[
                *fitted.remarks,
                "Gains learnt from one kind of question do not carry over to another, so it passes on questions unlike "
                "its training rows. Train on outcomes of your own traffic, and again when it changes.",
            ],
        )
    )
