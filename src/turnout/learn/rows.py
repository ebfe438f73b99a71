"""Reads the rows of an untrusted JSONL, CSV or Parquet file, each with its location.

A row that cannot be read is returned as a `BadRow`, so that every mistake of a file can be reported at once.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path as File
from typing import Any, BinaryIO

import msgspec

from turnout.core.errors import Problem, TurnoutError, suggest
from turnout.core.query import MAX_CHARACTERS

# Enough for the longest text that is routed, written with escapes.
MAX_LINE_BYTES = 4 * MAX_CHARACTERS
# Mistakes shown of a long list: about a screen.
SHOWN = 20
# Characters of a value that a mistake quotes.
QUOTED = 60
DELIMITERS = ",;\t|"
_BOM = b"\xef\xbb\xbf"


class BadRow(Exception):
    """A row that cannot be used, and why."""


def read_file(path: File, columns: Sequence[str], take: Take, form: str, known: Sequence[str] = ()) -> list[Problem]:
    """Pass every row to `take`, which may raise BadRow, and return the problems. `form` is an example of a row."""
    problems: list[Problem] = []
    seen = 0
    try:
        for where, row in read_rows(path, columns, known):
            seen += 1
            try:
                if isinstance(row, BadRow):
                    raise row
                take(where, row)
            except BadRow as wrong:
                problems.append(Problem(where, str(wrong)))
    except OSError as error:
        return [*problems, Problem(str(path), f"cannot be read: {error.strerror or error}")]
    return problems if seen else [Problem(str(path), f"no rows in it: one a line, {form}")]


Located = tuple[str, "Mapping[str, Any] | BadRow"]
Take = Callable[[str, Mapping[str, Any]], None]


def quote(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= QUOTED else f"{shown[:QUOTED]}…"


def read_rows(path: File, columns: Sequence[str], known: Sequence[str] = ()) -> Iterator[Located]:
    """Every row with its location; a BadRow where one cannot be read.

    A CSV file must have these columns, the text first. Of a Parquet file only the `known` columns are read, if any are
    named.
    """
    ending = path.suffix.lower()
    if ending in (".parquet", ".pq"):
        yield from _parquet(path, known)
        return
    with path.open("rb") as file:
        if ending in (".csv", ".tsv"):
            yield from _csv(path, file, columns)
        else:
            yield from _jsonl(path, file)


def read_head(path: File) -> list[str]:
    """The names of a file's columns, or the fields of the first row of JSONL. Raises BadRow if it cannot be read."""
    ending = path.suffix.lower()
    if ending in (".csv", ".tsv"):
        with path.open("rb") as file:
            line = next(_lines(file), (1, b""))[1]
        if line is None:
            raise BadRow(_TOO_LONG)
        try:
            head = line.decode()
        except UnicodeDecodeError:
            raise BadRow(_NOT_UTF8) from None
        return _names(head, _delimiter(head, ())) if head.strip() else []
    for _, row in read_rows(path, ()):
        if isinstance(row, BadRow):
            raise row
        return list(row)
    return []


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Every line with its number; None for a line that is too long."""
    number = 0
    while line := file.readline(MAX_LINE_BYTES):
        number += 1
        if number == 1:
            line = line.removeprefix(_BOM)
        if len(line) >= MAX_LINE_BYTES and not line.endswith(b"\n"):
            while (rest := file.readline(1 << 20)) and not rest.endswith(b"\n"):
                pass
            yield number, None
        else:
            yield number, line


_TOO_LONG = f"the line is longer than {MAX_LINE_BYTES:,} bytes"
_NOT_UTF8 = "not UTF-8: save the file as UTF-8"


def _jsonl(path: File, file: BinaryIO) -> Iterator[Located]:
    decode = msgspec.json.Decoder().decode
    for number, line in _lines(file):
        where = f"{path}:{number}"
        if line is None:
            yield where, BadRow(_TOO_LONG)
            continue
        if not line.strip():
            continue
        try:
            row = decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            yield where, BadRow(f"not JSON: {error}")
            continue
        yield where, row if isinstance(row, dict) else BadRow(f"not a JSON object but {quote(row)}")


def _csv(path: File, file: BinaryIO, columns: Sequence[str]) -> Iterator[Located]:
    # A text may contain line ends, so a record can span lines; it begins on the line after the previous record.
    broken: dict[int, str] = {}

    def decoded() -> Iterator[str]:
        for number, line in _lines(file):
            if line is None:
                broken[number] = _TOO_LONG
                yield "\n"
                continue
            try:
                yield line.decode()
            except UnicodeDecodeError:
                broken[number] = _NOT_UTF8
                yield line.decode(errors="replace")

    lines = decoded()
    head = next(lines, "")
    if not head.strip():
        return
    delimiter = _delimiter(head, columns)
    names = _names(head, delimiter)
    missing = [name for name in columns if name not in names]
    if missing:
        why = f"no column {missing[0]!r}{suggest(missing[0], names)}: the first line names them, it has {quote(names)}"
        yield f"{path}:1", BadRow(why)
        return
    limit = csv.field_size_limit(MAX_LINE_BYTES)
    try:
        reader, last = csv.reader(lines, delimiter=delimiter), 0
        while True:
            # Line numbers count from the line after the header.
            where = f"{path}:{last + 2}"
            try:
                cells = next(reader, None)
            except csv.Error as error:
                last = reader.line_num
                yield where, BadRow(f"not CSV: {error}")
                continue
            if cells is None:
                return
            last = reader.line_num
            if broken:
                yield where, BadRow(broken.popitem()[1])
                broken.clear()
            elif len(cells) > len(names):
                yield (
                    where,
                    BadRow(f"{len(cells)} cells in {len(names)} columns: put a text with {delimiter!r} in quotes"),
                )
            elif cells:
                # Missing and empty cells are None; an empty text stays, because it is a mistake to report.
                row = {name: cell or None for name, cell in zip(names, cells, strict=False)}
                yield where, {**dict.fromkeys(columns), **row, columns[0]: row.get(columns[0]) or ""}
    finally:
        csv.field_size_limit(limit)


def _names(head: str, delimiter: str) -> list[str]:
    return [name.strip() for name in next(csv.reader([head], delimiter=delimiter), [])]


def _delimiter(head: str, columns: Sequence[str]) -> str:
    """The delimiter that splits the first line into these columns, else the most frequent one in it."""
    for delimiter in DELIMITERS if columns else "":
        if {*columns} <= {*_names(head, delimiter)}:
            return delimiter
    return max(DELIMITERS, key=head.count)


def _parquet(path: File, known: Sequence[str]) -> Iterator[Located]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise TurnoutError(f"{path}: Parquet needs pyarrow: pip install 'turnout[parquet]', or export .jsonl") from None
    try:
        with parquet.ParquetFile(path) as file:
            wanted = [name for name in file.schema_arrow.names if not known or name in known]
            number = 0
            for batch in file.iter_batches(columns=wanted):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{path} row {number}", row
    except pyarrow.ArrowInvalid as error:
        yield str(path), BadRow(f"not Parquet: {error}")
