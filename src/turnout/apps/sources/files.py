"""A folder of the user's documents: Markdown, text, HTML, code and PDF. The only source that needs no server.

Changed files are read section by section, and searched with the search index (`turnout.search.folder`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from turnout.core.errors import FolderMissing
from turnout.search import Folder, Index, Results
from turnout.text.file import reason_of

from .fetch import health_of
from .source import Cause, Empty, Failure, Health, Passage, Result, Source, SourceAnswer, SourceQuestion

SHOWN = 4
# A passage that covers less of the question's words is about something else.
LEAST_COVERAGE = 0.15
# Seconds between checks of the folder for changes.
LOOK_S = 2.0
# The note in an index that its documents are sections; an index without it is older, and filled again.
SECTIONS = "sections"


class Files(Source):
    def __init__(self, name: str, folder: Path, index: Callable[[], Index], description: str = "") -> None:
        """`index` opens the search index, when it is first needed."""
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
            results = await asyncio.to_thread(self._search, question)
        hits = [hit for hit in results.hits if hit.coverage >= LEAST_COVERAGE]
        if not hits:
            return Empty()
        passages = tuple(Passage(hit.text, hit.title, hit.id, hit.updated_at, hit.score) for hit in hits)
        text = "\n\n".join(f"{one.title}\n{one.text}" for one in passages)
        return SourceAnswer(text, passages, note=self._note())

    async def check(self) -> Health:
        """Whether the folder and its index can be opened; the files are read with the first question."""
        return await health_of(asyncio.to_thread(self._find))

    def _note(self) -> str:
        unread = self._indexed().unread
        if not unread:
            return ""
        name, why = next(iter(unread.items()))
        if len(unread) == 1:
            return f"One file could not be read, {name}: {why}"
        return f"{len(unread)} files could not be read, {name} for one: {why}"

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
        """Bring the index up to date with the folder."""
        missing = self._find()
        if missing is None:
            try:
                self._indexed().sync()
            except FolderMissing:  # deleted meanwhile
                return self._find()
        return missing

    def _find(self) -> Failure | None:
        """Why the folder cannot be read, if so: a folder without permission is not an empty one."""
        try:
            os.scandir(self._root).close()
        except OSError as error:
            gone = isinstance(error, FileNotFoundError | NotADirectoryError)
            what = f"there is no folder {self._root}" if gone else f"{self._root} is not read: {reason_of(error)}"
            message = f"{self.name}: {what}: check [sources.{self.name}] folder"
            return Failure(Cause.NOT_CONFIGURED if gone else Cause.DENIED, message)
        self._indexed()
        return None
