"""Passages for a question, and how likely it is that they answer it: below a limit, saying so is the answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import exp
from typing import Final

from msgspec import Struct

from turnout.search import Filters, Hit, Results, place_of

from .event import DocCitation
from .library import Edition, Libraries

# The specification's.
CHUNKS = 8
# Names of selected code that a search is given beside the question: more would drown it.
NAMES = 12
_identifier = re.compile(r"[A-Za-z_][\w]*(?:\.[A-Za-z_]\w*)+|[A-Za-z_]\w{2,}(?=\()")


class Found(Struct, frozen=True):
    passages: tuple[DocCitation, ...] = ()
    confidence: float = 0.0


NOTHING: Final = Found()


def retrieve(libraries: Libraries, question: str, editions: Sequence[Edition], limit: int = CHUNKS) -> Found:
    """Blocking: it may read what has changed since."""
    libraries.follow(editions)
    filters = Filters({"edition": [one.name for one in editions]})
    results = libraries.index.search(question, filters=filters, limit=limit)
    return Found(tuple(_cite(number, hit) for number, hit in enumerate(results.hits, 1)), relevance(results))


def relevance(results: Results) -> float:
    """The probability that a question is answered by what was found."""
    if not results.hits:
        return 0.0
    best = max(hit.coverage for hit in results.hits)
    return 1 / (1 + exp(-(best - 0.5) * 10))


def names_in(code: str) -> list[str]:
    """What code calls by name, in the order in which it comes."""
    return list(dict.fromkeys(_identifier.findall(code)))[:NAMES]


def _cite(number: int, hit: Hit) -> DocCitation:
    place = place_of(hit)
    library, version = hit.attributes["library"][0], hit.attributes["version"][0]
    return DocCitation(
        number, library, version, place.file, place.heading, place.start, place.end, place.anchor, hit.text
    )
