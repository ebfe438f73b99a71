"""How much better would a more expensive tier answer? Fitted on outcomes, every choice made by cross-validation.

What pays for a more expensive model is not that the cheap one fails but that it would not: the expected *gain*, the
chance that the cheap one is wrong and the expensive one right less that of the opposite. A ridge regression of each
tier's quality gives it, since the difference of two is the regression of the difference; so rows in which some tiers
were not tried teach as well.

Three heads (n-grams, the text's shape, its sentence vector) are fitted apart and mixed by how well each predicts rows
it has not seen. The curve, the thresholds and the confidence all come from such out-of-fold predictions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

import turnout
from turnout.core.embed import Embeds
from turnout.core.errors import TooFewExamples
from turnout.layers.artefact import Embedder
from turnout.layers.gain_model import EMBEDDED_CHARACTERS, ConfidenceCurve, GainManifest, Head, Setting
from turnout.text.ngram import Ngrams
from turnout.text.shape import shape_of

from .fit import Say, count_ngrams, embed_texts
from .frontier import Aim, FrontierPoint, apgr, centre, choose, find_point, measure_kept, trace
from .metric import ece, or_none
from .outcome import Outcomes
from .registry import now

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

FOLDS = 5
# With fewer complete rows the standard error of a mean quality is above 5 points: as wide as the gaps it is to find.
LEAST_COMPLETE = 100
# Ridge's penalty is the noise over the signal and does not grow with the rows, so it is chosen on so many of them.
CHOSEN_ON = 3000
# Penalties tried, a factor of about three apart: rows of length 1 need 1 to 100, standardised columns more.
PENALTIES: Mapping[Head, tuple[float, ...]] = {
    "ngram": (1.0, 3.0, 10.0, 30.0, 100.0),
    "shape": (10.0, 100.0, 1000.0),
    "vector": (0.3, 1.0, 3.0, 10.0, 30.0),
}
# How near the solver comes to the minimum: below this the order of the predictions no longer changes.
TOLERANCE = 1e-3


class HeadFit(NamedTuple):
    """A head's weights for every tier."""

    weights: Floats
    bias: Floats


class TunedSetting(NamedTuple):
    """One setting with what it does on rows it has not seen."""

    setting: Setting
    gains: Floats
    """Out-of-fold, mixed by weights fitted on the other folds."""
    curve: list[FrontierPoint]
    point: FrontierPoint
    metrics: dict[str, Any]


class GainFit(NamedTuple):
    """A model of gains, ready to be written."""

    draft: GainManifest
    """Its manifest, but for which profile and layer it is for."""
    weights: dict[str, npt.NDArray[np.float32]]
    text: TunedSetting
    vector: TunedSetting | None
    remarks: tuple[str, ...]


class Inputs(NamedTuple):
    """What the heads see of some texts."""

    keys: npt.NDArray[np.int64]
    """The same for the same text."""
    ngram: Any
    """One sparse row each."""
    shape: Floats
    vector: npt.NDArray[np.float32] | None


def read_inputs(folded: Sequence[str], embedder: Embeds | None = None, say: Say | None = None) -> Inputs:
    """What the heads see of texts as a profile reads them."""
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
    """Fit on outcomes. `costs` are what an answer costs, where the rows do not say; `embedder` made the vectors."""
    aim = aim or Aim()
    complete = outcomes.complete
    if complete.sum() < LEAST_COMPLETE:
        raise TooFewExamples(
            f"{int(complete.sum()):,} rows with an outcome for each of {', '.join(outcomes.tiers)}: thresholds need "
            f"{LEAST_COMPLETE}; let every tier answer more questions, or leave a tier out"
        )
    priced, remark = price_tiers(outcomes, costs)
    remarks = [*outcomes.remarks, *([remark] if remark else [])]
    quality = outcomes.quality
    # Gains over the cheapest tier where every row has all tiers, qualities otherwise: both give the same gains, and the
    # first needs one regression fewer.
    targets = quality - quality[:, :1] if not np.isnan(quality).any() else quality
    folds = assign_folds(inputs.keys, seed)
    middle, scale = inputs.shape.mean(axis=0), inputs.shape.std(axis=0)
    scale[scale < 1e-9] = 1.0
    shown: dict[Head, Any] = {"ngram": inputs.ngram, "shape": (inputs.shape - middle) / scale}
    if embedder is not None:
        shown["vector"] = inputs.vector
    weights: dict[str, npt.NDArray[np.float32]] = {
        "shape_centre": middle.astype(np.float32),
        "shape_scale": scale.astype(np.float32),
    }
    unseen: dict[Head, Floats] = {}
    penalties: dict[str, float] = {}
    for done, (head, rows) in enumerate(shown.items()):
        say("fitting", done / (len(shown) + 1))
        penalty = choose_penalty(rows, targets, folds, PENALTIES[head], seed)
        unseen[head] = predict_unseen(rows, targets, folds, penalty)
        whole = fit_ridge(rows, targets, penalty)
        penalties[head] = penalty
        weights[head] = whole.weights.astype(np.float32)
        weights[f"{head}_bias"] = whole.bias.astype(np.float32)
    paid = np.where(np.isnan(outcomes.costs), np.array(priced), outcomes.costs)[complete] if not remark else None

    def tune(heads: Sequence[Head]) -> TunedSetting:
        read = {head: unseen[head] for head in heads}
        tuned, said = _tune(read, quality, complete, folds, priced, paid, aim, seed)
        remarks.extend(said)
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
        metrics=(vector or text).metrics | {"penalties": penalties},
        counts=outcomes.counts(),
        data_hash=outcomes.digest(),
        profile_hash="",
        seed=seed,
        created=now(),
        turnout=turnout.__version__,
        files={},
    )
    return GainFit(draft, weights, text, vector, tuple(dict.fromkeys(remarks)))


