"""Fitting a ranking: the weights inside its named sums, one at a time, as long as it helps.

A ranking's scores have corners (conditions, excesses over a level), so there is no slope to follow. Each weight is
tried a little larger and a little smaller in turn; a change stays if more questions come out right than it costs in
distance from what a person wrote. A weight keeps its sign, and one that is nothing stays nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from turnout.layers.signals_config import Ranking, SignalsConfig

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]

DECIMALS = 4
# By how much a weight is changed in one try. Their products reach every number within a few sweeps.
FACTORS = (0.5, 0.8, 0.9, 1.1, 1.25, 2.0)
# Times through all weights; the search mostly ends by itself after three.
SWEEPS = 6
# How much a right answer's lead counts, so that of two equals the clearer one is taken.
CLEAR = 0.01


class RankNumbers(NamedTuple):
    values: Floats
    names: tuple[tuple[str, str], ...]
    """For each value its sum and its signal; the signal is empty for what a sum starts from."""

    def named(self, config: SignalsConfig) -> dict[str, float]:
        return {
            f"sums.{total}.{signal}" if signal else f"base.{total}": float(value)
            for (total, signal), value in zip(self.names, self.values, strict=True)
        }


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
