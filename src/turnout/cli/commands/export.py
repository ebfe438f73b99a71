"""`turnout export`: the decision log as training rows, one for each decision, in files of any size."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from cyclopts import Parameter

from turnout.core.errors import QueryError
from turnout.runtime.log import left_out, nothing_there, reading_log
from turnout.store.export import Kind, kind_of, label_by, need_pyarrow, open_rows
from turnout.text.count import counted

from ..draw.screen import complain, console
from ..option import STDIN, SpanOptions, TenantOptions, check_least
from ..stream import progressing, writing


def export(
    out: Annotated[str, Parameter(name="FILE", help="A .jsonl or .parquet file; `-`, or nothing, is stdout.")] = STDIN,
    /,
    *,
    kind: Annotated[Kind | None, Parameter(name="--format", help="The format, whatever the file's name.")] = None,
    which: SpanOptions = SpanOptions(),
    labelled: Annotated[bool, Parameter(help="Only rows that have a label.")] = False,
    limit: Annotated[int | None, Parameter(help="At most this many rows.", metavar="N")] = None,
    where: TenantOptions = TenantOptions(),
) -> None:
    form = kind or ("jsonl" if out == STDIN else kind_of(out))
    check_least("--limit", limit)
    if form == "parquet":
        need_pyarrow()  # before anything is opened
        if out == STDIN and console().is_terminal:
            raise QueryError("Parquet is not for a terminal: name a file, or pipe it on")
    span, profile = which.span(), which.logged_as
    seen: Counter[str] = Counter()
    with reading_log(where) as store, progressing("rows") as progress:
        which.check_profile(store)
        records = store.records(where.tenant)
        total = min(sum(one.decisions for one in records.checked(span=span, profile=profile)), limit or 1 << 62)
        with writing(out) as file, open_rows(form, file) as write:
            for label in records.labels(span=span, profile=profile):
                if labelled and label.label is None:
                    continue
                write(label)
                # An emptied text is None; a blank question has an empty one.
                kept = f"text {label.kept}" if label.text else "no text" if label.text is None else "blank"
                seen.update(("rows", f"by {label_by(label)}", kept))
                if seen["rows"] % 1000 == 0:
                    progress(min(seen["rows"], total), total)
                if seen["rows"] == limit:
                    break
        empty = "" if seen["rows"] else nothing_there(store, records, where)
        hidden = left_out(store, records, all_tenants=False)
    if empty:
        complain(empty)
        return
    _summarise(seen)
    if hidden:
        complain(hidden)


def _summarise(seen: Counter[str]) -> None:
    rows = counted(seen["rows"], "row")
    console(stderr=True).say(f"{rows}, {seen['by human']:,} labelled by a human, {seen['by teacher']:,} by a teacher")
    keeps = 'text = "full" in [store] of turnout.toml keeps'
    missing = f"no text, which was not kept or is gone by now: {keeps} it from now on, text_days says for how long"
    cut = f"only the beginning of a text: {keeps} all of it from now on"
    problems = {"no text": missing, "text snippet": cut, "blank": "a blank question"}
    for count, problem in ((seen[kept], problem) for kept, problem in problems.items()):
        if count:
            complain(f"{count:,} of {rows} {'has' if count == 1 else 'have'} {problem}")
