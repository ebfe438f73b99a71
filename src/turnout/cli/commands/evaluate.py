"""`turnout evaluate`: measure a profile's layers on labelled questions, and compare two models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from turnout.config.name import DEFAULT_PROFILE
from turnout.core.errors import QueryError
from turnout.runtime.load import open_embedder
from turnout.text.count import counted

from ..draw.screen import Glyphs, console, visible, write_json
from ..draw.shape import Screen, columns
from ..labelled import check_files, needing_learn
from ..option import ConfigOption, FileOption, JsonOption, ProfileOption
from ..stream import progressing, writing

if TYPE_CHECKING:
    from turnout.learn.bound import PairedComparison
    from turnout.learn.dataset import Examples
    from turnout.learn.evaluate import Evaluation
    from turnout.learn.trial import Trial

# A confusion table with more labels does not fit a screen: the most frequent mistakes are listed instead.
MOST_LABELS = 10
LISTED = 12
# Letters of a column's name.
NAME = 10


def evaluate(
    source: Annotated[
        str | None,
        Parameter(
            name="FILE", help='Labelled questions, {"text", "label"} a row; by default those held out from training.'
        ),
    ] = None,
    /,
    *,
    profile: ProfileOption = DEFAULT_PROFILE,
    model: Annotated[
        tuple[str, ...],
        Parameter(
            metavar="FOLDER",
            help="A trained model, instead of the one in use; given twice, the second is compared with the first.",
            show_default=True,
        ),
    ] = (),
    card: Annotated[FileOption, Parameter(help="Write the model's card, one HTML file.")] = None,
    json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    if len(model) > 2:
        raise QueryError(f"--model is given {len(model)} times: one, or two to compare")
    check_files(source)
    with needing_learn(profile):
        from turnout.learn.evaluate import draw_evaluation, evaluate_models
    with progressing("questions") as progress:
        found = evaluate_models(
            profile, source, model, embedder=open_embedder(config, local=True), config=config, progress=progress
        )
    if card is not None:
        with writing(card) as file:
            file.write(draw_evaluation(found.trials[-1], found.evaluations[-1], found.examples, source).encode())
    evaluated = list(zip(found.trials, found.evaluations, strict=True))
    if json:
        forms = [_form(trial, one) for trial, one in evaluated]
        paired = {"layer": found.paired[0], "cascade": found.paired[1]} if found.paired else None
        write_json({"evaluations": forms, "compared": paired, "card": card})
        return
    screen = console()
    for trial, one in evaluated:
        _print(screen, trial, one, found.examples)
    if found.paired is not None:
        _compare(screen, *found.paired)


def _form(trial: Trial, found: Evaluation) -> dict[str, Any]:
    from turnout.learn.metric import confuse, score_labels
    from turnout.learn.trial import models_of

    profile = trial.profile
    answers = [answer or GOES_ON for answer in found.said]
    confusion = confuse(found.true, answers, profile.routes)
    scores = score_labels(found.true, answers, profile.routes)
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


def _print(screen: Screen, trial: Trial, found: Evaluation, examples: Examples) -> None:
    from turnout.learn.trial import models_of, remarks_of

    profile, one = trial.profile, found.cascade
    models = "".join(f"  {layer} {digest}" for layer, digest in models_of(profile).items())
    rows = f"{visible(models)}  {counted(one.rows, 'question')}"
    screen.say((visible(profile.name), "bold"), (f" {profile.hash}", "dim"), rows)
    for remark in remarks_of(trial, examples):
        screen.inset(Text(visible(remark), "yellow"))
    screen.inset(_layer_table(found))
    if one.decided:
        low, high = one.accuracy_bounds
        right = f"{one.right / one.decided:.2%} of that right (95%: {low:.1%} to {high:.1%})"
        calibration = f", calibration error {one.ece:.2%}" if one.ece is not None else ""
        screen.say((f"local layers decide {one.decided / one.rows:.1%}, {right}{calibration}", "bold"))
    else:
        screen.say(("local layers decide nothing", "bold yellow"))
    rest = f"{one.goes_on:.1%} go on to a language model or the fallback"
    screen.say(f"{rest}; a local decision takes {one.p50_us:,.0f} µs")
    screen.inset(_confusion(found, profile.routes, screen.glyphs))


def _layer_table(found: Evaluation) -> Table:
    names = ("answers", "right", "past its gate", "right", "ECE", "AUROC", "median")
    grid = columns("bold", *("right" for _ in names))
    grid.add_row("", *(Text(name, "dim") for name in names))
    rows = max(found.cascade.rows, 1)
    for one in found.layers:
        cells = [f"{one.answered / rows:.1%}", _share(one.right, one.answered), f"{one.accepted / rows:.1%}"]
        cells += [_share(one.accepted_right, one.accepted), _decimal(one.ece, "{:.2%}"), _decimal(one.auroc, "{:.3f}")]
        grid.add_row(visible(one.id), *cells, f"{one.p50_us:,.0f} µs" if one.p50_us else "")
    return grid


def _confusion(found: Evaluation, routes: Sequence[str], glyphs: Glyphs) -> Table:
    from turnout.learn.metric import confuse

    confusion = confuse(found.true, [answer or GOES_ON for answer in found.said], routes)
    labels, counts = confusion.labels, confusion.counts
    # Rows without a question and columns without an answer are left out.
    rows = [number for number in range(len(labels)) if counts[number].sum()]
    answers = [number for number in range(len(labels)) if counts[:, number].sum()]
    if len({*rows, *answers}) <= MOST_LABELS:
        grid = columns("bold", *("right" for _ in answers))
        titles = (Text(_short(labels[column], glyphs), "dim") for column in answers)
        grid.add_row(Text("is \\ said", "not bold dim"), *titles)
        for row in rows:
            cells = []
            for column in answers:
                count = int(counts[row, column])
                style = "dim" if not count or labels[column] == GOES_ON else "green" if row == column else "bold red"
                cells.append(Text(f"{count:,}" if count else glyphs.dot, style))
            grid.add_row(visible(labels[row]), *cells)
        return grid
    pairs = [(int(counts[row, column]), row, column) for row in rows for column in answers if row != column]
    grid = columns("right", "wrap")
    for count, row, column in sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2]))[:LISTED]:
        if count and labels[column] != GOES_ON:
            grid.add_row(f"{count:,}", f"{visible(labels[row])} {glyphs.arrow} {visible(labels[column])}")
    return grid


def _compare(screen: Screen, layer: PairedComparison, cascade: PairedComparison) -> None:
    for what, paired in (("its answers", layer), ("decided rightly", cascade)):
        worse = paired.difference < 0 and paired.p_value > 0.95
        style = "bold green" if paired.floor > 0 else "bold red" if worse else "bold"
        counts = f"  {paired.wins:,} won, {paired.losses:,} lost of {paired.count:,}"
        least = f"at 95% confidence at least {paired.floor:+.2%}"
        screen.say((f"second against first, {what}: {paired.difference:+.2%}", style), f"{counts}; {least}")


def _short(name: str, glyphs: Glyphs) -> str:
    shown = visible(name)
    return shown if len(shown) <= NAME else f"{shown[: NAME - 1]}{glyphs.dots[:1]}"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else ""


def _decimal(value: float | None, form: str) -> str:
    return form.format(value) if value is not None else ""
