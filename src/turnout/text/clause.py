"""The mood of a clause: question, command, wish, statement or fragment.

Invariant: the mood depends on the words of the clause alone and takes time linear in them. A clause *asks* if it could
be answered: a question, a command or a wish. It *leans* if it cannot be understood without the clause before it: it
refers back ("and tell him"), is subordinate ("and when it arrives") or has no content ("and why is that").

Words are folded, without punctuation around them. The English and Spanish lists are used together, because the
language of five words is hard to guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from .words import Words


class Mood(StrEnum):
    QUESTION = "question"
    COMMAND = "command"
    WISH = "wish"
    STATEMENT = "statement"
    FRAGMENT = "fragment"

    @property
    def asks(self) -> bool:
        return self in _ASKING


_ASKING: Final = frozenset({Mood.QUESTION, Mood.COMMAND, Mood.WISH})


LISTS: Final = Words("clause", "en", "es")


def judge(words: Sequence[str]) -> Mood:
    """The mood of a clause."""
    at = _start(words)
    return _opening(words, at) or _inside(words, at)


def leans(words: Sequence[str]) -> bool:
    """Whether a clause cannot be understood without the one before it."""
    at = _start(words)
    if at == len(words) or words[at] in LISTS.subordinators or not has_content(words):
        return True
    # "I stay at home and read".
    is_bare_verb = len(words) == at + 1 and words[at] in LISTS.commands
    return is_bare_verb or _points_back(words, at)


def has_content(words: Sequence[str]) -> bool:
    return any(word not in LISTS.hollow and word.partition("'")[0] not in LISTS.hollow for word in words)


def is_nominal(words: Sequence[str]) -> bool:
    """Whether the words are a phrase without a finite verb: "articles published this year", "news related to it"."""
    return not any(
        (at + 1 < len(words) and word.partition("'")[0] in LISTS.pronouns)
        or (word in LISTS.auxiliaries and word != "may")
        or word in LISTS.past
        for at, word in enumerate(words)
    )


def _start(words: Sequence[str]) -> int:
    at = 0
    while at < len(words) and words[at] in LISTS.leads:
        at += 1
    return at


def _opening(words: Sequence[str], at: int) -> Mood | None:
    """The mood that a clause's first words show, if they do."""
    if at == len(words):
        return Mood.FRAGMENT
    first = words[at]
    second = words[at + 1] if at + 1 < len(words) else ""
    if first in LISTS.question_verbs or ("'" in first and first.partition("'")[0] in LISTS.question_words):
        return Mood.QUESTION
    if first in LISTS.question_words:
        return Mood.QUESTION if _is_direct(first, second) else None
    if first in LISTS.bare_question_words and second in LISTS.auxiliaries:
        return Mood.QUESTION
    if first in LISTS.auxiliaries and _is_inverted(first, second, words):
        return Mood.QUESTION
    if (
        first in LISTS.commands
        and (first not in LISTS.nouns_too or second in LISTS.after_verbs)
        and (first, second) != ("close", "to")
    ):
        return Mood.COMMAND
    if second in ("me", "us") and first not in LISTS.hollow and len(words) > at + 2:
        return Mood.COMMAND
    if second and (
        first in LISTS.bare_wishes or (first == "am" and second in LISTS.wishes) or (first, second) == ("like", "to")
    ):
        return Mood.WISH
    if first in LISTS.prepositions and _commands_behind(words, at):
        return Mood.COMMAND
    return None


def _commands_behind(words: Sequence[str], at: int) -> bool:
    """Whether a command follows the phrase in front: "at seven turn on the lights"."""
    return any(
        words[i] in LISTS.commands
        and words[i] not in LISTS.nouns_too
        and words[i + 1] in LISTS.after_verbs
        and words[i - 1] not in LISTS.hollow
        for i in range(at + 2, len(words) - 1)
    )


def _is_direct(first: str, second: str) -> bool:
    """Whether a question word opens a direct question, not one that depends on "tell me" or "I wonder"."""
    if second in LISTS.auxiliaries or second in ("s", "about", "come", "to"):
        return True
    return bool(second) and second not in LISTS.subjects and (first in LISTS.determining or first == "who")


def _is_inverted(first: str, second: str, words: Sequence[str]) -> bool:
    if second in LISTS.pronouns:
        return True
    if first in LISTS.possessive_auxiliaries:
        participle = "been" in words or (first[:3] == "has" and any(word.endswith("ed") for word in words))
        return participle and second in LISTS.determiners
    if second in LISTS.determiners:
        return True
    if (
        not second
        or first in LISTS.loose_auxiliaries
        or second in LISTS.continuations
        or second.endswith(("ed", "ing"))
    ):
        return False
    if first == "will":
        # "… and Will Smith movies" has no verb.
        return second not in LISTS.commands and any(
            word in LISTS.commands or word in ("be", "have", "rain", "snow") for word in words
        )
    return first not in LISTS.modals or second not in LISTS.commands or second in LISTS.nouns_too


def _inside(words: Sequence[str], at: int) -> Mood:
    """The mood that later words show: "on Monday I need a table", "to the list please add milk"."""
    stated = False
    for i in range(at, len(words)):
        word = words[i]
        after = words[i + 1] if i + 1 < len(words) else ""
        if word in LISTS.please and after in LISTS.commands:
            return Mood.COMMAND
        if after == "you" and word in ("can", "could", "would", "will"):
            return Mood.QUESTION
        if word in LISTS.wishers and _is_wish(words, i) and not (i > at and words[i - 1] in LISTS.hollow):
            return Mood.WISH
        if i > at and (word == "deserves" or (after in LISTS.wished and _needs(words, i))):
            return Mood.WISH
        stated = (
            stated
            or word.partition("'")[0] in LISTS.pronouns
            or (word in LISTS.auxiliaries and word != "may")
            or word in LISTS.past
            or (i > at and word.endswith("ed"))
        )
    return Mood.STATEMENT if stated else Mood.FRAGMENT


def _is_wish(words: Sequence[str], at: int) -> bool:
    conditional = words[at].endswith("d")
    for word in words[at + 1 : at + 4]:
        if word in LISTS.wishes:
            return conditional or word not in LISTS.conditional_wishes
        if word in ("would", "should", "d"):
            conditional = True
        elif word not in LISTS.wish_fillers:
            return False
    return False


def _needs(words: Sequence[str], at: int) -> bool:
    return words[at] == "needs" or (words[at] == "need" and words[at - 1] not in LISTS.hollow)


def _points_back(words: Sequence[str], at: int) -> bool:
    for i in range(at, len(words)):
        word = words[i]
        before = words[i - 1] if i > at else ""
        after = words[i + 1] if i + 1 < len(words) else ""
        if word in LISTS.pointers:
            return True
        if (word == "one" and before in LISTS.one_before) or (word == "that" and before in LISTS.auxiliaries):
            return True
        if word == "it" and _refers(words, at, before, after):
            return True
    return False


def _refers(words: Sequence[str], at: int, before: str, after: str) -> bool:
    """Whether "it" refers to a thing: "lock it", "when was it written"; not "is it raining", "how cold will it be"."""
    if before in LISTS.auxiliaries:
        return (
            words[at] in LISTS.adverbial
            and words[at + 1] == before
            and after not in LISTS.hollow
            and after not in LISTS.impersonal
        )
    return before not in LISTS.subordinators and after not in LISTS.auxiliaries


def begins_with(words: Sequence[str], openers: frozenset[str]) -> bool:
    at = _start(words)
    return at < len(words) and words[at] in openers
