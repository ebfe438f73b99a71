"""Trains a student: collapse duplicates, screen, hold out, fit, judge, fit again, write.

A student, and the whole profile with it, is judged by held-out rows. Then it is fitted again on all rows, because that
one serves better; the first one's answers to the held-out rows are stored as figures and evidence. Which rows are held
out depends on their text and the seed, so students trained with the same seed are judged by the same rows, and a
promotion can compare their answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path as File

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from turnout.config.champion import FIELD, SHIPPED, champion_digest, find_champion, shipped_model
from turnout.config.check import layer_id
from turnout.config.resolve import digest as hash_tree
from turnout.core.embed import Embeds
from turnout.core.errors import ShelfError, TooFewExamples
from turnout.core.profile import Profile
from turnout.core.query import Query
from turnout.layers.student_model import EMBEDDED_CHARACTERS, StudentManifest, StudentModel
from turnout.layers.term_head import Terms
from turnout.text.file import write_bytes

from . import registry
from .card import ModelCard, identify, render_card
from .contest import STUDENT, find_layer
from .dataset import OUT_OF_SCOPE, Example, Examples, hash_examples, row_key
from .dedupe import dedupe
from .fit import FitSettings, HeldOutAnswer, Say, StudentFit, fit
from .metric import accuracy, auroc, brier, coverage_at, ece, or_none, score_labels
from .poison.screen import ScreenResult, screen
from .served import HeldAnswer, ask_served, measure_served, remember
from .split import SHARE, hold_out
from .stranger import find_strangers

NOTE = "training"
# Written beside a student in a folder of its own: a LearntRows, without any text.
LEARNT = "learnt.json"
# The precision that gates are usually chosen for; the card has others.
PRECISION = 0.98
# With fewer held-out rows a figure is off by more than three points either way, and a picture is noise.
FEWEST_HELD = 100


class TrainingRecord(Struct, frozen=True):
    """What is stored beside a student about its training."""

    learnt: tuple[str, ...]
    """The keys of the rows it learnt from, including the held-out rows if it was fitted again on all."""
    held: tuple[Example, ...]
    screened: ScreenResult
    seed: int = 0
    answers: Mapping[str, HeldAnswer] = {}
    """The answer to each held-out row, by its key, before it was learnt from; empty if it never was."""


class LearntRows(Struct, frozen=True):
    """The rows of a student in a folder of its own, by their keys, and its answers to the held-out ones."""

    learnt: tuple[str, ...]
    answers: Mapping[str, HeldAnswer] = {}


class LabelFigures(Struct, frozen=True):
    """The figures of one label on held-out rows."""

    label: str
    learnt: int
    held: int
    precision: float | None
    recall: float | None


class TrainingReport(Struct, frozen=True):
    """The figures of a training."""

    profile: str
    layer: str
    digest: str
    folder: str
    champion: str | None
    """The digest of the serving student, if there is one."""
    seed: int
    embedder: str | None
    read: int
    duplicates: int
    near_duplicates: int
    quarantined: int
    new: int
    """Rows that were screened: neither seeds nor rows the champion has seen, nor trusted files of a first training."""
    learnt: int
    """Rows the written student has learnt from."""
    held: int
    """Held-out rows."""
    by: Mapping[str, int]
    """Rows used, by who labelled them."""
    labels: tuple[LabelFigures, ...]
    cross_validated: Mapping[str, float]
    held_out: Mapping[str, float]
    end_to_end: Mapping[str, float]
    """The whole profile on held-out rows: `accuracy`, `fallback` (the share the fallback decides) and `majority` (the
    accuracy of always choosing the most frequent route)."""
    data_hash: str
    remarks: tuple[str, ...]


class Training(Struct, frozen=True):
    folder: File
    manifest: StudentManifest
    report: TrainingReport
    noted: TrainingRecord


def train(
    profile: Profile,
    examples: Examples,
    *,
    layer: str | None = None,
    embedder: Embeds | None = None,
    seed: int = 0,
    share: float = SHARE,
    sessions: bool = False,
    accept: Iterable[str] = (),
    settings: FitSettings | None = None,
    refit: bool = True,
    out: File | None = None,
    beside: File | None = None,
    say: Say = lambda _what, _done: None,
) -> Training:
    """Train a profile's student and put it on the shelf as a candidate, or write it to `out`, a new folder.

    `sessions` keeps the rows of a session on one side of the split. `accept` are new words that are no triggers.
    Without `refit` the held-out rows are never learnt from, so that gates can be proven on them. Relative paths in the
    profile start from the folder `beside`.
    """
    name = find_student(profile, layer)
    if out is not None:
        registry.check_new(out)
    if not examples.rows:
        raise TooFewExamples(
            f"no examples for {profile.name!r}: name a file with text and label, or --from-log; "
            f"{profile.name!r} ships {'none' if not examples.skipped else 'no usable ones'}"
        )
    say("collapsing duplicates", 0.0)
    collapsed = dedupe(examples.rows)
    say("screening", 0.0)
    known, new, champion = divide(collapsed.rows, profile.name, name)
    screened = screen(new, known, accept=accept)
    rows = [*known, *screened.kept]
    split = hold_out(rows, share=share, seed=seed, sessions=sessions)
    learn, held = [rows[index] for index in split.learn], [rows[index] for index in split.judge]
    beyond = find_strangers(rows, profile.fallback.route)

    def fit_to(known: Sequence[Example]) -> StudentFit:
        examples = [*known, *beyond]
        return fit(examples, labels=profile.routes, embedder=embedder, seed=seed, settings=settings, say=say)

    judged_fit = fit_to(learn)
    say("judging", 0.0)
    vectors = remember(embedder, profile, held, judged_fit)
    judged = judge(judged_fit.model(), profile, held, vectors)
    answers = ask_served(judged_fit, profile, name, held, vectors, beside)
    figures, whole = measure(judged), measure_served(held, answers)
    fitted, earlier = judged_fit, dict[str, HeldAnswer]()
    if refit and held:
        fitted, learn, earlier = fit_to(rows), rows, answers
    record = TrainingRecord(tuple(sorted(map(row_key, learn))), tuple(held), screened, seed, earlier)
    everyday = (f"{len(beyond)} everyday questions showed it what is for none of the labels",) if beyond else ()
    remarks = (*examples.remarks, *collapsed.remarks, *screened.remarks, *split.remarks, *everyday, *fitted.remarks)
    learnt = Examples(tuple(learn))
    say("writing", 0.0)
    metrics = {f"held_{figure}": value for figure, value in figures.items()}
    draft = replace(
        fitted.draft,
        profile=profile.name,
        layer=name,
        data_hash=hash_examples([*learn, *beyond]),
        profile_hash=hash_without_models(profile),
        metrics={**fitted.draft.metrics, **metrics, **{f"whole_{figure}": value for figure, value in whole.items()}},
    )
    folder, manifest = registry.keep_model(
        draft, fitted.arrays, lambda written: draw_card(profile, written, fitted, judged, learnt.by()), out
    )
    if out is None:
        registry.note(profile.name, name, manifest.digest, NOTE, msgspec.json.encode(record))
    else:
        write_bytes(out / LEARNT, msgspec.json.encode(LearntRows(record.learnt, record.answers)))
    say("writing", 1.0)
    report = TrainingReport(
        profile=profile.name,
        layer=name,
        digest=manifest.digest,
        folder=str(folder),
        champion=champion,
        seed=seed,
        embedder=manifest.embedder.name if manifest.embedder is not None else None,
        read=len(examples.rows),
        duplicates=collapsed.exact,
        near_duplicates=collapsed.near,
        quarantined=len(screened.quarantined),
        new=len(new),
        learnt=len(learn),
        held=len(held),
        by=Examples(tuple(rows)).by(),
        labels=tuple(_score(judged, learnt.counts(), profile.routes)),
        cross_validated=fitted.draft.metrics,
        held_out=figures,
        end_to_end=whole,
        data_hash=manifest.data_hash,
        remarks=tuple(dict.fromkeys(remarks)),
    )
    return Training(folder, manifest, report, record)


def find_student(profile: Profile, name: str | None = None) -> str:
    """The id of the profile's student layer."""
    hint = " to train: add one to its file, or name another profile with -p"
    return find_layer(profile.name, profile.resolved["layers"], (STUDENT,), name, hint)[0]


