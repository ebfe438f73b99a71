"""Does a question refer to something that only its author can see or remember?

"What is the footnote about?" and "What is reference 12?" look like definitions, but cannot be answered without the
page. They take for granted which thing is meant: with a definite noun that nothing tells apart from others of its kind,
a numbered part, a pronoun without antecedent in its clause, an owner, a time.

Invariant: when in doubt, a question refers. Quoted text does not refer to anything, and a long text explains itself.
Time is linear in the text, which is read up to a limit.
"""

from __future__ import annotations

import re
from typing import Final

from .followup import read_text
from .words import Words, match_phrase

# Characters read of a text.
WINDOW: Final = 1_600
# A question with more words explains itself; the longest of 420 examples has 16.
LONG: Final = 24
# `reference` judges pronouns among the first words, because it recognises expletives: "is it safe to".
OPENING: Final = 3
# Most words of a definite phrase: an article, two modifiers, a noun.
PHRASE: Final = 4

_tables: Final = {code: Words(code, "pointing") for code in ("en", "es", "de", "fr", "zh", "ja")}
# Languages that use a definite article with most nouns, where only things in front of a reader count.
_GENERIC: Final = frozenset(("es", "de", "fr"))
# Replaces a quotation, so that it reads as a name. Capitals are ignored, because many questions have none.
QUOTED: Final = "xquoted"
_quoted: Final = re.compile(r"[\"“”«»„「『`][^\"“”«»„」』`]{1,200}[\"“”«»」』`]|(?<!\w)['‘][^'’]{1,200}['’](?!\w)")
_A_KIND: Final = frozenset(("a", "an"))
_which: Final = re.compile(r"\d+(?:[.-]\d+)*[a-z]?|[b-h]|[ivx]{1,5}")
_clauses: Final = re.compile(r"[,;:.?!]+(?=\s+\w)")


def find_pointing(text: str) -> str | None:
    """The first words that refer to something that only the author can see or remember; None if there are none."""
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
    """A time, a speaker or an owner: "you said", "my notes"."""
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
        # The next word says which one is meant, unless it is a number or a word for how a thing looks.
        word = words[end + 1]
        return 0 if not _which.fullmatch(word) and word not in table.number and word not in table.look else end - at
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
    """A participle at the end: "which numbers are given"; not "who was it named after", nor "what is a young swan
    called"."""
    if not at or at + 1 != len(words):
        return 0
    return int(words[at] in table.shown or (words[at] in table.naming and _A_KIND.isdisjoint(words)))


def _pronoun(words: list[str], at: int, table: Words, text: str) -> int:
    """A pronoun without antecedent in its clause: "why is there a root in it"."""
    if at < OPENING or words[at] not in table.pronoun or not table.edge.isdisjoint(words[1:at]):
        return 0
    return 0 if _clauses.search(text) else 1
