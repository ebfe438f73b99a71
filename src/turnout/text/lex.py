"""A question as its words: how each is written and where it stands, which are quoted, where sentences begin.

Invariant: words come in the order of the text and stand for stretches of it; what cannot be seen is in none of them.
Time is linear in the text.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from .fold import fold, without_invisible
from .sentence import split as split_sentences

# `\s` without the four controls that are invisible, which `fold` drops.
_GAP: Final = r" \t\n\v\f\r\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
find_words: Final = re.compile(rf"[^{_GAP}]+").finditer
# What cannot be seen may stand anywhere, between a digit and its comma as well.
_HIDDEN: Final = r"(?:[^\w\s!-~]|[\x1c-\x1f])*"
# A comma between digits belongs to the number.
_NUMBER: Final = rf"[^{_GAP},，]*[0-9]{_HIDDEN},(?={_HIDDEN}[0-9])"
_tokens: Final = re.compile(rf"[,，]|(?:{_NUMBER})*[^{_GAP},，]+").finditer
_may_end: Final = re.compile(r"[.?!…。？！]['\")\]”’]*\s|\n").search
asking: Final = re.compile(r"[?？؟](?=['\")\]”’»*_]*(?:\s|$|[^\x00-\x7f]))").findall
EDGES: Final = "\"'`()[]{}<>“”‘’‚„«»¿¡.?!…:;*_–—-/"
_QUOTES: Final = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "`": "`"}
# Every kind of white space that `str.strip` knows.
_SPACES: Final = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
# What may lie between two pieces and belongs to neither.
MARKS: Final = _SPACES + ",，;:–—-"


class Lexeme(NamedTuple):
    seen: str  # as written, without what cannot be seen
    word: str  # folded and bare; "," for a comma, nothing for mere punctuation
    start: int
    end: int
    opens: bool  # a sentence begins with it


def read_words(text: str) -> tuple[list[Lexeme], set[int]]:
    """The words and commas, and which of them are quoted."""
    starts = sentence_starts(text)
    tokens: list[Lexeme] = []
    quoted: set[int] = set()
    since, closing = -1, ""
    for found in _tokens(text):
        at = len(tokens)
        seen = found[0]
        if seen.isascii() and seen.isalnum():
            word = seen.lower()
        else:
            word = "," if seen in ",，" else bare(seen)
            if not seen.isprintable():
                seen = "".join(filter(str.isprintable, seen))
            if not seen and not word:
                continue
            # A quotation counts once it is closed, for an apostrophe before a word may be anything, and only if its
            # marks cling to words: a part might lose a mark that stands alone.
            if since < 0 and word and seen[:1] in _QUOTES:
                since, closing = at, _QUOTES[seen[0]]
            if since >= 0 and word and seen.rstrip(".?!…:;").endswith(closing):
                quoted.update(range(since, at + 1))
                since = -1
        tokens.append(Lexeme(seen, word, found.start(), found.end(), found.start() in starts))
    return tokens, quoted


def unquoted(text: str) -> str:
    """A text without the marks around the whole of it: they quote nothing."""
    closing = _QUOTES.get(text[:1])
    inner = text[1:-1]
    return (
        inner.strip() if closing and text.endswith(closing) and text[0] not in inner and closing not in inner else text
    )


# What is longer to the eye is no word of a list, and need not be folded.
LONGEST_WORD = 256


def bare(raw: str) -> str:
    """A word folded, without the punctuation around it; one that is too long for any list is not folded."""
    if len(raw) > LONGEST_WORD and not raw.isascii():  # folding ASCII takes no time
        raw = without_invisible(raw).strip(EDGES)
        if len(raw) > LONGEST_WORD:
            return raw
    return fold(raw).text.strip(EDGES)


def sentence_starts(text: str) -> set[int]:
    """Where sentences begin, but for the first; the end of the text is one of them."""
    starts: set[int] = set()
    if _may_end(text):
        end = 0
        for sentence in split_sentences(text):
            end += len(sentence)
            starts.add(end)
    return starts
