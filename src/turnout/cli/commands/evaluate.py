"""`turnout evaluate`: what labelled questions say of a profile's layers, and which of two models does better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter

from turnout.core.errors import QueryError
from turnout.text.count import counted

from ..draw.screen import Glyphs, console, glyphs_for, visible, width_of, write_json
from ..draw.shape import Rail
from ..option import DEFAULT_PROFILE, STDIN, ConfigOption, JsonOption, ProfileOption
from ..stream import progressing, writing
from .promote import embedder_here, needing_learn

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from turnout.learn.bound import PairedComparison
    from turnout.learn.dataset import Examples
    from turnout.learn.evaluate import Evaluation
    from turnout.learn.trial import Trial

# Labels of a confusion table that still fits a screen; of more, the most frequent mistakes are listed.
MOST_LABELS = 10
LISTED = 12
# Letters of a column's name.
NAME = 10


def evaluate(
    source: Annotated[
        str | None,
        Parameter(
            name="FILE",
            show_default=False,
            help='Labelled questions, {"text", "label"} a row; by default those held out from training.',
        ),
    ] = None,
    /,
    *,
    profile: ProfileOption = DEFAULT_PROFILE,
    model: Annotated[
        tuple[str, ...],
        Parameter(
            name="--model",
            negative=(),
            metavar="FOLDER",
            help="A trained model, not the one that serves; given twice, the second is compared with the first.",
        ),
    ] = (),
    card: Annotated[
        str | None, Parameter(name="--card", metavar="FILE", help="Write the model's card, one HTML file.")
    ] = None,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    if len(model) > 2:
        raise QueryError(f"--model is given {len(model)} times: one, or two to compare")
    if source == STDIN:
        raise QueryError("labelled questions are read from a file: write what you pipe in into one, and name that")
    with needing_learn():
        from turnout.learn.evaluate import draw_evaluation, evaluate_models
    with progressing("questions") as progress:
        found = evaluate_models(profile, source, model, embedder=embedder_here(), config=config, progress=progress)
    if card is not None:
        with writing(card) as file:
            file.write(draw_evaluation(found.trials[-1], found.evaluations[-1], found.examples, source).encode())
    judged = list(zip(found.trials, found.evaluations, strict=True))
    if json:
        forms = [_form(trial, one) for trial, one in judged]
        paired = {"layer": found.paired[0], "cascade": found.paired[1]} if found.paired else None
        write_json(msgspec.json.encode({"evaluations": forms, "compared": paired, "card": card}))
        return 0
    screen = console()
    for trial, one in judged:
        _print(screen, trial, one, found.examples)
    if found.paired is not None:
        _compare(screen, *found.paired)
    return 0


def _form(trial: Trial, found: Evaluation) -> dict[str, Any]:
    from turnout.learn.labelled import models_of
    from turnout.learn.metric import confuse, score_labels

    profile = trial.profile
    said = [answer or GOES_ON for answer in found.said]
    confusion = confuse(found.true, said, profile.routes)
    scores = score_labels(found.true, said, profile.routes)
    return {
        "profile": profile.name,
        "profile_hash": profile.hash,
        "models": models_of(profile),
        "layers": found.layers,
        "cascade": found.cascade,
        "labels": [one._asdict() for one in scores],
        "confusion": {"labels": confusion.labels, "counts": confusion.counts.tolist()},
        "out_of_scope": trial.foreign,
        "skipped": trial.skipped,
    }


GOES_ON = "(goes on)"
"""The column of questions that local layers do not decide."""


# --- on the screen


def _print(screen: Console, trial: Trial, found: Evaluation, examples: Examples) -> None:
    from rich.text import Text

    from turnout.learn.labelled import models_of, remarks_of

    profile = trial.profile
    glyphs, width = glyphs_for(screen), width_of(screen)
    models = "".join(f"  {layer} {digest}" for layer, digest in models_of(profile).items())
    head = Text.assemble((visible(profile.name), "bold"), (f" {profile.hash}", "dim"), visible(models))
    screen.print(head + Text(f"  {counted(found.cascade.rows, 'question')}"), soft_wrap=True)
    for remark in remarks_of(trial, examples):
        screen.print(Rail(Text(visible(remark), "yellow"), "  "), width=width)
    screen.print(Rail(_layer_table(found), "  "), width=width)
    one = found.cascade
    if one.decided:
        low, high = one.accuracy_bounds
        right = f"{one.right / one.decided:.2%} of that right (95%: {low:.1%} to {high:.1%})"
        calibration = f", calibration error {one.ece:.2%}" if one.ece is not None else ""
        screen.print(
            Text(f"local layers decide {one.decided / one.rows:.1%}, {right}{calibration}", "bold"), soft_wrap=True
        )
    else:
        screen.print(Text("local layers decide nothing", "bold yellow"))
    screen.print(
        f"{one.goes_on:.1%} go on to a language model or the fallback; a local decision takes {one.p50_us:,.0f} µs",
        soft_wrap=True,
    )
    screen.print(Rail(_confusion(found, profile.routes, glyphs), "  "), width=width)


def _layer_table(found: Evaluation) -> Table:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    names = ("answers", "right", "past its gate", "right", "ECE", "AUROC", "median")
    for _ in names:
        grid.add_column(justify="right", no_wrap=True)
    grid.add_row("", *(Text(name, "dim") for name in names))
    rows = max(found.cascade.rows, 1)
    for one in found.layers:
        cells = [f"{one.answered / rows:.1%}", _share(one.right, one.answered), f"{one.accepted / rows:.1%}"]
        cells += [_share(one.accepted_right, one.accepted), _decimal(one.ece, "{:.2%}"), _decimal(one.auroc, "{:.3f}")]
        cells.append(f"{one.p50_us:,.0f} µs" if one.p50_us else "")
        grid.add_row(Text(visible(one.id), "bold"), *cells)
    return grid


def _confusion(found: Evaluation, routes: Sequence[str], glyphs: Glyphs) -> Table:
    from rich.table import Table
    from rich.text import Text

    from turnout.learn.metric import confuse

    confusion = confuse(found.true, [answer or GOES_ON for answer in found.said], routes)
    labels, counts = confusion.labels, confusion.counts
    grid = Table.grid(padding=(0, 2))
    # Rows that have no question and columns that have no answer say nothing.
    rows = [at for at in range(len(labels)) if counts[at].sum()]
    columns = [at for at in range(len(labels)) if counts[:, at].sum()]
    if len({*rows, *columns}) <= MOST_LABELS:
        grid.add_column(no_wrap=True)
        for _ in columns:
            grid.add_column(justify="right", no_wrap=True)
        grid.add_row(Text("is \\ said", "dim"), *(Text(_short(labels[at], glyphs), "dim") for at in columns))
        for row in rows:
            cells = []
            for column in columns:
                count = int(counts[row, column])
                good, on = row == column, labels[column] == GOES_ON
                style = "dim" if not count or on else "green" if good else "bold red"
                cells.append(Text(f"{count:,}" if count else glyphs.dot, style))
            grid.add_row(Text(visible(labels[row]), "bold"), *cells)
        return grid
    pairs = [(int(counts[row, column]), row, column) for row in rows for column in columns if row != column]
    grid.add_column(justify="right")
    grid.add_column()
    for count, row, column in sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2]))[:LISTED]:
        if count and labels[column] != GOES_ON:
            grid.add_row(f"{count:,}", f"{visible(labels[row])} {glyphs.arrow} {visible(labels[column])}")
    return grid


def _compare(screen: Console, layer: PairedComparison, cascade: PairedComparison) -> None:
    from rich.text import Text

    for what, paired in (("its answers", layer), ("decided rightly", cascade)):
        better, worse = paired.floor > 0, paired.difference < 0 and paired.p_value > 0.95
        style = "bold green" if better else "bold red" if worse else "bold"
        screen.print(
            Text.assemble(
                (f"second against first, {what}: {paired.difference:+.2%}", style),
                f"  {paired.wins:,} won, {paired.losses:,} lost of {paired.count:,}; at 95% confidence at least "
                f"{paired.floor:+.2%}",
            ),
            soft_wrap=True,
        )


def _short(name: str, glyphs: Glyphs) -> str:
    shown = visible(name)
    return shown if len(shown) <= NAME else f"{shown[: NAME - 1]}{glyphs.dots[:1]}"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else ""


def _decimal(value: float | None, form: str) -> str:
    return form.format(value) if value is not None else ""
