"""Rewrites a follow-up: "and tomorrow?" after "Will it rain in Paris?" is "Will it rain in Paris tomorrow?".

The missing words are taken from the question before it: a fragment replaces a similar phrase or is appended; a word
that points is replaced by what was named. If neither is possible, the question before it is appended in brackets, so
that a search finds its words and a reader sees what is meant. A text that stands alone is returned unchanged. Only
English is rewritten; other languages stand alone or get the brackets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from .fold import fold
from .reference import find_reference
from .words import Words, match_phrase

LISTS: Final = Words("standalone", "en")
# Most words of a fragment: "in the north of France".
FRAGMENT: Final = 6
# Most words of a question that names nothing: "why?", "which of them?".
BARE: Final = 3
# Characters of the longest question that is rewritten or used.
WINDOW: Final = 400
_END: Final = " ?!.,;:…¿¡"
_word: Final = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*").finditer


def make_standalone(text: str, history: Sequence[str], knows: Callable[[str], bool] = lambda text: False) -> str:
    """The text as it is understood after the user's earlier questions, oldest first. `knows` says whether a few words
    are a question of their own: "and the news?"."""
    before = next((turn.strip() for turn in reversed(history) if turn.strip()), "")
    if not before or len(before) > WINDOW or len(text) > WINDOW:
        return text
    if fragment := _fragment(text):
        return _put(fragment, before) if _has_place(fragment) or not knows(fragment) else fragment
    found = find_reference(text, history)
    # A text that only looks like a follow-up counts as one only if it is hardly a question.
    if found is None or (found.kind == "followup" and (knows(text) or len(list(_word(text))) > BARE)):
        return text
    topic = _topic(before) if found.kind != "followup" else ""
    return (_replace_pointer(text, topic) if topic else "") or f"{text.strip()} ({before.rstrip(_END)})"


def _has_place(fragment: str) -> bool:
    """Whether a fragment is a time or a place, which is no question."""
    words = [fold(word[0]).text for word in _word(fragment)]
    return words[0] in LISTS.prepositions or match_phrase(words, LISTS.times) == len(words)


def _fragment(text: str) -> str:
    """The words after the opener of a text that asks nothing by itself; empty if it is a question."""
    words = list(_word(text))
    folded = [fold(word[0]).text for word in words]
    opened = match_phrase(folded, LISTS.openers)
    rest = folded[opened:]
    is_time = match_phrase(rest, LISTS.times) == len(rest)
    alone = is_time or (bool(rest) and rest[0] in LISTS.prepositions)
    if not rest or len(rest) > FRAGMENT or not (opened or alone):
        return ""
    if not is_time and any(word in LISTS.asking or word in LISTS.pronouns for word in rest):
        return ""
    return text[words[opened].start() :].strip(_END)


def _put(fragment: str, before: str) -> str:
    """The question before, with the fragment in the place of a similar phrase."""
    mark = before[len(before.rstrip(_END)) :].strip() or "?"
    before = before.rstrip(_END)
    words = list(_word(before))
    folded = [fold(word[0]).text for word in words]
    first = fold(fragment.split(maxsplit=1)[0]).text
    is_time = match_phrase([fold(word[0]).text for word in _word(fragment)], LISTS.times) > 0
    if is_time:
        for at in reversed(range(len(words))):
            if size := match_phrase(folded, LISTS.times, at):
                return f"{before[: words[at].start()]}{fragment}{before[words[at + size - 1].end() :]}{mark}"
        return f"{before} {fragment}{mark}"
    places = [at for at, word in enumerate(folded) if at and word in LISTS.prepositions]
    if alike := [at for at in places if folded[at] == first]:
        return f"{before[: words[alike[-1]].start()]}{fragment}{_time_behind(before, words, folded, alike[-1])}{mark}"
    if first in LISTS.prepositions or not places:
        return f"{before} {fragment}{mark}"
    # A bare name replaces what follows the last preposition.
    end = words[places[-1]].end()
    return f"{before[:end]} {fragment}{_time_behind(before, words, folded, places[-1])}{mark}"


def _time_behind(question: str, words: Sequence[re.Match[str]], folded: Sequence[str], at: int) -> str:
    """The time at the end of the question, after the phrase that is replaced, if there is one."""
    for place in range(at + 1, len(words)):
        if match_phrase(folded, LISTS.times, place) == len(words) - place:
            return f" {question[words[place].start() :]}"
    return ""


def _topic(before: str) -> str:
    """What a question is about: the last name in it, else the last thing with an article."""
    words = [word[0] for word in _word(before)]
    folded = [fold(word).text for word in words]
    for at in range(len(words) - 1, 0, -1):
        if words[at][:1].isupper() and folded[at] not in ("i", "i'm"):
            start = at
            while start > 1 and words[start - 1][:1].isupper():
                start -= 1
            return " ".join(words[start : at + 1])
    for at in range(len(words) - 1, -1, -1):
        if folded[at] in LISTS.articles:
            end = at + 1
            while end < len(words) and folded[end] not in LISTS.verbs and folded[end] not in LISTS.prepositions:
                end += 1
            if end > at + 1:
                return " ".join(words[at:end])
    return ""


def _replace_pointer(text: str, topic: str) -> str:
    """The text with the first word that points replaced; empty if there is none."""
    for word in _word(text):
        found = fold(word[0]).text
        if found in LISTS.pronouns:
            named = f"{topic}'s" if found in LISTS.possessives else f"in {topic}" if found == "there" else topic
            return f"{text[: word.start()]}{named}{text[word.end() :]}".strip()
    return ""