def hash_without_models(profile: Profile) -> str:
    """The profile's hash without the serving student, so that the same rows make the same student whichever serves."""
    layers = [{key: value for key, value in entry.items() if key != FIELD} for entry in profile.resolved["layers"]]
    return hash_tree({**profile.resolved, "layers": layers})


def divide(rows: Sequence[Example], profile: str, layer: str) -> tuple[list[Example], list[Example], str | None]:
    """The trusted rows, the rows to screen, and the champion.

    Seeds are trusted, and so are rows that the champion learnt from or was judged by. If nothing serves yet, so are
    files labelled by people: the person who trains the first student vouches for them.
    """
    folder = find_champion(profile, layer)
    serving = None if folder is None else champion_digest(profile, layer)
    record = read_record(profile, layer, serving) if serving is not None else None
    seen = {*record.learnt, *map(row_key, record.held)} if record is not None else set()
    known: list[Example] = []
    new: list[Example] = []
    for row in rows:
        own = serving is None and row.by == "human" and row.session is None and not row.tenant
        (known if own or row.by == "seed" or row_key(row) in seen else new).append(row)
    return known, new, serving


def read_record(profile: str, layer: str, digest: str) -> TrainingRecord | None:
    """The record of a student's training; None for one trained elsewhere."""
    if digest == SHIPPED:
        return _read_shipped(profile, layer)
    file = registry.note_file(profile, layer, digest, NOTE)
    try:
        return msgspec.json.decode(file.read_bytes(), type=TrainingRecord)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ShelfError(f"{file}: what was noted about a training cannot be read: {error}") from None


