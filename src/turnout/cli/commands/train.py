"""`turnout train`: train a student on labelled questions, and report how good it is and what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path as File
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter
from rich.text import Text

from turnout.config.learning import learn_settings
from turnout.config.load import load_profile, read_chain
from turnout.config.name import DEFAULT_PROFILE
from turnout.core.errors import QueryError
from turnout.core.profile import Profile
from turnout.runtime.load import embedder_for_training
from turnout.runtime.log import reading_log
from turnout.text.control import escape_json
from turnout.text.count import counted

from ..draw.screen import console, visible, write_json
from ..draw.shape import Screen, columns
from ..labelled import (
    AcceptOption,
    EmbedderOption,
    HoldOutOption,
    LayerOption,
    check_readable,
    needing_learn,
    read_hold_out,
)
from ..option import (
    STDIN,
    FileOption,
    FolderOption,
    JsonOption,
    NameOption,
    NumberOption,
    ProfileOption,
    StoreOptions,
    TimeOptions,
    hint,
)
from ..stream import phases, writing
from .student import let_serve, print_promotion, promotion_form

if TYPE_CHECKING:
    from turnout.learn.poison.screen import QuarantinedRow
    from turnout.learn.train import Training, TrainingReport

# Reasons that are listed for rows set aside; --quarantine writes all rows.
LISTED = 5


AimShare = Annotated[str | None, Parameter(metavar="SHARE")]


@Parameter(name="*")
@dataclass(frozen=True)
class AimOptions:
    """The options for the aim of a gain layer's thresholds, as typed."""

    keep_quality: Annotated[AimShare, Parameter(help="With --outcomes: the cheapest that keeps this much (95%).")] = (
        None
    )
    budget: Annotated[AimShare, Parameter(help="With --outcomes: the best for this share of the extra cost.")] = None
    max_cost: Annotated[
        str | None, Parameter(metavar="AMOUNT", help="With --outcomes: the best for this mean cost an answer.")
    ] = None


