"""Keeps a folder's files in an index: reads new and changed ones, removes deleted ones, and tells where a hit is.

    folder = Folder(Path("~/vault").expanduser(), index)
    folder.sync()                      # again whenever it may have changed: only changed files are read
    hit = index.search("when was the boiler serviced?").hits[0]
    place_of(hit)                      # house.md, ("House", "Boiler"), characters 120 to 180

A document of the index is a section of a file, under its headings; unchanged passages keep their vectors. The index
also records which files were read, so that the next process need not read them again.

Invariant: nothing outside the folder is read, not through a link either; a document is removed with its section.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime
from itertools import islice
from operator import add
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct, json
from msgspec.structs import astuple, replace

from turnout.core.errors import FolderMissing
from turnout.core.verdict import Fault, contain
from turnout.text.file import read_bytes
from turnout.text.language import guess

from . import sql
from .document import Attributes, Changes, Hit, IndexDocument, to_json
from .index import BATCH, Index
from .section import ENDINGS, FileText, FileUnreadable, read_file

# A larger file is not a document, and a folder with more files is not one of notes.
FILE_BYTES, FILES = 32 * 1024 * 1024, 20_000
# Levels of nested folders that are read.
DEPTH = 64
# Characters of a file that its language is guessed from.
GUESSED = 20_000

ReadProgress = Callable[[int, int], None]
"""Called with the number of files read so far, and of files to read."""


class Folder:
    """A folder of documents in an index. Blocking: an application awaits it in a thread, one call at a time."""

    def __init__(
        self,
        root: Path,
        index: Index,
        *,
        name: str = "",
        attributes: Attributes | None = None,
        lang: str = "",
        endings: frozenset[str] = ENDINGS,
    ) -> None:
        """`name` distinguishes this folder from others in the same index and begins the ids of its documents;
        `attributes` are given to all of them. `lang` is their language; if empty, it is guessed file by file."""
        self.root = root
        self.index = index
        self.name = name
        self.attributes = attributes or {}
        self.lang = lang
        self.endings = endings
        self.unread: dict[str, str] = {}
        """Files that could not be read, and why."""

    def sync(self, progress: ReadProgress | None = None) -> Changes:
        """Bring the index up to date with the folder; raises FolderMissing."""
        if not self.root.is_dir():
            raise FolderMissing(f"there is no folder {self.root}: check the path, or remove what was read from it")
        known = self._known()
        here = dict(_files(self.root, self.endings))
        self.unread = {path: row.problem for path, row in known.items() if row.problem and path in here}
        changed = [path for path, seen in here.items() if path not in known or known[path].seen != seen]
        changes = Changes()
        group: list[tuple[str, _SeenFile, list[IndexDocument], str]] = []
        for count, path in enumerate(changed, 1):
            group.append((path, here[path], *self._read_documents(path)))
            if sum(len(documents) for _, _, documents, _ in group) >= BATCH or count == len(changed):
                changes = Changes(*map(add, astuple(changes), astuple(self._write(group, known))))
                group = []
                if progress is not None:
                    progress(count, len(changed))
        return replace(changes, deleted=changes.deleted + self._forget(known, known.keys() - here.keys()))

    def forget(self) -> int:
        """Remove every document of the folder; returns how many there were."""
        known = self._known()
        return self._forget(known, known.keys())

    def count(self) -> tuple[int, int]:
        """The number of files read, and of their sections."""
        known = self._known()
        return len(known), sum(len(one.documents) for one in known.values())

    def _known(self) -> dict[str, _KnownFile]:
        """The files that were read, by path."""
        rows = self.index.tables.backend.read(sql.FILES, {"folder": self.name})
        decode = json.Decoder(list[str]).decode
        return {path: _KnownFile(_SeenFile(*seen), decode(ids), problem) for path, *seen, ids, problem in rows}

    def _read_documents(self, path: str) -> tuple[list[IndexDocument], str]:
        """The sections of a file, or why it cannot be read."""
        self.unread.pop(path, None)
        read = contain(_read_file, self.root, path)
        if isinstance(read, FileUnreadable | Fault):
            self.unread[path] = why = read.detail if isinstance(read, Fault) else str(read)
            return [], why
        file, changed = read
        return list(self._documents(path, file, changed)), ""

    def _documents(self, path: str, file: FileText, changed: datetime) -> Iterator[IndexDocument]:
        lang = self.lang or guess(file.text[:GUESSED])
        used: dict[str, int] = {}
        for section in file.sections:
            ident = f"{self.name}/{path}" if self.name else path
            ident = f"{ident}#{section.anchor}" if section.anchor else ident
            used[ident] = used.get(ident, 0) + 1
            ident = ident if used[ident] == 1 else f"{ident}~{used[ident]}"
            where = {
                "file": path,
                "heading": "\n".join(section.heading),
                "anchor": section.anchor,
                "at": str(section.start),
            }
            # The file's title, then its headings: a passage is found by all of them.
            title = " › ".join(dict.fromkeys((file.title, *section.heading)))
            text = file.text[section.start : section.end]
            yield IndexDocument(ident, text, title, lang, {**self.attributes, **where}, changed)

    def _write(
        self, group: list[tuple[str, _SeenFile, list[IndexDocument], str]], known: dict[str, _KnownFile]
    ) -> Changes:
        """Write the documents of some files. Their rows list all documents, old and new, before any is written, so that
        a crash leaves no document without a row."""
        old = {path: known[path].documents for path, *_ in group if path in known}
        rows = [(path, seen, [one.id for one in documents], problem) for path, seen, documents, problem in group]
        self._set([(path, _SeenFile(0, 0), [*old.get(path, ()), *ids], "") for path, _, ids, _ in rows])
        changes = self.index.upsert(one for _, _, documents, _ in group for one in documents)
        gone = {ident for path, _, ids, _ in rows for ident in {*old.get(path, ())} - {*ids}}
        deleted = self.index.delete(sorted(gone)) if gone else 0
        self._set(rows)
        return replace(changes, deleted=deleted)

    def _set(self, rows: list[tuple[str, _SeenFile, list[str], str]]) -> None:
        with self.index.tables.backend.transaction() as changes:
            for path, seen, ids, problem in rows:
                row = {"folder": self.name, "path": path, **seen._asdict()}
                changes.change(sql.SET_FILE, {**row, "documents": to_json(ids), "problem": problem})

    def _forget(self, known: dict[str, _KnownFile], paths: Collection[str]) -> int:
        ids = [ident for path in sorted(paths) for ident in known[path].documents]
        deleted = self.index.delete(ids) if ids else 0
        if paths:
            with self.index.tables.backend.transaction() as changes:
                for path in paths:
                    changes.change(sql.DELETE_FILE, {"folder": self.name, "path": path})
        return deleted


class FilePlace(Struct, frozen=True):
    """Where in a file a hit is."""

    file: str
    """Its path in the folder."""
    heading: tuple[str, ...]
    """The headings above it, outermost first."""
    start: int
    end: int
    """Offsets in the text that was read: of the file itself; for an HTML page or a PDF, of its text."""
    anchor: str = ""
    """The fragment of the section's URL, after `#`."""


