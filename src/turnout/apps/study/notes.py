"""The reader's notes: a folder of Markdown, indexed again when files change.

A passage has its place: the file, the headings, and the range of characters.
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

# The most passages sent: some 900 tokens.
SHOWN = 4
# A passage with less than a third of the best one's share of the question is about something else, unless its vector is
# near. The share is relative because in a few notes every word is common and counts for little. Unrelated sentences
# have cosines of 0.1 to 0.3 with MiniLM.
LEAST_SHARE = 1 / 3
LEAST_COSINE = 0.35
# How often the folder is checked for changes.
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
        """For people: `House.md › Boiler, 120-180`."""
        return f"{' › '.join((self.file, *self.heading))}, {self.start}-{self.end}"


class Notes:
    """A folder of notes. Blocking; thread-safe."""

    def __init__(self, folder: Path, index: Index) -> None:
        self._index = index
        self._folder = Folder(folder, index, endings=ENDINGS)
        self._lock = threading.Lock()
        self._checked_s: float | None = None

    def find(self, question: str) -> tuple[NotePassage, ...]:
        """The passages that fit a question best; raises FolderMissing."""
        with self._lock:
            if self._checked_s is None or time.monotonic() - self._checked_s >= LOOK_S:
                self._folder.sync()
                self._checked_s = time.monotonic()
        hits = self._index.search(question, limit=SHOWN).hits
        return tuple(_passage(hit) for hit in fitting(hits, question))

    def close(self) -> None:
        self._index.close()


def fitting(hits: Sequence[Hit], question: str) -> list[Hit]:
    """The hits that are about the question, in their order."""
    least, names = LEAST_SHARE * max((hit.coverage for hit in hits), default=0.0), find_names(question)
    return [hit for hit in hits if (0.0 < hit.coverage >= least and _shares(hit, names)) or _is_near(hit)]


def _shares(hit: Hit, names: set[str]) -> bool:
    """Whether a hit has a name of the question: common words such as "says" are not enough. In unknown languages a
    question has no names."""
    text = fold(f"{hit.title}\n{hit.text}").text
    # Without spaces between words a name may begin anywhere.
    return not names or any(re.search(rf"\b{one}" if one.isascii() else re.escape(one), text) for one in names)


def _is_near(hit: Hit) -> bool:
    return any(vote.by == "vectors" and vote.score >= LEAST_COSINE for vote in hit.votes)


def _passage(hit: Hit) -> NotePassage:
    place = place_of(hit)
    text = hit.text.strip()
    start = place.start + len(hit.text) - len(hit.text.lstrip())
    return NotePassage(text, place.file, place.heading, start, start + len(text))
