"""Fits the weights of a `signals` layer to labelled questions, without changing what the layer is.

What a person wrote stays in charge: which signals there are, the sign of each weight, which weights are nothing, the
overrides. Only the numbers move, and no further from where they were than unseen questions reward: how far is chosen by
cross-validation, and the accuracy that is reported comes from folds that chose nothing and fitted nothing.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from turnout.config.check import own_keys
from turnout.core.errors import LearnError, TooFewExamples
from turnout.core.profile import Placed, Profile
from turnout.core.query import Query
from turnout.layers.signals import BandSignals, RankSignals, Signals
from turnout.layers.signals_config import SignalsConfig

from .bound import PairedComparison, clopper_pearson, compare_paired
from .gain import assign_folds, hash_texts
from .layer import SIGNALS, find_layer
from .tune_band import BandShape
from .tune_rank import RankShape

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]

FOLDS = 5
# How strongly the weights are held where they were, from hardly to nearly not moving.
STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)
# Under this an interval of accuracy is wider than any improvement one could hope for.
LEAST_ROWS = 50
# More rows than this change the third decimal of a weight, and the time to wait.
MOST_ROWS = 20_000
# The chance of claiming an improvement that is none.
DELTA = 0.05


class Shape(Protocol):
    """One way of reading signals: what can be fitted, and what it then says."""

    routes: tuple[str, ...]

    def original(self) -> Any: ...
    def fit(self, levels: Floats, labels: Places, strength: float, seed: int) -> Any:
        """The numbers that suit these rows, held at the original ones by so much."""
        ...

    def decide(self, numbers: Any, levels: Floats) -> Places:
        """Which route each row gets."""
        ...

    def rounded(self, numbers: Any) -> Any:
        """As they are written in a file."""
        ...


class SignalRows(NamedTuple):
    """What the layer sees of labelled questions."""

    levels: Floats
    """For each question and signal the score of the level it stands at."""
    labels: Places
    """Places in the shape's routes."""
    decided: Places
    """The route an override decides on, -1 where none does."""
    folds: Places
    silent: int
    """Questions in which nothing speaks: the layer leaves them to others, so they are not counted."""


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
        strength = _choose(shape, _some(seen, ~held), seed)
        numbers = shape.rounded(_fit(shape, _some(seen, ~held), strength, seed))
        after[held] = _decide(shape, numbers, _some(seen, held))
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


def _some(seen: SignalRows, rows: Any) -> SignalRows:
    return SignalRows(seen.levels[rows], seen.labels[rows], seen.decided[rows], seen.folds[rows], 0)


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
            numbers = _fit(shape, _some(seen, ~held), strength, seed)
            test = _some(seen, held)
            right[strength] += int((_decide(shape, numbers, test) == test.labels).sum())
    return max(right, key=right.__getitem__)


def describe(report: TuneReport, config: SignalsConfig) -> Mapping[str, tuple[float, float]]:
    """What moved: for each number its old and its new value, the largest change first."""
    old, new = report.shape.rounded(report.shape.original()).named(config), report.numbers.named(config)
    moved = {name: (old[name], new[name]) for name in old if old[name] != new[name]}
    return dict(sorted(moved.items(), key=lambda item: -abs(item[1][1] - item[1][0])))