def place_of(hit: Hit) -> FilePlace:
    """Where in a file the hit's passage is; works only for documents of a folder."""
    values = {name: values[0] for name, values in hit.attributes.items() if values}
    start = int(values["at"]) + hit.start
    heading = tuple(values["heading"].split("\n")) if values["heading"] else ()
    return FilePlace(values["file"], heading, start, start + len(hit.text), values["anchor"])


class _SeenFile(NamedTuple):
    changed_ns: int
    size: int


class _KnownFile(NamedTuple):
    seen: _SeenFile
    documents: list[str]
    problem: str


def _files(folder: Path, endings: frozenset[str]) -> Iterator[tuple[str, _SeenFile]]:
    """Every document below a folder, by its relative path; hidden ones and links are left out."""
    return islice(_walk(os.fspath(folder), "", endings), FILES)


def _walk(folder: str, inside: str, endings: frozenset[str], depth: int = 0) -> Iterator[tuple[str, _SeenFile]]:
    try:
        with os.scandir(folder) as scanned:
            entries = sorted(scanned, key=lambda entry: entry.name)
    except OSError:  # no permission, or deleted meanwhile
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        try:
            if entry.is_dir(follow_symlinks=False):
                if depth < DEPTH:
                    yield from _walk(entry.path, f"{inside}{entry.name}{os.sep}", endings, depth + 1)
            elif entry.is_file(follow_symlinks=False) and os.path.splitext(entry.name)[1].lower() in endings:
                state = entry.stat(follow_symlinks=False)
                yield f"{inside}{entry.name}", _SeenFile(state.st_mtime_ns, state.st_size)
        except OSError:
            continue


def _read_file(root: Path, path: str) -> tuple[FileText, datetime] | FileUnreadable:
    """A file's sections with its time; raises whatever the library for its format raises."""
    file = root / path
    changed = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    try:
        return read_file(path, read_bytes(file, FILE_BYTES)), changed
    except FileUnreadable as error:
        return error
