"""The gate for an exact match: how alike a question and a card must be, fitted for the embedder in use.

A cosine means something different with each embedder, so a gate belongs to one and is stored with its name. It is
fitted for a stated bound on false exact matches: of the questions without a card, at most this share is admitted, with
this confidence. Fitting needs the extra `learn`; using a gate does not.
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

# Raise it when the guard or the features change: gates of other versions are not used (`scripts/fit_claim_gates.py`).
GUARD: Final = 2
# The name of the gate that is used without an embedder.
TEXT_ALONE: Final = "text"
# Weak regularization, which keeps the weights finite if one feature separates all examples.
STRENGTH: Final = 100.0
# Newton's method converges to this in about eight steps, so that every machine finds the same gate.
TOLERANCE: Final = 1e-9
# The share of true matches that the floor keeps among the candidates.
KEPT: Final = 0.95


class MatchFeatures(Struct, frozen=True):
    """How alike a question and the nearest card are."""

    similarity: float | None
    """Cosine of the question and the claim, -1 to 1; None without an embedder."""
    coverage: float = 0.0
    """The share of the question that the claim has, 0 to 1; rare words count for more."""
    returned: float = 0.0
    """The share of the claim's words that the question has, 0 to 1."""
    margin: float = 0.0
    """How much better it fits than the next card."""
    known: float = 0.0
    """The share of the question's words that any wording of the card has, 0 to 1."""

    def values(self) -> tuple[float, ...]:
        return (self.similarity or 0.0, self.coverage, self.returned, self.margin, self.known)


class ClaimGate(Struct, frozen=True):
    """Whether a card is near enough. Compared with `>=`."""

    embedder: str
    """The name of the embedder it was fitted for; `text` without one."""
    floor: float
    """The least cosine, or coverage without an embedder, of a candidate."""
    threshold: float
    """The least `score` of an exact match."""
    weights: tuple[float, ...]
    """Of the features, in their order."""
    bias: float
    bound: float = 0.05
    """The largest share of the questions without a card that it admits."""
    confidence: float = 0.95
    """With which the bound holds."""
    fitted_on: int = 0
    """The number of questions without a card that it was fitted on."""
    guard: int = 0
    """The version of the guard it was fitted with: another one rejects other questions, so the bound would not hold."""

    def score(self, features: MatchFeatures) -> float:
        """The probability that they are the same claim, among questions like those it was fitted on."""
        logit = self.bias + sum(w * value for w, value in zip(self.weights, features.values(), strict=True))
        return 1 / (1 + exp(-max(-60.0, min(60.0, logit))))

    def admits(self, features: MatchFeatures) -> bool:
        return self.score(features) >= self.threshold


def shipped_gate(embedder: str) -> ClaimGate | None:
    """The gate that ships for an embedder, fitted on the starter cards; None if there is none."""
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
    """The gate that admits most of the `matches` and, with `confidence`, at most the share `bound` of questions like
    the `strangers`, whose card is missing; raises TooFewExamples if no bound can be proven. `refused`: how many more
    strangers there were that the guard rejects whatever the gate says."""
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
    # From the strictest threshold on: the first admits no stranger, each next one admits one more.
    proven = prove_in_sequence(
        [p_of_few(at, len(scores) + refused, bound) for at in range(len(scores))], 1 - confidence
    )
    if not proven:
        count = f"{len(scores)} questions without a card"
        raise TooFewExamples(
            f"{count} prove no bound of {bound:.0%} at {confidence:.0%}: add more of them, or allow more"
        )
    # The next number above the best stranger that is kept out.
    kept_out = scores[proven - 1] if proven <= len(scores) else 0.0
    return msgspec.structs.replace(draft, threshold=float(np.nextafter(kept_out, 2.0)))


def _floor(matches: Sequence[MatchFeatures]) -> float:
    nearness = sorted(one.coverage if one.similarity is None else one.similarity for one in matches)
    return nearness[int((1 - KEPT) * len(nearness))]


def _fit(rows: Array, labels: Array) -> tuple[tuple[float, ...], float]:
    """Logistic regression. Features with negative weights are left out, so that a card that is more like the question
    never scores less."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=STRENGTH, solver="newton-cholesky", tol=TOLERANCE)
    while True:
        weights = model.fit(rows, labels).coef_[0]
        if (weights >= 0).all():
            return tuple(map(float, weights)), float(model.intercept_[0])
        rows = rows * (weights >= 0)
