"""Discourse framing: phrases such as "let's talk about", which say nothing about the topic itself.

Invariant: `is_framed` finds exactly what `strip_framing` removes. Phrases match whole words in any case and typography;
time is linear in the text.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from .fold import fold
from .words import read_table

_before_mark: Final = re.compile(r" (?=[,.;:?!])")


def phrases() -> tuple[str, ...]:
    """The phrases in order: one that begins with another comes before it."""
    return tuple(read_table("framing", "en")["phrases"])


@cache
def _phrase() -> re.Pattern[str]:
    source = "|".join(re.escape(phrase).replace(r"\ ", r"\s+") for phrase in phrases()).replace("'", "['’]")
    return re.compile(rf"(?<!\w)(?:{source})(?!\w)", re.IGNORECASE)


def is_framed(text: str) -> bool:
    return _phrase().search(fold(text).text) is not None


def strip_framing(text: str) -> str:
    """The text without the phrases, as search terms; blank if there was nothing else."""
    rest, found = _phrase().subn(" ", text)
    if not found:
        # The phrase may be written with look-alike or invisible characters. Folded text is good enough for a search.
        rest, found = _phrase().subn(" ", fold(text).text)
        if not found:
            return text
    return _before_mark.sub("", " ".join(rest.split())).strip(" ,;:")
