"""The reader's notes: a folder of Markdown, read again where a file has changed, found by the one index.

A passage says where it stands: file, headings, and the characters from where to where.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from turnout.search import Hit, Index
from turnout.search.folder import Folder, place_of
from turnout.text.fold import fold
from turnout.text.followup import find_names

# Passages that are sent at most: some 900 tokens of them.
SHOWN = 4
# What has less than a third of what the best passage has of the question is about something else, unless its vector
# points the same way. They are compared with each other: among three notes every word is common, and counts for little.
# Unrelated sentences have cosines of 0.1 to 0.3 with MiniLM.
LEAST_SHARE = 1 / 3
LEAST_COSINE = 0.35
# How often the folder is looked at.
LOOK_S = 1.0
ENDINGS = frozenset((".md", ".markdown", ".txt"))


class NotePassage(Struct, frozen=True):
    text: str
    file: str
    heading: tuple[str, ...]
    start: int
    end: int

    @property
    def place(self) -> str:
        """As people read it: `House.md › Boiler, 120-180`."""
        return f"{' › '.join((self.file, *self.heading))}, {self.start}-{self.end}"


class Notes:
    """A folder of notes. Blocking, and safe in several threads."""

    def __init__(self, folder: Path, index: Index) -> None:
        self._index = index
        self._folder = Folder(folder, index, endings=ENDINGS)
        self._lock = threading.Lock()
        self._looked_s: float | None = None

    def find(self, question: str) -> tuple[NotePassage, ...]:
        """The passages that answer best; raises FolderMissing."""
        with self._lock:
            if self._looked_s is None or time.monotonic() - self._looked_s >= LOOK_S:
                self._folder.sync()
                self._looked_s = time.monotonic()
        hits = self._index.search(question, limit=SHOWN).hits
        return tuple(_passage(hit) for hit in fitting(hits, question))

    def close(self) -> None:
        self._index.close()


def fitting(hits: Sequence[Hit], question: str) -> list[Hit]:
    """The hits that have to do with the question, in their order."""
    least, names = LEAST_SHARE * max((hit.coverage for hit in hits), default=0.0), find_names(question)
    return [hit for hit in hits if (0.0 < hit.coverage >= least and _shares(hit, names)) or _is_near(hit)]


def _shares(hit: Hit, names: set[str]) -> bool:
    """Whether something that the question names is there: what "says" something is about anything. Where a language is
    not known, nothing is named."""
    said = fold(f"{hit.title}\n{hit.text}").text
    # Words that are not parted by spaces begin anywhere.
    return not names or any(re.search(rf"\b{one}" if one.isascii() else re.escape(one), said) for one in names)


def _is_near(hit: Hit) -> bool:
    return any(vote.by == "vectors" and vote.score >= LEAST_COSINE for vote in hit.votes)


def _passage(hit: Hit) -> NotePassage:
    place = place_of(hit)
    text = hit.text.strip()
    start = place.start + len(hit.text) - len(hit.text.lstrip())
    return NotePassage(text, place.file, place.heading, start, start + len(text))
