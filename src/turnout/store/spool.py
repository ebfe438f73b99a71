"""The spool: files that hold rows until the database has them.

One `write` appends whole lines; the reader releases them once they are committed. A process that dies leaves its file
unlocked, and the next process that opens the folder takes it over, so process death loses no row. Rows have ids, so a
line that is read twice is stored once.

Any number of threads append. One thread takes, releases, adopts, restores and closes, so that no file is closed while
it is read. Files are read in the order in which their bytes were counted, so a position tells which lines are taken.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
from collections import deque
from pathlib import Path
from threading import Lock

from msgspec import Struct

from turnout.core.decision import new_id

SUFFIX = ".spool"
UNNAMED = ".new"
# At this size a new segment is started: small enough to be removed soon, large enough to be rare.
SEGMENT_BYTES = 4 * 1024 * 1024
# One transaction's worth: some 300 rows, ten milliseconds of work.
BATCH_BYTES = 512 * 1024
# An emptied segment is truncated above this size; below, rows are appended to it.
CUT_BYTES = 1024 * 1024
# A new file that another process removed as a dead one's is made again; that hardly happens twice in a row.
ATTEMPTS = 4
CLOSED = "the store is closed, or was opened before a fork: open it where it is used"

log = logging.getLogger("turnout.store")


class Segment(Struct, eq=False):
    """One file of the spool: how much of it is written, how much is released, how much survives a power cut."""

    path: Path
    fd: int
    size: int = 0
    done: int = 0
    synced: int = 0
    named: bool = False
    """Whether its name survives a power cut."""

    @property
    def in_place(self) -> bool:
        """Whether its name still leads to it."""
        try:
            return os.path.samestat(self.path.stat(), os.fstat(self.fd))
        except FileNotFoundError:
            return False

    def remove(self) -> None:
        # Unlinked before it is closed: while it has a name it stays locked, and no other process takes it over.
        with contextlib.suppress(OSError):
            self.path.unlink()
        _close(self.fd)


class Spool:
    """The spool of one process: any number of threads append, one reads."""

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self.folder = folder
        self.limit_bytes = limit_bytes
        self.written = 0
        """Bytes appended or taken over, ever."""
        self.taken = 0
        self.appends = 0
        self._lock = Lock()
        self._segments: deque[Segment] = deque()
        self._active: Segment | None = None
        self._closed = False
        self._told: set[Path] = set()

    @property
    def backlog(self) -> int:
        """Bytes that are not released yet."""
        taken = self.taken  # read first: rows written meanwhile cannot make the difference negative
        return self.written - taken

    def append(self, lines: bytes) -> int:
        """Write lines at the end and return the position after them. Raises OSError if nothing was written."""
        size = len(lines)
        with self._lock:
            if self.written - self.taken + size > self.limit_bytes:
                raise OSError(errno.EDQUOT, f"the spool holds {self.limit_bytes:,} bytes, its limit", str(self.folder))
            segment = self._active
            if segment is None or segment.size >= SEGMENT_BYTES:
                segment = self._open()
            # At a known position, so that the rest of an interrupted or failed call is overwritten.
            try:
                count = os.pwrite(segment.fd, lines, segment.size)
                if count != size:
                    _finish(segment, lines, count)
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(self.folder)) from None
            segment.size += size
            self.appends += 1
            self.written = end = self.written + size
            return end

    def _open(self) -> Segment:
        if self._closed:
            raise ValueError(CLOSED)
        segment = self._create()
        # Active before it is listed: the reader removes what is listed, empty and not active.
        self._active = segment
        self._segments.append(segment)
        return segment

    def _create(self) -> Segment:
        """A new file, locked before it gets a spool's name: no process must see it without its lock."""
        attempt = 1
        while True:
            path = self.folder / (new_id() + SUFFIX)
            new = path.with_suffix(UNNAMED)
            fd = -1
            try:
                self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                fd = os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                new.rename(path)
            except OSError as error:
                if fd >= 0:
                    _close(fd)
                # It was just removed, by `adopt` in another process or by a person.
                if not isinstance(error, (BlockingIOError, FileNotFoundError)) or attempt == ATTEMPTS:
                    with contextlib.suppress(OSError):
                        new.unlink()
                    raise
                attempt += 1
            else:
                return Segment(path, fd)

    def adopt(self) -> int:
        """Take over the files of processes that are gone; returns how many."""
        found = 0
        for path in sorted(self.folder.glob("*")):
            if path.suffix in (SUFFIX, UNNAMED):
                try:
                    found += self._adopt(path)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    if path not in self._told:
                        self._told.add(path)
                        log.warning("%s was left behind and cannot be taken over: %s", path, error)
        return found

    def _adopt(self, path: Path) -> bool:
        fd = os.open(path, os.O_RDWR)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # alive
            _close(fd)
            return False
        except OSError:
            _close(fd)
            raise
        segment = Segment(path, fd, os.fstat(fd).st_size)
        if not segment.in_place:  # its owner removed or named it before we locked it
            _close(fd)
            return False
        if not segment.size:
            segment.remove()
            return True
        with self._lock:
            # New rows go into a file behind it.
            self._active = None
            self._segments.append(segment)
            self.written += segment.size
        return True

    def take(self) -> bytes:
        """Whole lines from the front, at most a batch. They stay in the spool until `release`."""
        while self._segments:
            segment = self._segments[0]
            # Checked before the size is read: a segment that is no longer appended to has its final size.
            active = segment is self._active
            if segment.done < segment.size:
                data = os.pread(segment.fd, min(segment.size - segment.done, BATCH_BYTES), segment.done)
                end = data.rfind(b"\n") + 1
                if end:
                    return data[:end]
                # A line longer than a batch, or the torn end of a segment that was taken over.
                data = os.pread(segment.fd, segment.size - segment.done, segment.done)
                end = data.find(b"\n") + 1
                # The missing part of a truncated file counts as zeros, which are a torn line.
                return data[:end] if end else data or bytes(segment.size - segment.done)
            if active:
                return b""
            self._segments.popleft().remove()
        return b""

    def release(self, count: int) -> None:
        """Drop the first `count` bytes: they are committed."""
        segment = self._segments[0]
        segment.done += count
        self.taken += count
        if segment.done == segment.size >= CUT_BYTES and segment is self._active:
            self._cut(segment)

    def _cut(self, segment: Segment) -> None:
        with self._lock:
            if segment.done == segment.size:
                # A file that cannot be truncated grows until it is replaced.
                with contextlib.suppress(OSError):
                    os.ftruncate(segment.fd, 0)
                    segment.done = segment.size = segment.synced = 0

    def rest(self) -> None:
        """Truncate the file if all of it is released: an empty file needs no replay after a crash."""
        segment = self._active
        if segment is not None and segment.size and segment.done == segment.size:
            self._cut(segment)

    def restore(self) -> int:
        """Write the unreleased rows of removed files into new ones; returns how many bytes."""
        segments = list(self._segments)
        # Files are usually removed all at once: checking two of them is enough.
        if all(segment.in_place for segment in (*segments[:1], *segments[1:][-1:])):
            return 0
        restored = 0
        for segment in [segment for segment in segments if not segment.in_place]:
            with self._lock:
                fresh = self._create()
                data = os.pread(segment.fd, segment.size - segment.done, segment.done)
                try:
                    _finish(fresh, data, 0)
                except OSError:
                    fresh.remove()
                    raise
                _close(segment.fd)
                segment.fd, segment.path, segment.named = fresh.fd, fresh.path, False
                segment.size, segment.done, segment.synced = len(data), 0, 0
            restored += len(data)
        return restored

    def sync(self) -> None:
        """Make unreleased rows survive a power cut."""
        unsynced = [segment for segment in list(self._segments) if max(segment.synced, segment.done) < segment.size]
        for segment in unsynced:
            size = segment.size
            os.fdatasync(segment.fd)
            segment.synced = size
        if not all(segment.named for segment in unsynced):
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                _close(folder)
            for segment in unsynced:
                segment.named = True

    def close(self) -> None:
        """Remove the files, except those with unreleased rows."""
        with self._lock:
            self._closed = True
            self._active = None
            while self._segments:
                segment = self._segments.popleft()
                if segment.done == segment.size:
                    segment.remove()
                else:
                    _close(segment.fd)

    def forget(self) -> None:
        """Close the files in a forked child: they and their locks are the parent's. Takes no lock, because the parent
        may have held it."""
        self._closed = True
        self._active = None
        while self._segments:
            _close(self._segments.popleft().fd)


def spool_size(folder: Path) -> tuple[int, int]:
    """The bytes in a spool, without changing it: those in files of running processes, some of which the database may
    have already, and those left by processes that are gone."""
    held = left = 0
    for path in folder.glob(f"*{SUFFIX}"):
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                left += size
            except BlockingIOError:
                held += size
    return held, left


def _close(fd: int) -> None:
    """Close and ignore errors: the descriptor is closed anyway, and checksums verify what was written."""
    with contextlib.suppress(OSError):
        os.close(fd)


def _finish(segment: Segment, lines: bytes, count: int) -> None:
    """Write the rest of lines of which `count` bytes were written; if that fails, undo it and raise the reason."""
    try:
        while count < len(lines):
            count += os.pwrite(segment.fd, lines[count:], segment.size + count)
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(segment.fd, segment.size)
        raise
