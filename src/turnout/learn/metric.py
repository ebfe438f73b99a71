"""Metrics of answers and of their confidence: pure functions over arrays.

`right` says whether each answer matches its label, `confidence` how sure it was. Answers of equal confidence are never
separated, because no gate could do it. A metric of nothing (an empty set, a class that never occurs) is NaN.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Numbers = Sequence[float] | npt.NDArray[Any]

# The usual number of bins for calibration error (Guo et al. 2017); figures with other numbers are not comparable.
BINS = 15
# Two-sided 95 %, the usual level of an interval in a picture.
Z = 1.959963984540054

Cut = Literal["mass", "width"]
"""How confidences are binned: bins of equally many answers (`mass`), or of equal width."""


class LabelScore(NamedTuple):
    """The figures of one label."""

    label: str
    precision: float
    """The share of answers with this label that are right; NaN if there are none."""
    recall: float
    """The share of questions with this label that are found; NaN if there are none."""
    f1: float
    support: int
    """Questions with this label."""


class Confusion(NamedTuple):
    labels: tuple[str, ...]
    counts: npt.NDArray[np.int64]
    """A row for each true label, a column for each answer."""


class Bin(Struct, frozen=True):
    """Answers of about the same confidence."""

    count: int
    confidence: float
    """Their mean confidence."""
    accuracy: float
    """The share that is right, between `floor` and `ceiling` at 95 % (Wilson)."""
    floor: float
    ceiling: float


class Curve(NamedTuple):
    """The results of every gate that makes a difference, the highest first."""

    gate: Floats
    coverage: Floats
    """The share of all questions whose confidence is at least the gate."""
    accuracy: Floats
    """The share of those that is right."""


def or_none(value: float) -> float | None:
    """A figure for JSON: None instead of NaN."""
    return None if math.isnan(value) else value


def accuracy(right: Sequence[bool] | Flags) -> float:
    flags = np.asarray(right, bool)
    return float(flags.mean()) if flags.size else math.nan


def score_labels(true: Sequence[str], answers: Sequence[str], labels: Iterable[str] | None = None) -> list[LabelScore]:
    """Each label's precision, recall and F1; `labels` selects and orders them."""
    names = list(labels) if labels is not None else sorted({*true, *answers})
    support, predicted = Counter(true), Counter(answers)
    hits = Counter(one for one, other in zip(true, answers, strict=True) if one == other)
    scores = []
    for name in names:
        precision = hits[name] / predicted[name] if predicted[name] else math.nan
        recall = hits[name] / support[name] if support[name] else math.nan
        total = support[name] + predicted[name]
        f1 = 2 * hits[name] / total if total else math.nan
        scores.append(LabelScore(name, precision, recall, f1, support[name]))
    return scores


def confuse(true: Sequence[str], answers: Sequence[str], labels: Iterable[str] | None = None) -> Confusion:
    """Count which label is taken for which. Labels missing from `labels` follow it, so that no question is lost."""
    names = tuple(dict.fromkeys((*(labels or ()), *sorted({*true, *answers}))))
    place = {name: number for number, name in enumerate(names)}
    counts = np.zeros((len(names), len(names)), np.int64)
    for one, other in zip(true, answers, strict=True):
        counts[place[one], place[other]] += 1
    return Confusion(names, counts)


def wilson(hits: int, count: int) -> tuple[float, float]:
    """The interval of a share at 95 % (Wilson 1927), which also works at 0, at 1 and for few; (0, 1) for none."""
    if count <= 0:
        return 0.0, 1.0
    share, square = hits / count, Z * Z
    middle = (share + square / (2 * count)) / (1 + square / count)
    half = Z * math.sqrt(share * (1 - share) / count + square / (4 * count * count)) / (1 + square / count)
    # At the ends the bound is exact; rounding must not leave 1e-17 there.
    low = 0.0 if hits == 0 else max(0.0, middle - half)
    high = 1.0 if hits == count else min(1.0, middle + half)
    return low, high


