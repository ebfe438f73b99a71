"""A text as the index reads it: words, and the stem of each in the language of the text.

Documents and questions go through these functions and no others, in every database, so that a stem that was written is
the stem that is looked for. A script without spaces is read as pairs of neighbouring characters, which find a word
wherever it stands. `version()` names all that a stem depends on: an index that was written by another is read anew.
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

# Longer ones are no words but encoded data; a database's own limit for a term is 2 kB.
LONGEST_WORD = 64
# Letters in the runs that two words are compared by. On XQuAD's English part 3, 4 and 5 differ by a tenth of a point.
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

# Vowel signs and accents that are written apart belong to the word they stand in.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0dff"
_tokens = re.compile(rf"[{UNSPACED}]+|(?:[^\W_{UNSPACED}]|[{_MARKS}])+").findall
# The same for ASCII that is folded, in a quarter of the time.
_ascii_tokens = re.compile("[a-z0-9]+").findall
_is_unspaced = re.compile(f"[{UNSPACED}]").match
# A stemmer keeps the word it works on: one thread at a time.
_stemming = threading.Lock()


@cache
def version() -> str:
    """Raise the number when a text is read otherwise than before."""
    return f"1 snowball-{version_of('snowballstemmer')}"


def read_words(text: str) -> list[str]:
    """The words of a text in order, folded; of a script without spaces, pairs of characters."""
    folded = fold(text).text
    if folded.isascii():
        return [token[:LONGEST_WORD] for token in _ascii_tokens(folded)]
    found: list[str] = []
    for token in _tokens(folded):
        if _is_unspaced(token):
            found.extend(a + b for a, b in pairwise(token)) if len(token) > 1 else found.append(token)
        else:
            found.append(token[:LONGEST_WORD])
    return found


@lru_cache(maxsize=65_536)
def stem(word: str, lang: str) -> str:
    """What stands for a word and its inflections, without accents: many leave those out when they ask."""
    name = STEMMERS.get(lang)
    if name is not None and not _is_unspaced(word):
        with _stemming:
            word = _stemmer(name).stemWord(word)
    return plain(word)


@lru_cache(maxsize=65_536)
def plain(word: str) -> str:
    """A word without accents."""
    if word.isascii():
        return word
    letters = unicodedata.normalize("NFD", word)
    return unicodedata.normalize("NFC", "".join(one for one in letters if not unicodedata.combining(one))) or word


@lru_cache(maxsize=65_536)
def runs(word: str) -> frozenset[str]:
    """The runs of letters in a plain word and the edges around it; a short word is one itself. None in a script without
    spaces, whose pairs are no words."""
    if _is_unspaced(word):
        return frozenset()
    edged = f" {word} "
    return frozenset(edged[at : at + RUN] for at in range(max(len(edged) - RUN, 0) + 1))


@cache
def _stemmer(name: str) -> Any:
    # By its module: the package's own entry would take another implementation, of another version, where one is
    # installed.
    module = import_module(f"snowballstemmer.{name}_stemmer")
    return getattr(module, f"{name.capitalize()}Stemmer")()
