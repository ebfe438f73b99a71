"""One normaliser in front of every rule and signal.

Two spellings a reader cannot tell apart fold to the same text: invisible characters are dropped; compatibility forms,
quotes, dashes, kinds of space and case are unified; a Latin word with look-alike letters of other scripts becomes Latin.
Newlines stay, because several patterns mean "on one line"; so do runs of spaces, which patterns read as one. Folding is
linear: the one part of Unicode normalisation that is not
(reordering long runs of combining marks) is capped before it runs.
"""

from __future__ import annotations

import functools
import re
import unicodedata

from msgspec import Struct

# Unicode's stream-safe text format allows 30 combining marks in a row; without a cap NFKC is quadratic in such a run
# (156 KiB of them took 5-10 s).
MAX_MARKS = 30
# Below this many characters even a text of nothing but marks normalises in well under a millisecond.
MARKS_MATTER = 1024
# Longer non-ASCII text is read at its head and tail only: folding it costs about 100 times what ASCII costs.
WINDOW = 65_536


class Folded(Struct, frozen=True, gc=False):
    text: str
    units: int
    """UTF-16 length of the original; invisible characters do not count, a line end counts once."""
    windowed: bool = False


# Controls that are not line ends or tabs, soft hyphen, joiners, bidi marks, fillers, variation selectors, tags.
_invisible = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
# The ASCII part of folding as one pass over bytes: lower case, line ends and tabs unified, controls dropped.
_ASCII_MAP = bytes.maketrans(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZ\t\v\f\r",
    b"abcdefghijklmnopqrstuvwxyz \n\n\n",
)
_ASCII_DROP = bytes((*range(0x09), *range(0x0E, 0x20), 0x7F))
_UNIFY = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u2035\u02bc\u02b9\u00b4", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u2036\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2043", "-"),
        **dict.fromkeys("\x0b\x0c\r\x85\u2028\u2029", "\n"),
        "\u2044": "/",
    }
)
_needs_unifying = re.compile(f"[{''.join(map(chr, _UNIFY))}]").search
_other_space = re.compile(r"[^\S\n ]")

# Letters of other scripts that pass for Latin ones, after case folding: Cyrillic, Greek, Armenian and two Latin
# letters that are not ASCII. The pairs are Unicode's confusables that a reader does not notice in running text.
_LOOKALIKE = str.maketrans(
    "аеорсухіјѕԁһԛԝвмнткαεορυχινκτɡıհոսօց",
    "aeopcyxijsdhqwbmhtkaeopuxivktgihnuog",
)
# A word's digits and combining marks belong to it: `k8\u0455`, or a mark after each letter, would hide it otherwise.
_mixed_word = re.compile(
    r"(?<![\w\u0300-\u036f])(?=[\w\u0300-\u036f]*[a-z])"
    r"(?=[\w\u0300-\u036f]*[\u0131\u0261\u0370-\u03ff\u0400-\u052f\u0530-\u058f])[\w\u0300-\u036f]+"
)


def fold(text: str) -> Folded:
    """The text as rules and signals read it."""
    if text.isascii():
        raw = text.encode()
        if b"\r" in raw:
            raw = raw.translate(None, _ASCII_DROP).replace(b"\r\n", b"\n")
        seen = raw.translate(_ASCII_MAP, _ASCII_DROP)
        return Folded(seen.decode().strip(), len(seen))
    text = _invisible.sub("", text)
    if text.isascii():
        return fold(text)
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    units = len(text.encode("utf-16-le", "surrogatepass")) // 2
    windowed = len(text) > WINDOW
    if windowed:
        text = f"{text[: WINDOW // 2]}\n{text[-WINDOW // 2 :]}"
    if len(text) > MARKS_MATTER:
        text = _long_run_of_marks().sub(r"\1", text)
    # Quotes first: NFKC would turn an acute accent used as an apostrophe into a space and a combining mark. Again
    # afterwards: some compatibility forms are quotes or dashes inside.
    text = _unify(_nfkc(_unify(text)))
    # Normalised once more: a mark after a look-alike composes with the Latin letter that took its place.
    text = _nfkc(_mixed_word.sub(lambda word: word[0].translate(_LOOKALIKE), _nfkc(text.casefold())))
    return Folded(_other_space.sub(" ", text).strip(), units, windowed)


def _nfkc(text: str) -> str:
    return text if unicodedata.is_normalized("NFKC", text) else unicodedata.normalize("NFKC", text)


def _unify(text: str) -> str:
    return text.translate(_UNIFY) if _needs_unifying(text) else text


@functools.cache
def _long_run_of_marks() -> re.Pattern[str]:
    """Matches more combining marks in a row than anybody writes. Built when first needed: it asks Unicode's tables."""
    # Planes above the first hold marks up to 0x1e94a; the search ends at the plane's emoji.
    marks = [chr(code) for code in (*range(0x300, 0xD800), *range(0xFB00, 0x1F000)) if unicodedata.combining(chr(code))]
    one = f"[{''.join(marks)}]"
    return re.compile(f"({one}{{{MAX_MARKS}}}){one}+")


def fold_javascript(text: str) -> Folded:
    """Lower case and nothing else, with lengths as JavaScript counts them: for profiles that reproduce such a scorer."""
    units = len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
    return Folded(text.lower(), units)
