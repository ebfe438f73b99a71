"""Merges two rankings into one: full text leads, and vectors may move a document up.

A document's rank in a list counts `weight / (LEVEL + rank)`, summed over both lists. Only ranks are compared, since a
BM25 score and a cosine have no common scale.
"""

from __future__ import annotations

from collections.abc import Mapping

from .document import Vote

# The smaller, the more the first place counts over the next. The usual 60 is for lists of thousands.
LEVEL = 5.0
# Weight of a vote by vectors; one by full text has 1. Set, not tuned: the first by vectors does not overtake the first
# by full text.
VECTORS = 0.4


def fuse(
    text: Mapping[str, float], vectors: Mapping[str, float], weight: float = VECTORS
) -> list[tuple[str, float, tuple[Vote, ...]]]:
    """Ids with score and votes, best first. Both lists come in order; without vectors the scores are those of full
    text. `weight` is that of a vote by vectors."""
    votes: dict[str, tuple[Vote, ...]] = {}
    for rank, (ident, score) in enumerate(text.items(), 1):
        votes[ident] = (Vote("text", rank, score),)
    if not vectors:
        return [(ident, cast[0].score, cast) for ident, cast in votes.items()]
    for rank, (ident, score) in enumerate(vectors.items(), 1):
        votes[ident] = (*votes.get(ident, ()), Vote("vectors", rank, score))
    scored = [(ident, sum(_worth(vote, weight) for vote in cast), cast) for ident, cast in votes.items()]
    return sorted(scored, key=lambda entry: (-entry[1], entry[0]))


def _worth(vote: Vote, weight: float) -> float:
    return (weight if vote.by == "vectors" else 1.0) / (LEVEL + vote.rank)
