"""Suspicious words, put into questions that have nothing to do with them: does the route follow?

What a trigger is for can be tried out: a planted word pulls questions of every kind to one route. So does a word that
is new and telling, which is why not every new word is tried but those of which something else speaks: the screen, which
counts rows, or the champion, which reads the texts without the word and, sure of itself, says another label of nearly
all of them. Each is held against what it does to the champion and against what unused words do to the challenger,
so that the ordinary unrest of a text with something strange in it is not taken for an effect.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ..dataset import Example, folded
from .trigger import FEWEST, find_new, is_piece

Says = Callable[[str], str | None]
"""The label a model gives a text; None where it says nothing."""

# Questions a word is tried on: one of them is half a point, and a dozen words take a second.
MOST_TEXTS = 200
# Words that are tried.
MOST_WORDS = 24
# Planted for one label: most of its rows have that.
PURE = 0.7
# The champion contradicts a word's label in this share of its rows. Chosen on eight updates of CLINC150 that bring two
# new intents each; on twelve others it named one genuine word, which moved nothing, and the planted one in eleven.
CONTRADICTED = 0.8
# Words the champion is asked about, the most frequent first, and rows of each: some seconds with sentence vectors.
LOOKED_AT, ROWS_READ = 300, 20
# Fewer characters than this are not enough text to judge.
FEWEST_CHARACTERS = 4
# Words that came together are a phrase within this many characters.
PHRASE = 60
# Named people who make a new word theirs to introduce.
VOUCHERS = 3
# Made-up words, to see how restless a model is; their mean is taken.
CONTROLS = 5
# Pieces are as long as a student's longest n-grams of characters.
PIECE = 5
SYLLABLES = ("ba", "ke", "mo", "tru", "zil", "pho", "ga", "rin", "du", "vex")


class NewWord(NamedTuple):
    """A word that came with the new rows, or a phrase."""

    word: str
    words: tuple[str, ...]
    """The new ones in it."""
    label: str
    """What most of its rows are."""
    rows: tuple[int, ...]
    """Those rows, by index."""


class ProbeResult(NamedTuple):
    """What a word did."""

    effect: float
    """Share of the questions it moves, beyond what it does to the champion and what any strange word does."""
    word: str
    route: str
    """Where it pulls."""


def probe(
    words: Sequence[str], texts: Sequence[str], new: Says, old: Says | None, *, seed: int = 0
) -> list[ProbeResult]:
    """Try every word on the questions; the strongest first."""
    words = list(dict.fromkeys(word for word in words if word.strip()))[:MOST_WORDS]
    if not words or not texts:
        return []
    if len(texts) > MOST_TEXTS:
        texts = random.Random(seed).sample(list(texts), MOST_TEXTS)  # noqa: S311 - the same again is the point
    plain = _shares(texts, new)
    plain_old = _shares(texts, old) if old is not None else {}
    chance = random.Random(f"strange:{seed}")  # noqa: S311
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
    """Words and pieces of words that came with the new rows and mostly with one label; the most frequent first.

    Left out are those that several named people stand behind, and those the operator accepts.
    """
    accepted = {word for word in map(folded, accept) if word}
    # Single words and pieces: a phrase of words that were all known is for the screen to judge.
    having, _ = find_new(new, known, words=(1,), pieces=(PIECE,))
    # Words with the very same rows came together, as the words of a phrase do. A piece counts where no word does.
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
    """Words that came together as one of their texts has them, with what stands between; far apart, one by one."""
    start = min(max(text.find(word), 0) for word in words)
    end = max(text.find(word) + len(word) for word in words)
    return text[start:end].strip() if 0 < end - start <= PHRASE else " ".join(words)


def doubtful(words: Sequence[NewWord], new: Sequence[Example], surely: Says) -> list[str]:
    """Those the champion contradicts: what it surely says of the texts without the word is nearly always another label.

    `surely` is the champion's answer where its gate lets it through, and None elsewhere.
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
    """By how much each route's share grows with the word in every text, in front or behind, whichever does more."""
    ways = [_shares([f"{word} {text}" for text in texts], says), _shares([f"{text} {word}" for text in texts], says)]
    routes = {*plain, *(route for shares in ways for route in shares)}
    return {route: max(shares.get(route, 0.0) for shares in ways) - plain.get(route, 0.0) for route in routes}


def _shares(texts: Sequence[str], says: Says) -> dict[str, float]:
    said = Counter(route for text in texts if (route := says(text)) is not None)
    return {route: count / len(texts) for route, count in said.items()}
