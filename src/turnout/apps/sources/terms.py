"""The search terms of a question, and how well texts fit them.

A question is not a query: its function words find everything, and all its words joined with AND find nothing. Words are
compared by their stems in the language of the question, which are those of the search index.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from math import log

from turnout.search.analysis import stem
from turnout.text.fold import fold
from turnout.text.framing import strip_framing

# More terms add nothing.
MOST_TERMS = 16
# Characters of a text that are compared; a longer page is about many things.
COMPARED_CHARACTERS = 20_000
# BM25's usual saturation and length constants.
K1, B = 1.2, 0.75
# "Südkalifornische" shares most of its letters with "Südkalifornien", and is part of a compound; "ciudad" is stemmed
# further than "ciudades". From this length on that is no accident: chosen on XQuAD, every other question, 595 a
# language, R@1 behind kiwix-serve en / es / de 94.5 / 92.4 / 91.4; without the last, and from six letters on, 94.5 /
# 92.1 / 90.4; with rough stems of our own instead of the index's 94.1 / 92.9 / 90.6.
SHARED_LETTERS, ENDING_LETTERS, SHARED_COUNTS = 5, 1, 0.6
# Words at most this far apart belong together: "University of Strasbourg".
NEAR = 3

_words = re.compile(r"[^\W_]+(?:['’][^\W_]+)*").findall
# The shortest stem that is compared by its beginning.
STEM_LETTERS = 4


def words_of(text: str) -> list[str]:
    return list(_words(fold(text).text))


@cache
def stop_words() -> dict[str, frozenset[str]]:
    lists = tomllib.loads(files(__package__).joinpath("stop.toml").read_text(encoding="utf-8"))
    return {language: frozenset(words.split()) for language, words in lists.items()}


def language_of(words: Sequence[str], lang: str = "") -> str:
    """The language of a question; if not given, the one with most stop words in it."""
    lists = stop_words()
    return lang if lang in lists else max(lists, key=lambda one: sum(word in lists[one] for word in words))


def search_terms(question: str, lang: str = "") -> tuple[str, ...]:
    """The words of a question without stop words, each once, in order; all words if only stop words are left."""
    words = words_of(strip_framing(question) or question)
    stops = stop_words()[language_of(words, lang)]
    terms = dict.fromkeys(word for word in words if word not in stops and (len(word) > 1 or word.isdigit()))
    return tuple(terms or dict.fromkeys(words))[:MOST_TERMS]


def stems(words: Iterable[str], lang: str = "en") -> list[str]:
    """The stem of each word, as in the search index."""
    return [stem(word, lang) for word in words]


def fit(terms: Sequence[str], texts: Sequence[str], lang: str = "en") -> list[float]:
    """How well each text fits the terms, from 0 to 1: its BM25 score among them, over the highest possible one.

    A term that all texts contain still counts a little.
    """
    wanted = list(dict.fromkeys(stems(terms, lang)))
    counts = [Counter(stems(words_of(text[:COMPARED_CHARACTERS]), lang)) for text in texts]
    occurrences = [{term: _occurrences(term, count) for term in wanted} for count in counts]
    length = [max(1, count.total()) for count in counts]
    mean = sum(length) / max(1, len(length))
    weight = {}
    for term in wanted:
        having = sum(one[term] > 0 for one in occurrences)
        weight[term] = log(1 + (len(texts) - having + 0.5) / (having + 0.5))
    most = sum(weight.values()) * (K1 + 1) or 1.0
    return [
        sum(weight[term] * n * (K1 + 1) / (n + K1 * (1 - B + B * size / mean)) for term, n in one.items() if n) / most
        for one, size in zip(occurrences, length, strict=True)
    ]


def _occurrences(term: str, count: Counter[str]) -> float:
    """How often a stem occurs; if it does not, words that share most of its letters count in part."""
    if count[term] or len(term) < SHARED_LETTERS:
        return count[term]
    shared = term[: max(STEM_LETTERS + 1, len(term) - ENDING_LETTERS)]
    alike = (
        n
        for word, n in count.items()
        if word.startswith(shared) or term in word or (len(word) >= STEM_LETTERS and term.startswith(word))
    )
    return SHARED_COUNTS * sum(alike)


def neighbours(terms: Sequence[str], texts: Sequence[str], lang: str = "en") -> list[float]:
    """For each text, the share of pairs of consecutive terms that are near each other in it."""
    wanted = set(pairwise(stems(terms, lang)))
    shares = []
    for text in texts:
        words = stems(words_of(text[:COMPARED_CHARACTERS]), lang)
        near = {pair for gap in range(1, NEAR + 1) for pair in zip(words, words[gap:], strict=False)}
        count = sum(pair in near or pair[::-1] in near for pair in wanted)
        shares.append(count / len(wanted) if wanted else 0.0)
    return shares
