"""Fitting bands: weights and edges together, as an ordinal regression that starts from what a person wrote.

The scorer's confidence, a sigmoid of `steepness` times the distance to an edge, is the chance in a proportional-odds
model that the question belongs on this side of it. So weights, edges and steepness are one model, and the original
profile is a point in it: the fit is held there by a ridge. Weights keep their sign and add up to 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from turnout.layers.signals_config import Bands, SignalsConfig

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]

# Decimals of a weight or an edge in a file: a step of .0001 moves no question a person would notice.
DECIMALS = 4
# Below this two edges would be one, and a band between them unreachable.
NARROWEST = 10.0**-DECIMALS
# What the checker allows, and where the sigmoid is a step.
STEEPEST = 1000.0
# L-BFGS steps: the loss of a few hundred rows no longer moves in its sixth digit.
STEPS = 100


class BandNumbers(NamedTuple):
    weights: Floats
    """Of every signal, in their order."""
    edges: Floats
    steepness: float

    def named(self, config: SignalsConfig) -> dict[str, float]:
        told = {f"{signal.id}.weight": float(w) for signal, w in zip(config.signals, self.weights, strict=True)}
        return told | {f"edges[{place}]": float(edge) for place, edge in enumerate(self.edges)}


class BandShape:
    def __init__(self, config: SignalsConfig, bands: Bands) -> None:
        self.routes = bands.routes
        self.steepness = bands.steepness
        self.weights = np.array([signal.weight or 0.0 for signal in config.signals])
        self.edges = np.array(bands.edges)
        self.free = self.weights != 0.0
        self.signs = np.sign(self.weights)

    def original(self) -> BandNumbers:
        return BandNumbers(self.weights, self.edges, self.steepness)

    def decide(self, numbers: BandNumbers, levels: Floats) -> Places:
        # The sum in the order of the signals, as the layer adds them: it decides ties at an edge.
        score = np.zeros(len(levels))
        for column, weight in enumerate(numbers.weights):
            score += levels[:, column] * weight
        return np.searchsorted(numbers.edges, score, side="right")

    def fit(self, levels: Floats, labels: Places, strength: float, seed: int) -> BandNumbers:
        """The likeliest numbers near the original ones; `seed` is not needed, the fit is deterministic."""
        from scipy.optimize import minimize

        rows = levels[:, self.free] * self.signs[self.free]
        # In these units the sigmoid is the plain one: weights and edges are multiplied by the steepness.
        weights = np.abs(self.weights[self.free]) * self.steepness
        edges = self.edges * self.steepness
        gaps = np.log(np.diff(edges))
        start = np.concatenate([weights, edges[:1], gaps])
        # A weight is held relative to its size, an edge relative to the width of a band.
        scale = np.concatenate([np.maximum(weights, weights.mean() / 4), np.ones(1), np.ones(len(gaps))])
        high = labels[:, None] > np.arange(len(edges))[None, :]

        def loss(point: Floats) -> tuple[float, Floats]:
            w, first, logs = point[: len(weights)], point[len(weights)], point[len(weights) + 1 :]
            steps = np.exp(np.clip(logs, -20.0, 20.0))
            at = first + np.concatenate([[0.0], np.cumsum(steps)])
            odds = (rows @ w)[:, None] - at[None, :]
            # Each edge is a yes/no question, "above it?", and they are added up.
            value = np.logaddexp(0.0, np.where(high, -odds, odds)).sum()
            slope = 1.0 / (1.0 + np.exp(-np.clip(odds, -30.0, 30.0))) - high
            apart = (point - start) / scale
            value += strength * float(apart @ apart)
            by_edge = -slope.sum(axis=0)
            later = np.cumsum(by_edge[::-1])[::-1]
            gradient = np.concatenate([rows.T @ slope.sum(axis=1), [by_edge.sum()], later[1:] * steps])
            return float(value), gradient + 2.0 * strength * apart / scale

        limits = [(0.0, None)] * len(weights) + [(None, None)] * (1 + len(gaps))
        found: Any = minimize(
            loss, start, jac=True, method="L-BFGS-B", bounds=limits, options={"maxiter": STEPS, "ftol": 1e-6}
        ).x
        w, first = found[: len(weights)], found[len(weights)]
        at = first + np.concatenate([[0.0], np.cumsum(np.exp(np.clip(found[len(weights) + 1 :], -20.0, 20.0)))])
        total = float((w * self.signs[self.free]).sum())
        if not total > 0.0:  # nothing speaks any more: there is no scale to divide by
            return self.original()
        fitted = np.zeros(len(self.weights))
        fitted[self.free] = w * self.signs[self.free] / total
        return BandNumbers(fitted, at / total, min(total, STEEPEST))

    def rounded(self, numbers: BandNumbers) -> BandNumbers:
        """Weights with four decimals that still add up to 1, edges that still rise."""
        weights = np.round(numbers.weights, DECIMALS)
        if self.free.any():
            # What rounding took goes to the largest, where it is the smallest change.
            largest = int(np.argmax(np.abs(weights)))
            weights[largest] = round(weights[largest] + 1.0 - float(weights.sum()), DECIMALS)
        edges = np.round(numbers.edges, DECIMALS)
        for place in range(1, len(edges)):
            edges[place] = max(edges[place], round(edges[place - 1] + NARROWEST, DECIMALS))
        return BandNumbers(weights, edges, round(min(max(numbers.steepness, NARROWEST), STEEPEST), 2))
