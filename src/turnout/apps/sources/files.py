"""A folder of one's own: Markdown, text, HTML and PDF. The embedded default, which needs no server.

Files are read when they have changed, and found by the one search index. Nothing outside of the folder is read, not by
way of a link either.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from turnout.core.contain import contain
from turnout.core.verdict import Fault
from turnout.search import Index, IndexDocument, Results
from turnout.text.file import read_bytes
from turnout.text.page import read_html

from .fetch import health_of
from .source import Cause, Empty, Failure, Health, Passage, Result, SourceAnswer, SourceQuestion

# Larger files are no documents; more of them are no folder of notes.
FILE_BYTES, FILES = 32 * 1024 * 1024, 20_000
SHOWN = 4
# A passage with less of what was asked for, rare words counting more, is about something else.
LEAST_COVERAGE = 0.15
# How often the folder is looked at again.
LOOK_S = 2.0
# Pages of one PDF that are read.
PDF_PAGES = 500
ENDINGS = frozenset((".md", ".markdown", ".txt", ".text", ".rst", ".org", ".html", ".htm", ".pdf"))


class _Seen(NamedTuple):
    changed_ns: int
    size: int


class Files:
    def __init__(self, name: str, folder: Path, index: Callable[[], Index], description: str = "") -> None:
        """`index` opens what the documents are found with, when they are first looked for."""
        self.name = name
        self.description = description or "the user's own documents"
        self._folder = folder
        self._open = index
        self._opened: Index | None = None
        self._seen: dict[str, _Seen] = {}
        self._looked_at: float | None = None
        self._looking = asyncio.Lock()
        self.unread: dict[str, str] = {}
        """Files that could not be read, and why."""

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
        return await health_of(asyncio.to_thread(self._look))

    def words(self) -> Sequence[str]:
        return ()

    def _note(self) -> str:
        if not self.unread:
            return ""
        name, why = next(iter(self.unread.items()))
        return f"{len(self.unread)} files could not be read, {name} for one: {why}"

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    def _search(self, question: SourceQuestion) -> Results:
        return self._index().search(question.text, lang=question.lang, limit=SHOWN)

    def _index(self) -> Index:
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def _look(self) -> Failure | None:
        """Read what is new or has changed, forget what is gone."""
        if not os.path.isdir(self._folder):
            said = f"{self.name}: there is no folder {self._folder}: check [sources.{self.name}] folder"
            return Failure(Cause.NOT_CONFIGURED, said)
        here, index = dict(_files(self._folder)), self._index()
        gone = set(self._seen or index.ids()) - here.keys()
        if gone:
            index.delete(gone)
        for name in gone:
            self._seen.pop(name, None)
            self.unread.pop(name, None)
        index.upsert(self._changed(here))
        return None

    def _changed(self, here: Mapping[str, _Seen]) -> Iterator[IndexDocument]:
        for name, seen in here.items():
            if self._seen.get(name) == seen:
                continue
            document = contain(_read, self._folder / name, name)
            self.unread.pop(name, None)
            if isinstance(document, Fault):
                self.unread[name] = document.detail
                document = IndexDocument(name, "")
            self._seen[name] = seen
            yield document


def _files(folder: Path) -> Iterator[tuple[str, _Seen]]:
    """Every document below a folder, by its path in it; hidden ones and links are left out."""
    found = 0
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = os.path.join(root, name)
            if name.startswith(".") or os.path.splitext(name)[1].lower() not in ENDINGS or os.path.islink(path):
                continue
            try:
                known = os.stat(path)
            except OSError:
                continue
            yield os.path.relpath(path, folder), _Seen(known.st_mtime_ns, known.st_size)
            found += 1
            if found >= FILES:
                return


def _read(path: Path, name: str) -> IndexDocument:
    """A document; raises whatever its library does."""
    raw = read_bytes(path, FILE_BYTES)
    match path.suffix.lower():
        case ".pdf":
            title, text = path.stem, "\n\n".join(_pdf(raw))
        case ".html" | ".htm":
            page = read_html(raw.decode("utf-8", "replace"))
            title, text = page.title or path.stem, "\n\n".join(page.paragraphs)
        case _:
            text = raw.decode("utf-8-sig", "replace")
            heading = next((line.lstrip("# ") for line in text.splitlines() if line.startswith("# ")), "")
            title = heading or path.stem
    changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return IndexDocument(name, text, title, updated_at=changed)


def _pdf(raw: bytes) -> tuple[str, ...]:
    try:
        from pypdf import PdfReader
    except ImportError:
        raise RuntimeError("PDFs need the extra `sources`: pip install 'turnout[sources]'") from None
    pages = PdfReader(BytesIO(raw)).pages
    return tuple(pages[number].extract_text() for number in range(min(PDF_PAGES, len(pages))))
