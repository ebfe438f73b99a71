"""`turnout tune`: the weights of a signals layer, fitted to labelled questions."""

from __future__ import annotations

from pathlib import Path as File
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from turnout.config.load import load_profile
from turnout.core.errors import QueryError
from turnout.text.count import counted

from ..draw.screen import console, glyphs_for, visible, write_json
from ..option import DEFAULT_PROFILE, ConfigOption, JsonOption, ProfileOption, hint
from ..stream import progressing
from .promote import needing_learn

if TYPE_CHECKING:
    from turnout.learn.tune_write import Tuning

# Numbers that moved, listed on the screen; all of them are in the file.
LISTED = 12


def tune(
    source: Annotated[
        str, Parameter(name="FILE", help='Labelled questions, {"text", "label"} a row: JSONL, CSV or Parquet.')
    ],
    /,
    *,
    profile: ProfileOption = DEFAULT_PROFILE,
    layer: Annotated[
        str | None,
        Parameter(name="--layer", metavar="ID", help="The signals layer; needed only where there are several."),
    ] = None,
    out: Annotated[
        str | None,
        Parameter(name=("--out", "-o"), metavar="FILE", help="Write a profile that extends the old one."),
    ] = None,
    seed: Annotated[int, Parameter(name="--seed", metavar="N", help="Divides the questions into folds.")] = 0,
    force: Annotated[
        bool,
        Parameter(
            name="--force",
            negative=(),
            show_default=False,
            help="Write although it is not shown to be better, and over a file that is there.",
        ),
    ] = False,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    loaded = load_profile(profile, config=config)
    if out is not None and File(out).exists() and not force:
        raise QueryError(f"{out} would be overwritten: choose another name, or say --force")
    with needing_learn():
        from turnout.learn.tune_write import tune_file
    target = File(out) if out is not None else None
    with progressing("folds") as progress:
        found = tune_file(loaded, profile, source, layer=layer, seed=seed, out=target, force=force, progress=progress)
    report = found.report
    if json:
        form = {
            "profile": loaded.name,
            "layer": found.layer,
            "rows": report.rows,
            "silent": report.silent,
            "before": report.before,
            "before_bounds": report.before_bounds,
            "after": report.after,
            "after_bounds": report.after_bounds,
            "better_by_at_least": report.paired.floor,
            "is_better": report.is_better,
            "strength": None if report.strength == float("inf") else report.strength,
            "seed": seed,
            "data_hash": found.data_hash,
            "moved": found.moved,
            "written": str(found.written) if found.written else None,
        }
        write_json(msgspec.json.encode(form))
    else:
        _print(loaded.name, found, asked=out)
    return 0 if report.is_better or found.written is not None else 1


def _print(name: str, found: Tuning, *, asked: str | None) -> None:
    from rich.table import Table
    from rich.text import Text

    report, moved, written = found.report, found.moved, found.written
    screen = console()
    glyphs = glyphs_for(screen)
    head = f"  {counted(report.rows, 'question')} with a signal, {report.silent:,} without"
    screen.print(Text.assemble((visible(name), "bold"), f" {glyphs.dot} {visible(found.layer)}{head}"))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(justify="right")
    grid.add_column(style="dim")
    for what, share, (low, high) in (
        ("before", report.before, report.before_bounds),
        ("after, on questions it has not seen", report.after, report.after_bounds),
    ):
        grid.add_row(what, f"{share:.1%}", f"95 %: {low:.1%} to {high:.1%}")
    paired = report.paired
    grid.add_row("difference", f"{paired.difference:+.1%}", f"{paired.wins} won, {paired.losses} lost")
    screen.print(grid)
    if moved:
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True)
        table.add_column(justify="right")
        for key, (was, now) in list(moved.items())[:LISTED]:
            table.add_row(Text(visible(key), "cyan"), f"{was:.4g} {glyphs.arrow} {now:.4g}")
        screen.print(table)
        if len(moved) > LISTED:
            screen.print(Text(f"and {len(moved) - LISTED} more", "dim"))
    if report.is_better:
        screen.print(Text(f"better by at least {paired.floor:.1%}, but for one chance in twenty", "green"))
    else:
        said = f"not shown to be better (at least {paired.floor:+.1%}): more labels, or --force writes it all the same"
        screen.print(Text(said, "yellow"))
    if written is not None:
        screen.print(Text(f"next: {hint('check', str(written), '--cases')}", "dim"), soft_wrap=True)
    elif asked is not None:
        screen.print(Text(f"{visible(asked)} was not written", "bold yellow"), soft_wrap=True)
    else:
        screen.print(Text("--out FILE.toml writes them as a profile that extends this one", "dim"), soft_wrap=True)
