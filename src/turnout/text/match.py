"""Finds many phrases and patterns in one pass.

Every layer of a profile adds its patterns to one `Lexicon`, and each text is scanned once, by one RE2 set, in time
linear in the text. RE2 knows word boundaries for ASCII only, so text with other letters is matched in a *wrapped* view,
in which each of these letters is written `ZéZ`: a capital is a word character, so ASCII boundaries work, and folded
text has no capitals of its own. Letters of scripts written without spaces are not wrapped, so phrases are found beside
them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import re2
from msgspec import Struct

from turnout.core.query import Reading

from .fold import CODEC, fold, other_characters

# Letters next to which no word boundary is required: Thai to Khmer, Hangul, kana, Han and their extensions. Korean has
# spaces, but attaches particles to foreign words.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035"
    "\u3038-\u303c\u3040-\u31ff\u3400-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc"
    "\U0001aff0-\U0001b16f\U00020000-\U0003ffff"
)
_wrapped = re.compile(rf"[^\W\x00-\x7f{UNSPACED}]")
WRAPPER = "Z"
# With up to this many different letters, one `replace` for each is faster than `translate`.
RARE = 16
# RE2's default budget, 8 MiB, covers the compiled program and the DFA states; a scan that exceeds it fails.
MEMORY_BYTES = 128 * 1024 * 1024


class Phrase(Struct, frozen=True):
    """Whole words: any of the forms, with a word boundary at each end that is a letter or digit."""

    kind: ClassVar = "phrase"
    forms: tuple[str, ...]


class Substring(Struct, frozen=True):
    """The characters anywhere, inside words too."""

    kind: ClassVar = "substring"
    text: str


class OrderedPhrases(Struct, frozen=True):
    """A phrase and, later on the same line, another one, with other text between them."""

    kind: ClassVar = "ordered"
    first: str
    then: str


class WholePhrase(Struct, frozen=True):
    """The message consists only of these phrases, punctuation and symbols (which include emoji)."""

    kind: ClassVar = "whole"
    forms: tuple[str, ...]


class Regex(Struct, frozen=True):
    """An RE2 pattern on the folded text."""

    kind: ClassVar = "regex"
    source: str


Pattern = Phrase | Substring | OrderedPhrases | WholePhrase | Regex


class Lexicon:
    """Collects a profile's patterns, each with the code of its signal or rule.

    A pattern's id is its position. Ids are logged, so a kind must add its patterns in a stable order.
    """

    def __init__(self) -> None:
        self.patterns: list[Pattern] = []
        self.codes: list[str] = []

    def add(self, pattern: Pattern, code: str) -> int:
        self.patterns.append(pattern)
        self.codes.append(code)
        return len(self.patterns) - 1

    def compile(self, *, wrap: bool = True) -> Matcher:
        return Matcher(self.patterns, wrap=wrap)

    def mute(self, reading: Reading, muted: frozenset[str]) -> Reading:
        """The reading without the hits of these codes."""
        hits = tuple(hit for hit in reading.hits if self.codes[hit] not in muted)
        return Reading(
            reading.query, reading.words, reading.folded, reading.units, hits, reading.notes, reading.muted | muted
        )


Search = Callable[[bytes], list[int]]
"""The ids of a set's patterns that an encoded text matches, in any order."""


def search_set(sources: Iterable[str]) -> Search:
    """A search for many RE2 patterns at once."""
    options = re2.Options()
    options.max_mem = MEMORY_BYTES
    options.log_errors = False
    matcher: Any = re2.Set.SearchSet(options)
    for source in sources:
        matcher.Add(source)
    matcher.Compile()
    # The wrapper's `Match` only adds a type check, which takes a sixth of the time of a short scan.
    search: Search = getattr(matcher, "_set", matcher).Match
    return search


class Matcher:
    """A compiled set of patterns. Without `wrap`, word boundaries are ASCII's."""

    def __init__(self, patterns: Sequence[Pattern], *, wrap: bool = True) -> None:
        self.wrap = wrap
        self.sources = [to_re2(pattern, wrap=wrap) for pattern in patterns]
        self.find = search_set(self.sources)
        """As `scan`, for an encoded text that needs no wrapping, with the ids in any order."""
        # Boundaries can be wrong only where an ASCII letter meets another character, or in a pattern with such letters.
        self.foreign = any(WRAPPER in source for source in self.sources)
        self._adjoins = search_set([r"[0-9A-Za-z_][^\x00-\x7f]|[^\x00-\x7f][0-9A-Za-z_]"])

    def scan(self, folded: str) -> tuple[int, ...]:
        """The ids of the patterns that a folded text matches, ascending."""
        # A lone surrogate has no UTF-8 form, and a replacing `?` would count as punctuation. RE2 reads the three bytes
        # of `surrogatepass` as a character that is in negated classes only.
        view = folded.encode(*CODEC)
        if self.wrap and not folded.isascii() and (self.foreign or self._adjoins(view)):
            view = wrap(view)
        return tuple(sorted(self.find(view)))


