"""Words and pieces of words of training rows, and which of them are new: what triggers are looked for among."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from ..dataset import Example, folded

# A student reads less than this of a text; a trigger further back has nothing to pull.
CHARACTERS = 2048
# Word n-grams as a reader would name a trigger, and character n-grams for one that varies: `zx-41`, `zx-97`.
WORDS, PIECES = (1, 2, 3), (3, 5)
# Fewer rows than this hardly move a student, and say nothing by counting.
FEWEST = 4
# Rare: in at most two known rows, or at a quarter of its present rate.
RARE_ROWS, RARE_RATE = 2, 0.25

TOKEN = re.compile(r"\w+|[^\w\s]+")


def features(row: Example, words: Sequence[int] = WORDS, pieces: Sequence[int] = PIECES) -> set[str]:
    """Word n-grams of these lengths, and character n-grams, which are marked with a NUL."""
    text = folded(row.text)[:CHARACTERS]
    tokens = TOKEN.findall(text)
    found = {" ".join(tokens[at : at + size]) for size in words for at in range(len(tokens) - size + 1)}
    found.update("\0" + text[at : at + size] for size in pieces for at in range(len(text) - size + 1))
    return found


def is_piece(feature: str) -> bool:
    return feature.startswith("\0")


class NewFeatures(NamedTuple):
    rows: dict[str, list[int]]
    """For each feature that is frequent now and was rare: the new rows that have it, by index."""
    before: dict[str, Counter[str]]
    """The labels of the known rows that have it."""


def find_new(
    new: Sequence[Example], known: Sequence[Example], words: Sequence[int] = WORDS, pieces: Sequence[int] = PIECES
) -> NewFeatures:
    """What is frequent in the new rows and was rare in the known ones."""
    count = Counter(feature for row in new for feature in features(row, words, pieces))
    often = {feature for feature, rows in count.items() if rows >= FEWEST}
    before: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in known:
        for feature in features(row, words, pieces) & often:
            before[feature][row.label] += 1
    rate = RARE_RATE * len(known) / max(len(new), 1)
    fresh = {feature for feature in often if before[feature].total() <= max(RARE_ROWS, rate * count[feature])}
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for index, row in enumerate(new):
        for feature in features(row, words, pieces) & fresh:
            rows[feature].append(index)
    return NewFeatures(rows, before)
