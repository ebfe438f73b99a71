"""`turnout evaluate`: what labelled questions say of a profile's layers, and which of two models does better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter

from turnout.core.errors import LearnError, QueryError
from turnout.core.profile import Profile

from ..draw.screen import Glyphs, console, counted, glyphs_for, visible, width_of, write_json
from ..draw.shape import Rail
from ..labelled import ask_layers, load_serving, models_of, read_labelled, remarks_of, told
from ..option import DEFAULT_PROFILE, ConfigOption, JsonOption, ProfileOption
from ..stream import writing

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from turnout.learn.bound import Paired
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
    try:
        from turnout.learn.evaluate import compare_trials
        from turnout.learn.evaluate import evaluate as measure
    except ImportError as error:
        raise LearnError(f"evaluating needs {error.name}: pip install 'turnout[learn]'") from None
    profiles = [load_serving(profile, config, folder) for folder in model or (None,)]
    examples = _common(source, profiles)
    trials = [ask_layers(loaded, examples) for loaded in profiles]
    found = [measure(trial) for trial in trials]
    compared = None
    if len(trials) > 1:
        layer = next(iter(models_of(profiles[-1])), None)
        if layer is None or layer not in models_of(profiles[0]):
            raise LearnError("one of the two models is not served (see the remarks of turnout check): nothing compares")
        compared = compare_trials(trials[0], trials[1], layer)
    if card is not None:
        with writing(card) as file:
            file.write(draw_card(trials[-1], found[-1], examples, source).encode())
    if json:
        forms = [_form(loaded, one, trial) for loaded, one, trial in zip(profiles, found, trials, strict=True)]
        paired = {"layer": compared[0], "cascade": compared[1]} if compared else None
        write_json(msgspec.json.encode({"evaluations": forms, "compared": paired, "card": card}))
        return 0
    screen = console()
    for loaded, one, trial in zip(profiles, found, trials, strict=True):
        _print(screen, loaded, one, remarks_of(trial, examples))
    if compared is not None:
        _compare(screen, *compared)
    return 0


def _common(source: str | None, profiles: Sequence[Profile]) -> Examples:
    """Questions that none of the models has learnt from, so that a comparison is fair."""
    first = read_labelled(source, profiles[0])
    if len(profiles) == 1:
        return first
    second = read_labelled(source, profiles[1])
    shared = {(row.text, row.label) for row in second.rows}
    rows = tuple(row for row in first.rows if (row.text, row.label) in shared)
    if not rows:
        raise LearnError("there is no question that neither of the two models has learnt from: name a FILE of others")
    return msgspec.structs.replace(first, rows=rows)


def draw_card(trial: Trial, found: Evaluation, examples: Examples, source: str | None) -> str:
    """The card of the layer that was trained, judged on these questions."""
    from turnout.learn.card import Card, render_card
    from turnout.learn.dataset import hash_examples
    from turnout.learn.evaluate import answers_of, main_layer

    tried = main_layer(trial)
    if tried is None:
        raise LearnError("--card: no layer answers by a score here, so there is nothing to draw")
    true, said, sure = answers_of(trial, tried)
    profile, cascade = trial.profile, found.cascade
    digest = models_of(profile).get(tried.place.id)
    facts = [("profile", f"{profile.name} {profile.hash}, layer {tried.place.id}"), ("kind", tried.place.kind)]
    if digest is not None:
        facts.append(("model", digest))
    facts.append(("judged on", f"{len(trial.labels):,} questions, sha256 {hash_examples(examples.rows)[:16]}"))
    meaning = "its confidence is fitted" if tried.calibrated else "its confidence is a score, no probability"
    limits = [
        f"{count:,} questions are outside every route ({label}): whoever answers them is wrong"
        for label, count in trial.foreign.items()
    ]
    limits.append("Figures hold for questions like these, and for this model alone.")
    return render_card(
        Card(
            title=f"{profile.name} · {tried.place.id}",
            what=profile.description or "what a profile's layer decides",
            true=true,
            said=said,
            confidence=sure,
            labels=profile.routes,
            judged_on=source or "held out from training",
            facts=facts,
            fitted=[("confidence", meaning)],
            metrics=[
                ("local layers decide", told(round(cascade.decided / max(cascade.rows, 1), 4)), "all of them together"),
                ("of that, right", told(round(cascade.right / max(cascade.decided, 1), 4)), "with the profile's gates"),
                ("median decision", f"{cascade.p50_us:,.0f} µs", "reading included, no model asked"),
            ],
            gate=tried.place.gate.confidence,
            limits=limits[:20],
            repeat=[f"turnout evaluate {source or ''} -p {profile.name} --card card.html"],
        )
    )


def _form(profile: Profile, found: Evaluation, trial: Trial) -> dict[str, Any]:
    from turnout.learn.metric import confuse, score_labels

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


def _print(screen: Console, profile: Profile, found: Evaluation, remarks: Sequence[str]) -> None:
    from rich.text import Text

    glyphs, width = glyphs_for(screen), width_of(screen)
    models = "".join(f"  {layer} {digest}" for layer, digest in models_of(profile).items())
    head = Text.assemble((visible(profile.name), "bold"), (f" {profile.hash}", "dim"), visible(models))
    screen.print(head + Text(f"  {counted(found.cascade.rows, 'question')}"), soft_wrap=True)
    for remark in remarks:
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


def _compare(screen: Console, layer: Paired, cascade: Paired) -> None:
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
