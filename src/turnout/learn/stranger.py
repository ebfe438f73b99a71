"""Questions that have nothing to do with a user's labels, for a user who has none to show: so a student learns what a
stranger looks like.

They are taught only where a profile's fallback is a route that no row has. There, every row belongs to a label and the
fallback is for the rest of the world; where rows have the fallback's route, everything that can be asked has one.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Sequence
from importlib import resources

from .dataset import OUT_OF_SCOPE, Example, folded

# A word in more of the questions than this is nobody's subject: "what", "how", "the".
COMMON = 2
# A word in more of a user's rows than this is what they are about: a question with it is no stranger there.
SHARE = 0.01

_words = re.compile(r"\w+").findall


def find_strangers(rows: Sequence[Example], fallback: str) -> list[Example]:
    """The questions that are about nothing these rows are about; none where strangers are among the rows already, or
    where the fallback is a label like any other."""
    if any(row.label in (fallback, OUT_OF_SCOPE) for row in rows):
        return []
    found = Counter(word for row in rows for word in {*_words(folded(row.text))})
    subjects = {word for word, count in found.items() if count > SHARE * len(rows)}
    lines = _read_lines()
    common = Counter(word for words in lines.values() for word in words)
    return [
        Example(text, OUT_OF_SCOPE, "seed")
        for text, words in lines.items()
        if not any(word in subjects for word in words if common[word] <= COMMON)
    ]


@functools.cache
def _read_lines() -> dict[str, frozenset[str]]:
    """Each question, and its words."""
    text = resources.files("turnout.learn").joinpath("strangers.txt").read_text(encoding="utf-8")
    return {line: frozenset(_words(folded(line))) for line in text.splitlines() if line.strip()}
