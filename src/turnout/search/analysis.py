"""Splits a text into words, and stems each in the language of the text.

Documents and questions both go through these functions, whichever the database, so that their stems match. A script
without spaces is read as pairs of neighbouring characters, which find a word anywhere in a run of them. `version()`
covers everything a stem depends on: an index written by another version is rebuilt when it is opened.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import cache, lru_cache
from importlib import import_module
from importlib.metadata import version as version_of
from itertools import pairwise
from typing import Any

from turnout.text.fold import fold
from turnout.text.match import UNSPACED

# Anything longer is encoded data rather than a word; databases limit a term to 2 kB.
LONGEST_WORD = 64
# Letters in the n-grams that words are compared by. On XQuAD's English part 3, 4 and 5 differ by a tenth of a point.
RUN = 4

# Snowball's name for a language.
STEMMERS = {
    "ar": "arabic",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "hi": "hindi",
    "hu": "hungarian",
    "it": "italian",
    "nl": "dutch",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "tr": "turkish",
}

# Combining vowel signs and accents are part of a word.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0dff"
_tokens = re.compile(rf"[{UNSPACED}]+|(?:[^\W_{UNSPACED}]|[{_MARKS}])+").findall
# The same for folded ASCII, in a quarter of the time.
_ascii_tokens = re.compile("[a-z0-9]+").findall
_is_unspaced = re.compile(f"[{UNSPACED}]").match
# A stemmer keeps its current word as state, so only one thread may use it at a time.
_stemming = threading.Lock()


@cache
def version() -> str:
    """Identifies how texts are read. Raise the number when that changes."""
    return f"1 snowball-{version_of('snowballstemmer')}"


def read_words(text: str) -> list[str]:
    """The words of a text in order, folded; of a script without spaces, pairs of characters."""
    folded = fold(text).text
    if folded.isascii():
        return [token[:LONGEST_WORD] for token in _ascii_tokens(folded)]
    words: list[str] = []
    for token in _tokens(folded):
        if _is_unspaced(token) and len(token) > 1:
            words += map("".join, pairwise(token))
        else:
            words.append(token[:LONGEST_WORD])
    return words


@lru_cache(maxsize=65_536)
def stem(word: str, lang: str) -> str:
    """One form for a word and its inflections, without accents, which many people leave out when they ask."""
    name = STEMMERS.get(lang)
    if name is not None and not _is_unspaced(word):
        with _stemming:
            word = _stemmer(name).stemWord(word)
    return plain(word)


@lru_cache(maxsize=65_536)
def plain(word: str) -> str:
    """The word without accents."""
    if word.isascii():
        return word
    letters = unicodedata.normalize("NFD", word)
    return unicodedata.normalize("NFC", "".join(one for one in letters if not unicodedata.combining(one))) or word


@lru_cache(maxsize=65_536)
def runs(word: str) -> frozenset[str]:
    """The n-grams of a plain word with a space at each end; a short word is a single one. None for a script without
    spaces, whose pairs of characters are not words."""
    if _is_unspaced(word):
        return frozenset()
    edged = f" {word} "
    return frozenset(edged[at : at + RUN] for at in range(max(len(edged) - RUN, 0) + 1))


@cache
def _stemmer(name: str) -> Any:
    # Imported by module: the package's own entry point uses another implementation (and version) if one is installed.
    module = import_module(f"snowballstemmer.{name}_stemmer")
    return getattr(module, f"{name.capitalize()}Stemmer")()
