"""A folder of one's own: Markdown, text, HTML, code and PDF. The embedded default, which needs no server.

Files are read when they have changed, section by section, and found by the one search index (`turnout.search.folder`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic

from turnout.core.errors import FolderMissing
from turnout.search import Folder, Index, Results
from turnout.text.file import reason_of

from .fetch import health_of
from .source import Cause, Empty, Failure, Health, Passage, Result, SourceAnswer, SourceQuestion

SHOWN = 4
# A passage with less of what was asked for, rare words counting more, is about something else.
LEAST_COVERAGE = 0.15
# How often the folder is looked at again.
LOOK_S = 2.0
# What notes in an index that its documents are sections; one made before that is filled anew.
SECTIONS = "sections"


class Files:
    def __init__(self, name: str, folder: Path, index: Callable[[], Index], description: str = "") -> None:
        """`index` opens what the documents are found with, when they are first looked for."""
        self.name = name
        self.description = description or "the user's own documents"
        self._root = folder
        self._open = index
        self._folder: Folder | None = None
        self._looked_at: float | None = None
        self._looking = asyncio.Lock()

    async def ask(self, question: SourceQuestion) -> Result:
        async with self._looking:
            if self._looked_at is None or monotonic() - self._looked_at >= LOOK_S:
                failed = await asyncio.to_thread(self._look)
                if failed is not None:
                    return failed
                self._looked_at = monotonic()
            found = await asyncio.to_thread(self._search, question)
        hits = [hit for hit in found.hits if hit.coverage >= LEAST_COVERAGE]
        if not hits:
            return Empty(" ".join(found.words))
        passages = tuple(Passage(hit.text, hit.title, hit.id, hit.updated_at, hit.score) for hit in hits)
        text = "\n\n".join(f"{one.title}\n{one.text}" for one in passages)
        return SourceAnswer(text, passages, note=self._note())

    async def check(self) -> Health:
        """Whether there is a folder and an index; a folder of thousands is read when it is first asked."""
        return await health_of(asyncio.to_thread(self._find))

    def words(self) -> Sequence[str]:
        return ()

    @property
    def unread(self) -> dict[str, str]:
        """Files that could not be read, and why."""
        return self._folder.unread if self._folder is not None else {}

    def _note(self) -> str:
        if not self.unread:
            return ""
        name, why = next(iter(self.unread.items()))
        if len(self.unread) == 1:
            return f"One file could not be read, {name}: {why}"
        return f"{len(self.unread)} files could not be read, {name} for one: {why}"

    def close(self) -> None:
        if self._folder is not None:
            self._folder.index.close()

    def _search(self, question: SourceQuestion) -> Results:
        return self._indexed().index.search(question.text, lang=question.lang, limit=SHOWN)

    def _indexed(self) -> Folder:
        if self._folder is None:
            index = self._open()
            if not index.note(SECTIONS):
                index.delete(index.ids())
                index.change_note(SECTIONS, lambda _: "1")
            self._folder = Folder(self._root, index)
        return self._folder

    def _look(self) -> Failure | None:
        """Read what is new or has changed, forget what is gone."""
        missing = self._find()
        if missing is None:
            try:
                self._indexed().sync()
            except FolderMissing:  # it went in between
                return self._find()
        return missing

    def _find(self) -> Failure | None:
        """Why there is nothing to read: one that may not be read is not one that is empty."""
        try:
            os.scandir(self._root).close()
        except OSError as error:
            gone = isinstance(error, FileNotFoundError | NotADirectoryError)
            what = f"there is no folder {self._root}" if gone else f"{self._root} is not read: {reason_of(error)}"
            said = f"{self.name}: {what}: check [sources.{self.name}] folder"
            return Failure(Cause.NOT_CONFIGURED if gone else Cause.DENIED, said)
        self._indexed()
        return None
