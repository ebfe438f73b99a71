"""Names that mean a source: of what is in the home, of what is watched. And when one is said by accident.

A name of several telling words is no accident. A shorter one ("Phone", "Joseph", "Plex") is also an ordinary word or
somebody else's name: it decides a question that says nothing but ordinary words besides and asks what a home or a
monitor can say of it: a state ("is Plex up"), a property ("the phone's battery"), a request to act, or where somebody
is. "Find my phone" and "my name is Joseph" ask for no such thing. A word for a kind of thing ("gas") names nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

from turnout.core.layer import Layer
from turnout.core.query import Reading
from turnout.core.verdict import Reason, Verdict
from turnout.text.fold import fold

from .home import is_request, kinds, lists, ordinary

# Words of the longest name that is looked for.
LONGEST_NAME = 6
# Words of a name, not counting those for kinds of things, that nobody says together by accident.
TELLING = 2
_words = re.compile(r"\w+(?:'\w+)*").findall


def spell(text: str) -> list[str]:
    """A text as names are compared: its folded words, without a genitive's ending."""
    return [word.removesuffix("'s") for word in _words(fold(text).text)]


class Names(Layer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names
        """Each name, spelled, with its source."""

    def __call__(self, reading: Reading) -> Verdict | None:
        words = spell(reading.folded)
        spans = ((at, at + size) for at in range(len(words)) for size in range(1, LONGEST_NAME + 1))
        found: dict[str, str] = {}
        for start, end in spans:
            name = " ".join(words[start:end])
            if name in self.names and _decides(words, start, end):
                found[self.names[name]] = name
        if not found:
            return None
        reasons = tuple(Reason(f"name.{source}", f"{name!r} is known to {source}") for source, name in found.items())
        return Verdict(tuple(found), 1.0, 1.0, dict.fromkeys(found, 1.0), reasons)


def _decides(words: Sequence[str], start: int, end: int) -> bool:
    """Whether the name that stands there means the thing."""
    known = ordinary()
    name, others = words[start:end], [*words[:start], *words[end:]]
    telling = sum(word not in known for word in name)
    if telling >= TELLING:
        return True
    if len(name) == 1 and not telling:
        return False
    if not all(word in known for word in others):
        return False
    # People and pets are spoken of without an article: "where is Joseph", but not "where is my phone".
    is_somewhere = words[:start] in (["where"], ["where", "is"]) and name[0] not in known
    return not others or is_somewhere or is_request(words) or not _states().isdisjoint(words)


@cache
def _states() -> frozenset[str]:
    """What can be the case with a thing, and what can be measured of it; as said, for "connect" is no state."""
    found = {word for pair in lists()["binary"].values() for state in pair for word in state.split()}
    found |= {word for table in ("property", "thing") for kind in kinds(table) for word in kind.words}
    return frozenset((*found, *lists()["state"]["words"].split())) - frozenset(lists()["state"]["silent"].split())
