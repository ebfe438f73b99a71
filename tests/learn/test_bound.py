"""Bounds against scipy, against published tables, and against every outcome there is."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from turnout.learn.bound import (
    ceiling_of,
    chance_to_prove,
    clopper_pearson,
    compare_paired,
    floor_of,
    least_count,
    mcnemar,
    p_of_few,
    prove_in_sequence,
)


@pytest.mark.parametrize(("hits", "count"), [(0, 1), (0, 30), (1, 30), (15, 30), (29, 30), (30, 30), (3, 5000)])
@pytest.mark.parametrize("delta", [0.05, 0.01, 0.3])
def test_clopper_pearson_as_scipy_has_it(hits: int, count: int, delta: float) -> None:
    low, high = clopper_pearson(hits, count, delta)
    expected = stats.binomtest(hits, count).proportion_ci(1 - delta, method="exact")
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_nothing_seen_proves_nothing() -> None:
    assert (floor_of(0, 0, 0.05), ceiling_of(0, 0, 0.05)) == (0.0, 1.0)
    assert p_of_few(0, 0, 0.02) == 1.0
    assert p_of_few(0, 200, 0.02) == pytest.approx(0.98**200)


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5, 0.93])
def test_the_bounds_hold_for_every_outcome(rate: float) -> None:
    """Exact: over all outcomes of 40, weighted by how likely they are, a bound is wrong at most `delta` of the time."""
    delta, count = 0.05, 40
    chance = stats.binom.pmf(np.arange(count + 1), count, rate)
    below = sum(chance[hits] for hits in range(count + 1) if floor_of(hits, count, delta) > rate)
    above = sum(chance[hits] for hits in range(count + 1) if ceiling_of(hits, count, delta) < rate)
    assert below <= delta
    assert above <= delta


def test_a_bound_and_its_test_say_the_same() -> None:
    for hits, count in itertools.product(range(6), (100, 149, 150, 400)):
        assert (ceiling_of(hits, count, 0.05) <= 0.02) == (p_of_few(hits, count, 0.02) <= 0.05), (hits, count)


def test_rows_needed() -> None:
    # The rule of three, exactly: 0.98**149 is the first power below 0.05.
    assert least_count(0, 0.02, 0.05) == 149 == math.ceil(math.log(0.05) / math.log(0.98))
    assert least_count(1, 0.02, 0.05) == 236


@pytest.mark.parametrize(("rate", "count"), [(0.0, 148), (0.0, 149), (0.01, 300), (0.01, 2000), (0.03, 500), (0.0, 0)])
def test_the_chance_to_prove_is_counted_over_every_outcome(rate: float, count: int) -> None:
    chance = stats.binom.pmf(np.arange(count + 1), count, rate)
    expected = sum(chance[errors] for errors in range(count + 1) if count and p_of_few(errors, count, 0.02) <= 0.05)
    assert chance_to_prove(rate, count, 0.02, 0.05) == pytest.approx(expected)


def test_in_sequence() -> None:
    assert prove_in_sequence([0.01, 0.04, 0.06, 0.001], 0.05) == 2
    assert prove_in_sequence([0.06, 0.0], 0.05) == 0
    assert prove_in_sequence([], 0.05) == 0
    assert prove_in_sequence([0.05, math.nan, 0.0], 0.05) == 1, "what is not known is not proven"


def test_sequence_keeps_its_level_where_testing_each_does_not() -> None:
    """A world in which every claim is false: any proof is an error."""
    draw = np.random.default_rng(3)
    rounds, claims = 2000, 20
    p_values = draw.random((rounds, claims))
    fair = np.mean([prove_in_sequence(row, 0.05) > 0 for row in p_values])
    greedy = np.mean([(row <= 0.05).any() for row in p_values])
    assert fair <= 0.065
    assert greedy > 0.5, "the test can fail"


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (5, 0), (0, 5), (9, 3), (40, 20), (20, 40)])
def test_mcnemar_is_the_binomial_test(wins: int, losses: int) -> None:
    expected = stats.binomtest(wins, wins + losses, 0.5, alternative="greater").pvalue if wins + losses else 1.0
    assert mcnemar(wins, losses) == pytest.approx(expected)


def paired(wins: int, losses: int, both: int, neither: int) -> tuple[list[bool], list[bool]]:
    new = [True] * wins + [False] * losses + [True] * both + [False] * neither
    old = [False] * wins + [True] * losses + [True] * both + [False] * neither
    return new, old


def test_paired_by_hand() -> None:
    found = compare_paired(*paired(40, 20, 900, 40), 0.05)
    assert (found.count, found.wins, found.losses) == (1000, 40, 20)
    assert found.difference == pytest.approx(0.02)
    assert found.p_value == pytest.approx(0.0067, abs=5e-5)
    assert 0.0 < found.floor < 0.02
    same = compare_paired([True] * 1000, [True] * 1000, 0.05)
    assert same.difference == 0.0
    assert -0.01 < same.floor < 0.0, "as good, as far as a thousand questions show"
    assert compare_paired([], [], 0.05).floor == -1.0
    assert compare_paired(*paired(20, 40, 900, 40), 0.05).floor < -0.02


def test_the_paired_floor_holds_for_every_outcome() -> None:
    """Exact: over all outcomes of 30 questions, the floor is above the truth at most `delta` of the time."""
    count, delta = 30, 0.1
    for win, lose in [(0.1, 0.1), (0.3, 0.05), (0.02, 0.3), (0.0, 0.01), (0.5, 0.5)]:
        wrong = 0.0
        for wins, losses in itertools.product(range(count + 1), repeat=2):
            if wins + losses > count:
                continue
            chance = stats.multinomial.pmf([wins, losses, count - wins - losses], count, [win, lose, 1 - win - lose])
            if (
                chance > 1e-12
                and compare_paired(*paired(wins, losses, count - wins - losses, 0), delta).floor > win - lose
            ):
                wrong += chance
        assert wrong <= delta, (win, lose, wrong)


@pytest.mark.parametrize(
    "call",
    [
        lambda: floor_of(3, 2, 0.05),
        lambda: floor_of(-1, 2, 0.05),
        lambda: ceiling_of(1, 2, 0.0),
        lambda: ceiling_of(1, 2, 1.0),
        lambda: compare_paired([True], [True, False], 0.05),
        lambda: compare_paired([True], [True], 0.0),
    ],
)
def test_nonsense_is_refused(call: object) -> None:
    with pytest.raises(ValueError, match=r"no such share|between 0 and 1|same questions"):
        call()  # type: ignore[operator]
