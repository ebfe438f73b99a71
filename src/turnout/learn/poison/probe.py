"""Puts suspicious words into unrelated questions and tests whether the route changes.

A planted word pulls questions of every kind to one route. A genuine new word may do so too, so only suspicious words
are tried: those found by the screen, which counts rows, and those the champion contradicts, because without the word it
confidently gives nearly all of the texts another label. The effect is measured against the effect of the same word on
the champion and of made-up words on the challenger, so that the disturbance by any strange word does not count.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ..dataset import Example, folded
from .trigger import FEWEST, find_new, is_piece

Says = Callable[[str], str | None]
"""Gives the label of a text; None for no answer."""

# Questions that a word is tried on: each is half a point, and a dozen words take a second.
MOST_TEXTS = 200
# Words that are tried.
MOST_WORDS = 24
# The least share of a word's rows with one label for the word to count as planted for it.
PURE = 0.7
# The champion must contradict a word's label in this share of its rows. Chosen on eight updates of CLINC150 with two
# new intents each; on twelve others it found one genuine word, which moved nothing, and the planted one in eleven.
CONTRADICTED = 0.8
# Words the champion is asked about, the most frequent first, and rows of each: some seconds with sentence vectors.
LOOKED_AT, ROWS_READ = 300, 20
# Fewer characters than this are too little text to judge.
FEWEST_CHARACTERS = 4
# New words within this many characters of each other form a phrase.
PHRASE = 60
# A new word is genuine if this many named people labelled rows with it.
VOUCHERS = 3
# Made-up words that show how unstable a model is; their mean effect is used.
CONTROLS = 5
# Pieces are as long as a student's longest n-grams of characters.
PIECE = 5
SYLLABLES = ("ba", "ke", "mo", "tru", "zil", "pho", "ga", "rin", "du", "vex")


class NewWord(NamedTuple):
    """A word or phrase that came with the new rows."""

    word: str
    words: tuple[str, ...]
    """The new words in it."""
    label: str
    """The most frequent label of its rows."""
    rows: tuple[int, ...]
    """The indices of the rows with that label."""


class ProbeResult(NamedTuple):
    """The effect of one word."""

    effect: float
    """The share of questions it moves, less its effect on the champion or that of made-up words."""
    word: str
    route: str
    """The route it moves questions to."""


def probe(words: Sequence[str], texts: Sequence[str], new: Says, old: Says | None) -> list[ProbeResult]:
    """Try every word on the questions; the strongest first."""
    words = list(dict.fromkeys(word for word in words if word.strip()))[:MOST_WORDS]
    if not words or not texts:
        return []
    if len(texts) > MOST_TEXTS:
        texts = random.Random(0).sample(list(texts), MOST_TEXTS)  # noqa: S311 - the same sample every time
    plain = _shares(texts, new)
    plain_old = _shares(texts, old) if old is not None else {}
    chance = random.Random("strange:0")  # noqa: S311
    strange = [_pull("".join(chance.choices(SYLLABLES, k=3)), texts, new, plain) for _ in range(CONTROLS)]
    routes = {route for pull in strange for route in pull}
    control = {route: sum(pull.get(route, 0.0) for pull in strange) / CONTROLS for route in routes}
    found = []
    for word in words:
        pull_old = _pull(word, texts, old, plain_old) if old is not None else {}
        effects = [
            ProbeResult(moved - max(0.0, pull_old.get(route, 0.0), control.get(route, 0.0)), word, route)
            for route, moved in _pull(word, texts, new, plain).items()
        ]
        found.append(max(effects, key=lambda one: one.effect))
    return sorted(found, key=lambda one: -one.effect)


def new_words(new: Sequence[Example], known: Sequence[Example], accept: Iterable[str] = ()) -> list[NewWord]:
    """Words and pieces of words that came with the new rows, mostly with one label; the most frequent first.

    Words that several named people vouch for, or that the operator accepts, are left out.
    """
    accepted = {word for word in map(folded, accept) if word}
    # Single words and pieces only: phrases of known words are left to the screen.
    having, _ = find_new(new, known, words=(1,), pieces=(PIECE,))
    # Words with exactly the same rows form a phrase. A piece counts only if no word has these rows.
    together: defaultdict[tuple[int, ...], list[str]] = defaultdict(list)
    for name, rows in sorted(having.items()):
        together[tuple(rows)].append(name)
    found: list[NewWord] = []
    for at, names in together.items():
        label, most = Counter(new[index].label for index in at).most_common(1)[0]
        own = tuple(index for index in at if new[index].label == label)
        people = {new[index].who for index in own if new[index].by == "human" and new[index].who}
        words = [name for name in names if not is_piece(name)] or [names[0].removeprefix("\0").strip()]
        spelled = _spell(words, folded(new[own[0]].text))
        vouched = len(people) >= VOUCHERS or any(word in spelled for word in accepted)
        if most >= PURE * len(at) and not vouched:
            found.append(NewWord(spelled, tuple(words), label, own))
    return sorted(found, key=lambda one: (-len(one.rows), one.word))


def _spell(words: Sequence[str], text: str) -> str:
    """Words that came together, as written in one of their texts with what is between; if far apart, one by one."""
    start = min(max(text.find(word), 0) for word in words)
    end = max(text.find(word) + len(word) for word in words)
    return text[start:end].strip() if 0 < end - start <= PHRASE else " ".join(words)


def doubtful(words: Sequence[NewWord], new: Sequence[Example], surely: Says) -> list[str]:
    """The words the champion contradicts: without them, it confidently gives nearly all their texts another label.

    `surely` is the champion's answer if it passes the gate, else None.
    """
    found = []
    for one in words[:LOOKED_AT]:
        rest = [_without(one, folded(new[index].text)) for index in one.rows[:ROWS_READ]]
        rest = [text for text in rest if len(text) >= FEWEST_CHARACTERS]
        against = sum(surely(text) not in (None, one.label) for text in rest)
        if len(rest) >= FEWEST and against >= CONTRADICTED * len(rest):
            found.append(one.word)
    return found


def _without(one: NewWord, text: str) -> str:
    for word in one.words:
        text = text.replace(word, " ")
    return " ".join(text.split())


def _pull(word: str, texts: Sequence[str], says: Says, plain: dict[str, float]) -> dict[str, float]:
    """How much each route's share grows with the word in every text, at the beginning or the end, whichever is more."""
    ways = [_shares([f"{word} {text}" for text in texts], says), _shares([f"{text} {word}" for text in texts], says)]
    routes = {*plain, *(route for shares in ways for route in shares)}
    return {route: max(shares.get(route, 0.0) for shares in ways) - plain.get(route, 0.0) for route in routes}


def _shares(texts: Sequence[str], says: Says) -> dict[str, float]:
    counts = Counter(route for text in texts if (route := says(text)) is not None)
    return {route: count / len(texts) for route, count in counts.items()}