def price_tiers(outcomes: Outcomes, costs: Mapping[str, float] | None) -> tuple[tuple[float, ...], str]:
    """What an answer of each tier costs: what the rows say, else what is configured, else even steps, with a remark."""
    seen = outcomes.costs
    if not np.isnan(seen).all(axis=0).any():
        return tuple(map(float, np.nanmean(seen, axis=0))), ""
    if costs is not None and all(tier in costs for tier in outcomes.tiers):
        return tuple(float(costs[tier]) for tier in outcomes.tiers), "costs are the profile's: the rows say none"
    steps = tuple(map(float, np.linspace(0.0, 1.0, len(outcomes.tiers))))
    return steps, "what an answer costs is unknown: each tier counts as one step more expensive than the one before"


def hash_texts(folded: Sequence[str]) -> npt.NDArray[np.int64]:
    """A number for each text; spaces make no other text."""
    return np.array([crc32(" ".join(text.split()).encode("utf-8", "replace")) for text in folded], dtype=np.int64)


def assign_folds(keys: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.intp]:
    """Which fold each text is in; the same text is always in the same one, so that none is both seen and held out."""
    return np.array([crc32(f"{seed} {key}".encode()) % FOLDS for key in keys.tolist()], dtype=np.intp)


# --- one head


def fit_ridge(rows: Any, targets: Floats, penalty: float) -> HeadFit:
    """Ridge regression of every column on the rows that have a number in it."""
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
    return HeadFit(weights, bias)


def predict_unseen(rows: Any, targets: Floats, folds: npt.NDArray[np.intp], penalty: float) -> Floats:
    """Each row predicted by a head that was fitted without its fold."""
    found = np.zeros(targets.shape)
    for fold in np.unique(folds):
        held = folds == fold
        fitted = fit_ridge(rows[~held], targets[~held], penalty)
        found[held] = rows[held] @ fitted.weights + fitted.bias
    return found


def choose_penalty(
    rows: Any, targets: Floats, folds: npt.NDArray[np.intp], penalties: Sequence[float], seed: int
) -> float:
    """The penalty whose out-of-fold predictions go best with the gains, whatever their scale: the mix sets that."""
    some = np.arange(len(targets))
    if len(some) > CHOSEN_ON:
        some = np.sort(np.random.default_rng(seed).choice(some, CHOSEN_ON, replace=False))
    found = {
        penalty: _agreement(predict_unseen(rows[some], targets[some], folds[some], penalty), targets[some])
        for penalty in penalties
    }
    return max(penalties, key=found.__getitem__)


def _agreement(predicted: Floats, targets: Floats) -> float:
    """How far differences between tiers are predicted: a correlation."""
    said, wanted = _differences(predicted, targets), _differences(targets, targets)
    known = ~np.isnan(wanted)
    said, wanted = said[known], wanted[known]
    size = float(said @ said)
    return float(said @ wanted) / math.sqrt(size) if size > 0.0 else 0.0


def _differences(values: Floats, known: Floats) -> Floats:
    """Values less their row's mean and then their column's, over what is known of the row: what tells tiers apart."""
    shown = np.where(np.isnan(known), np.nan, values)
    apart = shown - np.nanmean(shown, axis=1, keepdims=True)
    centred: Floats = apart - np.nanmean(apart, axis=0, keepdims=True)
    return centred


# --- the mix, the price and the confidence


def mix_heads(read: Mapping[Head, Floats], quality: Floats) -> tuple[dict[Head, float], Floats]:
    """How much each head counts (never less than nothing), and an offset for each tier: least squares over gains."""
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
    # The tiny ridge makes the least squares unique where a head says nothing at all.
    design = np.vstack([np.column_stack(columns), 1e-6 * np.eye(len(columns))])
    wanted = np.concatenate([within(quality), np.zeros(len(columns))])
    found = lsq_linear(design, wanted, bounds=(low, np.inf)).x
    heads = {head: round(float(weight), 6) for head, weight in zip(read, found, strict=False)}
    return heads, np.concatenate([[0.0], found[len(read) :]])


def apply_mix(read: Mapping[Head, Floats], heads: Mapping[Head, float], offsets: Floats) -> Floats:
    """The expected gain of every tier over the cheapest, a row for each text."""
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
    """Mix some heads and choose the price for the aim; every figure is measured on rows that were held out."""
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
    """A price that is a number: one beyond which no gain that was ever seen would pay."""
    if math.isfinite(price):
        return price
    steps = [b - a for a, b in zip(sorted(costs), sorted(costs)[1:], strict=False) if b > a]
    # Outcomes are from 0 to 1, so no expected gain is much above 1 either.
    return math.copysign(10.0 * max(1.0, float(np.abs(gains).max())) / min(steps), price)


def fit_confidence(gains: Floats, quality: Floats, tier: int) -> ConfidenceCurve:
    """The chance that no tier does better than this one, from how much the best is expected to gain over it."""
    from sklearn.linear_model import LogisticRegression

    regret = gains.max(axis=1) - gains[:, tier]
    good = quality[:, tier] >= quality.max(axis=1)
    # The rule of succession keeps a chance that was never missed below certainty.
    share = (good.sum() + 1.0) / (len(good) + 2.0)
    flat = ConfidenceCurve(math.log(share / (1.0 - share)), 0.0)
    if good.all() or not good.any() or np.ptp(regret) < 1e-9:
        return flat
    fitted = LogisticRegression(C=1e3).fit(regret[:, None], good)
    slope, bias = float(fitted.coef_[0, 0]), float(fitted.intercept_[0])
    # More to gain elsewhere never makes a tier more likely to be as good.
    return ConfidenceCurve(bias, slope) if slope <= 0.0 else flat
