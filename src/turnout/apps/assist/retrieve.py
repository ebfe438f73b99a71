"""Passages for a question, and how likely it is that they answer it: below a limit, saying so is the answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import exp
from typing import Final, NamedTuple

from msgspec import Struct

from turnout.search import Filters, Hit, Results, place_of

from .event import DocCitation
from .library import Edition, Libraries

# The specification's.
CHUNKS = 8
# Names of selected code that a search is given beside the question: more would drown it.
NAMES = 12
# Words between quotes that are a name; more are a message, which documents may well quote. Words that make a question.
OWN = 2
_quoted = re.compile(r"(?<![\w`])([\"'“‘])([^\"'`”’\n]{1,80})[\"'”’](?![\w`])")
_own = re.compile(r"(?<!\w)[~.]{0,2}/\S*|\S*\*\.\S*|\$\w+|\b\d[\d.,:+-]*[a-zA-Z]?\b")
_word = re.compile(r"[^\W\d_]+")
_identifier = re.compile(r"[A-Za-z_][\w]*(?:\.[A-Za-z_]\w*)+|[A-Za-z_]\w{2,}(?=\()")


# How many passages count as few.
FEW = 200
# What a vote by vectors counts, one by full text being 1: set on half of NL2Bash's questions to manual pages.
VECTORS = 1.5


class RelevanceLine(NamedTuple):
    """What speaks for an answer being there, and against it."""

    coverage: float
    """Of the question, by the passage that has most of it."""
    cosine: float
    """Of the passage that is nearest."""
    unknown: float
    """Words that stand in no passage."""
    base: float

    def at(self, coverage: float, cosine: float, unknown: float) -> float:
        return self.coverage * coverage + self.cosine * cosine + self.unknown * unknown + self.base


# Fitted by logistic regression to the first half of 132 questions that the Python documentation answers, 60 off its
# subject and 70 near it, and moved such that one of the 63 that it answers is refused (by words alone: two).
# `benchmarks/assistants_docs.py` measures the other half.
WITH_VECTORS: Final = RelevanceLine(5.6, 9.04, -3.9, -7.18)
BY_WORDS: Final = RelevanceLine(7.5, 0.0, -3.81, -3.95)


class FoundPassages(Struct, frozen=True):
    passages: tuple[DocCitation, ...] = ()
    confidence: float = 0.0


NOTHING: Final = FoundPassages()


def retrieve(libraries: Libraries, question: str, editions: Sequence[Edition], limit: int = CHUNKS) -> FoundPassages:
    """Blocking: it may read what has changed since."""
    libraries.follow(editions)
    filters = Filters({"edition": [one.name for one in editions]})
    results = libraries.index.search(topic_of(question), filters=filters, limit=limit, vectors=VECTORS)
    return FoundPassages(tuple(_cite(number, hit) for number, hit in enumerate(results.hits, 1)), relevance(results))


def relevance(results: Results) -> float:
    """How likely it is that a question is answered by what was found; 0.5 is the limit."""
    if not results.hits:
        return 0.0
    # That a few documents lack a word says little.
    told = results.passages / (results.passages + FEW)
    rest = 1 - results.unknown * (1 - told)
    coverage = min(1.0, max(hit.coverage for hit in results.hits) / rest)
    unknown = results.unknown * told / rest
    cosines = [vote.score for hit in results.hits for vote in hit.votes if vote.by == "vectors"]
    line = WITH_VECTORS if cosines else BY_WORDS
    return 1 / (1 + exp(-line.at(coverage, max(cosines, default=0.0), unknown)))


def topic_of(question: str) -> str:
    """A question without what is the user's own and in no document: quoted names, paths, patterns, numbers. As it is,
    if hardly a word is left. Between backticks stands what documents call so themselves."""
    rest = _quoted.sub(lambda found: found[0] if len(found[2].split()) > OWN else " ", question)
    rest = " ".join(_own.sub(" ", rest).split())
    return rest if len(_word.findall(rest)) >= OWN else question


def names_in(code: str) -> list[str]:
    """What code calls by name, in the order in which it comes."""
    return list(dict.fromkeys(_identifier.findall(code)))[:NAMES]


def _cite(number: int, hit: Hit) -> DocCitation:
    place = place_of(hit)
    library, version = hit.attributes["library"][0], hit.attributes["version"][0]
    return DocCitation(
        number, library, version, place.file, place.heading, place.start, place.end, place.anchor, hit.text
    )
