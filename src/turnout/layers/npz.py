"""Reads arrays from an untrusted `.npz` file: its claims are checked first, and only then is it unpacked.

Nothing in the file is run or evaluated: the header of an array is parsed by a pattern, not as Python. All sizes are
checked before a byte is unpacked. A file is either read, or refused with an ArtefactUnreadable that says why.
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

# The most bytes that are unpacked. A student of 200 labels and a million n-grams has fewer.
MOST_BYTES = 256 * 1024 * 1024
# Weights compress to a half or a tenth, tables of mostly zeros to a hundredth. Up to this size any ratio is accepted;
# above it, a file with a larger ratio than this is a decompression bomb.
PLAIN_BYTES = 64 * 1024 * 1024
MOST_RATIO = 64
# A student has eight arrays, with about 70 bytes each in the directory.
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
    """The type and shape of an array."""

    dtype: str
    """`float32`"""
    shape: tuple[int, ...]


class PackedArray(NamedTuple):
    """An array as in the file."""

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
        """The numbers of a small float32 array, row by row, without NumPy."""
        # A header may also use the machine's byte order: "=f4", "|f4".
        order = self.descr[0] if self.descr[0] in "<>" else "="
        numbers = list(struct.unpack(f"{order}{math.prod(self.form.shape)}f", self.raw))
        if self.columns_first and len(self.form.shape) == 2:
            rows = self.form.shape[0]
            numbers = [one for row in range(rows) for one in numbers[row::rows]]
        return numbers

    def octets(self) -> bytes:
        """The content of an array of bytes, row by row, without NumPy."""
        if not self.columns_first or len(self.form.shape) != 2:
            return self.raw
        rows, columns = self.form.shape
        octets = bytearray(len(self.raw))
        for column in range(columns):
            octets[column::columns] = self.raw[column * rows : (column + 1) * rows]
        return bytes(octets)


class _Member(NamedTuple):
    entry: zipfile.ZipInfo
    start: int
    """The offset of its numbers."""
    form: Form
    descr: str
    columns_first: bool


Check = Callable[[Mapping[str, Form]], list[str]]


def read_arrays(path: Path, raw: bytes, check: Check) -> dict[str, PackedArray]:
    """Every array of a file by its name. `check` returns the problems of their types and shapes."""
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
    """The file is refused; the message says why."""


def _refuse(problems: list[str]) -> None:
    for problem in problems:
        raise _Unfit(problem)


# The errors that a damaged file may cause. zipfile raises RuntimeError for an encrypted member.
_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError),
    *(OSError, ValueError, LookupError, OverflowError),
)


def _check_directory(raw: bytes) -> None:
    """Check the size of the directory, because zipfile would read millions of members at once."""
    if len(raw) < _END.size or raw[-_END.size :][:4] != b"PK\5\6":
        raise _Unfit("not arrays without code: it does not end as a zip file does, or was cut off")
    _, _, _, _, members, size, _, _ = _END.unpack(raw[-_END.size :])
    if raw[-_END.size - _LOCATOR_BYTES :][:4] == b"PK\6\7":
        raise _Unfit("it has the directory of a zip file over 4 GB, which no trained model is")
    if members > MOST_MEMBERS or size > MOST_DIRECTORY_BYTES:
        raise _Unfit(f"{members:,} members in a directory of {size:,} bytes; {MOST_MEMBERS} are read at most")


def _members(packed: zipfile.ZipFile, size: int) -> dict[str, _Member]:
    entries = packed.infolist()
    total = sum(entry.file_size for entry in entries)
    if total > MOST_BYTES:
        raise _Unfit(f"{total:,} bytes of arrays; {MOST_BYTES:,} are read at most")
    if total > max(PLAIN_BYTES, MOST_RATIO * size):
        raise _Unfit(f"{total:,} bytes of arrays from a file of {size:,}; it may grow {MOST_RATIO} times at most")
    members: dict[str, _Member] = {}
    for entry in entries:
        match = _member(entry.filename)
        if match is None:
            raise _Unfit(f"{entry.filename[:60]!r} is not an array of a trained model")
        name = match[1]
        if name in members:
            raise _Unfit(f"{name!r} stands in it twice")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _Unfit(f"{name!r} is packed in a way ({entry.compress_type}) NumPy does not use")
        members[name] = _read_header(packed, entry, name)
    return members


def _read_header(packed: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> _Member:
    with packed.open(entry) as file:
        head = file.read(MOST_HEADER_BYTES)
    magic = _magic(head)
    if magic is None:
        raise _Unfit(f"{name!r} is not an array of NumPy's")
    start = magic.end() + int.from_bytes(magic["short"] or magic["long"], "little")
    header = _header(head[magic.end() : start]) if start <= len(head) else None
    sizes = [part.strip() for part in header["shape"].split(b",")] if header is not None else []
    if sizes and not sizes[-1]:
        sizes.pop()
    plain = len(sizes) <= MOST_DIMENSIONS and all(0 < len(part) < 20 and part.isdigit() for part in sizes)
    if header is None or not plain:
        raise _Unfit(f"not arrays without code: the header of {name!r} is not one of plain numbers")
    descr = header["dtype"].decode()
    size = int(descr[2])
    form = Form("bool" if descr[1:] == "b1" else f"{_TYPES[descr[1]]}{size * 8}", tuple(map(int, sizes)))
    claimed = math.prod(form.shape) * size
    if claimed != entry.file_size - start:
        like = " x ".join(map(str, form.shape)) or "one number"
        raise _Unfit(f"{name!r} claims {like} of {form.dtype}, {claimed:,} bytes, and has {entry.file_size - start:,}")
    return _Member(entry, start, form, descr, header["order"] == b"True")


def _unpack(packed: zipfile.ZipFile, member: _Member) -> PackedArray:
    with packed.open(member.entry) as file:
        raw = file.read(member.entry.file_size)
    return PackedArray(member.form, member.descr, member.columns_first, raw[member.start :])
