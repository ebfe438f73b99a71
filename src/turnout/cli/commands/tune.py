"""`turnout tune`: the weights of a signals layer, fitted to labelled questions."""

from __future__ import annotations

from pathlib import Path as File
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnout.config.load import load_profile
from turnout.config.name import DEFAULT_PROFILE
from turnout.text.count import counted

from ..draw.screen import console, visible, write_json
from ..draw.shape import columns
from ..labelled import NOT_WRITTEN, HeirOption, check_files, needing_learn
from ..option import ConfigOption, JsonOption, ProfileOption, hint
from ..stream import progressing

if TYPE_CHECKING:
    from turnout.learn.tune import Tuning

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
        str | None, Parameter(metavar="ID", help="The signals layer; needed only where there are several.")
    ] = None,
    out: HeirOption = None,
    seed: Annotated[int, Parameter(metavar="N", help="Divides the questions into folds.", show_default=True)] = 0,
    force: Annotated[
        bool, Parameter(help="Write although it is not shown to be better, and over a file that is there.")
    ] = False,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    loaded = load_profile(profile, config=config)
    check_files(None, out, force=force)
    with needing_learn(profile):
        from turnout.learn.tune import tune_file
    target = File(out) if out is not None else None
    with progressing("folds") as progress:
        found = tune_file(loaded, profile, source, layer=layer, seed=seed, out=target, force=force, progress=progress)
    report = found.report
    if json:
        same = ("rows", "silent", "before", "before_bounds", "after", "after_bounds", "is_better")
        form = {
            "profile": loaded.name,
            "layer": found.layer,
            **{name: getattr(report, name) for name in same},
            "better_by_at_least": report.paired.floor,
            "strength": None if report.strength == float("inf") else report.strength,
            "seed": seed,
            "data_hash": found.data_hash,
            "moved": found.moved,
            "written": str(found.written) if found.written else None,
        }
        write_json(form)
    else:
        _print(loaded.name, found, asked=out)
    return 0 if report.is_better or found.written is not None else 1


def _print(name: str, found: Tuning, *, asked: str | None) -> None:
    report, moved, paired = found.report, found.moved, found.report.paired
    screen = console()
    glyphs = screen.glyphs
    rows = f"  {counted(report.rows, 'question')} with a signal, {report.silent:,} without"
    screen.say((visible(name), "bold"), f" {glyphs.dot} {visible(found.layer)}{rows}")
    grid = columns("dim", "right", "dim")
    for what, share, (low, high) in (
        ("before", report.before, report.before_bounds),
        ("after, on questions it has not seen", report.after, report.after_bounds),
    ):
        grid.add_row(what, f"{share:.1%}", f"95 %: {low:.1%} to {high:.1%}")
    grid.add_row("difference", f"{paired.difference:+.1%}", f"{paired.wins} won, {paired.losses} lost")
    screen.print(grid)
    if moved:
        table = columns("cyan", "right")
        for key, (was, now) in list(moved.items())[:LISTED]:
            table.add_row(visible(key), f"{was:.4g} {glyphs.arrow} {now:.4g}")
        screen.print(table)
        if len(moved) > LISTED:
            screen.say((f"and {len(moved) - LISTED} more", "dim"))
    if report.is_better:
        screen.say((f"better by at least {paired.floor:.1%}, but for one chance in twenty", "green"))
    else:
        said = f"not shown to be better (at least {paired.floor:+.1%}): more labels, or --force writes it all the same"
        screen.say((said, "yellow"))
    if found.written is not None:
        screen.say((f"next: {hint('check', str(found.written), '--cases')}", "dim"))
    elif asked is not None:
        screen.say((f"{visible(asked)} was not written", "bold yellow"))
    else:
        screen.say((NOT_WRITTEN, "dim"))
