"""The cost-quality curve of a router, and the point on it that serves an aim.

A tier is worth its expected gain less a price times its cost. The highest price sends everything to the cheapest tier,
a price of zero always buys the best. So one number sweeps the whole curve, for any number of tiers, and choosing a
threshold means choosing that price.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from turnout.core.errors import LearnError

from .metric import Floats

# Points of the curve. More would only trace the noise of the rows it is measured on.
POINTS = 200
# RouteLLM's evaluation cuts the scores into ten bins of equal size: eleven points, both ends included.
BINS = 10
# Resamples of an interval, and its level.
RESAMPLES, LEVEL = 400, 0.95


class FrontierPoint(NamedTuple):
    """The results of one price."""

    price: float
    cost: float
    """The mean cost of an answer."""
    quality: float
    """The mean quality of an answer."""
    kept: float
    """The share kept of the quality gap between the cheapest and the most expensive tier; NaN if there is no gap."""
    shares: tuple[float, ...]
    """The share of questions that each tier answers."""


class Aim(Struct, frozen=True):
    """What the thresholds are chosen for."""

    by: Literal["keep_quality", "budget", "max_cost"] = "keep_quality"
    value: float = 0.95

    def __str__(self) -> str:
        if self.by == "keep_quality":
            return f"cheapest setting that keeps {self.value:.0%} of the gap between cheapest and most expensive tier"
        if self.by == "budget":
            return f"best quality for {self.value:.0%} of what the most expensive tier costs more than the cheapest"
        return f"best quality for a mean cost of at most {self.value:.6g} an answer"


def aim_for(*, keep_quality: float | None = None, budget: float | None = None, max_cost: float | None = None) -> Aim:
    """The user's aim; without one, keeping 95 % of the quality gap."""
    options = {"keep_quality": keep_quality, "budget": budget, "max_cost": max_cost}
    stated = [(by, value) for by, value in options.items() if value is not None]
    if len(stated) > 1:
        names = " and ".join("--" + by.replace("_", "-") for by, _ in stated)
        raise LearnError(f"{names}: state one aim, thresholds cannot serve two")
    if not stated:
        return Aim()
    by, value = stated[0]
    if not (math.isfinite(value) and value >= 0.0 and (by == "max_cost" or value <= 1.0)):
        limit = "a number from 0 up" if by == "max_cost" else "from 0 to 100 %"
        raise LearnError(f"--{by.replace('_', '-')} {value:g}: it must be {limit}")
    return Aim(by, value)  # type: ignore[arg-type]


def find_ends(costs: Sequence[float] | Floats) -> tuple[int, int]:
    """The indices of the cheapest and the most expensive tier; of equals the first and the last."""
    listed = [float(cost) for cost in costs]
    return listed.index(min(listed)), len(listed) - 1 - listed[::-1].index(max(listed))


def choose(gains: Floats, costs: Sequence[float] | Floats, price: float) -> npt.NDArray[np.intp]:
    """The tier of each row: the one worth most; of equals the cheapest."""
    if math.isinf(price):
        return np.full(len(gains), find_ends(costs)[0 if price > 0 else 1])
    chosen: npt.NDArray[np.intp] = np.argmax(gains - price * np.asarray(costs), axis=1)
    return chosen


def trace(gains: Floats, quality: Floats, costs: Floats, paid: Floats | None = None) -> list[FrontierPoint]:
    """The curve, from the cheapest tier for everything to the most expensive.

    `gains` are predicted out of fold, `quality` was measured for each tier, and `costs` has one number per tier.
    `paid` is the real cost of each answer, if known.
    """
    inner = np.unique(np.quantile(_ratios(gains, costs), np.linspace(0.0, 1.0, POINTS + 1)))
    # Zero is always on the curve: the choice of a router that need not save.
    prices = [math.inf, *np.unique(np.append(inner, 0.0))[::-1], -math.inf]
    return [_measure(price, choose(gains, costs, price), quality, costs, paid) for price in prices]


def _ratios(gains: Floats, costs: Floats) -> Floats:
    """The prices at which the choice for some row changes between two tiers."""
    pairs = [(low, high) for high in range(len(costs)) for low in range(len(costs)) if costs[high] > costs[low]]
    if not pairs:
        raise LearnError("every tier costs the same: there is nothing to trade")
    return np.concatenate([(gains[:, high] - gains[:, low]) / (costs[high] - costs[low]) for low, high in pairs])


