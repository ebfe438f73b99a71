"""One normaliser in front of every rule and signal.

Two spellings a reader cannot tell apart fold to the same text: invisible characters are dropped; compatibility forms,
quotes, dashes, kinds of space and case are unified; a Latin word with look-alike letters of other scripts becomes
Latin. Newlines stay, because several patterns mean "on one line"; so do runs of spaces, which patterns read as one.

Three speeds, one result. ASCII is one pass over bytes. In other text most characters are their own folded spelling;
when only a few kinds are not (a curly quote, a capital, an emoji's selector) each of those is replaced, which is
exact as long as none depends on its neighbours. What does takes the thorough way, in a window: Unicode normalisation
is linear once long runs of combining marks are capped, but slow.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import Any

import re2
from msgspec import Struct

# Unicode's stream-safe text format allows 30 combining marks in a row; without a cap NFKC is quadratic in such a run
# (156 KiB of them took 5-10 s).
MAX_MARKS = 30
# Above this many different characters to replace, going through the text once for each is slower than the thorough way.
FEW = 32
# Text with more different characters than this is no prose in any script; the thorough way bounds what it costs.
MANY = 4096
# A character that unfolds into more than this could make a long text many times longer; the thorough way has a window.
UNFOLDED = 4
# What the thorough way reads of a long text, and what of its result: some characters unfold into eighteen.
WINDOW = 65_536

ASCII = bytes(range(0x80))
CODEC = ("utf-8", "surrogatepass")


class FoldedText(Struct, frozen=True, gc=False):
    text: str
    units: int
    """UTF-16 length of the original, invisible characters not counted."""
    windowed: bool = False
    """Only the beginning and the end were read."""


# The ASCII part of folding as one pass over bytes, UTF-8 included: lower case, line ends and tabs unified, no controls.
ASCII_FOLDING = (
    bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ\t\v\f\r", b"abcdefghijklmnopqrstuvwxyz \n\n\n"),
    bytes((*range(0x09), *range(0x0E, 0x20), 0x7F)),
)
# UTF-8 begins a character beyond the 16-bit plane, two units of UTF-16, with one of these five bytes.
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

# Letters of other scripts that pass for Latin ones, after case folding: Cyrillic, Greek, Armenian and two Latin
# letters that are not ASCII. The pairs are Unicode's confusables that a reader does not notice in running text.
_FOREIGN = "аеорсухіјѕԁһԛԝвмнткαεορυχινκτɡıհոսօց"
_LATIN = "aeopcyxijsdhqwbmhtkaeopuxivktgihnuog"
_LOOKALIKE = str.maketrans(_FOREIGN, _LATIN)
_WORD = r"[\w\u0300-\u036f]"
_BESIDE = r"[\p{Latin}0-9_\x{300}-\x{36f}]"
# A word's digits and combining marks belong to it: `k8\u0455`, or a mark after each letter, would hide it otherwise.
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
        # Halves of a pair are joined, lone ones replaced: no pattern asks for them, and everything after is UTF-8.
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
    """The different characters of a UTF-8 text that are not ASCII."""
    others = encoded.translate(None, ASCII).decode(*CODEC)
    if len(others) <= WINDOW:
        return set(others)
    # Piece by piece, so that others get their turn: thousands of different ones take a tenth of a microsecond each.
    found: set[str] = set()
    for at in range(0, len(others), WINDOW):
        found.update(others[at : at + WINDOW])
    return found


def _changes(characters: set[str]) -> list[tuple[str, str]] | None:
    """The characters that fold to something else, with that; None if they are too many or one depends on others."""
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
    """How one character folds whatever stands beside it; None if that matters, or if it unfolds into many."""
    if _invisible.match(character):
        return ""
    spelling = _normalise(character)
    if len(spelling) > UNFOLDED or any(map(_is_joining, (character, *spelling))):
        return None
    return spelling


def _is_joining(character: str) -> bool:
    """Whether normalising may join a character to the one before: marks, and the vowels and finals of Hangul."""
    category = unicodedata.category(character)
    return category.startswith("M") or "\u1160" <= character <= "\u11ff" or "\ud7b0" <= character <= "\ud7fb"


def _fold_thoroughly(text: str, others: set[str]) -> FoldedText:
    # Piece by piece: a pattern with so many ranges is slow, and in one go no other request would get a turn.
    text = "".join(_invisible.sub("", text[at : at + WINDOW]) for at in range(0, len(text), WINDOW))
    units = len(text.encode("utf-16-le", "surrogatepass")) // 2
    # The longer a character's folded form, the less of the text is read: what is worked on stays as long.
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
    """The text, words that mix Latin letters with look-alikes made Latin."""
    text = encoded.decode(*CODEC)
    if _matches(rf"{_BESIDE}[{_FOREIGN}]|[{_FOREIGN}]{_BESIDE}", encoded):
        # Normalised once more: a mark after a look-alike composes with the Latin letter that took its place.
        text = _nfkc(_mixed_word.sub(lambda word: word[0].translate(_LOOKALIKE), text))
    return text


def _matches(pattern: str, encoded: bytes) -> bool:
    return bool(_set(pattern).Match(encoded))


@functools.cache
def _set(pattern: str) -> Any:
    """RE2 says whether a pattern occurs twenty times faster than `re`; a set of one does so without a match object."""
    found = re2.Set.SearchSet()
    found.Add(pattern)
    found.Compile()
    return found


def _normalise(text: str) -> str:
    # Quotes first: NFKC would turn an acute accent used as an apostrophe into a space and a combining mark. Again
    # afterwards: some compatibility forms are quotes or dashes inside.
    text = _nfkc(_unify(_nfkc(_unify(text))).casefold())
    return _other_space.sub(" ", text)


def _nfkc(text: str) -> str:
    return text if unicodedata.is_normalized("NFKC", text) else unicodedata.normalize("NFKC", text)


def _unify(text: str) -> str:
    return text.translate(_UNIFY) if _needs_unifying(text) else text


@functools.cache
def _long_run_of_marks() -> re.Pattern[str]:
    """Matches more combining marks in a row than are ever written. Built when first needed: that takes a while."""
    # The marks of the higher planes end before the emoji.
    marks = [chr(code) for code in (*range(0x300, 0xD800), *range(0xFB00, 0x1F000)) if unicodedata.combining(chr(code))]
    one = f"[{''.join(marks)}]"
    return re.compile(f"({one}{{{MAX_MARKS}}}){one}+")


def fold_javascript(text: str) -> FoldedText:
    """Lower case and nothing else, lengths as JavaScript counts them: for profiles that reproduce such a scorer."""
    units = len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
    return FoldedText(text.lower(), units)
