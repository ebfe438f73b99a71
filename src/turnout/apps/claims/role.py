"""Who did it to whom: whether a question turns the roles of a claim round.

No grammar is parsed: words that both have are compared by their order, by the prepositions they stand behind, and by
the "by" of a passive.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from .contradiction import Contradiction, stands
from .reading import ClaimReading, Word, known

# Words behind "by" that name the one who did it: "by the late President Obama".
AGENT: Final = 5
# The same for their words in any order.
SAME_WORDS: Final = 0.8


def find_roles(question: ClaimReading, card: ClaimReading) -> Contradiction | None:
    """Who did it to whom, turned round: two words that stand on the other side of a third, and of each other. One that
    stands behind the "by" of a passive did it, wherever it stands."""
    places = _places(question, card)
    same = len(places) >= SAME_WORDS * max(len(question.keys), len(card.keys))
    # A headline has a grammar of its own.
    if not question.titled and (found := _behind(card, places)):
        return found
    within = same or (len(places) >= SAME_WORDS * len(question.keys) and not question.titled)
    shared = sorted(places, key=lambda pair: pair[0].at)
    for low, (c1, q1) in enumerate(shared):
        for high in range(low + 2, len(shared)):
            c2, q2 = shared[high]
            four = (c1, c2, q1, q2)
            # Two names that change places do so wherever they stand: "copied from the Gospel of Mark".
            beside = any(one.beside for one in four) and not (within and all(one.name or one.first for one in four))
            if not same and (beside or not (within or any(one.name for one in four))):
                continue
            turned = _is_agent(card, c1, c2) != _is_agent(question, q1, q2)
            for verb, asked in shared[low + 1 : high]:
                swapped = q1.at < asked.at < q2.at if turned else q2.at < asked.at < q1.at
                if (
                    swapped
                    and not (verb.name or asked.name)
                    and (not turned or within or ((c1.name or c1.first) and c2.name))
                ):
                    said = (q1, asked, q2) if turned else (q2, asked, q1)
                    return Contradiction("roles", _join(said), _join((c1, verb, c2)))
    return _turned(question, shared) if same else _replaced(question, card, shared)


def _behind(card: ClaimReading, places: Sequence[tuple[Word, Word]]) -> Contradiction | None:
    """Another word that both have stands behind the same preposition: "from the Moon", "from the Great Wall"."""
    for preposition in sorted(known().preposition - known().by):
        held = [word for word in card.words if word.behind == preposition]
        asked = [pair for pair in places if pair[1].behind == preposition]
        if held and asked and not any(one in held or one.behind for one, _ in asked):
            return Contradiction("roles", f"{preposition} {asked[0][1].raw}", f"{preposition} {held[0].raw}")
    return None


def _turned(question: ClaimReading, shared: Sequence[tuple[Word, Word]]) -> Contradiction | None:
    """Of the same words, two in another order, neither behind a preposition: "Is a fruit a tomato?"."""
    if question.by_at or question.titled:
        return None
    core = [(held, asked) for held, asked in shared if not held.behind and not asked.behind]
    for (c1, q1), (c2, q2) in pairwise(core):
        if q2.at < q1.at and not (c1.name and c2.name and c2.at == c1.at + 1):
            return Contradiction("roles", _join((q2, q1)), _join((c1, c2)))
    return None


def _replaced(question: ClaimReading, card: ClaimReading, shared: Sequence[tuple[Word, Word]]) -> Contradiction | None:
    """Who does it in the card, it is done to in the question, and another does it: "Did the US surrender to Japan?"."""
    if question.by_at or card.by_at or question.titled:
        return None
    for (c1, q1), (c2, q2) in pairwise(shared):
        new = [word for word in question.words if word.at < q2.at and not stands(word, card)]
        if c1.name and q1.name and not c1.behind and not q1.beside and q2.at < q1.at and any(one.name for one in new):
            return Contradiction("roles", _join((new[-1], q2, q1)), _join((c1, c2)))
    return None


def _places(question: ClaimReading, card: ClaimReading) -> list[tuple[Word, Word]]:
    """The words that each side has once, in the card and in the question."""
    found = []
    for word in card.words:
        twins = [other for other in question.words if other.key == word.key]
        if len(twins) == 1 and sum(other.key == word.key for other in card.words) == 1:
            found.append((word, twins[0]))
    return found


def _is_agent(reading: ClaimReading, *words: Word) -> bool:
    return any(0 < word.at - by <= AGENT for word in words for by in reading.by_at)


def _join(words: Sequence[Word]) -> str:
    return " ".join(word.raw for word in words)
