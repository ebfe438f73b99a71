"""Exports the log as training examples: one row for each decision, as JSONL or Parquet, in files of any size.

The labels of people and of a model have separate columns; `label` is the better one.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Literal

import msgspec

from turnout.core.errors import QueryError, TurnoutError
from turnout.text.control import escape_json

from .records import Label

Kind = Literal["jsonl", "parquet"]

# A reader loads a whole row group: some megabytes of questions, whatever their length.
GROUP_ROWS = 10_000
GROUP_CHARACTERS = 16 * 1024 * 1024

NUMBERS = ("confidence", "cost_usd")
COLUMNS = (
    *("id", "text", "label", "label_by", "human", "human_by", "teacher", "route", "confidence", "by", "outcome"),
    *("profile", "profile_hash", "session", "ended", "slot", "model", "cost_usd", "created_at"),
)
NEVER_NULL = ("id", "label_by", "route", "confidence", "by", "outcome", "profile", "profile_hash", "created_at")


def kind_of(name: str) -> Kind:
    """The format of a file, by the ending of its name."""
    if name.lower().endswith((".jsonl", ".ndjson")):
        return "jsonl"
    if name.lower().endswith((".parquet", ".pq")):
        return "parquet"
    raise QueryError(f"{name}: what it is to be does not show from its ending: use .jsonl or .parquet, or --format")


def label_by(label: Label) -> str:
    """Who the label is from."""
    if label.label is None:
        return "none"
    return "human" if label.human is not None else "teacher"


def row_of(label: Label) -> dict[str, Any]:
    when = datetime.datetime.fromtimestamp(label.created_ms / 1000, datetime.UTC)
    known = {
        "label": label.label,
        "label_by": label_by(label),
        "created_at": when.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    return {name: known[name] if name in known else getattr(label, name) for name in COLUMNS}


@contextlib.contextmanager
def open_rows(kind: Kind, file: BinaryIO) -> Iterator[Callable[[Label], None]]:
    """A function that writes one example after the other to a file."""
    if kind == "jsonl":
        encode = msgspec.json.Encoder().encode

        def write(label: Label) -> None:
            file.write(escape_json(encode(row_of(label))) + b"\n")

        yield write
        return
    arrow = need_pyarrow()
    types = {name: arrow.float64() if name in NUMBERS else arrow.string() for name in COLUMNS}
    schema = arrow.schema([arrow.field(name, types[name], nullable=name not in NEVER_NULL) for name in COLUMNS])
    # Only one group of rows is held in memory.
    group: list[dict[str, Any]] = []
    characters = 0

    def write_group() -> None:
        nonlocal characters
        if group:
            writer.write_table(arrow.Table.from_pylist(group, schema=schema))
        group.clear()
        characters = 0

    def add(label: Label) -> None:
        nonlocal characters
        group.append(row_of(label))
        characters += len(label.text or "")
        if len(group) >= GROUP_ROWS or characters >= GROUP_CHARACTERS:
            write_group()

    with arrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        yield add
        write_group()


def need_pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise TurnoutError("Parquet needs pyarrow: pip install 'turnout[parquet]', or export .jsonl") from None
    return pyarrow
