"""ZIM files on this machine, read with libzim (extra `zim`, GPL-3): an encyclopedia without a server.

A file is opened when it is first needed, and stays open. libzim reads in the source's threads; searches take turns,
since a searcher is not thread-safe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from turnout.core.verdict import Fault, contain
from turnout.text.page import plain

from .fetch import Capacity
from .shelf import BOOKS, READ_BYTES, RESULTS, BookHits, PageHit
from .source import Cause, Failure

if TYPE_CHECKING:
    from libzim.reader import Archive

T = TypeVar("T")


class ZimFiles:
    def __init__(self, name: str, files: Sequence[Path], capacity: Capacity) -> None:
        self.name = name
        self.capacity = capacity
        self._files = {file.stem: file for file in files}
        self._open: dict[str, Archive] = {}
        self._turn = threading.Lock()

    async def books(self) -> tuple[str, ...] | Failure:
        """The names of the files, or why one of them cannot be searched."""
        for book in self._files:
            opened = await self.capacity.read(self._opened, book)
            if isinstance(opened, Failure):
                return opened
        return tuple(self._files)[:BOOKS]

    async def search(self, pattern: str, book: str) -> BookHits | Failure:
        return await self.capacity.read(self._read, book, lambda archive: self._find(archive, pattern, book))

    async def page(self, path: str) -> bytes | Failure:
        book, _, entry = path.partition("/")
        return await self.capacity.read(
            self._read, book, lambda archive: bytes(archive.get_entry_by_path(entry).get_item().content[:READ_BYTES])
        )

    def address(self, path: str) -> str:
        book, _, page = path.partition("/")
        return f"{self._files[book].name}/{page}"

    def _read(self, book: str, call: Callable[[Archive], T]) -> T | Failure:
        """Read something from a book; whatever libzim raises is a failure."""
        archive = self._opened(book)
        if isinstance(archive, Failure):
            return archive
        result: T | Fault = contain(call, archive)
        return self._unreadable(book, result) if isinstance(result, Fault) else result

    def _find(self, archive: Archive, pattern: str, book: str) -> BookHits:
        from libzim.search import Query, Searcher

        with self._turn:
            search = Searcher(archive).search(Query().set_query(pattern))
            paths, total = list(search.getResults(0, RESULTS)), search.getEstimatedMatches()
        hits = [
            PageHit(plain(archive.get_entry_by_path(path).title), f"{book}/{path}", "", place)
            for place, path in enumerate(paths, 1)
        ]
        return BookHits(hits, total)

    def _opened(self, book: str) -> Archive | Failure:
        if book in self._open:
            return self._open[book]
        try:
            from libzim.reader import Archive
        except ImportError:
            missing = "ZIM files are read with libzim: pip install 'turnout[zim]', or ask a kiwix-serve by url"
            return self._failed(Cause.NOT_CONFIGURED, missing)
        file = self._files.get(book)
        if file is None:
            return self._failed(
                Cause.NOT_CONFIGURED, f"no ZIM file is called {book!r}; there are {', '.join(self._files)}"
            )
        if not file.is_file():
            return self._failed(Cause.NOT_CONFIGURED, f"there is no file {file}: check [sources.{self.name}] zim")
        archive: Archive | Fault = contain(Archive, file)
        if isinstance(archive, Fault):
            return self._unreadable(book, archive)
        if not archive.has_fulltext_index:
            unsearchable = f"{file.name} cannot be searched, since it was made without a full-text index: get another"
            return self._failed(Cause.MALFORMED, unsearchable)
        self._open[book] = archive
        return archive

    def _unreadable(self, book: str, fault: Fault) -> Failure:
        problem = f"{self._files[book].name} cannot be read ({fault.detail[:120]}): is it a whole ZIM file?"
        return self._failed(Cause.MALFORMED, problem)

    def _failed(self, why: Cause, problem: str) -> Failure:
        return Failure(why, f"{self.name}: {problem}")
