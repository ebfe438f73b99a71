"""The gate for an exact match: how alike a question and a card must be, fitted for the embedder in use.

A cosine means another thing with every embedder, so a gate belongs to one, and is stored with its name. It is fitted
for a stated bound on false exact matches, and says which: of questions that have no card, at most this share is
admitted, with this confidence. Fitting needs NumPy and SciPy; asking does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from math import exp
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from turnout.core.errors import TooFewExamples

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

# Raise it when the guard or the features change: gates of another guard are not used (`scripts/fit_claim_gates.py`).
GUARD: Final = 2
# The name of the gate that is used without an embedder.
TEXT_ALONE: Final = "text"
# Newton's method on five weights; it stands still after eight steps or so.
STEPS: Final = 30
# Keeps the weights finite where a feature tells all, as scikit-learn's C=100 does.
RIDGE: Final = 0.01
# True matches that the floor keeps among the candidates.
KEPT: Final = 0.95


class MatchFeatures(Struct, frozen=True):
    """How alike a question and the card that is nearest are."""

    similarity: float | None
    """Cosine of the question and the claim, -1 to 1; None without an embedder."""
    coverage: float = 0.0
    """How much of the question stands in the claim, 0 to 1; rare words count for more."""
    returned: float = 0.0
    """How many of the claim's words stand in the question, 0 to 1."""
    margin: float = 0.0
    """How much better it fits than the next card."""
    known: float = 0.0
    """How many words of the question the card has in any of its wordings, 0 to 1."""

    def values(self) -> tuple[float, ...]:
        return (self.similarity or 0.0, self.coverage, self.returned, self.margin, self.known)


class ClaimGate(Struct, frozen=True):
    """When a card is near enough. Compared with `>=`."""

    embedder: str
    """The name of the embedder it was fitted for; `text` without one."""
    floor: float
    """What a candidate must have to be shown: cosine, or coverage without an embedder."""
    threshold: float
    """What `score` must reach for an exact match."""
    weights: tuple[float, ...]
    """Of the features, in their order."""
    bias: float
    bound: float = 0.05
    """False exact matches that it was fitted for: at most this share of the questions without a card."""
    confidence: float = 0.95
    """How sure that is."""
    fitted_on: int = 0
    """Questions without a card that it was fitted on."""
    guard: int = 0
    """The guard it was fitted with: another one refuses other questions, and so proves nothing for it."""

    def score(self, features: MatchFeatures) -> float:
        """How likely they are the same claim, 0 to 1, among the questions it was fitted on."""
        told = self.bias + sum(w * value for w, value in zip(self.weights, features.values(), strict=True))
        return 1 / (1 + exp(-max(-60.0, min(60.0, told))))

    def admits(self, features: MatchFeatures) -> bool:
        return self.score(features) >= self.threshold


def shipped_gate(embedder: str) -> ClaimGate | None:
    """The gate that ships for an embedder, fitted on the starter cards."""
    return next((gate for gate in _shipped() if gate.embedder == embedder), None)


@cache
def _shipped() -> list[ClaimGate]:
    return msgspec.json.decode(files("turnout.apps.claims").joinpath("gates.json").read_bytes(), type=list[ClaimGate])


def fit_gate(
    matches: Sequence[MatchFeatures],
    strangers: Sequence[MatchFeatures],
    embedder: str,
    *,
    bound: float = 0.05,
    confidence: float = 0.95,
    refused: int = 0,
) -> ClaimGate:
    """The gate that admits most of the `matches` and, but for a chance of `1 - confidence`, at most the share `bound`
    of questions like the `strangers`, whose card is not there; raises TooFewExamples where nothing can be proven.
    `refused`: how many more strangers there were that are kept out whatever the gate says."""
    import numpy as np

    from turnout.learn.bound import p_of_few, prove_in_sequence

    if not 0 < bound < 1 or not 0 < confidence < 1:
        raise ValueError(f"bound {bound}, confidence {confidence}: shares between 0 and 1")
    if not matches or not strangers:
        raise TooFewExamples("a gate is fitted on questions with a card and on questions without: there are none")
    true = np.array([one.values() for one in matches])
    false = np.array([one.values() for one in strangers])
    weights, bias = _fit(np.vstack([true, false]), np.r_[np.ones(len(true)), np.zeros(len(false))])
    draft = ClaimGate(embedder, _floor(matches), 1.0, weights, bias, bound, confidence, len(strangers) + refused, GUARD)
    scores = sorted((draft.score(one) for one in strangers), reverse=True)
    # From the strictest threshold on: the first admits no stranger, each next one more.
    proven = prove_in_sequence(
        [p_of_few(at, len(scores) + refused, bound) for at in range(len(scores))], 1 - confidence
    )
    if not proven:
        said = f"{len(scores)} questions without a card prove no bound of {bound:.0%} at {confidence:.0%}"
        raise TooFewExamples(f"{said}: add more of them, or allow more")
    # Above the best of those that are kept out, by the least that a number can be.
    kept_out = scores[proven - 1] if proven <= len(scores) else 0.0
    return msgspec.structs.replace(draft, threshold=float(np.nextafter(kept_out, 2.0)))


def _floor(matches: Sequence[MatchFeatures]) -> float:
    told = sorted(one.coverage if one.similarity is None else one.similarity for one in matches)
    return told[int((1 - KEPT) * len(told))]


def _fit(rows: Array, labels: Array) -> tuple[tuple[float, ...], float]:
    """Logistic regression by Newton's method. A feature that speaks against a match is left out: a card that is more
    like the question is never admitted less."""
    import numpy as np

    told = _solve(rows, labels)
    while (told[:-1] < 0).any():
        rows = rows * (told[:-1] >= 0)
        told = np.where(np.r_[rows.any(axis=0), True], _solve(rows, labels), 0.0)
    *weights, bias = map(float, told)
    return tuple(weights), bias


def _solve(rows: Array, labels: Array) -> Array:
    import numpy as np

    design = np.c_[rows, np.ones(len(rows))]
    ridge = np.diag([*[RIDGE] * rows.shape[1], 0.0])
    told = np.zeros(design.shape[1])
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-np.clip(design @ told, -60, 60)))
        gradient = design.T @ (labels - chance) - ridge @ told
        curve = (design * (chance * (1 - chance))[:, None]).T @ design + ridge + 1e-9 * np.eye(len(told))
        told = told + np.linalg.solve(curve, gradient)
    return told
