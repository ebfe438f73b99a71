"""The libraries whose documents were ingested, version beside version, in one index.

An edition is one version of a library, read from one folder. One that has no version of its own follows its folder:
what is saved there is found a moment later. A version stays as it was read: the folder may hold the next one tomorrow.

Invariant: a search names its editions, so that no passage of another version is ever among its hits.
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

from turnout.config.settings import data_folder
from turnout.core.embed import Embeds
from turnout.core.errors import FolderMissing, Refused, suggest
from turnout.search import Changes, Folder, Index, open_index
from turnout.search.folder import ReadProgress

from .version import NamedVersion, find_version, newest

NOTE = "editions"
# The version of what has none.
LATEST = "latest"
# How often a folder that is followed is looked at again; it takes some milliseconds for a thousand files.
LOOK_S = 0.25
# Characters of documentation that get a vector of their own: of the questions to manual pages that were tuned on (half
# of NL2Bash's) 27.6 % find their page first, two more of a hundred than with windows of 250.
WINDOW = 150
# Words of a question that can be searched for.
LEFT = 3
_name = re.compile(r"[\w][\w.+-]{0,79}\Z")


class Edition(Struct, frozen=True):
    """One version of a library."""

    library: str
    version: str
    folder: str
    follows: bool
    """What changes in the folder is read again."""
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
        """By which a documentation client names it."""
        return f"/local/{self.library}/{self.version}"


class EditionChoice(Struct, frozen=True):
    """Which editions a question is asked of."""

    editions: tuple[Edition, ...] = ()
    missing: str = ""
    """A sentence, where a version is named that is not there."""
    named: tuple[str, ...] = ()
    """The words of the question that say which: they are nothing to search for."""

    def without_names(self, question: str) -> str:
        """The question without the words that were understood; as it is, if hardly any are left."""
        rest = question
        for name in self.named:
            found = rf"(?:\b(?:in|of|for|with|version|v)\s+)*(?<![\w.])v?{re.escape(name)}(?!\w)"
            rest = re.sub(found, " ", rest, flags=re.IGNORECASE)
        return rest if len(re.findall(r"\w+", rest)) >= LEFT else question


_editions = msgspec.json.Decoder(list[Edition])


class Libraries:
    """Every edition there is. Blocking, one change at a time: an application awaits it in a thread."""

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
        """Read a folder as a version of a library: what was read from it before and has not changed is not read again.
        Also what could not be read, and why."""
        for what, name in (("--library", library), ("--version", version or LATEST)):
            if not _name.match(name):
                raise Refused(422, "invalid_request_error", f"{what} {name[:80]!r}: letters, digits, . _ + and -")
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
            # What was read before an embedder was installed has no vectors yet.
            self.index.fill_vectors()
            files, sections = kept.count()
            found = replace(found, files=files, sections=sections, unread=len(kept.unread))
            self.index.change_note(NOTE, lambda noted: _with(noted, found))
        return found, changes, kept.unread

    def forget(self, library: str, version: str) -> int:
        """Remove an edition; how many sections it had."""
        with self._lock:
            found = next((one for one in self.editions() if (one.library, one.version) == (library, version)), None)
            if found is None:
                return 0
            deleted = self._folder(found).forget()
            self.index.change_note(NOTE, lambda noted: _with(noted, found, keep=False))
            return deleted

    def follow(self, editions: Sequence[Edition]) -> None:
        """Read what has changed in the folders that are followed; a folder that is gone is left as it was read."""
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
        """The editions a question is about: as the caller says, else as the question says, else the newest of each."""
        by_library: dict[str, list[Edition]] = {}
        for one in self.editions():
            by_library.setdefault(one.library, []).append(one)
        if library:
            if library not in by_library:
                known = ", ".join(by_library) or "none; turnout assist ingest DIR adds one"
                near = suggest(library, tuple(by_library))
                said = f"library {library[:80]!r} was not ingested{near}: there is {known}"
                raise Refused(404, "not_found_error", said)
            by_library = {library: by_library[library]}
        elif named := {name: one for name, one in by_library.items() if _names(question, name)}:
            by_library = named
        chosen, missing = [], ""
        names = [name for name in by_library if _names(question, name)]
        for name, editions in by_library.items():
            there = {one.version: one for one in editions}
            meant = NamedVersion(version, version) if version else find_version(question, name, there)
            if meant is not None and meant.version not in there:
                missing = missing or (
                    f"{name} {meant.said} is not among the documents; there is {', '.join(sorted(there))}"
                )
                continue
            chosen.append(there[meant.version if meant is not None else newest(there)])
            written = find_version(question, name, there)
            names += [written.said] if written is not None else []
        return EditionChoice(tuple(chosen), "" if chosen else missing, tuple(sorted(names, key=len, reverse=True)))

    def _folder(self, one: Edition) -> Folder:
        said = {"library": one.library, "version": one.version, "edition": one.name}
        return Folder(Path(one.folder), self.index, name=one.name, attributes=said)


def shared_place(store: str) -> str | None:
    """Where libraries are that several servers share: in the store's database, if that is PostgreSQL. SQLite has one
    writer a file, and the log is written all the time: there they have a file of their own."""
    return store if store.startswith(("postgres://", "postgresql://")) else None


def open_libraries(where: Path | str | None = None, embedder: Embeds | None = None) -> Libraries:
    """The libraries of this user; `where` is a file, or the address of a PostgreSQL that several servers share."""
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
