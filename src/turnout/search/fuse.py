"""Two rankings made one: full text leads, and vectors may move a document up.

A document's place in a list counts `weight / (LEVEL + rank)`, summed over the lists. Ranks alone are compared: a BM25
score and a cosine have no scale in common.
"""

from __future__ import annotations

from collections.abc import Mapping

from .document import Vote

# How much more the first place counts than those after it. The usual 60 is for lists of thousands.
LEVEL = 5.0
# Of a vote by full text. Set, not tuned: first by vectors does not overtake first by full text.
VECTORS = 0.4


def fuse(
    text: Mapping[str, float], vectors: Mapping[str, float], weight: float = VECTORS
) -> list[tuple[str, float, tuple[Vote, ...]]]:
    """Ids with their score and their votes, the best first. Both lists come in order; without vectors the scores are
    those of full text. `weight` is what a vote by vectors counts."""
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
