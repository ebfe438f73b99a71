"""Fits the weights of a `signals` layer to labelled questions, without changing what the layer is.

What a person wrote stays in charge: which signals there are, the sign of each weight, which weights are nothing, the
overrides. Only the numbers move, and no further from where they were than unseen questions reward: how far is chosen by
cross-validation, and the accuracy that is reported comes from folds that chose nothing and fitted nothing.

The numbers are written as a profile that extends the one they were tuned from. The file says where they come from:
which labels, how many, which seed, and what they were worth on questions they had not seen. It is loaded before it
takes its place.
"""

from __future__ import annotations

import datetime
import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import starmap
from pathlib import Path as File
from typing import Any, NamedTuple

import msgspec
import numpy as np

from turnout.config.check import own_keys
from turnout.config.load import read_chain
from turnout.config.write import toml_comment, toml_text
from turnout.core.errors import LearnError, TooFewExamples
from turnout.core.profile import Placed, Profile
from turnout.core.query import Query
from turnout.layers.signals import BandSignals, RankSignals, Signals
from turnout.layers.signals_config import SignalsConfig
from turnout.text.control import escape_json

from .bound import PairedComparison, clopper_pearson, compare_paired
from .contest import SIGNALS, find_layer
from .dataset import Example, hash_examples, read_examples
from .gain import assign_folds, hash_texts
from .heir import write_heir
from .tune_shape import BandShape, Floats, Places, RankShape, Shape

FOLDS = 5
# How strongly the weights are held where they were, from hardly to nearly not moving.
STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)
# Under this an interval of accuracy is wider than any improvement one could hope for.
LEAST_ROWS = 50
# More rows than this change the third decimal of a weight, and the time to wait.
MOST_ROWS = 20_000
# The chance of claiming an improvement that is none.
DELTA = 0.05
# Measured cases written beside the profile: enough to see a change, short enough to read.
CASES = 200


class SignalRows(NamedTuple):
    """What the layer sees of labelled questions."""

    levels: Floats
    """For each question and signal the score of the level it stands at."""
    labels: Places
    """Places in the shape's routes."""
    decided: Places
    """The route an override decides on, -1 where none does."""
    folds: Places
    silent: int = 0
    """Questions in which nothing speaks: the layer leaves them to others, so they are not counted."""

    def some(self, rows: Any) -> SignalRows:
        return SignalRows(self.levels[rows], self.labels[rows], self.decided[rows], self.folds[rows])


class TuneReport(NamedTuple):
    """Before and after, on questions that neither fitted nor chose anything."""

    rows: int
    silent: int
    before: float
    before_bounds: tuple[float, float]
    after: float
    after_bounds: tuple[float, float]
    paired: PairedComparison
    strength: float
    numbers: Any
    shape: Shape
    signals: tuple[str, ...]
    seed: int

    @property
    def is_better(self) -> bool:
        """Whether the improvement is more than chance, but for one case in twenty."""
        return self.paired.floor > 0.0


def find_signals(profile: Profile, name: str | None) -> tuple[Placed, SignalsConfig]:
    """The signals layer of that name, or the only one there is, and how it is configured."""
    hint = ": there are no weights to tune"
    layer, entry = find_layer(profile.name, profile.resolved["layers"], (SIGNALS,), name, hint)
    place = next(place for place in profile.layers if place.id == layer)
    return place, msgspec.convert(own_keys(entry), SignalsConfig)


def shape_of(place: Placed, config: SignalsConfig) -> Shape:
    if isinstance(place.call, BandSignals) and config.bands is not None:
        return BandShape(config, config.bands)
    if isinstance(place.call, RankSignals) and config.ranking is not None:
        return RankShape(config, config.ranking)
    raise LearnError(f"layer {place.id!r} has neither bands nor a ranking: there are no weights to tune")


