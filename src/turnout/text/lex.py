"""Splits a question into words, and finds out which are quoted and where sentences begin.

Invariant: the words are stretches of the text, in order, and contain no invisible characters. Time is linear in the
text.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Final, NamedTuple

from .fold import fold, without_invisible
from .sentence import split as split_sentences

# `\s` without U+001C to U+001F, which `fold` drops as invisible.
_GAP: Final = r" \t\n\v\f\r\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
find_words: Final = re.compile(rf"[^{_GAP}]+").finditer
# Invisible characters may be anywhere, even between a digit and its comma.
_HIDDEN: Final = r"(?:[^\w\s!-~]|[\x1c-\x1f])*"
# A comma between digits is part of the number.
_NUMBER: Final = rf"[^{_GAP},，]*[0-9]{_HIDDEN},(?={_HIDDEN}[0-9])"
_tokens: Final = re.compile(rf"[,，]|(?:{_NUMBER})*[^{_GAP},，]+").finditer
_may_end: Final = re.compile(r"[.?!…。？！]['\")\]”’]*\s|\n").search
asking: Final = re.compile(r"[?？؟](?=['\")\]”’»*_]*(?:\s|$|[^\x00-\x7f]))").findall
EDGES: Final = "\"'`()[]{}<>“”‘’‚„«»¿¡.?!…:;*_–—-/"
_QUOTES: Final = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "`": "`"}
# All characters that `str.strip` removes.
_SPACES: Final = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
# Characters that may be between two parts and belong to neither.
MARKS: Final = _SPACES + ",，;:–—-"


class Lexeme(NamedTuple):
    seen: str  # as written, without invisible characters
    word: str  # folded, without punctuation around it; "," for a comma, empty for other punctuation
    start: int
    end: int
    opens: bool  # a sentence begins here


def read_words(text: str) -> tuple[list[Lexeme], set[int]]:
    """The words and commas, and the indexes of those that are quoted."""
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
            # A quotation counts only once it is closed, because an opening mark may be an apostrophe, and only if its
            # marks adjoin words, because a part might lose a detached mark.
            if since < 0 and word and seen[:1] in _QUOTES:
                since, closing = at, _QUOTES[seen[0]]
            if since >= 0 and word and seen.rstrip(".?!…:;").endswith(closing):
                quoted.update(range(since, at + 1))
                since = -1
        tokens.append(Lexeme(seen, word, found.start(), found.end(), found.start() in starts))
    return tokens, quoted


def unquoted(text: str) -> str:
    """The text without quotation marks around the whole of it."""
    closing = _QUOTES.get(text[:1])
    inner = text[1:-1]
    quoted = closing and text.endswith(closing) and text[0] not in inner and closing not in inner
    return inner.strip() if quoted else text


# A word with more visible characters is in no list.
LONGEST_WORD = 256


def bare(raw: str) -> str:
    """A word folded, without the punctuation around it; a word too long for any list is not folded."""
    if len(raw) > LONGEST_WORD and not raw.isascii():  # folding ASCII takes no time
        raw = without_invisible(raw).strip(EDGES)
        if len(raw) > LONGEST_WORD:
            return raw
    return fold(raw).text.strip(EDGES)


def sentence_starts(text: str) -> set[int]:
    """Where sentences end: the starts of all but the first, and the end of the text; empty if there is only one."""
    return set(accumulate(map(len, split_sentences(text)))) if _may_end(text) else set()