def _read_shipped(profile: str, layer: str) -> TrainingRecord | None:
    """The record of the shipped student."""
    folder = shipped_model(profile, layer)
    if folder is None or not (folder / LEARNT).is_file():
        return None
    # The previous version wrote a list of keys.
    rows = msgspec.json.decode((folder / LEARNT).read_bytes(), type=LearntRows | list[str])
    rows = rows if isinstance(rows, LearntRows) else LearntRows(tuple(rows))
    return TrainingRecord(rows.learnt, (), ScreenResult(()), answers=rows.answers)


# --- judging


def judge(
    student: StudentModel, profile: Profile, rows: Sequence[Example], embedder: Embeds | None
) -> list[HeldOutAnswer]:
    """The student's answers to rows it has not seen, each text read as the profile reads it."""
    heard = [student.hear(profile.read(Query(row.text)).folded) for row in rows]
    vectors = (
        embedder.embed([one.text[:EMBEDDED_CHARACTERS] for one in heard])
        if embedder is not None and heard
        else [None] * len(heard)
    )
    answers = [student.judge_heard(one, vector) for one, vector in zip(heard, vectors, strict=True)]
    return [
        HeldOutAnswer(at, row.label, one.label, float(one.confidence), float(one.knownness))
        for at, (row, one) in enumerate(zip(rows, answers, strict=True))
    ]


