"""The question of a decision as it is shown: the user's own words, shortened, and where something matched in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import re2
from msgspec import Struct

from turnout.core.profile import PatternSource
from turnout.text.match import wrap_text
from turnout.text.read import FOLDS

# How much of a long question is shown: about four lines of its beginning and one of its end.
HEAD, TAIL = 300, 80
DOTS = "…"


class Span(NamedTuple):
    """Where in the excerpt something matched."""

    start: int
    end: int
    code: str


class Question(Struct, frozen=True):
    excerpt: str
    """The user's own words; of long ones the beginning and the end."""
    cut: int = 0
    """Where in the excerpt dots stand for what was left out; 0: nothing was."""
    length: int = 0
    """Characters of all the words."""
    earlier_turns: int = 0
    kept: bool = True
    """False where the decision log did not keep the text."""
    spans: tuple[Span, ...] = ()

    def matched(self, code: str) -> str:
        """The first words that a signal or rule matched, as they were written."""
        return next((self.excerpt[span.start : span.end].strip() for span in self.spans if span.code == code), "")


def question_of(words: str, *, earlier_turns: int = 0) -> Question:
    """The question that these words are."""
    words = words.strip()
    if len(words) <= HEAD + TAIL + 20:
        return Question(words, length=len(words), earlier_turns=earlier_turns)
    excerpt = f"{words[:HEAD]} {DOTS} {words[-TAIL:]}"
    return Question(excerpt, HEAD + 1, len(words), earlier_turns)


def find_spans(excerpt: str, patterns: Iterable[PatternSource], fold: str) -> tuple[Span, ...]:
    """Where the patterns match, in the order of the patterns."""
    return tuple(_spans(excerpt, list(patterns), fold))


def _spans(excerpt: str, patterns: list[PatternSource], fold: str) -> Iterator[Span]:
    view, origin = _view(excerpt, fold) if patterns else ("", [])
    for pattern in patterns:
        for match in re2.finditer(pattern.source, view):
            start, end = match.span()
            if start < end:
                yield Span(origin[start], origin[end - 1] + 1, pattern.code)


def _view(text: str, fold: str) -> tuple[str, list[int]]:
    """The text as patterns see it, and for each of its characters the place in the text it stands for."""
    folded: dict[str, str] = {}
    view: list[str] = []
    origin: list[int] = []
    for place, character in enumerate(text):
        if character.isspace():
            seen = "\n" if character == "\n" else "" if view[-1:] == [" "] else " "
        else:
            if character not in folded:
                folded[character] = _spell(character, fold)
            seen = folded[character]
        view.extend(seen)
        origin.extend([place] * len(seen))
    return "".join(view).encode("utf-8", "replace").decode(), origin


def _spell(character: str, fold: str) -> str:
    """One character as patterns see it."""
    if character.isascii() and character.isprintable():
        return character.lower()
    spelled = FOLDS[fold](character).text
    return wrap_text(spelled) if fold == "unicode" else spelled
