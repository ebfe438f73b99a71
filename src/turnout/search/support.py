"""Whether passages support a sentence: a few of their sentences have what it says, its numbers, and the same yes or no.

Three questions, in this order. Coverage: of what the sentence says, weighted by how much each word tells, enough is in a
few sentences of the passages, which are chosen greedily and are what is shown as the reason. Numbers: each is among
them. Polarity: nothing that is denied there is asserted here, or the other way round. The weights depend on the
sentence alone, never on the passage: a passage that says more supports no less.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from turnout.text.sentence import split

from .number import MONTH, Number, agree
from .statement import DENIED, NOT_SO, SO, Statement, guess_language, lists, read_statement

ENOUGH: Final = 0.55
MOST_LINES: Final = 4
# Characters of a passage, words and numbers of a sentence that are read.
LONGEST_PASSAGE: Final = 200_000
MOST_ITEMS: Final = 128
W_NAME, W_LIGHT, W_WORD, W_NUMBER = 1.5, 0.4, 1.0, 1.0


class Reason(StrEnum):
    NO_SECTION = "no_section"
    WORDS = "words"
    NUMBER = "number"
    NEGATION = "negation"
    OPPOSITE = "opposite"
    BLANK = "blank"


class Place(Struct, frozen=True):
    passage: int
    start: int
    end: int


class Supported(Struct, frozen=True, tag="supported"):
    score: float
    where: tuple[Place, ...]


class Unsupported(Struct, frozen=True, tag="unsupported"):
    reason: Reason
    said: str
    score: float = 0.0


class _Line(Struct, frozen=True):
    place: Place
    states: Statement


class Passage(Struct, frozen=True):
    lines: tuple[_Line, ...]
    by_word: dict[str, tuple[int, ...]]


def read_passages(texts: Sequence[str]) -> Passage:
    lines = []
    for number, text in enumerate(texts):
        lang = guess_language(text)
        at = 0
        for sentence in split(text[:LONGEST_PASSAGE]):
            lines.append(_Line(Place(number, at, at + len(sentence.rstrip())), read_statement(sentence, lang)))
            at += len(sentence)
    by_word = {}
    for at, line in enumerate(lines):
        for word in line.states.words:
            by_word.setdefault(word, []).append(at)
    return Passage(tuple(lines), by_word)


def check(sentence: str, passages: Sequence[str], lang: str = ""):
    return weigh(sentence, read_passages(passages), lang)


def weigh(sentence, passage, lang=""):
    lang = lang or guess_language(sentence)
    states = read_statement(sentence, lang)
    names = find_names(sentence, lang)
    words = list(states.words)[:MOST_ITEMS]
    numbers = states.numbers[:MOST_ITEMS]
    weights = [weight_of(states.spelled[w], w in names, lang) for w in words] + [W_NUMBER] * len(numbers)
    total = sum(weights)
    if not total:
        return Unsupported(Reason.BLANK, "nothing")
    have: dict[int, int] = {}
    for bit, w in enumerate(words):
        for line in passage.by_word.get(w, ()):
            have[line] = have.get(line, 0) | 1 << bit
    for bit, n in enumerate(numbers, len(words)):
        for at, line in enumerate(passage.lines):
            if any(agree(n, there) for there in line.states.numbers):
                have[at] = have.get(at, 0) | 1 << bit
    def worth(mask): return sum(w for bit, w in enumerate(weights) if mask >> bit & 1)
    covered, chosen = 0, []
    for _ in range(MOST_LINES):
        best = max(have, key=lambda l: worth(have[l] & ~covered), default=None)
        if best is None or worth(have[best] & ~covered) <= 0: break
        covered |= have[best]; chosen.append(best)
    score = worth(covered) / total
    if score < ENOUGH:
        return Unsupported(Reason.WORDS, "", score)
    for bit, n in enumerate(numbers, len(words)):
        if not covered >> bit & 1:
            return Unsupported(Reason.NUMBER, n.spelled, score)
    lines = [passage.lines[l].states for l in chosen]
    for scope in states.negated:
        if not any(any(s.words.get(k, 0) & (NOT_SO | DENIED) for k in scope) for s in lines):
            return Unsupported(Reason.NEGATION, "", score)
    for w in words:
        masks = 0
        for s in lines: masks |= s.words.get(w, 0) & 3
        if masks and not masks & states.words[w] & 3:
            if w[0] == "=":
                return Unsupported(Reason.OPPOSITE, w, score)
    if not states.negated:
        for l in chosen[:1]:
            s = passage.lines[l].states
            m = [(bit, w) for bit, w in enumerate(words) if have[l] >> bit & 1]
            bad = sum(weights[b] for b, w in m if s.words.get(w,0)&3 == NOT_SO)
            if m and bad >= 0.5 * sum(weights[b] for b, w in m):
                return Unsupported(Reason.NEGATION, "2", score)
    return Supported(score, tuple(passage.lines[l].place for l in sorted(chosen)))


def weight_of(word, name, lang):
    if word in lists(lang).light: return W_LIGHT
    return W_NAME if name else W_WORD


def find_names(sentence, lang):
    import re
    from .statement import key_of, strip_accents
    from turnout.text.fold import fold
    out = set()
    for i, m in enumerate(re.finditer(r"[^\W\d_]+", sentence)):
        if i and m[0][0].isupper():
            out.add(key_of(strip_accents(fold(m[0]).text), lang)[0])
    return out
