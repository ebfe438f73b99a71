"""`turnout batch`: a JSONL file of questions in, one of decisions out, on all cores."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path as File
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from turnout.config.name import DEFAULT_PROFILE
from turnout.core.errors import QueryError
from turnout.explain.explanation import spell
from turnout.runtime.load import load_profile
from turnout.runtime.rows import BatchJob, RowTally, chunks, decide_chunk, spread
from turnout.text.count import counted

from ..draw.screen import console, visible
from ..draw.shape import bar, columns, style_of
from ..option import STDIN, ConfigOption, FieldOption, ProfileOption, WorkersOption
from ..stream import reading, watched, workers_for, writing


def batch(
    source: Annotated[str, Parameter(name="IN", help="JSONL, one object a row; `-` reads stdin.")],
    /,
    *,
    profile: ProfileOption = DEFAULT_PROFILE,
    out: Annotated[
        str, Parameter(name=("--out", "-o"), help="Where decisions go; `-` is stdout.", metavar="FILE")
    ] = STDIN,
    field: FieldOption = "text",
    with_text: Annotated[
        bool, Parameter(help="Write each question into its row, so that turnout diff can decide it again.")
    ] = False,
    workers: WorkersOption = None,
    config: ConfigOption = None,
) -> int:
    count = workers_for(workers)
    if STDIN not in (source, out) and _is_same(source, out):
        raise QueryError(f"{out} is the input itself: name another file with -o")
    load_profile(profile, config=config, local=True)  # a mistake in it is reported once, here, not by every worker
    started = time.perf_counter()
    tally = RowTally()
    with reading(source) as (rows, size), writing(out) as file:
        decided = spread(decide_chunk, BatchJob(profile, config, field, with_text), chunks(rows), count)
        for part in watched(decided, size):
            file.write(part.output)
            tally.add(part)
    _summarise(tally, time.perf_counter() - started)
    return 1 if tally.errors else 0


def _is_same(one: str, other: str) -> bool:
    with contextlib.suppress(OSError):
        return File(one).samefile(other)
    return False


def _summarise(tally: RowTally, seconds: float) -> None:
    screen = console(stderr=True)
    glyphs = screen.glyphs
    grid = columns("", "", "right", "right", "wrap")
    for title, counts in (("routes", tally.routes), ("outcomes", tally.outcomes)):
        for number, (name, count) in enumerate(counts.most_common()):
            share = count / tally.rows
            style = style_of(name) if title == "outcomes" else "bold"
            last = Text(", ".join(spell(name)), "dim") if title == "outcomes" else bar(share, 24, glyphs, "cyan")
            grid.add_row("" if number else Text(title, "dim"), Text(name, style), f"{count:,}", f"{share:.1%}", last)
    screen.say(f"{counted(tally.rows, 'row')} in {seconds:.2f} s, {tally.rows / max(seconds, 1e-09):,.0f} rows/s")
    screen.inset(grid)
    if tally.errors:
        have = "has" if tally.errors == 1 else "have"
        screen.say((f"{counted(tally.errors, 'row')} {have} an error instead of a decision, such as", "bold red"))
        for message in tally.messages:
            screen.inset(Text(visible(message)))
