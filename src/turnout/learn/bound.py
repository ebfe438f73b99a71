"""Finite-sample bounds and tests, without any limit theorem.

The chance of a wrong claim is at most `delta` at every sample size, and usually below it. Where a bound is built from
two others, `delta` is divided between them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from scipy import special

# The part of `delta` spent on how often two classifiers disagree. The rest is spent on which one is right when they do,
# which decides a promotion. At 0.1 the test of "better" loses 10 % of its level.
DISAGREEMENT = 0.1


class PairedComparison(Struct, frozen=True):
    """Two classifiers on the same questions."""

    count: int
    wins: int
    """Questions that only the challenger has right."""
    losses: int
    difference: float
    """The challenger's accuracy less the champion's."""
    floor: float
    """The lower bound of the difference; it fails with a chance of at most `delta`."""
    p_value: float
    """Of the exact one-sided McNemar test: the chance of so many wins if neither is better."""


def floor_of(hits: int, count: int, delta: float) -> float:
    """The one-sided lower bound of a probability (Clopper and Pearson 1934)."""
    _check(hits, count, delta)
    return 0.0 if hits == 0 else float(special.betaincinv(hits, count - hits + 1, delta))


def ceiling_of(hits: int, count: int, delta: float) -> float:
    """The one-sided upper bound of a probability; 1 for an empty sample."""
    _check(hits, count, delta)
    return 1.0 if hits == count else float(special.betaincinv(hits + 1, count - hits, 1 - delta))


def clopper_pearson(hits: int, count: int, delta: float) -> tuple[float, float]:
    """The two-sided interval; each side has half of `delta`."""
    return floor_of(hits, count, delta / 2), ceiling_of(hits, count, delta / 2)


def p_of_few(hits: int, count: int, rate: float) -> float:
    """The chance of at most this many hits at this rate: the p-value of "the rate is at least that"."""
    return float(special.bdtr(hits, count, rate)) if count else 1.0


def p_of_many(hits: int, count: int, rate: float) -> float:
    """The chance of at least this many hits at this rate."""
    return float(special.bdtrc(hits - 1, count, rate)) if hits > 0 else 1.0


def least_count(errors: int, limit: float, delta: float) -> int:
    """The smallest number of answers that proves an error of at most `limit` when `errors` of them are wrong."""
    counts = range(2**31)  # SciPy's binomial distribution counts in 32 bits
    return bisect_left(counts, True, lo=max(errors, 1), key=lambda count: p_of_few(errors, count, limit) <= delta)


def chance_to_prove(rate: float, count: int, limit: float, delta: float) -> float:
    """The chance that `count` answers prove an error of at most `limit`, if each is wrong with a chance of `rate`."""
    enough = bisect_right(range(count), delta, key=lambda errors: p_of_few(errors, count, limit))
    return p_of_few(enough - 1, count, rate) if enough else 0.0


def prove_in_sequence(p_values: Sequence[float], delta: float) -> int:
    """Fixed-sequence testing: how many claims, starting with the first, are proven together.

    The order must not depend on the sample behind the p-values. Each claim is tested at the full `delta`, and testing
    stops at the first that fails. So the first false claim in the order passes with a chance of at most `delta`, and
    no later one is reached without it.
    """
    return next((place for place, p in enumerate(p_values) if not p <= delta), len(p_values))


def mcnemar(wins: int, losses: int) -> float:
    """The exact one-sided p-value: the chance of at least this many wins if each disagreement is a coin toss."""
    count = wins + losses
    return float(special.bdtr(losses, count, 0.5)) if count else 1.0


def compare_paired(
    challenger: Sequence[bool] | npt.NDArray[Any], champion: Sequence[bool] | npt.NDArray[Any], delta: float
) -> PairedComparison:
    """Compare two classifiers on the same questions, with a lower bound of the difference.

    The difference is P(they disagree) x (2 P(the challenger is right, given that) - 1). Both factors are bounded
    exactly, and both bounds hold together with a chance of at least 1 - `delta`.
    """
    one, other = np.asarray(challenger, bool), np.asarray(champion, bool)
    if one.shape != other.shape or one.ndim != 1:
        raise ValueError(f"{one.shape} and {other.shape}: two classifiers are compared on the same questions")
    check_chance("delta", delta)
    count, wins, losses = len(one), int((one & ~other).sum()), int((other & ~one).sum())
    if not count:
        return PairedComparison(0, 0, 0, 0.0, -1.0, 1.0)
    share = floor_of(wins, wins + losses, delta * (1 - DISAGREEMENT))
    few, many = clopper_pearson(wins + losses, count, delta * DISAGREEMENT)
    lead = 2 * share - 1
    return PairedComparison(
        count, wins, losses, (wins - losses) / count, (few if lead > 0 else many) * lead, mcnemar(wins, losses)
    )


def _check(hits: int, count: int, delta: float) -> None:
    if not 0 <= hits <= count:
        raise ValueError(f"{hits} of {count}: no such share")
    check_chance("delta", delta)


def check_chance(name: str, value: float) -> None:
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name} {value}: a chance between 0 and 1")
