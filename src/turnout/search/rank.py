"""How well a passage answers a question: one formula, whichever database proposed the passage.

A word of the question counts by how rare it is, and by how often its stem stands in the passage for the passage's
length (BM25). The very word counts for more than another of its stem, and one that is only spelt like it (a compound,
another spelling) for something; so do words that stand close together. A database's own ranking is good enough to
propose a few dozen passages, and this one to choose among them.

Tuned on the English part of XQuAD, and how words that are spelt alike count on every other question of its three parts:
`benchmarks/search.py` says what that gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log
from typing import NamedTuple

from turnout.text.language import asking_words, stop_words

from .analysis import plain, read_words, runs, stem

# BM25's usual constants: how soon a word said again stops to matter, and how much a long passage is discounted.
SATURATION = 1.2
LENGTH = 0.75
# Parts of a word's weight. Around these values R@1 changes by at most a third of a point.
SAME_WORD = 0.5
CLOSE = 1.0
# What a word counts that is only spelt alike, and how many of a word's runs of letters it must have: parts of compounds
# have a third. On every other question of XQuAD, R@1 en/es/de: 94.8 / 94.3 / 91.6 with 0.75 and 0.4, 95.0 / 94.6 / 91.9
# with these.
ALIKE = 1.0
LIKENESS = 0.3
# And how many to stand for it among words that are close.
STANDS_FOR = 0.6
# In so many words from the first to the last, words stand close: most of a sentence.
SPAN = 15
# What is read of a question. A longer one is a text pasted in: its beginning and its end say what is wanted, and
# every word more costs the database a list.
HEAD, TAIL = 1_500, 500
WORDS = 32


class Asked(NamedTuple):
    """A word of a question, and its stem in each language the index holds."""

    word: str
    stems: frozenset[str]


class Statistics(NamedTuple):
    """What is known about all passages of an index."""

    revision: str
    passages: int
    average: float
    """Words in a passage."""
    langs: tuple[str, ...]
    """The languages of its documents, the most frequent first."""


class Fit(NamedTuple):
    score: float
    coverage: float


def read_question(text: str, lang: str, langs: Iterable[str]) -> list[Asked]:
    """The words that are looked for: without the function words of its language and what its questions are made with,
    unless it has no others."""
    if len(text) > HEAD + TAIL:
        text = f"{text[:HEAD]}\n{text[-TAIL:]}"
    words = dict.fromkeys(read_words(text))
    stops = stop_words(lang)
    said = [word for word in words if word not in stops] or list(words)
    kept = [word for word in said if word not in asking_words(lang)] or said
    # From both ends, as the text was read.
    kept = kept if len(kept) <= WORDS else [*kept[: WORDS * 3 // 4], *kept[-WORDS // 4 :]]
    # The word as it is, too: a document too short to tell its language has no other stems.
    read_in = dict.fromkeys((lang, *langs, ""))
    return [Asked(plain(word), frozenset(stem(word, each) for each in read_in)) for word in kept]


def weigh(asked: Sequence[Asked], frequencies: Mapping[str, int], passages: int) -> list[float]:
    """What each word counts for: the fewer passages have it, the more."""
    weights = []
    for one in asked:
        found = min(sum(frequencies.get(each, 0) for each in one.stems), passages)
        weights.append(log(1 + (passages - found + 0.5) / (found + 0.5)))
    return weights


class Judge:
    """Reads passages for one question. What is found out about a word is kept for the next passage."""

    def __init__(self, asked: Sequence[Asked], weights: Sequence[float], average: float) -> None:
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
        """Words of passages that were compared."""
        self._alike: dict[str, dict[int, float]] = {}
        """Those that are like some of the question's."""

    def rate(self, text: str, lang: str) -> Fit:
        words = read_words(text)
        counts: dict[int, int] = {}
        places: list[tuple[int, int, float]] = []
        for place, word in enumerate(words):
            at = self._by_stem.get(stem(word, lang))
            if at is not None:
                counts[at] = counts.get(at, 0) + 1
                places.append((place, at, 1.0))
        spelt = [plain(word) for word in words]
        there = set(spelt)
        discount = SATURATION * (1 - LENGTH + LENGTH * len(words) / self.average)
        score = covered = 0.0
        missing = []
        for at, (one, weight) in enumerate(zip(self.asked, self.weights, strict=True)):
            count = counts.get(at, 0)
            if count:
                score += weight * (count * (SATURATION + 1) / (count + discount) + SAME_WORD * (one.word in there))
                covered += weight
            else:
                missing.append(at)
        if missing:
            alike = self._find_alike(there)
            likeness = sum(self.weights[at] * alike.get(at, 0.0) for at in missing)
            score += ALIKE * likeness
            covered += likeness
            places += [
                (place, at, share)
                for place, word in enumerate(spelt)
                if word in self._alike
                for at, share in self._alike[word].items()
                if share >= STANDS_FOR and at not in counts
            ]
            places.sort()
        score += CLOSE * self._closest(places)
        return Fit(score, covered / (sum(self.weights) or 1.0))

    def _find_alike(self, words: set[str]) -> dict[int, float]:
        """For each word of the question, how much the word of the passage that is most like it has of it."""
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
        """The weight of the words that stand in the best stretch of `SPAN`."""
        best = 0.0
        for first, (start, _, _) in enumerate(places):
            inside: dict[int, float] = {}
            # No more can stand in a stretch: the work is linear in the passage.
            for place, at, share in places[first : first + SPAN * len(self.asked)]:
                if place - start >= SPAN:
                    break
                inside[at] = max(inside.get(at, 0.0), share)
            best = max(best, sum(self.weights[at] * share for at, share in inside.items()))
        return best
