"""Does a question speak of something that only who asks can see or remember?

"What is the footnote about?" and "What is reference 12?" look like definitions, and no one can answer them without the
page. What gives them away is that they take for granted which thing is meant: a definite noun that nothing tells apart
from others of its kind, a part with its number, a pronoun for nothing in the clause, whose it is, when it was said.

Invariant: when in doubt a question points. What stands between quotes is what is asked about and points to nothing, and
a long text says itself what it is about. Time is linear in what is read of the text, and that is bounded.
"""

from __future__ import annotations

import re
from typing import Final

from .followup import read_text
from .words import Words, match_phrase

# Characters that are looked at: what is longer has more words than a question that points.
WINDOW: Final = 1_600
# A question of more words says itself what it is about: the longest of 420 that readers were given has 16.
LONG: Final = 24
# A pronoun among the first words is judged by `reference`, which knows those that stand for nothing: "is it safe to".
OPENING: Final = 3
# Words of a definite phrase: an article, two that say which, the thing.
PHRASE: Final = 4

_tables: Final = {code: Words(code, "pointing") for code in ("en", "es", "de", "fr", "zh", "ja")}
# Languages in which a definite article stands before every noun: only things that are in front of a reader count.
_GENERIC: Final = frozenset(("es", "de", "fr"))
# What stands for a quotation: a name, which says what is meant. Capitals are not looked at: many questions have none.
QUOTED: Final = "xquoted"
_quoted: Final = re.compile(r"[\"“”«»„「『`][^\"“”«»„」』`]{1,200}[\"“”«»」』`]|(?<!\w)['‘][^'’]{1,200}['’](?!\w)")
_A_KIND: Final = frozenset(("a", "an"))
_which: Final = re.compile(r"\d+(?:[.-]\d+)*[a-z]?|[b-h]|[ivx]{1,5}")
_clauses: Final = re.compile(r"[,;:.?!]+(?=\s+\w)")


def find_pointing(text: str) -> str | None:
    """The first words of a question that point to what only who asks can see or remember; None if there are none."""
    rest = _quoted.sub(f" {QUOTED} ", text[:WINDOW])
    read = read_text(rest)
    if read is None or read.code not in _tables or len(read.words) > LONG:
        return None
    table, words = _tables[read.code], read.words
    if read.unspaced:
        return next((one for one in sorted(table.thing | table.pronoun) if one in read.flat), None)
    for at in range(len(words)):
        for found in (
            _recall(words, at, table),
            _part(words, at, table),
            _definite(words, at, table, generic=read.code in _GENERIC),
            _shown(words, at, table),
            _pronoun(words, at, table, rest),
        ):
            if found:
                return " ".join(words[at : at + found])
    return None


def _recall(words: list[str], at: int, table: Words) -> int:
    """When or by whom it was said, and whose it is."""
    if size := match_phrase(words, table.recall, at):
        return size
    return 2 if words[at] in table.mine and not match_phrase(words, table.own_words, at) else 0


def _part(words: list[str], at: int, table: Words) -> int:
    """Reference 12, column b, chapter two."""
    after = words[at + 1] if at + 1 < len(words) else ""
    return 2 if words[at] in table.part and (_which.fullmatch(after) or after in table.number) else 0


def _definite(words: list[str], at: int, table: Words, *, generic: bool) -> int:
    """The footnote, the dotted line, the value at three seconds; not: the speed of light, the golden ratio."""
    if words[at] not in table.article:
        return 0
    end = at + 1
    while end < len(words) and end - at < PHRASE and not _ends_phrase(words[end], table):
        end += 1
    phrase = words[at + 1 : end]
    if not phrase or QUOTED in phrase or _names_work(words, at, phrase, table):
        return 0
    if generic:
        return 2 if phrase[0] in table.thing and words[end : end + 1] != [QUOTED] else 0
    after = words[end] if end < len(words) else ""
    if after in table.telling and end + 1 < len(words):
        # Which one, a word behind it says; a number or a mark of print does not.
        told = words[end + 1]
        return 0 if not _which.fullmatch(told) and told not in table.number and told not in table.look else end - at
    if phrase[-1] in table.unique:
        return 0
    is_term = (
        len(phrase) > 1
        and phrase[0] not in table.look
        and (phrase[-1] not in table.thing or phrase[-1] in table.titled)
    )
    return 0 if is_term else end - at


def _names_work(words: list[str], at: int, phrase: list[str], table: Words) -> bool:
    """Who painted the scream; not: who wrote the letter."""
    return at == 2 and words[1] in table.making and phrase[-1] not in table.thing


def _ends_phrase(word: str, table: Words) -> bool:
    return word in table.telling or word in table.edge or word in table.verb or word in table.place


def _shown(words: list[str], at: int, table: Words) -> int:
    """Which numbers are given; not: who was it named after, what is a young swan called."""
    if not at or at + 1 != len(words):
        return 0
    return int(words[at] in table.shown or (words[at] in table.naming and _A_KIND.isdisjoint(words)))


def _pronoun(words: list[str], at: int, table: Words, text: str) -> int:
    """Why is there a root in it: what is named in the same clause is not what a pronoun stands for."""
    if at < OPENING or words[at] not in table.pronoun or not table.edge.isdisjoint(words[1:at]):
        return 0
    return 0 if _clauses.search(text) else 1
