"""How well a passage answers a question: one formula, whichever database proposed the passage.

A word of the question counts by how rare it is, and by how often its stem occurs for the length of the passage (BM25).
The exact word counts more than another form of it; similar words (a compound, another spelling) and words close
together count too. A database's own ranking is good enough to propose a few dozen passages, and this one chooses among
them.

Tuned on the English part of XQuAD; the weight of similar words on every other question of its three parts:
`benchmarks/search.py` has the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log
from typing import NamedTuple

from turnout.text.language import asking_words, stop_words

from .analysis import plain, read_words, runs, stem

# BM25's usual constants: how soon a repeated word stops to matter, and how much a long passage is discounted.
SATURATION = 1.2
LENGTH = 0.75
# Parts of a word's weight. Around these values R@1 changes by at most a third of a point.
SAME_WORD = 0.5
CLOSE = 1.0
# The weight of a similar word, and the share of the other word's n-grams it must have: parts of compounds have a third.
# On every other question of XQuAD, R@1 en/es/de: 94.8 / 94.3 / 91.6 with 0.75 and 0.4, 95.0 / 94.6 / 91.9 with these.
ALIKE = 1.0
LIKENESS = 0.3
# The share from which on a similar word also counts among words close together.
STANDS_FOR = 0.6
# Words within this many words of each other are close: most of a sentence.
SPAN = 15
# Characters that are read of a long question, which is a pasted text: its beginning and end say what is wanted, and the
# database looks up each word.
HEAD, TAIL = 1_500, 500
WORDS = 32


class AskedWord(NamedTuple):
    """A word of a question, and its stem in each language of the index."""

    word: str
    stems: frozenset[str]


class Statistics(NamedTuple):
    """Figures over all passages of an index."""

    revision: str
    passages: int
    average: float
    """Words in a passage."""
    langs: tuple[str, ...]
    """The languages of its documents, most frequent first."""


class Fit(NamedTuple):
    score: float
    coverage: float


def read_question(text: str, lang: str, langs: Iterable[str]) -> list[AskedWord]:
    """The words to search for: all but the function words and question words of the language, unless there are no
    others."""
    if len(text) > HEAD + TAIL:
        text = f"{text[:HEAD]}\n{text[-TAIL:]}"
    words = dict.fromkeys(read_words(text))
    stops = stop_words(lang)
    content = [word for word in words if word not in stops] or list(words)
    kept = [word for word in content if word not in asking_words(lang)] or content
    # From both ends, as the text was read.
    kept = kept if len(kept) <= WORDS else [*kept[: WORDS * 3 // 4], *kept[-WORDS // 4 :]]
    # The unstemmed word too: a document too short to tell its language has no other stems.
    read_in = dict.fromkeys((lang, *langs, ""))
    return [AskedWord(plain(word), frozenset(stem(word, each) for each in read_in)) for word in kept]


def weigh(asked: Sequence[AskedWord], frequencies: Mapping[str, int], passages: int) -> list[float]:
    """The weight of each word: the fewer passages contain it, the higher (BM25's idf)."""
    weights = []
    for one in asked:
        containing = min(sum(frequencies.get(each, 0) for each in one.stems), passages)
        weights.append(log(1 + (passages - containing + 0.5) / (containing + 0.5)))
    return weights


class Judge:
    """Rates passages for one question. Word comparisons are cached from passage to passage."""

    def __init__(self, asked: Sequence[AskedWord], weights: Sequence[float], average: float) -> None:
        self.asked = asked
        self.weights = weights
        self.average = average or 1.0
        self._by_stem: dict[str, int] = {each: at for at, one in enumerate(asked) for each in one.stems}
        self._by_run: dict[str, list[int]] = {}
        for at, one in enumerate(asked):
            for run in runs(one.word):
                self._by_run.setdefault(run, []).append(at)
        self._runs = frozenset(self._by_run)
        self._seen: set[str] = set()
        """Words of passages that have been compared."""
        self._alike: dict[str, dict[int, float]] = {}
        """For each that is similar to words of the question: how similar, by the place of the word."""

    def rate(self, text: str, lang: str) -> Fit:
        words = read_words(text)
        counts: dict[int, int] = {}
        places: list[tuple[int, int, float]] = []
        for place, word in enumerate(words):
            at = self._by_stem.get(stem(word, lang))
            if at is not None:
                counts[at] = counts.get(at, 0) + 1
                places.append((place, at, 1.0))
        plain_words = [plain(word) for word in words]
        distinct = set(plain_words)
        discount = SATURATION * (1 - LENGTH + LENGTH * len(words) / self.average)
        score = covered = 0.0
        missing = []
        for at, (one, weight) in enumerate(zip(self.asked, self.weights, strict=True)):
            count = counts.get(at, 0)
            if count:
                score += weight * (count * (SATURATION + 1) / (count + discount) + SAME_WORD * (one.word in distinct))
                covered += weight
            else:
                missing.append(at)
        if missing:
            alike = self._find_alike(distinct)
            likeness = sum(self.weights[at] * alike.get(at, 0.0) for at in missing)
            score += ALIKE * likeness
            covered += likeness
            places += [
                (place, at, share)
                for place, word in enumerate(plain_words)
                if word in self._alike
                for at, share in self._alike[word].items()
                if share >= STANDS_FOR and at not in counts
            ]
            places.sort()
        score += CLOSE * self._closest(places)
        return Fit(score, covered / (sum(self.weights) or 1.0))

    def _find_alike(self, words: set[str]) -> dict[int, float]:
        """The similarity of the most similar word of a passage, for each word of the question that has one."""
        for word in words - self._seen:
            shared: dict[int, int] = {}
            for run in runs(word) & self._runs:
                for at in self._by_run[run]:
                    shared[at] = shared.get(at, 0) + 1
            sizes = ((at, count / len(runs(self.asked[at].word))) for at, count in shared.items())
            if known := {at: share for at, share in sizes if share >= LIKENESS}:
                self._alike[word] = known
        self._seen |= words
        best: dict[int, float] = {}
        for word in self._alike.keys() & words:
            for at, share in self._alike[word].items():
                best[at] = max(best.get(at, 0.0), share)
        return best

    def _closest(self, places: Sequence[tuple[int, int, float]]) -> float:
        """The highest weight of words within `SPAN` words of each other."""
        best = 0.0
        for first, (start, _, _) in enumerate(places):
            inside: dict[int, float] = {}
            # No more can be within a span, so the work is linear in the passage.
            for place, at, share in places[first : first + SPAN * len(self.asked)]:
                if place - start >= SPAN:
                    break
                inside[at] = max(inside.get(at, 0.0), share)
            best = max(best, sum(self.weights[at] * share for at, share in inside.items()))
        return best
