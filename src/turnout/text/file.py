"""Reads untrusted files safely and writes files atomically; every failure is an OSError.

Opening a pipe may block forever, a device such as /dev/zero has no end, a name may contain a NUL. Here each of these is
an OSError whose `strerror` is a few words for people. A file that is written here is either complete or absent, even
after a power cut.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

DEVNULL = Path(os.devnull)


def read_bytes(path: Path, most: int) -> bytes:
    """The content of a regular file of at most `most` bytes. `/dev/null` counts as an empty file."""
    try:
        with open(path, "rb", opener=_open) as file:
            known = os.fstat(file.fileno())
            if not stat.S_ISREG(known.st_mode) and path != DEVNULL:
                raise OSError(errno.EINVAL, "Not a regular file")
            # Not `read(most)`, which would allocate that much memory first.
            content = file.read(known.st_size + 1) if known.st_size <= most else b""
    except ValueError as error:  # a name with a NUL in it
        raise OSError(errno.EINVAL, str(error)) from None
    if max(known.st_size, len(content)) > most:
        raise OSError(errno.EFBIG, f"Larger than {most:,} bytes")
    return content


def _open(path: str, flags: int) -> int:
    # Without O_NONBLOCK, opening a pipe waits for a writer.
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a temporary file and rename it; when this returns, the content is on disk."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.part")
    try:
        with aside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
        sync_folder(path.parent)
    finally:
        aside.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Flush a folder, so that new names in it are on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def reason_of(error: OSError) -> str:
    """Why a file cannot be read, without its name."""
    return error.strerror or str(error) or type(error).__name__