def look(
    profile: Profile, layer: Signals, config: SignalsConfig, shape: Shape, rows: Sequence[tuple[str, str]], seed: int
) -> SignalRows:
    """What the layer sees of each (text, label)."""
    names = {route: place for place, route in enumerate(shape.routes)}
    levels, labels, decided, texts = list[list[float]](), list[int](), list[int](), list[str]()
    silent = 0
    for text, label in rows:
        if label not in names:
            continue
        reading = profile.read(Query(text))
        questions = reading.folded.count("?") if layer.question_marks else 0
        standing = (
            bisect_right(layer.unit_marks, reading.units),
            bisect_right(layer.question_marks, questions),
            frozenset[str](),
        )
        counts = layer.counts(reading.hits, standing)
        standing_at = dict(layer.standing_rungs(counts))
        override = layer.override(counts, standing) if isinstance(layer, BandSignals) else None
        if override is None and config.no_signal_confidence is not None and set(standing_at) <= layer.neutral:
            silent += 1
            continue
        row = [0.0] * len(config.signals)
        for index in standing_at:
            number = counts[index]
            level = next(level for level in reversed(config.signals[index].levels) if level.holds(number))
            # A ranking asks whether a signal is on, a band how much its level scores.
            row[index] = level.score if config.bands is not None else 1.0
        levels.append(row)
        labels.append(names[label])
        decided.append(names.get(override.config.route, -1) if override is not None else -1)
        texts.append(reading.folded)
    return SignalRows(
        np.array(levels), np.array(labels), np.array(decided), assign_folds(hash_texts(texts), seed), silent
    )


