"""How alike a question and the card nearest to it are, and the gate that is fitted on questions whose card is known.

A question whose card is removed is one that has none: so every labelled question tells twice what the gate must do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from .gate import TEXT_ALONE, ClaimGate, MatchFeatures, fit_gate
from .library import ClaimCandidate, ClaimLibrary
from .wording import contradiction, known_share, nearest, returned

# Candidates that are looked at for one question: the card, the one that is next without it, and the next after that.
LOOKED_AT = 5
# A card that fits so much better than the next is clearly the first; more says nothing more. A third of Snopes' pairs
# have it.
CLEAR = 0.3


class LabelledQuestion(Struct, frozen=True):
    """A question and the card that answers it; without one, it has none."""

    question: str
    card: str | None = None


def compare(question: str, candidates: Sequence[ClaimCandidate]) -> MatchFeatures:
    """How alike a question and the first of its candidates are, which are in order."""
    first, *rest = candidates
    margin = min(first.score - rest[0].score, CLEAR) if rest else CLEAR
    near = returned(question, nearest(question, first.card))
    return MatchFeatures(first.similarity, first.coverage, near, margin, known_share(question, first.card))


class Observed(Struct, frozen=True):
    """What became of a labelled question."""

    right: MatchFeatures | None
    """Of its own card, if that was found first."""
    wrong: MatchFeatures | None
    """Of the card that would be first if its own were not there."""
    right_refused: bool = False
    """Whether the polarity guard refuses its own card."""
    wrong_refused: bool = False


def is_denied(question: str, candidate: ClaimCandidate) -> bool:
    """Whether the guard refuses a card."""
    return contradiction(question, candidate.card) is not None


def observe(
    library: ClaimLibrary, one: LabelledQuestion, refuses: Callable[[str, ClaimCandidate], bool] = is_denied
) -> Observed:
    found = library.search(one.question, limit=LOOKED_AT, floor=False)
    mine = [other for other in found if one.card is not None and _is(other, one.card, library)]
    others = [other for other in found if other not in mine]
    first = bool(found) and found[0] in mine
    return Observed(
        compare(one.question, found) if first else None,
        compare(one.question, others) if others else None,
        first and refuses(one.question, found[0]),
        bool(others) and refuses(one.question, others[0]),
    )


def _is(candidate: ClaimCandidate, ident: str, library: ClaimLibrary) -> bool:
    """Whether it is that card, or its twin."""
    if candidate.card.id == ident:
        return True
    card = library.get(ident)
    return card is not None and card.twin_of == candidate.card.id


def fit_observed(
    seen: Sequence[Observed], embedder: str, *, bound: float = 0.05, confidence: float = 0.95, guarded: bool = True
) -> ClaimGate:
    """The gate for what was seen. What the guard refuses is no exact match, whatever the gate says: with `guarded` the
    bound is on both together, which is how they decide."""
    matches = [one.right for one in seen if one.right is not None and not (guarded and one.right_refused)]
    strangers = [one.wrong for one in seen if one.wrong is not None and not (guarded and one.wrong_refused)]
    refused = sum(one.wrong is None or (guarded and one.wrong_refused) for one in seen)
    return fit_gate(matches, strangers, embedder, bound=bound, confidence=confidence, refused=refused)


def share_found(gate: ClaimGate, seen: Sequence[Observed], *, guarded: bool = True) -> tuple[float, float]:
    """Of what was seen, the share that finds its own card, and the share that would find another in its place."""
    found = sum(
        one.right is not None and gate.admits(one.right) and not (guarded and one.right_refused) for one in seen
    )
    wrong = sum(
        one.wrong is not None and gate.admits(one.wrong) and not (guarded and one.wrong_refused) for one in seen
    )
    return found / (len(seen) or 1), wrong / (len(seen) or 1)


def calibrate(
    library: ClaimLibrary, questions: Iterable[LabelledQuestion], *, bound: float = 0.05, confidence: float = 0.95
) -> ClaimGate:
    """The gate for the library's embedder, fitted on these questions. It is not kept yet."""
    embedder = library.index.embedder
    name = TEXT_ALONE if embedder is None else embedder.name
    return fit_observed([observe(library, one) for one in questions], name, bound=bound, confidence=confidence)
