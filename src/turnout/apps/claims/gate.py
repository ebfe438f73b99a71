"""The gate for an exact match: how alike a question and a card must be, fitted for the embedder in use.

A cosine means another thing with every embedder, so a gate belongs to one, and is stored with its name. It is fitted
for a stated bound on false exact matches; what was promised stands in it.
"""

from __future__ import annotations

from msgspec import Struct

# The name of the gate that is used without an embedder.
TEXT_ALONE = "text"


class MatchFeatures(Struct, frozen=True):
    """How alike a question and a card are."""

    similarity: float | None
    """Cosine of the question and the claim, -1 to 1; None without an embedder."""
    coverage: float = 0.0
    """How much of the question stands in the claim, 0 to 1; rare words count for more."""
    returned: float = 0.0
    """How much of the claim stands in the question."""
    margin: float = 0.0
    """How much more alike it is than the next card."""


class ClaimGate(Struct, frozen=True):
    """When a card is near enough. Compared with `>=`."""

    embedder: str
    """The name of the embedder it was fitted for; `text` without one."""
    floor: float
    """Cosine below which a card is not shown as a candidate."""
    threshold: float
    """What `score` must reach for an exact match."""
    bound: float = 0.05
    """False exact matches that it was fitted for: at most this share of the questions without a card."""
    confidence: float = 0.95
    """How sure that is."""

    def score(self, features: MatchFeatures) -> float:
        return features.similarity or 0.0

    def admits(self, features: MatchFeatures) -> bool:
        return self.score(features) >= self.threshold
