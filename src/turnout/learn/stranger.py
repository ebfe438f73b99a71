"""Everyday questions that have nothing to do with the user's labels. They teach a student what is out of scope if the
user's rows contain no such questions.

They are used only if the profile's fallback is a route that no row has: then the fallback is for everything else. If
rows have the fallback's route, it is a label like any other.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Sequence
from importlib import resources

from .dataset import OUT_OF_SCOPE, Example, folded

# A word in more of the questions than this is no subject: "what", "how", "the".
COMMON = 2
# A word in more than this share of the user's rows is one of their subjects, so a question with it may be in scope.
SHARE = 0.01

_words = re.compile(r"\w+").findall


def find_strangers(rows: Sequence[Example], fallback: str) -> list[Example]:
    """The everyday questions that share no subject with these rows; none if the rows contain out-of-scope questions
    already, or have the fallback as a label."""
    if any(row.label in (fallback, OUT_OF_SCOPE) for row in rows):
        return []
    counts = Counter(word for row in rows for word in {*_words(folded(row.text))})
    subjects = {word for word, count in counts.items() if count > SHARE * len(rows)}
    lines = _read_lines()
    common = Counter(word for words in lines.values() for word in words)
    return [
        Example(text, OUT_OF_SCOPE, "seed")
        for text, words in lines.items()
        if not any(word in subjects for word in words if common[word] <= COMMON)
    ]


@functools.cache
def _read_lines() -> dict[str, frozenset[str]]:
    """Each question with its words."""
    text = resources.files("turnout.learn").joinpath("strangers.txt").read_text(encoding="utf-8")
    return {line: frozenset(_words(folded(line))) for line in text.splitlines() if line.strip()}
