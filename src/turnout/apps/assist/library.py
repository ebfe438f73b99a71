"""The libraries whose documents were ingested, all versions in one index.

An edition is one version of a library, read from one folder. Without a version of its own it follows its folder:
changes are found a moment later. A named version stays as it was read, as the folder may soon hold the next one.

Invariant: a search names its editions, so that it never finds a passage of another version.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from turnout.apps.request import invalid
from turnout.config.settings import data_folder
from turnout.core.embed import Embeds
from turnout.core.errors import FolderMissing, Refused, suggest
from turnout.search import Changes, Folder, Index, open_index
from turnout.search.folder import ReadProgress

from .version import NamedVersion, find_version, newest

NOTE = "editions"
# The name of an edition without a version.
LATEST = "latest"
# How often a followed folder is checked; it takes some milliseconds for a thousand files.
LOOK_S = 0.25
# Characters of documentation for each vector: of the tuning questions about manual pages (half of NL2Bash's) 27.6 %
# find their page first, two percentage points more than with windows of 250.
WINDOW = 150
# The least words of a question that are enough to search for.
LEFT = 3
_name = re.compile(r"[\w][\w.+-]{0,79}\Z")


class Edition(Struct, frozen=True):
    """One version of a library."""

    library: str
    version: str
    folder: str
    follows: bool
    """Changes in the folder are read."""
    ingested_at: datetime
    files: int = 0
    sections: int = 0
    unread: int = 0
    """Files that could not be read."""

    @property
    def name(self) -> str:
        return f"{self.library}@{self.version}"

    @property
    def id(self) -> str:
        """The id that documentation clients use."""
        return f"/local/{self.library}/{self.version}"


class EditionChoice(Struct, frozen=True):
    """The editions that a question is about."""

    editions: tuple[Edition, ...] = ()
    missing: str = ""
    """A sentence, if a version is named that does not exist."""
    named: tuple[str, ...] = ()
    """The names of libraries and versions in the question, which are not searched for."""

    def without_names(self, question: str) -> str:
        """The question without these names; unchanged if hardly a word would be left."""
        rest = question
        for name in self.named:
            pattern = rf"(?:\b(?:in|of|for|with|version|v)\s+)*(?<![\w.])v?{re.escape(name)}(?!\w)"
            rest = re.sub(pattern, " ", rest, flags=re.IGNORECASE)
        return rest if len(re.findall(r"\w+", rest)) >= LEFT else question


_editions = msgspec.json.Decoder(list[Edition])


class Libraries:
    """All editions. Blocking, one change at a time: an application awaits it in a thread."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._lock = threading.Lock()
        self._looked: dict[str, float] = {}

    def editions(self) -> list[Edition]:
        noted = self.index.note(NOTE)
        return _editions.decode(noted) if noted else []

    def ingest(
        self,
        folder: Path,
        library: str,
        version: str = "",
        *,
        follow: bool | None = None,
        progress: ReadProgress | None = None,
    ) -> tuple[Edition, Changes, dict[str, str]]:
        """Read a folder as a version of a library; unchanged files are not read again. Returns the edition, the changes
        and the unreadable files with the reasons."""
        for what, name in (("--library", library), ("--version", version or LATEST)):
            if not _name.match(name):
                raise invalid(f"{what} {name[:80]!r}: letters, digits, . _ + and -")
        found = Edition(
            library,
            version or LATEST,
            str(folder.absolute()),
            follow if follow is not None else not version,
            datetime.now(UTC),
        )
        with self._lock:
            kept = self._folder(found)
            changes = kept.sync(progress)
            # Passages read before an embedder was installed have no vectors yet.
            self.index.fill_vectors()
            files, sections = kept.count()
            found = replace(found, files=files, sections=sections, unread=len(kept.unread))
            self.index.change_note(NOTE, lambda noted: _with(noted, found))
        return found, changes, kept.unread

    def forget(self, library: str, version: str) -> int:
        """Remove an edition; returns how many sections it had."""
        with self._lock:
            found = next((one for one in self.editions() if (one.library, one.version) == (library, version)), None)
            if found is None:
                return 0
            deleted = self._folder(found).forget()
            self.index.change_note(NOTE, lambda noted: _with(noted, found, keep=False))
            return deleted

    def follow(self, editions: Sequence[Edition]) -> None:
        """Read changes in the followed folders; an edition whose folder is gone stays as it was read."""
        for one in editions:
            if not one.follows:
                continue
            with self._lock:
                if monotonic() - self._looked.get(one.name, -LOOK_S) < LOOK_S:
                    continue
                try:
                    self._folder(one).sync()
                except FolderMissing:
                    continue
                finally:
                    self._looked[one.name] = monotonic()

    def choose(self, question: str, library: str = "", version: str = "") -> EditionChoice:
        """The editions a question is about: named by the caller, else by the question, else the newest of each."""
        by_library: dict[str, list[Edition]] = {}
        for one in self.editions():
            by_library.setdefault(one.library, []).append(one)
        if library:
            if library not in by_library:
                known = ", ".join(by_library) or "none; turnout assist ingest DIR adds one"
                near = suggest(library, tuple(by_library))
                wrong = f"library {library[:80]!r} was not ingested{near}: there is {known}"
                raise Refused(404, "not_found_error", wrong)
            by_library = {library: by_library[library]}
        elif named := {name: one for name, one in by_library.items() if _names(question, name)}:
            by_library = named
        chosen, missing = [], ""
        names = [name for name in by_library if _names(question, name)]
        for name, editions in by_library.items():
            known_versions = {one.version: one for one in editions}
            written = find_version(question, name, known_versions)
            meant = NamedVersion(version, version) if version else written
            if meant is not None and meant.version not in known_versions:
                others = ", ".join(sorted(known_versions))
                missing = missing or f"{name} {meant.said} is not among the documents; there is {others}"
                continue
            chosen.append(known_versions[meant.version if meant is not None else newest(known_versions)])
            names += [written.said] if written is not None else []
        return EditionChoice(tuple(chosen), "" if chosen else missing, tuple(sorted(names, key=len, reverse=True)))

    def _folder(self, one: Edition) -> Folder:
        attributes = {"library": one.library, "version": one.version, "edition": one.name}
        return Folder(Path(one.folder), self.index, name=one.name, attributes=attributes)


def shared_place(store: str) -> str | None:
    """The store's database, if it is PostgreSQL, which several servers share. SQLite has one writer for each file, and
    the log is written all the time, so there the libraries have their own file."""
    return store if store.startswith(("postgres://", "postgresql://")) else None


def open_libraries(where: Path | str | None = None, embedder: Embeds | None = None) -> Libraries:
    """Open the libraries; `where` is a file or the URL of a PostgreSQL database."""
    if where is None:
        folder = data_folder() / "search"
        folder.mkdir(parents=True, exist_ok=True)
        where = folder / "assist.db"
    return Libraries(open_index(where, "assist", embedder=embedder, window=WINDOW))


def _with(noted: str, one: Edition, *, keep: bool = True) -> str:
    others = [each for each in (_editions.decode(noted) if noted else []) if each.name != one.name]
    return msgspec.json.encode([*others, one] if keep else others).decode()


def _names(question: str, library: str) -> bool:
    """Whether a question names a library."""
    return re.search(rf"(?<![\w.]){re.escape(library)}(?!\w)", question, re.IGNORECASE) is not None
