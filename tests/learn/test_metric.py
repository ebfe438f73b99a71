"""Metrics against tables worked out by hand, and against scikit-learn where it has the same figure."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as theirs

from turnout.learn.metric import (
    accuracy,
    auroc,
    bin_reliability,
    brier,
    confuse,
    coverage_at,
    curve,
    ece,
    score_labels,
    wilson,
)

TRUE = ["a", "a", "a", "b", "b", "oos"]
SAID = ["a", "a", "b", "b", "a", "b"]


def test_labels_by_hand() -> None:
    one, two, three = score_labels(TRUE, SAID, ["a", "b", "c"])
    assert (one.precision, one.recall, one.support) == (2 / 3, 2 / 3, 3)
    assert (two.precision, two.recall, two.f1) == (1 / 3, 1 / 2, 2 / 5)
    assert all(map(math.isnan, (three.precision, three.recall, three.f1)))
    assert accuracy([True, False, True, True]) == 0.75
    assert math.isnan(accuracy([]))


def test_labels_as_scikit_learn_has_them() -> None:
    draw = np.random.default_rng(0)
    true, said = draw.choice(list("abcde"), 400).tolist(), draw.choice(list("abcd"), 400).tolist()
    expected = theirs.precision_recall_fscore_support(true, said, labels=list("abcde"), zero_division=np.nan)
    found = score_labels(true, said)
    np.testing.assert_allclose([one.precision for one in found], expected[0])
    np.testing.assert_allclose([one.recall for one in found], expected[1])
    # For a label that is never said, F1 is 0: there were questions, and none was found.
    np.testing.assert_allclose([one.f1 for one in found], np.nan_to_num(expected[2]))
    np.testing.assert_array_equal(confuse(true, said).counts, theirs.confusion_matrix(true, said, labels=list("abcde")))


def test_confusion_keeps_the_order_and_every_question() -> None:
    found = confuse(TRUE, SAID, ["b", "a"])
    assert found.labels == ("b", "a", "oos")
    assert found.counts.tolist() == [[1, 1, 0], [1, 2, 0], [1, 0, 0]]


class RankedCase(NamedTuple):
    id: str
    positive: list[bool]
    score: list[float]
    expected: float


RANKED = [
    RankedCase("perfect", [False, True], [0.1, 0.9], 1.0),
    RankedCase("the wrong way round", [True, False], [0.1, 0.9], 0.0),
    RankedCase("one tie counts half", [True, False], [0.5, 0.5], 0.5),
    RankedCase("all alike", [True, True, False, False, False], [0.3] * 5, 0.5),
    # Pairs: 0.8>0.2, 0.8>0.5, 0.5>0.2, 0.5=0.5: 3.5 of 4.
    RankedCase("a tie among four", [True, True, False, False], [0.8, 0.5, 0.5, 0.2], 3.5 / 4),
    RankedCase("infinities rank", [True, False], [math.inf, -math.inf], 1.0),
]


@pytest.mark.parametrize("case", RANKED, ids=lambda case: case.id)
def test_auroc_by_hand(case: RankedCase) -> None:
    assert auroc(case.positive, case.score) == pytest.approx(case.expected)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.25, 0.5, 1.0])), min_size=2, max_size=60))
@settings(max_examples=60, deadline=None)
def test_auroc_with_many_ties_as_scikit_learn_has_it(rows: list[tuple[bool, float]]) -> None:
    positive, score = [flag for flag, _ in rows], [value for _, value in rows]
    if len({*positive}) < 2:
        assert math.isnan(auroc(positive, score))
    else:
        assert auroc(positive, score) == pytest.approx(theirs.roc_auc_score(positive, score))


def test_reliability_by_hand() -> None:
    right = [True, False, True, True, False, True]
    sure = [0.1, 0.1, 0.55, 0.55, 0.95, 1.0]
    wide = bin_reliability(right, sure, bins=2, cut="width")
    assert [(one.count, one.accuracy) for one in wide] == [(2, 0.5), (4, 0.75)]
    assert [one.confidence for one in wide] == pytest.approx([0.1, 0.7625])
    # |0.5 - 0.1| * 2/6 + |0.75 - 0.7625| * 4/6
    assert ece(right, sure, bins=2, cut="width") == pytest.approx((0.4 * 2 + 0.0125 * 4) / 6)
    mass = bin_reliability(right, sure, bins=3)
    assert [(one.count, one.confidence) for one in mass] == [(2, 0.1), (2, 0.55), (2, 0.975)]
    assert ece(right, sure, bins=3) == pytest.approx((0.4 + 0.45 + abs(0.5 - 0.975)) / 3)
    assert brier(right, sure) == pytest.approx(theirs.brier_score_loss(right, sure))


def test_equals_stay_in_one_bin_and_edges_belong_upwards() -> None:
    assert len(bin_reliability([True, False] * 50, [0.7] * 100)) == 1
    assert [one.count for one in bin_reliability([True, True], [0.5, 1.0], bins=2, cut="width")] == [2]
    assert bin_reliability([], []) == []
    assert math.isnan(ece([], []))


@given(
    st.lists(st.tuples(st.booleans(), st.floats(0, 1)), max_size=80),
    st.integers(1, 20),
    st.sampled_from(["mass", "width"]),
)
@settings(max_examples=80, deadline=None)
def test_every_answer_is_in_exactly_one_bin(rows: list[tuple[bool, float]], bins: int, cut: str) -> None:
    right, sure = [flag for flag, _ in rows], [value for _, value in rows]
    found = bin_reliability(right, sure, bins=bins, cut=cut)  # type: ignore[arg-type]
    assert sum(one.count for one in found) == len(rows)
    assert len(found) <= bins
    assert all(one.floor <= one.accuracy <= one.ceiling for one in found)


def test_a_calibrated_classifier_has_no_error_and_an_arrogant_one_has() -> None:
    draw = np.random.default_rng(1)
    sure = draw.random(40_000)
    assert ece(draw.random(40_000) < sure, sure) < 0.015
    assert ece(draw.random(40_000) < 0.5, np.full(40_000, 0.9)) == pytest.approx(0.4, abs=0.01)


# R: prop.test(x, n, correct = FALSE)
@pytest.mark.parametrize(
    ("hits", "count", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (5, 10, 0.2366, 0.7634), (1, 100, 0.0018, 0.0545), (0, 0, 0.0, 1.0)],
)
def test_wilson(hits: int, count: int, low: float, high: float) -> None:
    assert wilson(hits, count) == pytest.approx((low, high), abs=5e-5)


def test_curve_and_coverage_by_hand() -> None:
    right, sure = [True, True, False, True, False], [0.9, 0.8, 0.8, 0.7, math.nan]
    found = curve(right, sure)
    assert found.gate.tolist() == [0.9, 0.8, 0.7]
    assert found.coverage.tolist() == pytest.approx([0.2, 0.6, 0.8]), "no answer is never covered"
    assert found.accuracy.tolist() == pytest.approx([1.0, 2 / 3, 3 / 4])
    assert coverage_at(right, sure, precision=0.75) == pytest.approx((0.8, 0.7))
    assert coverage_at(right, sure, precision=0.76) == pytest.approx((0.2, 0.9))
    assert coverage_at([False], [0.5], precision=0.5) == (0.0, math.inf)
    assert coverage_at([True] * 49 + [False], [0.5] * 50, precision=0.98)[0] == 1.0, "98 % is 98 %"
    assert coverage_at([], [], precision=0.9) == (0.0, math.inf)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ece([True], [1.5]), "between 0 and 1"),
        (lambda: ece([True], [math.nan]), "between 0 and 1"),
        (lambda: ece([True, False], [0.5]), "one length"),
        (lambda: auroc([True, False], [math.nan, 0.1]), "NaN"),
        (lambda: confuse(["a"], []), "shorter"),
        (lambda: bin_reliability([True], [0.5], bins=0), "at least 1"),
    ],
)
def test_what_has_no_answer_is_refused(call: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()  # type: ignore[operator]
