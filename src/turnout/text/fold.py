"""The normaliser used before every rule and signal.

Spellings that a reader cannot tell apart fold to the same text: invisible characters are dropped; compatibility forms,
quotes, dashes, spaces and case are unified; in a Latin word, look-alike letters of other scripts become Latin. Newlines
are kept, because some patterns match within a line; so are runs of spaces, which patterns treat as one.

There are three paths with the same result. ASCII takes one pass over bytes. Other text usually has only a few kinds of
characters that change (a curly quote, a capital, an emoji's selector); each of those is replaced, which is exact if
none depends on its neighbours. Everything else takes the thorough path, in a window: Unicode normalisation is linear
once long runs of combining marks are capped, but slow.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import Any

import re2
from msgspec import Struct

# Unicode's stream-safe text format allows 30 combining marks in a row; without a cap, NFKC is quadratic in such a run
# (156 KiB of them took 5-10 s).
MAX_MARKS = 30
# With more kinds of characters to replace than this, one pass for each is slower than the thorough path.
FEW = 32
# Text with more different characters than this is not prose in any script; the thorough path bounds its cost.
MANY = 4096
# A character that expands into more than this could make a long text many times longer; the thorough path has a window.
UNFOLDED = 4
# Characters of a long text that the thorough path reads; less if some expand into more than `UNFOLDED`.
WINDOW = 65_536

ASCII = bytes(range(0x80))
CODEC = ("utf-8", "surrogatepass")


class FoldedText(Struct, frozen=True, gc=False):
    text: str
    units: int
    """UTF-16 length of the original, without invisible characters."""
    windowed: bool = False
    """Only the beginning and the end were read."""


# The ASCII part of folding, as one pass over UTF-8 bytes: lower case, line ends and tabs unified, controls dropped.
ASCII_FOLDING = (
    bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ\t\v\f\r", b"abcdefghijklmnopqrstuvwxyz \n\n\n"),
    bytes((*range(0x09), *range(0x0E, 0x20), 0x7F)),
)
# A character beyond the 16-bit plane, two units of UTF-16, begins with one of these five bytes in UTF-8.
_ASTRAL_LEAD = b"\xf0"
_ASTRAL = bytes.maketrans(b"\xf1\xf2\xf3\xf4", _ASTRAL_LEAD * 4)

# Controls, soft hyphen, joiners, bidi marks, fillers, variation selectors, interlinear and musical controls, tags.
_invisible = re.compile(
    "[\x80-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U00013430-\U0001345f\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
_UNIFY = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u2035\u02bc\u02b9\u00b4", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u2036\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2043", "-"),
        **dict.fromkeys("\x85\u2028\u2029", "\n"),
        "\u2044": "/",
    }
)
_needs_unifying = re.compile(f"[{''.join(map(chr, _UNIFY))}]").search
_other_space = re.compile(r"[^\S\n ]")

# Letters that look like ASCII letters, after case folding: Cyrillic, Greek, Armenian and two Latin ones. The pairs are
# those of Unicode's confusables that a reader does not notice in running text.
_FOREIGN = "аеорсухіјѕԁһԛԝвмнткαεορυχινκτɡıհոսօց"
_LATIN = "aeopcyxijsdhqwbmhtkaeopuxivktgihnuog"
_LOOKALIKE = str.maketrans(_FOREIGN, _LATIN)
_WORD = r"[\w\u0300-\u036f]"
_BESIDE = r"[\p{Latin}0-9_\x{300}-\x{36f}]"
# Digits and combining marks are part of a word; otherwise `k8\u0455`, or a mark after each letter, would hide it.
_mixed_word = re.compile(rf"(?<!{_WORD})(?={_WORD}*[a-z])(?={_WORD}*[{_FOREIGN}]){_WORD}+")


def fold(text: str) -> FoldedText:
    """The text as rules and signals read it."""
    if text.isascii():
        seen = text.encode().translate(*ASCII_FOLDING)
        return FoldedText(seen.decode().strip(), len(seen))
    raw = text.encode(*CODEC)
    seen = raw.translate(*ASCII_FOLDING)
    others = other_characters(seen)
    if any("\ud800" <= character <= "\udfff" for character in others):
        # Join surrogate pairs and replace lone surrogates: the code below needs valid UTF-8.
        return fold(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))
    changes = _changes(others)
    if changes is None:
        return _fold_thoroughly(seen.decode(*CODEC), others)
    units = len(text) - (len(raw) - len(seen)) + seen.translate(_ASTRAL).count(_ASTRAL_LEAD)
    for character, spelling in changes:
        encoded = character.encode()
        if not spelling:
            units -= seen.count(encoded) * (2 if character > "\uffff" else 1)
        seen = seen.replace(encoded, spelling.encode())
    return FoldedText(_to_latin(seen).strip(), units)


def without_invisible(text: str) -> str:
    """The text without its invisible characters."""
    return _invisible.sub("", text)


def other_characters(encoded: bytes) -> set[str]:
    """The set of non-ASCII characters of a UTF-8 text."""
    others = encoded.translate(None, ASCII).decode(*CODEC)
    found = set(others[:WINDOW])
    # Piece by piece, so that no single call holds the interpreter for long.
    for at in range(WINDOW, len(others), WINDOW):
        found.update(others[at : at + WINDOW])
    return found


def _changes(characters: set[str]) -> list[tuple[str, str]] | None:
    """The characters that change, each with its folded form; None if there are too many or one depends on others."""
    if len(characters) > MANY:
        return None
    changes: list[tuple[str, str]] = []
    for character in characters:
        spelling = _spell(character)
        if spelling is None or len(changes) > FEW:
            return None
        if spelling != character:
            changes.append((character, spelling))
    return changes


@functools.lru_cache(maxsize=16_384)
def _spell(character: str) -> str | None:
    """A character's folded form; None if it depends on its neighbours, or expands too much."""
    if _invisible.match(character):
        return ""
    spelling = _normalise(character)
    if len(spelling) > UNFOLDED or any(map(_is_joining, (character, *spelling))):
        return None
    return spelling


