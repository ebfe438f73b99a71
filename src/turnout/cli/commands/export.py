"""`turnout export`: the log as examples to learn from, one row a decision, in files of any size.

Who says what a question is stays apart, a human in one column and a model in another; `label` is the best there is.
"""

from __future__ import annotations

import datetime
from collections import Counter
from typing import Annotated, Any, BinaryIO, Literal

import msgspec
from cyclopts import Parameter

from turnout.core.errors import QueryError, TurnoutError
from turnout.store import Label
from turnout.text.control import escape_json

from ..draw.screen import complain, console, counted
from ..option import SpanOptions, TenantOptions
from ..question import STDIN
from ..stored import left_out, nothing_there
from ..stream import progressing, writing

Kind = Literal["jsonl", "parquet"]

# A row group is what a reader takes in at once: some megabytes of questions, whatever their length.
GROUP_ROWS = 10_000
GROUP_CHARACTERS = 16 * 1024 * 1024

NUMBERS = ("confidence", "cost_usd")
COLUMNS = (
    *("id", "text", "label", "label_by", "human", "human_by", "teacher", "route", "confidence", "by", "outcome"),
    *("profile", "profile_hash", "session", "ended", "slot", "model", "cost_usd", "created_at"),
)
NEVER_NULL = ("id", "label_by", "route", "confidence", "by", "outcome", "profile", "profile_hash", "created_at")


def export(
    out: Annotated[
        str,
        Parameter(name="FILE", help="A .jsonl or .parquet file; `-`, or nothing, is stdout.", show_default=False),
    ] = STDIN,
    /,
    *,
    kind: Annotated[
        Kind | None,
        Parameter(name="--format", help="What is written, whatever the file is called.", show_default=False),
    ] = None,
    which: SpanOptions = SpanOptions(),
    labelled: Annotated[
        bool, Parameter(name="--labelled", negative=(), show_default=False, help="Only rows that have a label.")
    ] = False,
    limit: Annotated[
        int | None, Parameter(name="--limit", help="At most so many rows.", show_default=False, metavar="N")
    ] = None,
    where: TenantOptions = TenantOptions(),
) -> int:
    form = kind or kind_of(out)
    if limit is not None and limit < 1:
        raise QueryError(f"--limit {limit}: at least 1 is needed")
    if form == "parquet":
        _pyarrow()  # before anything is opened
        if out == STDIN and console().is_terminal:
            raise QueryError("Parquet is not for a terminal: name a file, or pipe it on")
    span, profile = which.span(), which.profile
    seen: Counter[str] = Counter()
    with where.open() as store, progressing("rows") as progress:
        records = store.records(where.tenant)
        total = min(sum(one.decisions for one in records.checked(span=span, profile=profile)), limit or 1 << 62)
        with writing(out) as file, writer_of(form, file) as rows:
            for label in records.labels(span=span, profile=profile):
                if labelled and label.label is None:
                    continue
                rows.add(row_of(label))
                seen.update(("rows", f"by {row_by(label)}", f"text {label.kept}" if label.text else "no text"))
                if seen["rows"] % 1000 == 0:
                    progress(min(seen["rows"], total), total)
                if seen["rows"] == limit:
                    break
        empty = "" if seen["rows"] else nothing_there(store, records, where)
        without = left_out(store, records, all_tenants=False)
    _summarise(seen, empty)
    if without and not empty:
        complain(without)
    return 0


def kind_of(out: str) -> Kind:
    """What a file is to be, by the ending of its name."""
    name = out.lower()
    if out == STDIN or name.endswith((".jsonl", ".ndjson")):
        return "jsonl"
    if name.endswith((".parquet", ".pq")):
        return "parquet"
    raise QueryError(f"{out}: what it is to be does not show from its ending: use .jsonl or .parquet, or --format")


def row_by(label: Label) -> str:
    """Who the label is from."""
    if label.label is None:
        return "none"
    return "human" if label.human is not None else "teacher"


def row_of(label: Label) -> dict[str, Any]:
    when = datetime.datetime.fromtimestamp(label.created_ms / 1000, datetime.UTC)
    known = {
        "label": label.label,
        "label_by": row_by(label),
        "created_at": when.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    return {name: known[name] if name in known else getattr(label, name) for name in COLUMNS}


class JsonRows:
    """A row a line."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._encode = msgspec.json.Encoder().encode

    def __enter__(self) -> JsonRows:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def add(self, row: dict[str, Any]) -> None:
        self._file.write(escape_json(self._encode(row)) + b"\n")


class ParquetRows:
    """Parquet, a group of rows at a time: no more than that is ever held."""

    def __init__(self, file: BinaryIO) -> None:
        arrow = _pyarrow()
        types = {name: arrow.float64() if name in NUMBERS else arrow.string() for name in COLUMNS}
        fields = [arrow.field(name, types[name], nullable=name not in NEVER_NULL) for name in COLUMNS]
        self._arrow, self._schema = arrow, arrow.schema(fields)
        self._writer = arrow.parquet.ParquetWriter(file, self._schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []
        self._characters = 0

    def __enter__(self) -> ParquetRows:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._flush()
        self._writer.close()

    def add(self, row: dict[str, Any]) -> None:
        self._rows.append(row)
        self._characters += len(row["text"] or "")
        if len(self._rows) >= GROUP_ROWS or self._characters >= GROUP_CHARACTERS:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(self._arrow.Table.from_pylist(self._rows, schema=self._schema))
        self._rows, self._characters = [], 0


def writer_of(form: Kind, file: BinaryIO) -> JsonRows | ParquetRows:
    return ParquetRows(file) if form == "parquet" else JsonRows(file)


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise TurnoutError("Parquet needs pyarrow: pip install 'turnout[parquet]', or export .jsonl") from None
    return pyarrow


def _summarise(seen: Counter[str], empty: str) -> None:
    if empty:
        complain(empty)
        return
    rows = counted(seen["rows"], "row")
    said = f"{rows}, {seen['by human']:,} labelled by a human, {seen['by teacher']:,} by a teacher"
    console(stderr=True).print(said, soft_wrap=True)
    keeps = 'text = "full" in [store] of turnout.toml keeps'
    if seen["no text"]:
        have = "has" if seen["no text"] == 1 else "have"
        complain(
            f"{seen['no text']:,} of {rows} {have} no text, which was not kept or is gone by now: "
            f"{keeps} it from now on, text_days says for how long"
        )
    if seen["text snippet"]:
        have = "has" if seen["text snippet"] == 1 else "have"
        complain(
            f"{seen['text snippet']:,} of {rows} {have} only the beginning of a text: {keeps} all of it from now on"
        )
