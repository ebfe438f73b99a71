"""A folder of one's own: Markdown, text, HTML and PDF. The embedded default, which needs no server.

Files are read when they have changed, and cut into passages where paragraphs end. What finds the passages is behind a
protocol of one method. Nothing outside of the folder is read, not by way of a link either.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from io import BytesIO
from math import log
from pathlib import Path
from time import monotonic
from typing import NamedTuple, Protocol

from turnout.core.contain import contain
from turnout.core.verdict import Fault
from turnout.text.file import read_bytes

from .fetch import health_of
from .page import read_html
from .source import Answer, Empty, Failed, Health, Passage, Question, Result, Why
from .terms import K1, B, search_terms, stems, words_of

# Larger files are no documents; more of them are no folder of notes.
FILE_BYTES, FILES = 32 * 1024 * 1024, 20_000
# As long as a passage may be cited from, and as fusion keeps of a source.
PASSAGE_CHARACTERS = 1200
SHOWN = 4
# How often the folder is looked at again.
LOOK_S = 2.0
# Pages of one PDF that are read.
PDF_PAGES = 500
ENDINGS = frozenset((".md", ".markdown", ".txt", ".text", ".rst", ".org", ".html", ".htm", ".pdf"))


class Index(Protocol):
    """What finds passages."""

    def replace(self, document: str, passages: Sequence[Passage]) -> None:
        """From now on these are the document's passages; none removes it."""
        ...

    def search(self, question: str, limit: int) -> list[Passage]:
        """The passages that fit a question, the best first, scored."""
        ...


class MemoryIndex:
    """BM25 over words, in memory: enough for a folder of notes."""

    def __init__(self) -> None:
        self._passages: dict[int, tuple[Passage, int]] = {}
        self._having: dict[str, dict[int, int]] = defaultdict(dict)
        self._documents: dict[str, list[int]] = {}
        self._next = 0

    def replace(self, document: str, passages: Sequence[Passage]) -> None:
        for old in self._documents.pop(document, ()):
            one, _ = self._passages.pop(old)
            for word in _counted(one):
                del self._having[word][old]
        for one in passages:
            count = _counted(one)
            self._passages[self._next] = one, count.total()
            self._documents.setdefault(document, []).append(self._next)
            for word, times in count.items():
                self._having[word][self._next] = times
            self._next += 1

    def search(self, question: str, limit: int) -> list[Passage]:
        scores: dict[int, float] = defaultdict(float)
        everything = len(self._passages)
        mean = sum(size for _, size in self._passages.values()) / max(1, everything)
        for word in dict.fromkeys(stems(search_terms(question))):
            having = self._having.get(word, {})
            weight = log(1 + (everything - len(having) + 0.5) / (len(having) + 0.5))
            for number, times in having.items():
                size = self._passages[number][1]
                scores[number] += weight * times * (K1 + 1) / (times + K1 * (1 - B + B * size / mean))
        best = sorted(scores, key=lambda number: (-scores[number], number))[:limit]
        found = [(self._passages[number][0], scores[number]) for number in best]
        return [Passage(one.text, one.title, one.url, one.at, score) for one, score in found]


def _counted(passage: Passage) -> Counter[str]:
    return Counter(stems(words_of(f"{passage.title} {passage.text}")))


class _Seen(NamedTuple):
    changed_ns: int
    size: int


class Files:
    def __init__(self, name: str, folder: Path, index: Index | None = None, description: str = "") -> None:
        self.name = name
        self.description = description or "the user's own documents"
        self._folder = folder
        self._index: Index = index or MemoryIndex()
        self._seen: dict[str, _Seen] = {}
        self._looked_at: float | None = None
        self._looking = asyncio.Lock()
        self.unread: dict[str, str] = {}
        """Files that could not be read, and why."""

    async def ask(self, question: Question) -> Result:
        async with self._looking:
            if self._looked_at is None or monotonic() - self._looked_at >= LOOK_S:
                failed = await asyncio.to_thread(self._look)
                if failed is not None:
                    return failed
                self._looked_at = monotonic()
            found = await asyncio.to_thread(self._index.search, question.text, SHOWN)
        if not found:
            return Empty(" ".join(search_terms(question.text, question.lang)))
        text = "\n\n".join(f"{one.title}\n{one.text}" for one in found)
        return Answer(text, tuple(found), note=self._note())

    async def check(self) -> Health:
        return await health_of(asyncio.to_thread(self._look))

    def words(self) -> Sequence[str]:
        return ()

    def _note(self) -> str:
        if not self.unread:
            return ""
        name, why = next(iter(self.unread.items()))
        return f"{len(self.unread)} files could not be read, {name} for one: {why}"

    def _look(self) -> Failed | None:
        """Read what is new or has changed, forget what is gone."""
        if not os.path.isdir(self._folder):
            said = f"{self.name}: there is no folder {self._folder}: check [sources.{self.name}] folder"
            return Failed(Why.NOT_CONFIGURED, said)
        here = dict(_files(self._folder))
        for name in self._seen.keys() - here.keys():
            self._index.replace(name, ())
            del self._seen[name]
            self.unread.pop(name, None)
        for name, seen in here.items():
            if self._seen.get(name) == seen:
                continue
            passages = contain(_read, self._folder / name, name)
            self.unread.pop(name, None)
            if isinstance(passages, Fault):
                self.unread[name] = passages.detail
                passages = []
            self._index.replace(name, passages)
            self._seen[name] = seen
        return None


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


def _read(path: Path, name: str) -> list[Passage]:
    """A document's passages; raises whatever its library does."""
    raw = read_bytes(path, FILE_BYTES)
    match path.suffix.lower():
        case ".pdf":
            title, paragraphs = path.stem, _pdf(raw)
        case ".html" | ".htm":
            page = read_html(raw.decode("utf-8", "replace"))
            title, paragraphs = page.title or path.stem, page.paragraphs
        case _:
            text = raw.decode("utf-8-sig", "replace")
            heading = next((line.lstrip("# ") for line in text.splitlines() if line.startswith("# ")), "")
            title, paragraphs = heading or path.stem, tuple(part for part in text.split("\n\n") if part.strip())
    return [Passage(text, title, name) for text in _cut(paragraphs)]


def _pdf(raw: bytes) -> tuple[str, ...]:
    try:
        from pypdf import PdfReader
    except ImportError:
        raise RuntimeError("PDFs need the extra `sources`: pip install 'turnout[sources]'") from None
    pages = PdfReader(BytesIO(raw)).pages
    return tuple(pages[number].extract_text() for number in range(min(PDF_PAGES, len(pages))))


def _cut(paragraphs: Sequence[str]) -> Iterator[str]:
    """Paragraphs, short ones together and long ones in pieces, cut at a line or a space."""
    text = ""
    for paragraph in paragraphs:
        rest = paragraph.strip()
        if text and len(text) + len(rest) + 2 > PASSAGE_CHARACTERS:
            yield text
            text = ""
        while len(rest) > PASSAGE_CHARACTERS:
            end = max(rest.rfind("\n", 0, PASSAGE_CHARACTERS), rest.rfind(" ", 0, PASSAGE_CHARACTERS))
            end = end if end > PASSAGE_CHARACTERS // 2 else PASSAGE_CHARACTERS
            yield rest[:end].strip()
            rest = rest[end:].strip()
        text = f"{text}\n\n{rest}" if text else rest
    if text:
        yield text
