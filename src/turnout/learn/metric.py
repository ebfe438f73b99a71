"""How good answers are, and how well their confidence says so. Pure functions over arrays.

Two things are told apart throughout: `right`, whether each answer is what its question's label says, and `confidence`,
how sure it was. Answers of equal confidence are never separated: no gate could. What has no answer to count (an empty
set, a class that never occurs) is NaN, never a guess.
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

# The usual number of bins for calibration error (Guo et al. 2017): figures of other bin counts do not compare.
BINS = 15
# Two-sided 95 %: what an interval in a picture is read as unless it says otherwise.
Z = 1.959963984540054

Cut = Literal["mass", "width"]
"""How confidences are binned: as many answers in each (`mass`), or bins of equal width."""


class LabelScore(NamedTuple):
    """One label as a yes/no question."""

    label: str
    precision: float
    """Of the answers that say so, the share that is right; NaN where none does."""
    recall: float
    """Of the questions that are so, the share that is found; NaN where none is."""
    f1: float
    support: int
    """Questions with this label."""
    predicted: int
    """Answers with this label."""


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
    """What each possible gate gives, the highest gate first."""

    gate: Floats
    coverage: Floats
    """The share of all questions whose confidence is at least the gate."""
    accuracy: Floats
    """The share of those that is right."""


def or_none(value: float) -> float | None:
    """A figure as JSON has it: None for one that has no answer."""
    return None if math.isnan(value) else value


def accuracy(right: Sequence[bool] | Flags) -> float:
    flags = np.asarray(right, bool)
    return float(flags.mean()) if flags.size else math.nan


def score_labels(true: Sequence[str], said: Sequence[str], labels: Iterable[str] | None = None) -> list[LabelScore]:
    """Each label's precision, recall and F1; `labels` says which and in what order."""
    names = list(labels) if labels is not None else sorted({*true, *said})
    support, predicted = Counter(true), Counter(said)
    hits = Counter(one for one, other in zip(true, said, strict=True) if one == other)
    found = []
    for name in names:
        precision = hits[name] / predicted[name] if predicted[name] else math.nan
        recall = hits[name] / support[name] if support[name] else math.nan
        total = support[name] + predicted[name]
        f1 = 2 * hits[name] / total if total else math.nan
        found.append(LabelScore(name, precision, recall, f1, support[name], predicted[name]))
    return found


def confuse(true: Sequence[str], said: Sequence[str], labels: Iterable[str] | None = None) -> Confusion:
    """Which label is taken for which. Labels that `labels` leaves out are added behind it: no question is lost."""
    names = tuple(dict.fromkeys((*(labels or ()), *sorted({*true, *said}))))
    place = {name: number for number, name in enumerate(names)}
    counts = np.zeros((len(names), len(names)), np.int64)
    for one, other in zip(true, said, strict=True):
        counts[place[one], place[other]] += 1
    return Confusion(names, counts)


def wilson(hits: int, count: int, z: float = Z) -> tuple[float, float]:
    """The interval of a share (Wilson 1927): sensible at 0, at 1 and for few; (0, 1) where nothing is known."""
    if count <= 0:
        return 0.0, 1.0
    share, square = hits / count, z * z
    middle = (share + square / (2 * count)) / (1 + square / count)
    half = z * math.sqrt(share * (1 - share) / count + square / (4 * count * count)) / (1 + square / count)
    # At the ends the bound is exact; rounding must not leave 1e-17 there.
    low = 0.0 if hits == 0 else max(0.0, middle - half)
    high = 1.0 if hits == count else min(1.0, middle + half)
    return low, high


def bin_reliability(
    right: Sequence[bool] | Flags, confidence: Numbers, *, bins: int = BINS, cut: Cut = "mass"
) -> list[Bin]:
    """How often answers of a confidence are right; empty bins are left out.

    Bins of equal width include their lower edge, and the last one also 1. Bins of equal mass never divide answers of
    equal confidence, so where there are many of those there are fewer bins.
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
        # Cuts stand before the first answer of a confidence, so that equal ones stay together.
        lows = sorted({int(np.searchsorted(order, order[number * len(order) // bins])) for number in range(bins)})
        member = np.searchsorted(order[lows], sure, side="right")
    found = []
    for number in np.unique(member):
        inside = member == number
        count, hits = int(inside.sum()), int(flags[inside].sum())
        found.append(Bin(count, float(sure[inside].mean()), hits / count, *wilson(hits, count)))
    return found


def ece(right: Sequence[bool] | Flags, confidence: Numbers, *, bins: int = BINS, cut: Cut = "mass") -> float:
    """Expected calibration error: how far stated confidence is from the share that is right, on average."""
    found = bin_reliability(right, confidence, bins=bins, cut=cut)
    total = sum(one.count for one in found)
    return sum(one.count * abs(one.accuracy - one.confidence) for one in found) / total if total else math.nan


def brier(right: Sequence[bool] | Flags, confidence: Numbers) -> float:
    """The mean squared distance between confidence and what came out."""
    flags, sure = _read(right, confidence)
    return float(((sure - flags) ** 2).mean()) if flags.size else math.nan


def auroc(positive: Sequence[bool] | Flags, score: Numbers) -> float:
    """The chance that a positive scores above a negative, a tie counting half; NaN where either is missing."""
    flags, scores = np.asarray(positive, bool), np.asarray(score, np.float64)
    _demand_same_length(flags, scores)
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
    """Coverage and accuracy at every gate that makes a difference. NaN confidence is no answer: it is never covered."""
    flags, sure = _read(right, confidence, lacking=True)
    there = ~np.isnan(sure)
    order = np.argsort(-sure[there], kind="stable")
    ordered, hits = sure[there][order], np.cumsum(flags[there][order])
    last = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True)) if ordered.size else np.zeros(0, np.int64)
    return Curve(ordered[last], (last + 1) / max(flags.size, 1), hits[last] / (last + 1))


def coverage_at(right: Sequence[bool] | Flags, confidence: Numbers, *, precision: float) -> tuple[float, float]:
    """The largest share that can be answered with at least this precision, and the gate for it; (0, inf) if none.

    It is what a gate chosen with hindsight reaches, for comparing classifiers; no promise for other questions (see
    `learn.gate` for one).
    """
    found = curve(right, confidence)
    # Shares of counts: 98 of 100 is 98 %, whatever the last bit of the quotient says.
    good = np.flatnonzero(found.accuracy >= precision - 1e-12)
    return (float(found.coverage[good[-1]]), float(found.gate[good[-1]])) if good.size else (0.0, math.inf)


def _read(right: Sequence[bool] | Flags, confidence: Numbers, *, lacking: bool = False) -> tuple[Flags, Floats]:
    flags, sure = np.asarray(right, bool), np.asarray(confidence, np.float64)
    _demand_same_length(flags, sure)
    given = sure[~np.isnan(sure)] if lacking else sure
    if not np.all((given >= 0.0) & (given <= 1.0)):
        raise ValueError("confidence is a number between 0 and 1")
    return flags, sure


def _demand_same_length(one: Any, other: Any) -> None:
    if len(one) != len(other):
        raise ValueError(f"{len(one)} answers and {len(other)} of the others: both must be of one length")
