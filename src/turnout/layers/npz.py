"""Arrays from an `.npz` file of unknown origin: what it claims is checked first, and only then is it unpacked.

Nothing in the file is run or evaluated: the header of an array is read by a pattern, not as Python. Every size is
known, and refused if it is too large, before a byte is unpacked. Whatever a file holds, it is read or an
ArtefactUnreadable says in one sentence why not.
"""

from __future__ import annotations

import math
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from turnout.core.errors import ArtefactUnreadable

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

# What is unpacked at most. A student of 200 labels and a million n-grams stays below it.
MOST_BYTES = 256 * 1024 * 1024
# Weights are packed to a half or a tenth, tables that are mostly zeros to a hundredth. Up to this size any ratio will
# do; above it, a file that grows more than so many times was made to do so.
PLAIN_BYTES = 64 * 1024 * 1024
MOST_RATIO = 64
# A student has eight arrays. The directory has some 70 bytes for each.
MOST_MEMBERS = 64
MOST_DIRECTORY_BYTES = 16 * 1024
# NumPy pads the header of an array to 128 bytes.
MOST_HEADER_BYTES = 1024
MOST_DIMENSIONS = 4

_END = struct.Struct("<4s4H2LH")
_LOCATOR_BYTES = 20
_member = re.compile(r"([a-z][a-z_]{0,40})\.npy").fullmatch
_magic = re.compile(rb"\x93NUMPY(?:\x01\x00(?P<short>..)|[\x02\x03]\x00(?P<long>....))", re.DOTALL).match
_header = re.compile(
    rb"\{'descr': '(?P<dtype>[<>|=][biuf][1248])', 'fortran_order': (?P<order>True|False), "
    rb"'shape': \((?P<shape>[\d, ]*)\),? *\} *\n?"
).fullmatch


_TYPES = {"b": "bool", "i": "int", "u": "uint", "f": "float"}


class Form(NamedTuple):
    """What an array says of itself, before it is unpacked."""

    dtype: str
    """`float32`"""
    shape: tuple[int, ...]


class Packed(NamedTuple):
    """An array as it stood in the file."""

    form: Form
    descr: str
    """`<f4`"""
    columns_first: bool
    raw: bytes

    def numpy(self) -> Array:
        import numpy as np

        found = np.frombuffer(self.raw, np.dtype(self.descr), math.prod(self.form.shape))
        return found.reshape(self.form.shape, order="F" if self.columns_first else "C")

    def floats(self) -> list[float]:
        """The numbers of a small array of float32, row by row, without NumPy."""
        # A header may also leave the order of bytes to the machine: "=f4", "|f4".
        order = self.descr[0] if self.descr[0] in "<>" else "="
        found = list(struct.unpack(f"{order}{math.prod(self.form.shape)}f", self.raw))
        if self.columns_first and len(self.form.shape) == 2:
            rows = self.form.shape[0]
            found = [one for row in range(rows) for one in found[row::rows]]
        return found

    def octets(self) -> bytes:
        """Those of an array of bytes, row by row, without NumPy."""
        if not self.columns_first or len(self.form.shape) != 2:
            return self.raw
        rows, columns = self.form.shape
        found = bytearray(len(self.raw))
        for column in range(columns):
            found[column::columns] = self.raw[column * rows : (column + 1) * rows]
        return bytes(found)


class _Member(NamedTuple):
    entry: zipfile.ZipInfo
    start: int
    """Where its numbers begin."""
    form: Form
    descr: str
    columns_first: bool


Check = Callable[[Mapping[str, Form]], list[str]]


def read_arrays(path: Path, raw: bytes, check: Check) -> dict[str, Packed]:
    """Every array of a file by its name, if `check` has nothing against what they claim to be."""
    try:
        _check_directory(raw)
        with zipfile.ZipFile(BytesIO(raw)) as packed:
            members = _members(packed, len(raw))
            _refuse(check({name: one.form for name, one in members.items()}))
            return {name: _unpack(packed, one) for name, one in members.items()}
    except _Unfit as error:
        raise ArtefactUnreadable(path, str(error)) from None
    except _DAMAGED as error:
        raise ArtefactUnreadable(path, f"not arrays without code: {str(error) or type(error).__name__}") from None


