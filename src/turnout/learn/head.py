"""The two linear heads of a student. Fitted with scikit-learn, kept as plain matrices, served without it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[Any]
Which = Literal["ngram", "vector"]

# What is tried for each head, the weakest fit first; measured on CLINC150's validation rows, where n-grams are best at
# 3 (93.5 %) and vectors at 10 (96.0 %), and 3 and 30 cost half a point. Few rows want the lower, many the higher.
GRIDS: dict[Which, tuple[float, ...]] = {"ngram": (1.0, 3.0, 10.0), "vector": (3.0, 10.0, 30.0)}
# A hundredth costs no accuracy beside 1e-4 and a third of the time.
SVC_TOLERANCE = 1e-2
# Vectors' logistic regression is there after about 30 steps; 300 is for the rows that are not.
LR_STEPS = 300
# What a label scores that a fold has never seen: out of the question.
UNSEEN = -100.0
# Levels of a signed byte, both signs alike.
LEVELS = 127


class Head(NamedTuple):
    weights: Floats
    """(features, labels)"""
    bias: Floats

    def score(self, features: Any) -> Floats:
        found: Floats = np.asarray(features @ self.weights) + self.bias
        return found


def fit_head(
    which: Which, features: Any, label: Floats, labels: int, *, strength: float, weight: Floats, seed: int
) -> Head:
    """One head; a label without a row is never chosen."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    # Sums in both go by the size of the set; so must what they are weighed against, or weights of one half would count.
    weight = weight / weight.mean()
    model: Any
    if which == "ngram":
        model = LinearSVC(C=strength, tol=SVC_TOLERANCE, random_state=seed)
    else:
        model = LogisticRegression(C=strength, max_iter=LR_STEPS)
    with warnings.catch_warnings():
        # A fit that stops early is judged by the same folds as any other.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(features, label, sample_weight=weight)
    found, bias = model.coef_.T, model.intercept_
    if found.shape[1] == 1:
        # Two labels are one line: half of it for each.
        found, bias = np.concatenate([-found, found], axis=1) / 2, np.concatenate([-bias, bias]) / 2
    whole = np.zeros((found.shape[0], labels))
    edge = np.full(labels, UNSEEN)
    whole[:, model.classes_], edge[model.classes_] = found, bias
    return Head(whole, edge)


def choose_strength(
    which: Which,
    features: Any,
    label: Floats,
    labels: int,
    folds: Sequence[tuple[Floats, Floats]],
    *,
    weight: Floats,
    seed: int,
) -> float:
    """Of the strengths that are tried the one that gets most of the held-out rows right; the weakest of equals."""
    rights: dict[float, int] = dict.fromkeys(GRIDS[which], 0)
    for strength in rights:
        for learn, judge in folds:
            head = fit_head(
                which, features[learn], label[learn], labels, strength=strength, weight=weight[learn], seed=seed
            )
            rights[strength] += int((head.score(features[judge]).argmax(1) == label[judge]).sum())
    return max(rights, key=lambda strength: (rights[strength], -strength))


def to_bytes(weights: Floats) -> tuple[Floats, Floats]:
    """The weights as signed bytes and, for each row, what a step of its bytes is worth."""
    scales = np.abs(weights).max(axis=1) / LEVELS
    scales[scales == 0] = 1.0
    return np.rint(weights / scales[:, None]).astype(np.int8), scales.astype(np.float32)
