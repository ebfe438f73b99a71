"""Weights in the safetensors format, read with NumPy alone: a length, a JSON header, raw numbers.

Nothing in such a file is executed, and nothing in its header is believed before it is checked against the file's size.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from turnout.core.errors import WeightsRefused

if TYPE_CHECKING:
    import numpy

# The eight bytes before the header are its length; the format's own reader takes no header longer than this.
LENGTH_BYTES = 8
HEADER_BYTES = 100_000_000


class _Entry(Struct, frozen=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


def read_tensors(path: Path) -> dict[str, numpy.ndarray[Any, Any]]:
    """Every float32 tensor of a file by its name, mapped into memory and not writable."""
    import numpy as np

    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(LENGTH_BYTES), "little")
        if size < LENGTH_BYTES or length > min(size - LENGTH_BYTES, HEADER_BYTES):
            raise WeightsRefused(f"{path}: not safetensors, its header would be {length:,} bytes of {size:,}")
        raw = file.read(length)
    try:
        header = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        header.pop("__metadata__", None)
        entries = {name: msgspec.json.decode(entry, type=_Entry) for name, entry in header.items()}
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise WeightsRefused(f"{path}: not safetensors, its header cannot be read ({error})") from None
    start = LENGTH_BYTES + length
    found: dict[str, numpy.ndarray[Any, Any]] = {}
    for name, entry in entries.items():
        if entry.dtype != "F32":
            continue
        begin, end = entry.data_offsets
        if min(entry.shape, default=0) < 0 or not 0 <= begin <= end <= size - start:
            raise WeightsRefused(f"{path}: {name[:80]!r} lies outside the file")
        if end - begin != 4 * math.prod(entry.shape):
            raise WeightsRefused(f"{path}: {name[:80]!r} has {end - begin:,} bytes, which is not {entry.shape}")
        # Little-endian is what the format says, whatever this machine is.
        found[name] = np.memmap(path, "<f4", "r", offset=start + begin, shape=entry.shape)
    return found