class _Unfit(Exception):
    """What is wrong with a file, in words."""


def _refuse(problems: list[str]) -> None:
    for problem in problems:
        raise _Unfit(problem)


# What the directory or a member may be damaged into. RuntimeError is what zipfile says of an encrypted member.
_PACKED = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError)
_DAMAGED = (*_PACKED, OSError, ValueError, LookupError, OverflowError)


def _check_directory(raw: bytes) -> None:
    """A directory of millions of members would be read whole before one could look at it."""
    if len(raw) < _END.size or raw[-_END.size :][:4] != b"PK\5\6":
        raise _Unfit("not arrays without code: it does not end as a zip file does, or was cut off")
    _, _, _, _, members, size, _, _ = _END.unpack(raw[-_END.size :])
    if raw[-_END.size - _LOCATOR_BYTES :][:4] == b"PK\6\7":
        raise _Unfit("it has the directory of a zip file over 4 GB, which no trained model is")
    if members > MOST_MEMBERS or size > MOST_DIRECTORY_BYTES:
        raise _Unfit(f"{members:,} members in a directory of {size:,} bytes; {MOST_MEMBERS} are read at most")


def _members(packed: zipfile.ZipFile, size: int) -> dict[str, _Member]:
    entries = packed.infolist()
    whole = sum(entry.file_size for entry in entries)
    if whole > MOST_BYTES:
        raise _Unfit(f"{whole:,} bytes of arrays; {MOST_BYTES:,} are read at most")
    if whole > max(PLAIN_BYTES, MOST_RATIO * size):
        raise _Unfit(f"{whole:,} bytes of arrays from a file of {size:,}; it may grow {MOST_RATIO} times at most")
    found: dict[str, _Member] = {}
    for entry in entries:
        named = _member(entry.filename)
        if named is None:
            raise _Unfit(f"{entry.filename[:60]!r} is no array of a trained model")
        if named[1] in found:
            raise _Unfit(f"{named[1]!r} stands in it twice")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _Unfit(f"{named[1]!r} is packed in a way ({entry.compress_type}) NumPy does not use")
        found[named[1]] = _read_header(packed, entry, named[1])
    return found


def _read_header(packed: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> _Member:
    with packed.open(entry) as file:
        head = file.read(MOST_HEADER_BYTES)
    magic = _magic(head)
    if magic is None:
        raise _Unfit(f"{name!r} is no array of NumPy's")
    start = magic.end() + int.from_bytes(magic["short"] or magic["long"], "little")
    told = _header(head[magic.end() : start]) if start <= len(head) else None
    sizes = [part.strip() for part in told["shape"].split(b",")] if told is not None else []
    if sizes and not sizes[-1]:
        sizes.pop()
    if told is None or len(sizes) > MOST_DIMENSIONS or not all(0 < len(part) < 20 and part.isdigit() for part in sizes):
        raise _Unfit(f"not arrays without code: the header of {name!r} is not one of plain numbers")
    descr = told["dtype"].decode()
    size = int(descr[2])
    form = Form("bool" if descr[1:] == "b1" else f"{_TYPES[descr[1]]}{size * 8}", tuple(map(int, sizes)))
    claimed = math.prod(form.shape) * size
    if claimed != entry.file_size - start:
        like = " x ".join(map(str, form.shape)) or "one number"
        raise _Unfit(f"{name!r} claims {like} of {form.dtype}, {claimed:,} bytes, and has {entry.file_size - start:,}")
    return _Member(entry, start, form, descr, told["order"] == b"True")


def _unpack(packed: zipfile.ZipFile, member: _Member) -> Packed:
    with packed.open(member.entry) as file:
        raw = file.read(member.entry.file_size)
    return Packed(member.form, member.descr, member.columns_first, raw[member.start :])