def _is_joining(character: str) -> bool:
    """Whether normalisation may join a character to the one before it: marks, and the vowels and finals of Hangul."""
    category = unicodedata.category(character)
    return category.startswith("M") or "\u1160" <= character <= "\u11ff" or "\ud7b0" <= character <= "\ud7fb"


def _fold_thoroughly(text: str, others: set[str]) -> FoldedText:
    # Piece by piece, because the pattern is slow and one call would block all other requests.
    text = "".join(_invisible.sub("", text[at : at + WINDOW]) for at in range(0, len(text), WINDOW))
    units = utf16_units(text)
    # The more a character can expand, the less of the text is read, so that the result stays bounded.
    longest = 18 if len(others) > MANY else max((len(_normalise(character)) for character in others), default=1)
    half = WINDOW // 2 * UNFOLDED // max(longest, UNFOLDED)
    windowed = len(text) > 2 * half
    if windowed:
        text = f"{text[:half]}\n{text[-half:]}"
    if _matches(rf"\pM{{{MAX_MARKS + 1}}}", text.encode(*CODEC)):
        text = _long_run_of_marks().sub(r"\1", text)
    text = _normalise(text)
    return FoldedText(_to_latin(text.encode(*CODEC)).strip(), units, windowed)


def _to_latin(encoded: bytes) -> str:
    """The text with look-alike letters replaced in words that also have Latin letters."""
    text = encoded.decode(*CODEC)
    if _matches(rf"{_BESIDE}[{_FOREIGN}]|[{_FOREIGN}]{_BESIDE}", encoded):
        # Normalised again: a mark after a look-alike composes with the Latin letter that replaces it.
        text = _nfkc(_mixed_word.sub(lambda word: word[0].translate(_LOOKALIKE), text))
    return text


def _matches(pattern: str, encoded: bytes) -> bool:
    return bool(_set(pattern).Match(encoded))


@functools.cache
def _set(pattern: str) -> Any:
    """A set of one RE2 pattern: twenty times faster than `re`, and it makes no match object."""
    matcher = re2.Set.SearchSet()
    matcher.Add(pattern)
    matcher.Compile()
    return matcher


def _normalise(text: str) -> str:
    # Quotes first, because NFKC would turn an acute accent used as an apostrophe into a space and a combining mark; and
    # again, because some compatibility forms contain quotes or dashes.
    text = _nfkc(_unify(_nfkc(_unify(text))).casefold())
    return _other_space.sub(" ", text)


def _nfkc(text: str) -> str:
    return text if unicodedata.is_normalized("NFKC", text) else unicodedata.normalize("NFKC", text)


def _unify(text: str) -> str:
    return text.translate(_UNIFY) if _needs_unifying(text) else text


@functools.cache
def _long_run_of_marks() -> re.Pattern[str]:
    """Matches more than `MAX_MARKS` combining marks in a row. Built on first use, because that takes a while."""
    # The marks of the higher planes come before the emoji.
    marks = [chr(code) for code in (*range(0x300, 0xD800), *range(0xFB00, 0x1F000)) if unicodedata.combining(chr(code))]
    one = f"[{''.join(marks)}]"
    return re.compile(f"({one}{{{MAX_MARKS}}}){one}+")


def fold_javascript(text: str) -> FoldedText:
    """Lower case only, with lengths as in JavaScript: for profiles that reproduce a JavaScript scorer."""
    return FoldedText(text.lower(), len(text) if text.isascii() else utf16_units(text))


def utf16_units(text: str) -> int:
    """The length of a text as JavaScript counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