def bin_reliability(
    right: Sequence[bool] | Flags, confidence: Numbers, *, bins: int = BINS, cut: Cut = "mass"
) -> list[Bin]:
    """How often answers of a confidence are right; empty bins are left out.

    Bins of equal width include their lower edge, and the last one also 1. Bins of equal mass never divide answers of
    equal confidence, so there may be fewer of them.
    """
    flags, sure = _read(right, confidence)
    if bins < 1:
        raise ValueError(f"{bins} bins: at least 1 is needed")
    if not flags.size:
        return []
    if cut == "width":
        member = np.minimum((sure * bins).astype(np.int64), bins - 1)
    else:
        order = np.sort(sure)
        # Cuts are before the first answer of a confidence, so that equal ones stay together.
        lows = sorted({int(np.searchsorted(order, order[number * len(order) // bins])) for number in range(bins)})
        member = np.searchsorted(order[lows], sure, side="right")
    binned = []
    for number in np.unique(member):
        inside = member == number
        count, hits = int(inside.sum()), int(flags[inside].sum())
        binned.append(Bin(count, float(sure[inside].mean()), hits / count, *wilson(hits, count)))
    return binned


def ece(right: Sequence[bool] | Flags, confidence: Numbers, *, bins: int = BINS, cut: Cut = "mass") -> float:
    """Expected calibration error: the mean distance of confidence from the share that is right."""
    binned = bin_reliability(right, confidence, bins=bins, cut=cut)
    total = sum(one.count for one in binned)
    return sum(one.count * abs(one.accuracy - one.confidence) for one in binned) / total if total else math.nan


def brier(right: Sequence[bool] | Flags, confidence: Numbers) -> float:
    """The mean squared distance between confidence and correctness."""
    flags, sure = _read(right, confidence)
    return float(((sure - flags) ** 2).mean()) if flags.size else math.nan


def auroc(positive: Sequence[bool] | Flags, score: Numbers) -> float:
    """The chance that a positive scores above a negative, a tie counting half; NaN if there are none of either."""
    flags, scores = np.asarray(positive, bool), np.asarray(score, np.float64)
    _check_same_length(flags, scores)
    if np.isnan(scores).any():
        raise ValueError("a score is NaN: it has no rank")
    positives = int(flags.sum())
    negatives = flags.size - positives
    if not positives or not negatives:
        return math.nan
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2  # the mean rank of each group of equals, from 1
    return float((ranks[place][flags].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def curve(right: Sequence[bool] | Flags, confidence: Numbers) -> Curve:
    """Coverage and accuracy at every gate that makes a difference. A NaN confidence is no answer and never covered."""
    flags, sure = _read(right, confidence, lacking=True)
    there = ~np.isnan(sure)
    order = np.argsort(-sure[there], kind="stable")
    ordered, hits = sure[there][order], np.cumsum(flags[there][order])
    last = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True)) if ordered.size else np.zeros(0, np.int64)
    return Curve(ordered[last], (last + 1) / max(flags.size, 1), hits[last] / (last + 1))


def coverage_at(right: Sequence[bool] | Flags, confidence: Numbers, *, precision: float) -> tuple[float, float]:
    """The largest share that can be answered with at least this precision, and the gate for it; (0, inf) if none.

    The gate is chosen with hindsight, for comparing classifiers. It promises nothing for other questions; for that, see
    `learn.gate`.
    """
    gates = curve(right, confidence)
    # The tolerance makes 98 of 100 count as 98 %, despite rounding.
    good = np.flatnonzero(gates.accuracy >= precision - 1e-12)
    return (float(gates.coverage[good[-1]]), float(gates.gate[good[-1]])) if good.size else (0.0, math.inf)


def _read(right: Sequence[bool] | Flags, confidence: Numbers, *, lacking: bool = False) -> tuple[Flags, Floats]:
    flags, sure = np.asarray(right, bool), np.asarray(confidence, np.float64)
    _check_same_length(flags, sure)
    given = sure[~np.isnan(sure)] if lacking else sure
    if not np.all((given >= 0.0) & (given <= 1.0)):
        raise ValueError("confidence is a number between 0 and 1")
    return flags, sure


def _check_same_length(one: Any, other: Any) -> None:
    if len(one) != len(other):
        raise ValueError(f"{len(one)} answers and {len(other)} of the others: both must be of one length")