def wrap(encoded: bytes) -> bytes:
    """A UTF-8 text with each non-ASCII letter of a script with spaces between two wrappers."""
    letters = [character for character in other_characters(encoded) if _wrapped.match(character)]
    if len(letters) > RARE:
        return encoded.decode(*CODEC).translate(_wrapping).encode(*CODEC)
    for letter in letters:
        one = letter.encode()
        encoded = encoded.replace(one, f"{WRAPPER}{letter}{WRAPPER}".encode())
    return encoded


def wrap_text(text: str) -> str:
    return wrap(text.encode(*CODEC)).decode(*CODEC)


class _Wrapping(dict[int, str | int]):
    """A translation table to the wrapped view, filled on demand."""

    def __missing__(self, code: int) -> str | int:
        character = chr(code)
        self[code] = f"{WRAPPER}{character}{WRAPPER}" if _wrapped.match(character) else code
        return self[code]


_wrapping = _Wrapping()


def to_re2(pattern: Pattern, *, wrap: bool = True) -> str:
    """The pattern's RE2 source, for the wrapped view or the plain text."""
    match pattern:
        case Phrase(forms):
            return _any_of([_bounded(form) for form in forms])
        case Substring(text):
            return str(re2.escape(wrap_text(text) if wrap else text))
        case OrderedPhrases(first, then):
            return rf"{_bounded(first)}[^\S\n]+\S[^\n]*[^\S\n]{_bounded(then)}"
        case WholePhrase(forms):
            return rf"\A[\s\pP\pS]*(?:{_any_of([_bounded(form) for form in forms])}[\s\pP\pS]*)+\z"
        case Regex(source):
            return wrap_regex(source) if wrap else source


def _any_of(sources: list[str]) -> str:
    return sources[0] if len(sources) == 1 else f"(?:{'|'.join(sources)})"


def _bounded(form: str) -> str:
    text = wrap_text(fold(form).text)
    left = r"\b" if _is_word(text[:1]) else ""
    right = r"\b" if _is_word(text[-1:]) else ""
    # Folding keeps runs of spaces; allowing them in the pattern is cheaper than another pass over each text.
    return f"{left}{' +'.join(re2.escape(word) for word in text.split())}{right}"


def _is_word(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")


class UnwrappableRegex(ValueError):
    """The pattern has non-ASCII letters in a character class, where they cannot be wrapped."""


# An escape, a whole character class, or one character.
_PIECE = re.compile(r"\\(?:[pP]\{[^}]*\}|[pP].|x\{[^}]*\}|.)|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|.", re.DOTALL)
_UNSPACED_LETTER = f"[{UNSPACED}]"
# Patterns for one character, in the wrapped view.
_SPELLED = {
    r"\w": rf"(?:[a-z0-9_]|{WRAPPER}[^\x00-\x7f]{WRAPPER}|{_UNSPACED_LETTER})",
    r"\pL": rf"(?:[a-z]|{WRAPPER}\pL{WRAPPER}|{_UNSPACED_LETTER})",
    r"\p{L}": rf"(?:[a-z]|{WRAPPER}\pL{WRAPPER}|{_UNSPACED_LETTER})",
    ".": rf"(?:{WRAPPER}[^\x00-\x7f]{WRAPPER}|[^\n{WRAPPER}])",
}


def wrap_regex(source: str) -> str:
    """The pattern for the wrapped view: non-ASCII letters are wrapped; `.` and `\\w` match any script."""
    return "".join(map(_wrap_piece, _PIECE.findall(source)))


def _wrap_piece(piece: str) -> str:
    if piece in _SPELLED:
        return _SPELLED[piece]
    if piece[0] == "[" and len(piece) > 1:
        named = re.findall(r"\\x\{([0-9a-fA-F]+)\}", piece)
        letters = piece + "".join(chr(int(code, 16)) for code in named)
        if _wrapped.search(letters) or any(shorthand in piece for shorthand in (r"\w", r"\pL", r"\p{L}")):
            raise UnwrappableRegex(f"letters of other scripts in {piece}: write the alternatives as (?:a|é) instead")
        # A negated class matches a whole wrapped letter.
        return f"(?:{WRAPPER}[^\\x00-\\x7f]{WRAPPER}|{piece[:-1]}{WRAPPER}])" if piece[1] == "^" else piece
    letter = chr(int(piece[3:-1], 16)) if piece.startswith(r"\x{") else piece
    plain = not _wrapped.search(letter) or piece.startswith((r"\p", r"\P"))
    return piece if plain else f"(?:{WRAPPER}{piece}{WRAPPER})"
