"""ZIM files on this machine, read with libzim (extra `zim`, GPL-3): an encyclopedia without a server.

A file is opened when it is first asked for and then kept. libzim reads beside the event loop, in the source's own
threads; a search takes its turn, since a searcher is no two threads' at once.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from turnout.core.verdict import Fault, contain
from turnout.text.page import plain

from .fetch import Capacity
from .shelf import BOOKS, READ_BYTES, RESULTS, Found, Searched
from .source import Cause, Failure

if TYPE_CHECKING:
    from libzim.reader import Archive


class ZimFiles:
    def __init__(self, name: str, files: Sequence[Path], capacity: Capacity) -> None:
        self.name = name
        self.capacity = capacity
        self._files = {file.stem: file for file in files}
        self._open: dict[str, Archive] = {}
        self._turn = threading.Lock()

    async def books(self) -> tuple[str, ...] | Failure:
        """The names of the files, if each of them can be searched."""
        for book in self._files:
            failed = await self.capacity.read(self._opened, book)
            if isinstance(failed, Failure):
                return failed
        return tuple(self._files)[:BOOKS]

    async def search(self, pattern: str, book: str) -> Searched | Failure:
        return await self.capacity.read(self._search, pattern, book)

    async def page(self, path: str) -> bytes | Failure:
        return await self.capacity.read(self._page, path)

    def address(self, path: str) -> str:
        book, _, page = path.partition("/")
        return f"{self._files[book].name}/{page}"

    def _search(self, pattern: str, book: str) -> Searched | Failure:
        archive = self._opened(book)
        if isinstance(archive, Failure):
            return archive
        found: Searched | Fault = contain(self._find, archive, pattern, book)
        return self._unreadable(book, found) if isinstance(found, Fault) else found

    def _find(self, archive: Archive, pattern: str, book: str) -> Searched:
        from libzim.search import Query, Searcher

        with self._turn:
            search = Searcher(archive).search(Query().set_query(pattern))
            paths, total = list(search.getResults(0, RESULTS)), search.getEstimatedMatches()
        found = [
            Found(plain(archive.get_entry_by_path(path).title), f"{book}/{path}", "", place)
            for place, path in enumerate(paths, 1)
        ]
        return Searched(found, total)

    def _page(self, path: str) -> bytes | Failure:
        book, _, at = path.partition("/")
        archive = self._opened(book)
        if isinstance(archive, Failure):
            return archive
        body: bytes | Fault = contain(lambda: bytes(archive.get_entry_by_path(at).get_item().content[:READ_BYTES]))
        return self._unreadable(book, body) if isinstance(body, Fault) else body

    def _opened(self, book: str) -> Archive | Failure:
        if book in self._open:
            return self._open[book]
        try:
            from libzim.reader import Archive
        except ImportError:
            said = (
                f"{self.name}: ZIM files are read with libzim: pip install 'turnout[zim]', or ask a kiwix-serve by url"
            )
            return Failure(Cause.NOT_CONFIGURED, said)
        file = self._files.get(book)
        if file is None:
            known = ", ".join(self._files)
            return Failure(Cause.NOT_CONFIGURED, f"{self.name}: no ZIM file is called {book!r}; there are {known}")
        if not file.is_file():
            return Failure(
                Cause.NOT_CONFIGURED, f"{self.name}: there is no file {file}: check [sources.{self.name}] zim"
            )
        archive: Archive | Fault = contain(Archive, file)
        if isinstance(archive, Fault):
            return self._unreadable(book, archive)
        if not archive.has_fulltext_index:
            said = (
                f"{self.name}: {file.name} cannot be searched, since it was made without a full-text index: get another"
            )
            return Failure(Cause.MALFORMED, said)
        self._open[book] = archive
        return archive

    def _unreadable(self, book: str, fault: Fault) -> Failure:
        said = f"{self._files[book].name} cannot be read ({fault.detail[:120]}): is it a whole ZIM file?"
        return Failure(Cause.MALFORMED, f"{self.name}: {said}")