def train(
    *files: Annotated[
        str, Parameter(name="FILE", help="Labelled questions: JSONL, CSV or Parquet, or what turnout export wrote.")
    ],
    text: Annotated[str, Parameter(metavar="COLUMN", help="The column of texts.", show_default=True)] = "text",
    label: Annotated[str, Parameter(metavar="COLUMN", help="The column of labels.", show_default=True)] = "label",
    profile: ProfileOption = DEFAULT_PROFILE,
    layer: LayerOption = None,
    from_log: Annotated[bool, Parameter(help="Train on the decision log as well.")] = False,
    when: TimeOptions = TimeOptions(),
    tenant: Annotated[NameOption, Parameter(help="Only this tenant's log; by default all.")] = None,
    seeds: Annotated[
        bool,
        Parameter(
            negative="--no-seeds", help="Train on the examples that come with the profile as well.", show_default=True
        ),
    ] = True,
    outcomes: Annotated[
        FileOption, Parameter(help="Which model answered correctly: trains a gain layer instead.")
    ] = None,
    aim: AimOptions = AimOptions(),
    embedder: EmbedderOption = "auto",
    seed: Annotated[NumberOption, Parameter(help="Divides the rows; keep it from one training to the next.")] = 0,
    held_out: HoldOutOption = "20%",
    by_session: Annotated[
        bool, Parameter(help="Keep the rows of a session together: all for training, or all held out.")
    ] = False,
    refit: Annotated[
        bool,
        Parameter(
            negative="--no-refit", help="Once it is judged, learn from what was held out as well.", show_default=True
        ),
    ] = True,
    accept: AcceptOption = (),
    quarantine: Annotated[FileOption, Parameter(help="Write the rows that were set aside, and why.")] = None,
    out: Annotated[
        FolderOption, Parameter(name=("--out", "-o"), help="Write it there instead of onto the shelf.")
    ] = None,
    promote: Annotated[
        bool,
        Parameter(help="Let it serve at once, if it passes every check of turnout student promote."),
    ] = False,
    if_due: Annotated[
        bool,
        Parameter(help="Only if the log has enough that is new since the last training, or its traffic has drifted."),
    ] = False,
    json: JsonOption = False,
    where: StoreOptions = StoreOptions(),
) -> int:
    config = where.config
    if promote and out is not None:
        raise QueryError("--promote is for a student on the shelf: leave out --out, or promote it later")
    if STDIN in files:
        raise QueryError("examples are read more than once: write what you pipe in into a file, and name that")
    if outcomes is not None and (files or from_log):
        raise QueryError("--outcomes trains from that file alone: leave out other files and --from-log")
    check_readable(files if outcomes is None else (outcomes,))
    loaded = load_profile(profile, config=config)
    vectors = embedder_for_training(embedder, config)
    if outcomes is not None:
        from .train_outcome import train_from_outcomes

        return train_from_outcomes(
            loaded, profile, outcomes, layer, vectors, seed, out, aim, promote=promote, json=json, config=config
        )
    if aim != AimOptions():
        raise QueryError("--keep-quality, --budget and --max-cost are aims of --outcomes FILE: name one")
    with needing_learn(profile):
        from turnout.learn.dataset import gather, read_for, read_logs
        from turnout.learn.train import find_student
        from turnout.learn.train import train as fit
    student = find_student(loaded, layer)  # before anything is read
    if if_due and not _is_due(loaded, student, where, json=json):
        return 0
    examples = read_for(loaded, files, seeds=seeds, text=text, label=label)
    if from_log:
        with reading_log(where) as store:
            examples = gather(examples, read_logs(store, loaded, tenant=tenant, span=when.span()))
    elif when != TimeOptions() or tenant is not None:
        raise QueryError("--since, --until and --tenant choose from the log: say --from-log as well")
    with phases() as say:
        training = fit(
            loaded,
            examples,
            layer=layer,
            embedder=vectors,
            seed=seed,
            share=read_hold_out(held_out),
            sessions=by_session,
            accept=accept,
            refit=refit,
            out=File(out) if out is not None else None,
            beside=read_chain(profile).beside,
            say=say,
        )
    quarantined = training.noted.screened.quarantined
    if quarantine is not None:
        _write_quarantine(quarantine, quarantined)
    if json:
        write_json(_form(training))
    else:
        print_report(training.report, quarantined, quarantine)
        console().say(f"{training.report.digest} in {visible(training.report.folder)}")
        if not promote:
            _print_next(training.report, profile, on_shelf=out is None)
    auto_promote = learn_settings(config).auto_promote and out is None
    if not promote and not auto_promote:
        return 0
    why = "turnout train --promote" if promote else "auto_promote"
    promotion = let_serve(profile, training.manifest.digest, training.report.layer, config, accept=accept, why=why)
    if json:
        write_json(promotion_form(promotion))
    else:
        console().print()
        print_promotion(promotion, profile, asked=True)
    # With auto_promote alone, the training has succeeded whether or not the student serves.
    return 0 if promotion.promoted or not promote else 1


def _is_due(profile: Profile, layer: str, where: StoreOptions, *, json: bool) -> bool:
    """Whether training is due; prints the answer."""
    from turnout.learn.drift import is_due

    with reading_log(where) as store:
        found = is_due(store, profile.name, learn_settings(where.config), layer=layer)
    if json and not found:
        write_json(found)
    elif not json:
        console().say(f"{('due' if found else 'not due')}: {visible(str(found))}")
    return found.due


def _write_quarantine(out: str, quarantined: Sequence[QuarantinedRow]) -> None:
    with writing(out) as file:
        for one in quarantined:
            row = one.row
            form = {"text": row.text, "label": row.label, "label_by": row.by, "human_by": row.who or None}
            form |= {"session": row.session, "tenant": row.tenant or None, "code": one.code}
            line = msgspec.json.encode(form | {"reason": one.reason, "from": row.where})
            file.write(escape_json(line) + b"\n")


def _form(training: Training) -> dict[str, object]:
    form: dict[str, object] = msgspec.to_builtins(training.report)
    form["triggers"] = [msgspec.to_builtins(one) | {"rows": len(one.rows)} for one in training.noted.screened.triggers]
    form["set_aside"] = Counter(one.code for one in training.noted.screened.quarantined)
    return form


