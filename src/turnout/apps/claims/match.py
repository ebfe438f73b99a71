"""How alike a question and the nearest card are, and the gate fitted on questions whose card is known.

Each labelled question gives two examples: one with its card, and one as if its card were missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from .gate import ClaimGate, MatchFeatures, fit_gate
from .library import ClaimCandidate, ClaimLibrary
from .wording import contradiction, known_share, nearest, returned

# Candidates for one question: its card, its twins, and the next two.
LOOKED_AT = 5
# A margin beyond this says nothing more. A third of Snopes' pairs reach it.
CLEAR = 0.3


class LabelledQuestion(Struct, frozen=True):
    """A question and the card that answers it, if there is one."""

    question: str
    card: str | None = None


def compare(question: str, candidates: Sequence[ClaimCandidate]) -> MatchFeatures:
    """How alike a question and the first of its ordered candidates are."""
    first, *rest = candidates
    margin = min(first.score - rest[0].score, CLEAR) if rest else CLEAR
    near = returned(question, nearest(question, first.card))
    return MatchFeatures(first.similarity, first.coverage, near, margin, known_share(question, first.card))


class ObservedMatch(Struct, frozen=True):
    """The search result for a labelled question."""

    right: MatchFeatures | None
    """Of its own card, if that was found first."""
    wrong: MatchFeatures | None
    """Of the card that would be first without its own."""
    right_refused: bool = False
    """Whether the guard rejects its own card."""
    wrong_refused: bool = False


def is_denied(question: str, candidate: ClaimCandidate) -> bool:
    """Whether the polarity guard rejects a card."""
    return contradiction(question, candidate.card) is not None


def observe(
    library: ClaimLibrary, one: LabelledQuestion, refuses: Callable[[str, ClaimCandidate], bool] = is_denied
) -> ObservedMatch:
    found = library.search(one.question, limit=LOOKED_AT, floor=False)
    mine = [other for other in found if one.card is not None and _is(other, one.card, library)]
    others = [other for other in found if other not in mine]
    first = bool(found) and found[0] in mine
    return ObservedMatch(
        compare(one.question, found) if first else None,
        compare(one.question, others) if others else None,
        first and refuses(one.question, found[0]),
        bool(others) and refuses(one.question, others[0]),
    )


def _is(candidate: ClaimCandidate, ident: str, library: ClaimLibrary) -> bool:
    """Whether a candidate is that card or its twin."""
    if candidate.card.id == ident:
        return True
    card = library.get(ident)
    return card is not None and card.twin_of == candidate.card.id


def fit_observed(
    seen: Sequence[ObservedMatch], embedder: str, *, bound: float = 0.05, confidence: float = 0.95, guarded: bool = True
) -> ClaimGate:
    """The gate fitted on these results. With `guarded` the bound is on the gate and the guard together, as they decide
    together: a card that the guard rejects is no exact match."""
    matches = [one.right for one in seen if one.right is not None and not (guarded and one.right_refused)]
    strangers = [one.wrong for one in seen if one.wrong is not None and not (guarded and one.wrong_refused)]
    refused = sum(one.wrong is None or (guarded and one.wrong_refused) for one in seen)
    return fit_gate(matches, strangers, embedder, bound=bound, confidence=confidence, refused=refused)


def share_found(gate: ClaimGate, seen: Sequence[ObservedMatch]) -> tuple[float, float]:
    """The share that finds its own card, and the share that would find a wrong one without it."""
    found = sum(one.right is not None and gate.admits(one.right) and not one.right_refused for one in seen)
    wrong = sum(one.wrong is not None and gate.admits(one.wrong) and not one.wrong_refused for one in seen)
    return found / (len(seen) or 1), wrong / (len(seen) or 1)
