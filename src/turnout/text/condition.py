"""Splits a text with a leading condition: "if the door is open, close it and check the news".

The text begins with an opener. The condition ends at the first comma that is not part of a list, or before a command
without a comma. The consequence ends at the first conjunction after which something else is asked (`split` decides
that); the rest is the remainder. Invariant: the three are stretches of the text in this order, condition and
consequence are never blank, and a text that only looks conditional ("should I …", "if possible, …", "if Napoleon had
won, who would …") has none. Only the first `WINDOW` characters can hold a condition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct

from .clause import LISTS as CLAUSES
from .clause import Mood, judge
from .fold import fold
from .joint import Hits
from .lex import MARKS, bare, find_words, sentence_starts
from .split import WINDOW, split_off
from .words import Words, match_phrase

LISTS: Final = Words("condition", "en", "es")
# Words of the longest opener, "en caso de que".
_LONGEST: Final = 4
# Most words before an opener: "ok and please if".
_LEADS: Final = 3
# Most commas of a list, words of one of its items, and words in which a command is searched for.
MOST_ITEMS, MOST_WORDS, MOST_SEARCHED = 16, 4, 100

# A comma between digits belongs to the number.
_commas: Final = re.compile(r"(?<![0-9])[,，]|[,，](?![0-9])").finditer
_word: Final = re.compile(r"\w+").search
_then: Final = re.compile(r"(?:then|entonces)\b[\s,]*", re.IGNORECASE).match


class Conditional(Struct, frozen=True):
    """The pieces as the user wrote them, without opener and conjunctions."""

    condition: str
    consequence: str
    remainder: str = ""
    """What else is asked, if anything."""


def read_condition(text: str, hits: Hits | None = None) -> Conditional | None:
    """The pieces of a text that begins with a condition; `hits` finds trigger phrases, as for `split`."""
    whole, first_words = _without_leads(text.strip())
    if not match_phrase(first_words, LISTS.openers):
        return None
    window = whole[:WINDOW]
    for start, end in _ends(window):
        condition = _condition(whole[:start], window)
        rest = whole[end:].lstrip(MARKS)
        if then := _then(rest):
            rest = rest[then.end() :].lstrip(MARKS)
        first = _word(rest)
        # "Should cats drink milk, or is it bad for them" offers a choice.
        if condition and first is not None and fold(first[0]).text not in ("or", "o"):
            return None if _is_unreal(window) else Conditional(condition, *split_off(rest, hits))
    return None


def _without_leads(text: str) -> tuple[str, list[str]]:
    """The text from its opener on ("hey, if …"), and its first words. "Should" after such words is no opener."""
    found = list(islice(find_words(text[:WINDOW]), _LONGEST + _LEADS))
    words = [bare(word[0].rstrip(",，")) for word in found]
    at = 0
    while at < min(_LEADS, len(words)) and words[at] in LISTS.before_openers:
        at += 1
    is_opener = at and match_phrase(words, LISTS.openers, at) and words[at] != "should"
    at = at if is_opener else 0
    return (text[found[at].start() :] if at else text), words[at : at + _LONGEST]


def _ends(window: str) -> Iterator[tuple[int, int]]:
    """Where the condition may end and the rest begin, best first: before a command, after a list, at a comma."""
    commas = [(found.start(), found.end()) for found in islice(_commas(window), MOST_ITEMS)]
    stop = min(filter(None, sentence_starts(window)), default=len(window))
    at = _imperative(window, 0, min(commas[0][0] if commas else stop, stop))
    if at is None and (listed := _behind_list(window, commas)):
        at = _imperative(window, listed[0], min(listed[1], stop))
        if at is None and listed[1] < len(window):
            yield listed[1], listed[1] + 1
    if at is not None:
        yield at, at
    yield from commas[:1]


def _behind_list(window: str, commas: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """If the first comma is inside a list: where its last item begins, and where the stretch with that item ends.

    "If Anna, Ben and Carl are home, …": between the commas of a list there are only names or noun phrases.
    """
    bounds = [*(start for start, _ in commas), len(window)]
    for (_, start), end in zip(commas, bounds[1:], strict=True):
        found = list(find_words(window, start, end))
        words = [bare(word[0]) for word in found]
        at = next((i for i, word in enumerate(words) if word in LISTS.listing), None)
        if at is not None and at + 1 == len(words):
            return None
        item = words[:at]
        is_name = len(item) == 1 and found[0][0].istitle()
        # "…, and any news" is no list, but "Ann, Ben, and Carl" is.
        blank = not item and (at is None or start == commas[0][1])
        if blank or len(item) > MOST_WORDS or not (is_name or judge(item) is Mood.FRAGMENT):
            return None
        if at is not None:
            after = words[at + 1 :]
            # A command after the conjunction ("…, Ben and call me") is no item, unless a verb follows it.
            asks = judge(after[:3]) in (Mood.QUESTION, Mood.COMMAND) and not _has_verb(after[1:])
            return None if asks else (found[at].end(), end)
    return None


def _has_verb(words: Sequence[str]) -> bool:
    return any(word in CLAUSES.auxiliaries or word in LISTS.verbs for word in words)


def _imperative(window: str, begin: int, end: int) -> int | None:
    """Where a command begins without a comma before it: "if any lights are on turn them off"."""
    found = list(islice(find_words(window, begin, end), MOST_SEARCHED))
    words = [bare(word[0]) for word in found]
    stated = False
    for at in range(1, len(words) - 1):
        word, before, after = words[at], words[at - 1], words[at + 1]
        # The condition needs a verb first; "it rains" shows no other sign of one.
        stated = (
            stated
            # "It's", "the dryer's done".
            or before.endswith("'s")
            or before.rpartition("'")[0] in CLAUSES.pronouns
            or before in CLAUSES.auxiliaries
            or before in LISTS.verbs
            or before in CLAUSES.past
            or (at > 2 and words[at - 2] in ("it", "there"))
        )
        commands = word in CLAUSES.commands and after != "to"
        # "Plugged in show me …": "show me" is always a command.
        for_me = commands and after in ("me", "us") and before not in CLAUSES.auxiliaries
        held_back = before in LISTS.before_verbs or before in CLAUSES.auxiliaries or before in CLAUSES.subjects
        if not stated or (held_back and not for_me):
            continue
        if commands and (after in CLAUSES.after_verbs or (word in LISTS.plain_commands)):
            return found[at - 1 if before in CLAUSES.please or before in ("then", "entonces") else at].start()
    return None


def _is_unreal(window: str) -> bool:
    """Whether the condition is counterfactual: "if Napoleon had won, who would …"."""
    words = [bare(word[0]) for word in islice(find_words(window), MOST_SEARCHED)]
    would = next((i for i, word in enumerate(words) if word in LISTS.would and words[i + 1 : i + 2] != ["you"]), 0)
    before = words[:would]
    if not LISTS.unreal.isdisjoint(before):
        return True
    is_past = any(word.endswith("ed") or word in CLAUSES.past for word in before)
    return is_past and LISTS.present.isdisjoint(before)


def _condition(front: str, text: str) -> str:
    """The text between the opener and the comma; blank if that is no condition."""
    found = list(islice(find_words(front), _LONGEST + 1))
    words = [bare(word[0]) for word in found]
    length = match_phrase(words, LISTS.openers)
    if not length or len(words) == length:
        return ""
    # "Should I bring a coat" is the question itself.
    if words[0] == "should" and words[1].partition("'")[0] in LISTS.askers:
        return ""
    # "Si" alone may be silicon, a name or the SI units.
    if words[0] == "si" and LISTS.beside_si.isdisjoint(bare(word[0]) for word in find_words(text)):
        return ""
    condition = front[found[length - 1].end() :].strip(MARKS)
    if not _word(condition) or " ".join(fold(condition).text.split()) in LISTS.courtesies:
        return ""
    # "If it rains? Well, …": the comma belongs to another sentence.
    return "" if any(start < len(front) for start in sentence_starts(front)) else condition
