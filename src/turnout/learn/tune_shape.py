"""What of a signals layer can be fitted: the weights and edges of bands, or the weights inside a ranking's sums.

Bands are an ordinal regression that starts from what a person wrote. The scorer's confidence, a sigmoid of `steepness`
times the distance to an edge, is the chance in a proportional-odds model that the question belongs on this side of it.
So weights, edges and steepness are one model, and the original profile is a point in it: the fit is held there by a
ridge. Weights keep their sign and add up to 1.

A ranking's scores have corners (conditions, excesses over a level), so there is no slope to follow. Each weight is
tried a little larger and a little smaller in turn; a change stays if more questions come out right than it costs in
distance from what a person wrote. A weight keeps its sign, and one that is nothing stays nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from turnout.config.write import toml_key, toml_text, toml_value
from turnout.layers.signals_config import Bands, Ranking, SignalsConfig

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
# By how much a weight is changed in one try. Their products reach every number within a few sweeps.
FACTORS = (0.5, 0.8, 0.9, 1.1, 1.25, 2.0)
# Times through all weights; the search mostly ends by itself after three.
SWEEPS = 6
# How much a right answer's lead counts, so that of two equals the clearer one is taken.
CLEAR = 0.01


class BandNumbers(NamedTuple):
    weights: Floats
    """Of every signal, in their order."""
    edges: Floats
    steepness: float

    def named(self, config: SignalsConfig) -> dict[str, float]:
        told = {f"{signal.id}.weight": float(w) for signal, w in zip(config.signals, self.weights, strict=True)}
        return told | {f"edges[{place}]": float(edge) for place, edge in enumerate(self.edges)}

    def toml(self, signals: Sequence[str]) -> list[str]:
        edges = ", ".join(map(_number, self.edges))
        lines = ["", "[layers.bands]", f"edges = [{edges}]", f"steepness = {_number(self.steepness)}"]
        for signal, weight in zip(signals, self.weights, strict=True):
            lines += ["", "[[layers.signals]]", f"id = {toml_text(signal)}", f"weight = {_number(weight)}"]
        return lines


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


class RankNumbers(NamedTuple):
    values: Floats
    names: tuple[tuple[str, str], ...]
    """For each value its sum and its signal; the signal is empty for what a sum starts from."""

    def named(self, config: SignalsConfig) -> dict[str, float]:
        return {
            f"sums.{total}.{signal}" if signal else f"base.{total}": float(value)
            for (total, signal), value in zip(self.names, self.values, strict=True)
        }

    def toml(self, signals: Sequence[str]) -> list[str]:
        lines: list[str] = []
        for (total, signal), value in sorted(zip(self.names, self.values, strict=True)):
            key = f"layers.ranking.sums.{toml_key(total)}" if signal else "layers.ranking.base"
            if f"[{key}]" not in lines:
                lines += ["", f"[{key}]"]
            lines.append(f"{toml_key(signal or total)} = {_number(value)}")
        return lines


class RankShape:
    def __init__(self, config: SignalsConfig, ranking: Ranking) -> None:
        self.ranking = ranking
        self.routes = tuple(ranking.routes)
        self.place = {signal.id: at for at, signal in enumerate(config.signals)}
        listed = [((total, signal), w) for total, of in ranking.sums.items() for signal, w in of.items()]
        listed += [((total, ""), value) for total, value in ranking.base.items()]
        self.names = tuple(name for name, _ in listed)
        self.values = np.array([value for _, value in listed])

    def original(self) -> RankNumbers:
        return RankNumbers(self.values, self.names)

    def rounded(self, numbers: RankNumbers) -> RankNumbers:
        return RankNumbers(np.round(numbers.values, DECIMALS), self.names)

    def decide(self, numbers: RankNumbers, levels: Floats) -> Places:
        chosen: Places = np.argmax(self.score(numbers.values, levels != 0.0), axis=1)
        return chosen

    def score(self, values: Floats, on: npt.NDArray[np.bool_]) -> Floats:
        """Every route's score for every question; the first of equals wins, as in the layer."""
        rows = len(on)
        sums = {total: np.zeros(rows) for total in self.ranking.sums}
        for (total, signal), value in zip(self.names, values, strict=True):
            sums[total] += value * on[:, self.place[signal]] if signal else value
        found = np.zeros((rows, len(self.routes)))
        for column, terms in enumerate(self.ranking.routes.values()):
            for term in terms:
                holds = np.ones(rows, dtype=bool)
                for signal in term.when:
                    holds &= on[:, self.place[signal]]
                for total, level in term.when_sum.items():
                    holds &= sums[total] >= level
                if term.of is None:
                    value = np.full(rows, term.add)
                elif term.above is None:
                    value = term.add * sums[term.of]
                else:
                    over = sums[term.of] - term.above
                    value = np.where(over >= 0.0, term.add * over, 0.0)
                found[:, column] += np.where(holds, value, 0.0)
        return np.maximum(found, 0.0)

    def fit(self, levels: Floats, labels: Places, strength: float, seed: int) -> RankNumbers:
        on = levels != 0.0
        rows = np.arange(len(labels))

        def worth(values: Floats) -> float:
            scores = self.score(values, on)
            right = np.argmax(scores, axis=1) == labels
            lead = scores[rows, labels] - np.where(
                np.arange(scores.shape[1])[None, :] == labels[:, None], -np.inf, scores
            ).max(axis=1)
            moved = np.log(np.maximum(np.abs(values), 1e-9) / np.maximum(np.abs(self.values), 1e-9))
            return float(right.sum() + CLEAR * np.clip(lead, -1.0, 1.0).sum() - strength * (moved @ moved))

        values, best = self.values.copy(), worth(self.values)
        order = np.random.default_rng(seed).permutation(len(values))
        for _ in range(SWEEPS):
            before = best
            for at in order:
                for factor in FACTORS:
                    tried = values.copy()
                    tried[at] *= factor
                    found = worth(tried)
                    if found > best:
                        values, best = tried, found
            if best <= before:
                break
        return RankNumbers(values, self.names)


Shape = BandShape | RankShape


def _number(value: float) -> str:
    """With its decimals and no more; adding 0.0 turns a minus zero into zero."""
    return toml_value(round(float(value), 6) + 0.0)