def measure(judged: Sequence[HeldOutAnswer]) -> dict[str, float]:
    """Accuracy over rows with a label; calibration and coverage over all rows."""
    if not judged:
        return {"rows": 0.0}
    # The figures are part of a digest, and the last digit of a sum depends on its order.
    judged = sorted(judged, key=lambda one: (one.confidence, one.knownness, one.label == one.said))
    right, inside = [one.label == one.said for one in judged], [one.label != OUT_OF_SCOPE for one in judged]
    sure = [one.confidence for one in judged]
    figures = {
        "rows": float(len(right)),
        "accuracy": accuracy([one for one, within in zip(right, inside, strict=True) if within]),
        "ece": ece(right, sure),
        "brier": brier(right, sure),
        "coverage_at_98": coverage_at(right, sure, precision=PRECISION)[0],
    }
    if not all(inside) and any(inside):
        figures["oos_auroc"] = auroc(inside, [one.knownness for one in judged])
    return {name: float(value) for name, value in figures.items() if not math.isnan(value)}


def _score(judged: Sequence[HeldOutAnswer], learnt: Mapping[str, int], routes: Sequence[str]) -> Iterator[LabelFigures]:
    true = [str(one.label) for one in judged]
    names = [route for route in routes if learnt.get(route) or route in true]
    for one in score_labels(true, [one.said for one in judged], names):
        figures = or_none(one.precision), or_none(one.recall)
        yield LabelFigures(one.label, learnt.get(one.label, 0), one.support, *figures)
    if learnt.get(OUT_OF_SCOPE):
        yield LabelFigures(OUT_OF_SCOPE, learnt[OUT_OF_SCOPE], true.count(OUT_OF_SCOPE), None, None)


def draw_card(
    profile: Profile,
    manifest: StudentManifest,
    fitted: StudentFit,
    judged: Sequence[HeldOutAnswer],
    by: Mapping[str, int],
) -> str:
    """The student's card, with held-out answers, or cross-validated ones if too few rows were held out."""
    fair = len(judged) >= FEWEST_HELD
    shown = judged if fair else [one for one in fitted.held if one.label is not None]
    placed = next((placed for placed in profile.layers if placed.id == manifest.layer), None)
    entry = next(entry for entry in profile.resolved["layers"] if layer_id(entry) == manifest.layer)
    gate = placed.gate.confidence if placed is not None else entry.get("accept", {}).get("confidence")
    terms = manifest.terms or Terms()
    heads = "words, pairs, letters and shape" + (
        f" and {manifest.embedder.name}" if manifest.embedder is not None else ""
    )
    limits = [
        "It knows only the languages and subjects of the questions it learnt from.",
        f"It reads the first {terms.head:,} characters of a question, and the last {terms.tail:,} of a longer one.",
        "A word that occurred with a single label pulls every question with it towards that label.",
    ]
    if not manifest.oos_rows:
        limits.append(
            "The examples had no question outside every route, so its answers to such questions are untested."
        )
    return render_card(
        ModelCard(
            title=f"{profile.name} / {manifest.layer}",
            what=f"Chooses one of {len(manifest.labels)} routes of {profile.name!r}: {profile.description}.",
            true=[str(one.label) for one in shown],
            said=[one.said for one in shown],
            confidence=[one.confidence for one in shown],
            labels=manifest.labels,
            judged_on="questions that were held out" if fair else "cross-validation: too few were held out to judge by",
            facts=identify(manifest),
            data_hash=manifest.data_hash,
            counts=manifest.counts,
            sources=by,
            fitted=[
                ("features", heads),
                ("share of the word head", f"{manifest.mix:.2f}"),
                ("temperature", f"{manifest.temperature:.3f}"),
                ("seed", str(manifest.seed)),
            ],
            metrics=[
                (name.replace("_", " "), f"{value:.4g}", "held out" if name.startswith("held_") else "cross-validated")
                for name, value in manifest.metrics.items()
            ],
            gate=gate,
            limits=limits,
            repeat=[f"turnout train -p {profile.name} --layer {manifest.layer} --seed {manifest.seed}"],
        )
    )
