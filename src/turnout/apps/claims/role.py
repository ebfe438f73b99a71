"""Who did what to whom: whether a question swaps the roles of a claim.

No grammar is parsed: shared words are compared by their order, by the prepositions before them, and by the "by" of a
passive.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from .contradiction import Contradiction, stands
from .reading import ClaimReading, Word, known

# Words after "by" that may name the agent: "by the late President Obama".
AGENT: Final = 5
# Texts that share this much of their words have the same words in some order.
SAME_WORDS: Final = 0.8


def find_roles(question: ClaimReading, card: ClaimReading) -> Contradiction | None:
    """Swapped roles: two words that changed sides of a third one. A word after the "by" of a passive is the agent
    wherever it stands."""
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
            # Names count as swapped even after a preposition: "copied from the Gospel of Mark".
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
    """A different shared word after the same preposition: "from the Moon", "from the Great Wall"."""
    for preposition in sorted(known().preposition - known().by):
        held = [word for word in card.words if word.behind == preposition]
        asked = [pair for pair in places if pair[1].behind == preposition]
        if held and asked and not any(one in held or one.behind for one, _ in asked):
            return Contradiction("roles", f"{preposition} {asked[0][1].raw}", f"{preposition} {held[0].raw}")
    return None


def _turned(question: ClaimReading, shared: Sequence[tuple[Word, Word]]) -> Contradiction | None:
    """Two of the same words in another order, neither after a preposition: "Is a fruit a tomato?"."""
    if question.by_at or question.titled:
        return None
    core = [(held, asked) for held, asked in shared if not held.behind and not asked.behind]
    for (c1, q1), (c2, q2) in pairwise(core):
        if q2.at < q1.at and not (c1.name and c2.name and c2.at == c1.at + 1):
            return Contradiction("roles", _join((q2, q1)), _join((c1, c2)))
    return None


def _replaced(question: ClaimReading, card: ClaimReading, shared: Sequence[tuple[Word, Word]]) -> Contradiction | None:
    """The card's agent is the object in the question, which has a new agent: "Did the US surrender to Japan?"."""
    if question.by_at or card.by_at or question.titled:
        return None
    for (c1, q1), (c2, q2) in pairwise(shared):
        new = [word for word in question.words if word.at < q2.at and not stands(word, card)]
        if c1.name and q1.name and not c1.behind and not q1.beside and q2.at < q1.at and any(one.name for one in new):
            return Contradiction("roles", _join((new[-1], q2, q1)), _join((c1, c2)))
    return None


def _places(question: ClaimReading, card: ClaimReading) -> list[tuple[Word, Word]]:
    """The words that each side has exactly once, as pairs of the card's and the question's."""
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
