"""Discourse framing: phrases that say a topic is talked about, and nothing about the topic.

Invariant: one list, one pattern; what `is_framed` finds is what `strip_framing` takes out. Phrases are whole words, in
any case and typography; time is linear in the text.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from .fold import fold
from .words import read_table

_before_mark: Final = re.compile(r" (?=[,.;:?!])")


def phrases() -> tuple[str, ...]:
    """The list in order: a phrase that begins with another stands before it."""
    return tuple(read_table("framing", "en")["phrases"])


@cache
def _phrase() -> re.Pattern[str]:
    source = "|".join(re.escape(phrase).replace(r"\ ", r"\s+") for phrase in phrases()).replace("'", "['’]")
    return re.compile(rf"(?<!\w)(?:{source})(?!\w)", re.IGNORECASE)


def is_framed(text: str) -> bool:
    return _phrase().search(fold(text).text) is not None


def strip_framing(text: str) -> str:
    """The text without the phrases, for use as search terms; blank if there was nothing else."""
    rest, found = _phrase().subn(" ", text)
    if not found:
        folded = fold(text).text
        # Look-alike letters and invisible characters: a search does not mind folded terms, it does mind the phrase.
        rest, found = _phrase().subn(" ", folded)
        if not found:
            return text
    return _before_mark.sub("", " ".join(rest.split())).strip(" ,;:")