def print_head(screen: Screen, profile: str, layer: str, embedder: str | None, second_line: str) -> None:
    """Print what was trained and on which features, and a second line."""
    features = f"n-grams and {embedder}" if embedder else "n-grams"
    screen.say((visible(profile), "bold"), f" {screen.glyphs.dot} {visible(layer)}  {features}")
    screen.say(second_line)


def print_figures(screen: Screen, rows: Iterable[tuple[str, str, str]]) -> None:
    """Print the name, value and meaning of each figure."""
    grid = columns("dim", "right", "dim wrap")
    for row in rows:
        grid.add_row(*map(visible, row))
    screen.print(grid)


def print_report(report: TrainingReport, quarantined: Sequence[QuarantinedRow], file: str | None = None) -> None:
    """Print what was learnt and how good it is. `file` is where the quarantined rows were written."""
    screen = console()
    who = ", ".join(f"{count:,} by {name}" for name, count in report.by.items())
    rows = f"{counted(report.learnt, 'row')} learnt, {report.held:,} held out to judge by ({who})"
    print_head(screen, report.profile, report.layer, report.embedder, rows)
    for remark in report.remarks:
        screen.say((f"  {visible(remark)}", "dim"))
    screen.print()
    table = columns("fold", "right", "right", "right", "right")
    table.add_row(*(Text(head, "bold") for head in ("label", "learnt", "held out", "precision", "recall")))
    for row in report.labels:
        shares = (_share(row.precision), _share(row.recall))
        table.add_row(visible(row.label), f"{row.learnt:,}", f"{row.held:,}", *shares)
    screen.print(table)
    screen.print()
    print_figures(screen, _figures(report))
    if quarantined:
        _print_quarantined(screen, quarantined, file)
    screen.print()


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _figures(report: TrainingReport) -> Iterator[tuple[str, str, str]]:
    found, crossed, whole = report.held_out, report.cross_validated, report.end_to_end
    for name, value, meaning in (
        ("accuracy", crossed.get("accuracy"), "cross-validated on what was learnt"),
        ("accuracy", found.get("accuracy"), "on what was held out, before it was learnt"),
        ("end to end", whole.get("accuracy"), "the whole profile on the same, fallback included"),
        ("fallback", whole.get("fallback"), "of what was held out, decided by no layer"),
        ("calibration error", found.get("ece"), "how far its confidence is from the truth"),
        ("answered", found.get("coverage_at_98"), "of what was held out, at 98 % precision"),
        ("tells outsiders", found.get("oos_auroc"), "AUROC, questions for none of the routes"),
    ):
        if value is not None:
            yield name, f"{value:.1%}", meaning


def _print_quarantined(screen: Screen, quarantined: Sequence[QuarantinedRow], file: str | None) -> None:
    screen.print()
    screen.say((f"{counted(len(quarantined), 'row')} set aside, not learnt from:", "yellow"))
    reasons = Counter(one.reason for one in quarantined)
    for reason, count in reasons.most_common(LISTED):
        screen.say(f"  {count:,}: {visible(reason)}")
    if len(reasons) > LISTED:
        screen.say((f"  and {counted(len(reasons) - LISTED, 'reason')} more", "dim"))
    where = f"They are in {visible(file)}" if file else "--quarantine FILE writes them"
    screen.say((f"{where}; --accept WORD lets in a word you know.", "dim"))


def _print_next(report: TrainingReport, profile: str, *, on_shelf: bool) -> None:
    screen = console()
    promote = hint("student", "promote", "-p", profile)
    if not on_shelf:
        screen.say(f"Nothing serves it: without --out it is a candidate for {promote}.")
    elif report.champion is None:
        screen.say(f"No student serves yet: {promote} checks this one and lets it serve.")
    else:
        screen.say(f"{report.champion} still serves: {promote} compares the two and lets the better one serve.")
    screen.say((f"{hint('evaluate', 'FILE', '-p', profile)} judges by other questions.", "dim"))
