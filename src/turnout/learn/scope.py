"""Fits the scope of a model of gains: what its training rows are like, so that it can pass on what is unlike them.

There are three independent measures: how far a text's shape is from the rows' mean (an exam question is no greeting,
whatever its words), which of its n-grams the rows have (another subject, another language), and how near its vector is
to theirs. Each is measured for every row without its fold, and the limit is set where a small share of the rows would
be left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from turnout.layers.gain_model import NEAREST, Scope

from .metric import Floats

Weights = dict[str, npt.NDArray[Any]]

# The share of rows like the training rows that each of the three limits leaves out.
LEFT_OUT = 0.005
# Added to every variance of the standardised shape, so that a small difference does not count where rows hardly vary.
RIDGE = 0.1
# Vectors kept: 1,000 of 384 numbers in two bytes each are .8 MB, and are compared much faster than one is made.
BANK = 1000


def fit_scope(
    shape: Floats, ngram: Any, vector: npt.NDArray[np.float32] | None, folds: npt.NDArray[np.intp], seed: int
) -> tuple[Scope, Weights, float]:
    """The limits, the arrays they are measured with, and the share of these rows, held out, that would be passed on.

    `shape` is standardised; `ngram` has a sparse row for each text.
    """
    present = (ngram > 0).astype(np.int32)
    counted = np.asarray(present.sum(axis=0)).ravel()
    bank = np.sort(np.random.default_rng(seed).permutation(len(shape))[:BANK])
    far, seen, near = np.zeros(len(shape)), np.zeros(len(shape)), np.ones(len(shape))
    for fold in np.unique(folds):
        held = folds == fold
        precision = _invert(shape[~held])
        far[held] = np.sqrt(np.einsum("ij,jk,ik->i", shape[held], precision, shape[held]))
        elsewhere = counted - np.asarray(present[held].sum(axis=0)).ravel() > 0
        own = present[held]
        seen[held] = own @ elsewhere / np.maximum(np.asarray(own.sum(axis=1)).ravel(), 1)
        if vector is not None:
            others = vector[bank[~held[bank]]]
            count = min(NEAREST, len(others))
            near[held] = np.sort(vector[held] @ others.T, axis=1)[:, -count:].mean(axis=1) if count else 0.0
    limits = (
        float(np.quantile(far, 1.0 - LEFT_OUT)),
        float(np.quantile(seen, LEFT_OUT)),
        float(np.quantile(near, LEFT_OUT)) if vector is not None else None,
    )
    apart = (far > limits[0]) | (seen < limits[1]) | (near < (limits[2] if limits[2] is not None else -1.0))
    weights: Weights = {"scope_shape": _invert(shape).astype(np.float32), "scope_ngrams": counted > 0}
    if vector is not None:
        weights["scope_bank"] = vector[bank].astype(np.float16)
    return Scope(*limits), weights, float(apart.mean())


def _invert(shape: Floats) -> Floats:
    return np.asarray(np.linalg.inv(shape.T @ shape / len(shape) + RIDGE * np.eye(shape.shape[1])), np.float64)