def _measure(price: float, chosen: Any, quality: Floats, costs: Floats, paid: Floats | None) -> FrontierPoint:
    rows = np.arange(len(chosen))
    got = float(quality[rows, chosen].mean())
    cost = float((np.asarray(costs)[chosen] if paid is None else paid[rows, chosen]).mean())
    shares = np.bincount(chosen, minlength=len(costs)) / len(chosen)
    low, high = (float(quality[:, end].mean()) for end in find_ends(costs))
    kept = (got - low) / (high - low) if high > low else math.nan
    return FrontierPoint(float(price), cost, got, kept, tuple(map(float, shares)))


def find_point(curve: Sequence[FrontierPoint], aim: Aim) -> tuple[FrontierPoint, str]:
    """The point that serves the aim, and a remark if the aim cannot be reached."""
    cheapest, costliest = curve[0], curve[-1]
    if aim.by == "keep_quality":
        if not costliest.quality > cheapest.quality:
            both = f"{costliest.quality:.3f} against {cheapest.quality:.3f}"
            return cheapest, f"the most expensive tier answers no better than the cheapest ({both}): no gain pays"
        # The most expensive tier keeps all of the gap, so some point does. A price below zero is the last resort.
        enough = [point for point in curve if point.kept >= aim.value]
        best = [point for point in enough if point.price >= 0.0] or enough
        return min(best, key=lambda point: (point.cost, -point.quality)), ""
    most = aim.value
    if aim.by == "budget":
        most = cheapest.cost + aim.value * (costliest.cost - cheapest.cost)
    affordable = [point for point in curve if point.price >= 0.0 and point.cost <= most + 1e-12]
    if not affordable:
        return cheapest, f"even the cheapest tier costs {cheapest.cost:.6g}, more than {most:.6g}"
    return max(affordable, key=lambda point: (point.quality, -point.cost)), ""


def centre(price: float, gains: Floats, costs: Sequence[float] | Floats) -> float:
    """The middle of the range of prices that decide these rows in the same way."""
    if price == 0.0 or not math.isfinite(price):
        return price
    ratios = _ratios(gains, np.asarray(costs))
    below, above = ratios[ratios <= price], ratios[ratios > price]
    return float((below.max() + above.min()) / 2) if below.size and above.size else price


def measure_kept(chosen: Any, quality: Floats, costs: Sequence[float], *, seed: int = 0) -> tuple[float, float]:
    """The interval of the kept share of the quality gap, by resampling the rows."""
    rng = np.random.default_rng(seed)
    got = quality[np.arange(len(chosen)), chosen]
    cheapest, costliest = find_ends(costs)
    kept = []
    for _ in range(RESAMPLES):
        rows = rng.integers(0, len(chosen), len(chosen))
        low, high = quality[rows, cheapest].mean(), quality[rows, costliest].mean()
        if high > low:
            kept.append((got[rows].mean() - low) / (high - low))
    if not kept:
        return math.nan, math.nan
    tail = (1.0 - LEVEL) / 2
    return float(np.quantile(kept, tail)), float(np.quantile(kept, 1.0 - tail))


def apgr(score: Floats, weak: Floats, strong: Floats, bins: int = BINS) -> float:
    """Average performance gap recovered, as RouteLLM's evaluation computes it.

    Thresholds are the edges of ten bins of equal size of the scores. At each one, rows with at least that score go to
    the strong model; at the last edge none do. The area under the mean quality over the share of strong calls, less the
    weak model's, is divided by the strong model's less the weak model's: 0 is always weak, 1 always strong, random
    about a half. If many scores are equal, an edge may occur twice and counts once.
    """
    shares, means = trace_calls(score, weak, strong, bins)
    width = shares[-1] - shares[0]
    gap = (strong.mean() - weak.mean()) * width
    return float((np.trapezoid(means, shares) - weak.mean() * width) / gap)


def trace_calls(score: Floats, weak: Floats, strong: Floats, bins: int = BINS) -> tuple[Floats, Floats]:
    """The share of strong calls and the mean quality at each edge, the fewest calls first."""
    edges = np.unique(np.quantile(score, np.linspace(0.0, 1.0, bins + 1)))
    # With a single edge, all rows go to the strong model or none.
    picked = [score >= edge for edge in (edges[:-1] if len(edges) > 1 else edges)] + [score > edges[-1]]
    points = sorted((float(pick.mean()), float(np.where(pick, strong, weak).mean())) for pick in picked)
    return np.array([share for share, _ in points]), np.array([mean for _, mean in points])
