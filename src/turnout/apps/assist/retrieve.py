"""Passages for a question, and the probability that they answer it; below a limit they are not used."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import exp
from typing import Final, NamedTuple

from msgspec import Struct

from turnout.search import Filters, Hit, Results, place_of

from .event import DocCitation
from .library import Edition, Libraries

# Passages for one question: the specification's number.
CHUNKS = 8
# Names of the selected code that are added to a search: more would outweigh the question.
NAMES = 12
# At most so many words in quotes are a name; more are a message, which documents may quote. Also the least words of a
# question without its own names.
OWN = 2
_quoted = re.compile(r"(?<![\w`])([\"'“‘])([^\"'`”’\n]{1,80})[\"'”’](?![\w`])")
_own = re.compile(r"(?<!\w)[~.]{0,2}/\S*|\S*\*\.\S*|\$\w+|\b\d[\d.,:+-]*[a-zA-Z]?\b")
_word = re.compile(r"[^\W\d_]+")
_identifier = re.compile(r"[A-Za-z_][\w]*(?:\.[A-Za-z_]\w*)+|[A-Za-z_]\w{2,}(?=\()")


# With few passages, missing words say little: their weight is n / (n + FEW).
FEW = 200
# The weight of a vote by vectors, relative to full text: tuned on half of NL2Bash's questions about manual pages.
VECTORS = 1.5


class RelevanceLine(NamedTuple):
    """Weights of the evidence that the passages answer a question."""

    coverage: float
    """Of the question, by the passage that has most of it."""
    cosine: float
    """Of the nearest passage."""
    unknown: float
    """For words that no passage has."""
    base: float

    def at(self, coverage: float, cosine: float, unknown: float) -> float:
        return self.coverage * coverage + self.cosine * cosine + self.unknown * unknown + self.base


# Fitted by logistic regression to the first half of 132 questions that the Python documentation answers, 60 off its
# subject and 70 near it, and shifted so that one of the 63 that it answers is refused (by words alone: two).
# `benchmarks/assistants_docs.py` measures the other half.
WITH_VECTORS: Final = RelevanceLine(5.6, 9.04, -3.9, -7.18)
BY_WORDS: Final = RelevanceLine(7.5, 0.0, -3.81, -3.95)


class FoundPassages(Struct, frozen=True):
    passages: tuple[DocCitation, ...] = ()
    confidence: float = 0.0


NOTHING: Final = FoundPassages()


def retrieve(libraries: Libraries, question: str, editions: Sequence[Edition], limit: int = CHUNKS) -> FoundPassages:
    """The passages for a question. Blocking: it may read changed files first."""
    libraries.follow(editions)
    filters = Filters({"edition": [one.name for one in editions]})
    results = libraries.index.search(topic_of(question), filters=filters, limit=limit, vectors=VECTORS)
    return FoundPassages(tuple(_cite(number, hit) for number, hit in enumerate(results.hits, 1)), relevance(results))


def relevance(results: Results) -> float:
    """The probability that the hits answer the question; 0.5 is the limit."""
    if not results.hits:
        return 0.0
    weight = results.passages / (results.passages + FEW)
    rest = 1 - results.unknown * (1 - weight)
    coverage = min(1.0, max(hit.coverage for hit in results.hits) / rest)
    unknown = results.unknown * weight / rest
    cosines = [vote.score for hit in results.hits for vote in hit.votes if vote.by == "vectors"]
    line = WITH_VECTORS if cosines else BY_WORDS
    return 1 / (1 + exp(-line.at(coverage, max(cosines, default=0.0), unknown)))


def topic_of(question: str) -> str:
    """A question without the user's own names, which no document has: quoted names, paths, patterns, numbers. Names in
    backticks stay. It is unchanged if hardly a word would be left."""
    rest = _quoted.sub(lambda found: found[0] if len(found[2].split()) > OWN else " ", question)
    rest = " ".join(_own.sub(" ", rest).split())
    return rest if len(_word.findall(rest)) >= OWN else question


def names_in(code: str) -> list[str]:
    """The names that code calls, in their order."""
    return list(dict.fromkeys(_identifier.findall(code)))[:NAMES]


def _cite(number: int, hit: Hit) -> DocCitation:
    place = place_of(hit)
    library, version = hit.attributes["library"][0], hit.attributes["version"][0]
    return DocCitation(
        number, library, version, place.file, place.heading, place.start, place.end, place.anchor, hit.text
    )