def tune(
    profile: Profile,
    rows: Sequence[tuple[str, str]],
    *,
    layer: str | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> TuneReport:
    """The best numbers for a layer, and what they are worth on questions they have not seen."""
    place, config = find_signals(profile, layer)
    shape = shape_of(place, config)
    if len(rows) > MOST_ROWS:
        some = np.random.default_rng(seed).choice(len(rows), MOST_ROWS, replace=False)
        rows = [rows[at] for at in sorted(some)]
    call: Any = place.call
    seen = look(profile, call, config, shape, rows, seed)
    count = len(seen.labels)
    if count < LEAST_ROWS or len(np.unique(seen.labels)) < 2:
        raise TooFewExamples(
            f"{count} rows in which a signal of layer {place.id!r} speaks, of {len(np.unique(seen.labels))} routes: "
            f"at least {LEAST_ROWS} of two routes are needed ({seen.silent} rows have no signal)"
        )
    folds = [fold for fold in np.unique(seen.folds) if 0 < (seen.folds == fold).sum() < count]
    before = _decide(shape, shape.original(), seen)
    after = np.full(count, -1)
    for done, fold in enumerate(folds):
        progress(done, len(folds) + 1)
        held = seen.folds == fold
        strength = _choose(shape, seen.some(~held), seed)
        numbers = shape.rounded(_fit(shape, seen.some(~held), strength, seed))
        after[held] = _decide(shape, numbers, seen.some(held))
    strength = _choose(shape, seen, seed)
    numbers = shape.rounded(_fit(shape, seen, strength, seed))
    progress(len(folds) + 1, len(folds) + 1)
    was, now = before == seen.labels, after == seen.labels
    return TuneReport(
        rows=count,
        silent=seen.silent,
        before=float(was.mean()),
        before_bounds=clopper_pearson(int(was.sum()), count, DELTA),
        after=float(now.mean()),
        after_bounds=clopper_pearson(int(now.sum()), count, DELTA),
        paired=compare_paired(now, was, DELTA),
        strength=strength,
        numbers=numbers,
        shape=shape,
        signals=tuple(signal.id for signal in config.signals),
        seed=seed,
    )


def _decide(shape: Shape, numbers: Any, seen: SignalRows) -> Places:
    return np.where(seen.decided >= 0, seen.decided, shape.decide(numbers, seen.levels))


def _fit(shape: Shape, seen: SignalRows, strength: float, seed: int) -> Any:
    if math.isinf(strength):
        return shape.original()
    free = seen.decided < 0
    return shape.fit(seen.levels[free], seen.labels[free], strength, seed)


def _choose(shape: Shape, seen: SignalRows, seed: int) -> float:
    """The strength with the most unseen questions right; not moving at all is one of the choices, and wins a tie."""
    right: dict[float, int] = {math.inf: int((_decide(shape, shape.original(), seen) == seen.labels).sum())}
    for strength in sorted(STRENGTHS, reverse=True):
        right[strength] = 0
        for fold in np.unique(seen.folds):
            held = seen.folds == fold
            if held.all():
                continue
            numbers = _fit(shape, seen.some(~held), strength, seed)
            test = seen.some(held)
            right[strength] += int((_decide(shape, numbers, test) == test.labels).sum())
    return max(right, key=right.__getitem__)


def describe(report: TuneReport, config: SignalsConfig) -> Mapping[str, tuple[float, float]]:
    """What moved: for each number its old and its new value, the largest change first."""
    original: Any = report.shape.original()
    old, new = report.shape.rounded(original).named(config), report.numbers.named(config)
    moved = {name: (old[name], new[name]) for name in old if old[name] != new[name]}
    return dict(sorted(moved.items(), key=lambda item: -abs(item[1][1] - item[1][0])))


# --- the file


class Tuning(NamedTuple):
    """What came of it."""

    layer: str
    report: TuneReport
    moved: Mapping[str, tuple[float, float]]
    """Each number that moved, its old and its new value."""
    data_hash: str
    written: File | None


def tune_file(
    profile: Profile,
    base: str,
    source: str,
    *,
    layer: str | None = None,
    seed: int = 0,
    out: File | None = None,
    force: bool = False,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Tuning:
    """Fit a signals layer of a profile to a file of labelled questions; with `out`, write a profile that extends `base`
    if that is shown to be better, or `force` says so."""
    place, config = find_signals(profile, layer)
    examples = read_examples(source, routes=profile.routes, profile=profile.name)
    rows = list(dict.fromkeys((example.text, example.label) for example in examples.rows))
    report = tune(profile, rows, layer=place.id, seed=seed, progress=progress)
    written = out is not None and (report.is_better or force)
    if out is not None and written:
        write_profile(out, base, place.id, report, rows, source=source)
    data_hash = hash_examples(starmap(Example, rows))
    return Tuning(place.id, report, describe(report, config), data_hash, out if written else None)


def write_profile(
    out: File, base: str, layer: str, report: TuneReport, rows: Sequence[tuple[str, str]], *, source: str
) -> tuple[File, File]:
    """The new profile and its cases. What would not load is not left behind."""
    layers = read_chain(base).document.tree.get("layers", ())
    unnamed = [entry for entry in layers if not isinstance(entry.get("id"), str)]
    if unnamed:
        raise LearnError(f"a layer of {base} ({unnamed[0].get('kind')}) has no id: give every layer one, to extend it")
    cases = out.with_name(f"{out.stem}.cases.jsonl")
    write_heir(
        out,
        base,
        lambda beside: compose(out.stem, beside, layer, report, rows, source=source, cases=cases.name),
        lambda _: cases.write_bytes(_cases(out.stem, rows)),
    )
    return out, cases


def compose(
    name: str, base: str, layer: str, report: TuneReport, rows: Sequence[tuple[str, str]], *, source: str, cases: str
) -> str:
    """The file's text."""
    low, high = report.after_bounds
    data_hash = hash_examples(starmap(Example, rows))[:16]
    notes = [
        f"The numbers of layer {layer!r} of {base}, fitted by turnout tune on {datetime.date.today().isoformat()}.",
        f"labels: {File(source).name}, {len(rows):,} rows, sha256 {data_hash}; {report.rows:,} of them",
        f"have a signal. Seed {report.seed}, held at the old numbers with strength {report.strength:g}.",
        f"accuracy of the layer on those, cross-validated: {report.before:.1%} before, {report.after:.1%} after",
        f"(95 % interval {low:.1%} to {high:.1%}; {report.paired.wins} won, {report.paired.losses} lost, better by at"
        f" least {report.paired.floor:+.1%}).",
    ]
    lines = [
        *map(toml_comment, notes),
        f"extends = {toml_text(base)}",
        f"name = {toml_text(name)}",
        f"description = {toml_text(f'{File(base).stem} with weights fitted to {File(source).name}')}",
        f"cases = {toml_text(cases)}",
        "",
        "[[layers]]",
        f"id = {toml_text(layer)}",
        'kind = "signals.v1"',
        *report.numbers.toml(report.signals),
    ]
    return "\n".join(lines) + "\n"


def _cases(name: str, rows: Sequence[tuple[str, str]]) -> bytes:
    """Some of the labels as measured cases: the old profile's own hold its old numbers."""
    some = min(len(rows), CASES)
    chosen = [rows[at * len(rows) // some] for at in range(some)]
    told = [
        {"id": f"{name}-{at}", "text": text, "route": label, "must": False} for at, (text, label) in enumerate(chosen)
    ]
    return b"".join(escape_json(msgspec.json.encode(case)) + b"\n" for case in told)
