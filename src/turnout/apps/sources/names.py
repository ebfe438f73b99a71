"""Recognises names that mean a source, those of the home's things and of monitors, unless they are said by accident.

A name of several distinctive words is no accident. A shorter one ("Phone", "Joseph", "Plex") may be an ordinary word or
another person's name: it decides a question only if all other words are ordinary and the question asks what a home or a
monitor can tell: a state ("is Plex up"), a property ("the phone's battery"), an action, or where someone is. "Find my
phone" and "my name is Joseph" ask for nothing of the kind. A word for a kind of thing ("gas") is not a name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

from turnout.core.layer import Layer
from turnout.core.query import Reading
from turnout.core.verdict import Reason, Verdict
from turnout.text.fold import fold

from .home import general, is_request, lists, ordinary

# Words of the longest name that is recognised.
LONGEST_NAME = 6
# Distinctive words from which on a name is not said by accident.
TELLING = 2
_words = re.compile(r"\w+(?:'\w+)*").findall


def spell(text: str) -> list[str]:
    """The words that names are compared by: folded, and without the ending of a genitive."""
    return [word.removesuffix("'s") for word in _words(fold(text).text)]


class Names(Layer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names
        """Sources by name, as `spell` spells it."""

    def __call__(self, reading: Reading) -> Verdict | None:
        words = spell(reading.folded)
        spans = ((at, at + size) for at in range(len(words)) for size in range(1, LONGEST_NAME + 1))
        name_of: dict[str, str] = {}
        for start, end in spans:
            name = " ".join(words[start:end])
            if name in self.names and _decides(words, start, end):
                name_of[self.names[name]] = name
        if not name_of:
            return None
        reasons = tuple(Reason(f"name.{source}", f"{name!r} is known to {source}") for source, name in name_of.items())
        return Verdict(tuple(name_of), 1.0, 1.0, dict.fromkeys(name_of, 1.0), reasons)


def _decides(words: Sequence[str], start: int, end: int) -> bool:
    """Whether the name at a place means the thing."""
    known = ordinary()
    name, others = words[start:end], [*words[:start], *words[end:]]
    telling = sum(word not in known for word in name)
    if telling >= TELLING:
        return True
    if (len(name) == 1 and not telling) or not known.issuperset(others):
        return False
    # People and pets are named without an article: "where is Joseph", but not "where is my phone".
    is_somewhere = words[:start] in (["where"], ["where", "is"]) and name[0] not in known
    return not others or is_somewhere or is_request(words) or not _states().isdisjoint(words)


@cache
def _states() -> frozenset[str]:
    """Words for states and properties; unstemmed, since "connect" is not a state."""
    state = lists()["state"]
    return general().union(state["words"].split()).difference(state["silent"].split())
