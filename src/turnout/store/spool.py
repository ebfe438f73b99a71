"""A spool: the file a row is in before its decision is answered.

One `write` appends whole lines; a reader takes them away once the database has them. A process that dies leaves its
file, unlocked; whoever opens the folder next takes it over. So process death loses nothing, and because a line that is
taken twice is written once (rows have ids), nothing is doubled either.

Each line is the CRC-32 of its content in hex, a space, the content, a newline. A line torn by a full disk or a power
cut does not carry its checksum and is counted, not believed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from zlib import crc32

from turnout.core.ident import new_id

SUFFIX = ".spool"
# A segment is given up for a new one at this size: small enough to be removed soon, large enough that it is rare.
SEGMENT_BYTES = 4 * 1024 * 1024
# One transaction's worth: some 200 rows, a few milliseconds of work.
BATCH_BYTES = 256 * 1024
# An emptied segment is cut back to nothing above this size; below, it may as well be appended to.
CUT_BYTES = 1024 * 1024


class Segment:
    """One file of the spool. `size` and `done` say how much of it is written, and how much taken away."""

    __slots__ = ("done", "fd", "path", "size")

    def __init__(self, path: Path, fd: int, size: int = 0) -> None:
        self.path = path
        self.fd = fd
        self.size = size
        self.done = 0

    def remove(self) -> None:
        # Unlinked before it is closed: as long as it has a name it is locked, and nobody else takes it over.
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
        os.close(self.fd)


class Spool:
    """Appended to by any number of threads, taken from by one."""

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

    @property
    def backlog(self) -> int:
        """Bytes that are not yet taken away."""
        return self.written - self.taken

    def append(self, lines: bytes) -> int:
        """Write lines at the end; the position after them. Raises OSError, and then nothing was written."""
        with self._lock:
            if self.written - self.taken + len(lines) > self.limit_bytes:
                raise OSError(errno.EDQUOT, f"the spool holds {self.limit_bytes:,} bytes, its limit", str(self.folder))
            segment = self._active
            if segment is None or segment.size >= SEGMENT_BYTES:
                segment = self._open()
            count = os.write(segment.fd, lines)
            if count != len(lines):
                os.ftruncate(segment.fd, segment.size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(segment.path))
            segment.size += count
            self.written += count
            self.appends += 1
            return self.written

    def _open(self) -> Segment:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self.folder / (new_id() + SUFFIX)
        new = path.with_suffix(".new")
        # Locked before it has a spool's name: another process must never see a live segment without its lock.
        fd = os.open(new, os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_RDWR, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        new.rename(path)
        segment = Segment(path, fd)
        self._segments.append(segment)
        self._active = segment
        return segment

    def adopt(self) -> int:
        """Take over what processes that are gone have left; how many bytes that is."""
        found = 0
        for path in sorted(self.folder.glob(f"*{SUFFIX}")):
            try:
                fd = os.open(path, os.O_RDWR | os.O_APPEND)
            except FileNotFoundError:
                continue
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(fd)
                continue
            size = os.fstat(fd).st_size
            if os.fstat(fd).st_nlink == 0:  # its owner finished with it between our look and our lock
                os.close(fd)
                continue
            with self._lock:
                self._segments.appendleft(Segment(path, fd, size))
                self.written += size
            found += size
        return found

    def take(self) -> bytes:
        """Whole lines from the front, at most a batch. They stay until `release`."""
        while self._segments:
            segment = self._segments[0]
            # Asked before the size is read: a segment that is no longer appended to has its final size.
            active = segment is self._active
            if segment.done < segment.size:
                data = os.pread(segment.fd, min(segment.size - segment.done, BATCH_BYTES), segment.done)
                end = data.rfind(b"\n") + 1
                if end:
                    return data[:end]
                # A line longer than a batch, or the torn end of a segment that was taken over.
                data = os.pread(segment.fd, segment.size - segment.done, segment.done)
                end = data.find(b"\n") + 1
                return data[:end] if end else data
            if active:
                return b""
            self._segments.popleft().remove()
        return b""

    def release(self, count: int) -> None:
        """The first `count` bytes are safe elsewhere."""
        segment = self._segments[0]
        segment.done += count
        if segment.done == segment.size >= CUT_BYTES and segment is self._active:
            self._cut(segment)
        self.taken += count

    def _cut(self, segment: Segment) -> None:
        with self._lock:
            if segment.done == segment.size:
                os.ftruncate(segment.fd, 0)
                segment.done = segment.size = 0

    def rest(self) -> None:
        """Nothing is left to take: an empty file needs no replay after a crash."""
        segment = self._active
        if segment is not None and segment.size and segment.done == segment.size:
            self._cut(segment)

    def sync(self) -> None:
        """Make what is spooled survive a power cut: the database cannot take it for now."""
        with self._lock:
            segment = self._active
        if segment is not None:
            os.fdatasync(segment.fd)

    def close(self) -> None:
        """Leave nothing behind but what nobody has taken."""
        with self._lock:
            self._active = None
            while self._segments:
                segment = self._segments.popleft()
                if segment.done == segment.size:
                    segment.remove()
                else:
                    os.close(segment.fd)


def line(content: bytes) -> bytes:
    return b"%08x %b\n" % (crc32(content), content)


def contents(lines: bytes) -> Iterator[bytes | None]:
    """The content of each line; None for one that is torn."""
    for whole in lines.removesuffix(b"\n").split(b"\n"):
        content = whole[9:]
        yield content if whole[:9] == b"%08x " % crc32(content) else None
