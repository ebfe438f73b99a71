"""Chooses and proves all gates of a cascade together.

The controlled quantity is the selective risk: **P(wrong | decided by a local layer)**, over questions like those
labelled. Hard rules and declared routes have no gate, but their decisions count. The promise: with probability at least
1 - `delta` over the labelled sample, the selective risk of the chosen gates is at most `max_error`. The only assumption
is that the labelled questions are independent draws of what will be asked. The promise holds over all decisions
together, not for each route, language or question.

The method is learn then test (Angelopoulos et al. 2021). A fifth of the rows, drawn by `seed`, lays a path of gate
vectors from closed to open; each step opens the gate that decides most for the errors it adds. The other rows do not
influence the path and test it from its most promising point on: given that a vector decides `n` of them, its errors are
binomial, so `P(Bin(n, max_error) <= errors)` is a p-value, and fixed-sequence testing keeps the chance of any false
claim within `delta`. Gates only open along the path, so the last proven vector decides most.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from .bound import ceiling_of, chance_to_prove, check_chance, least_count, p_of_few, prove_in_sequence
from .metric import Flags, Floats

# The share of the labelled rows that lays the path. In trials on CLINC150 (60 draws of 600 to 3,000 rows, one and two
# layers) a tenth and a fifth decided equally much within two points, three tenths up to four points less. A fifth,
# because a path laid by few rows offers few gates.
LAYING = 0.2
# Testing begins where this share of what can be decided within the limit, with hindsight, is decided. In the same
# trials 0.5 did better with 1,500 rows and 0.7 with 600; with 3,000 they were within three points. Starting where the
# evidence looks strongest was worse in all but one.
START = 0.6
# A layer's gate is opened only if the layers then decide this much more of all questions. In the same trials 0.02
# opened the gate of a layer no better than chance and lost two to three points, 0.05 did not. 0.03 lies between, so
# that a layer worth four points is used; it was not compared itself.
WORTH = 0.03
# About this many vectors on a path. More take time; fewer give coarser gates.
STEPS = 400
# Gates are written with this many decimals, and proven as written.
DECIMALS = 6
# The hint how many rows are needed: enough for an even chance, if errors are as frequent as predicted. In simulations
# with 200 and 400 rows a third to a half of the next attempts succeeded. The search grows by a hundredth per step, up
# to more rows than anyone labels.
LIKELY = 0.5
GROWTH = 100
MOST_ROWS = 1_000_000
CLOSED = math.inf
"""A gate that only decisive answers pass."""

Gates = tuple[float, ...]


class LayerAnswers(Struct, frozen=True, eq=False):
    """The answers of one layer to each question."""

    id: str
    confidence: Floats
    """NaN where the layer passes, or is held back by another gate, such as its margin's."""
    right: Flags
    decisive: Flags
    """Where the answer stands whatever the gate and its confidence."""

    @property
    def gated(self) -> bool:
        """Whether the layer's gate makes a difference to any question."""
        return bool((~self.decisive & ~np.isnan(self.confidence)).any())

    def take(self, rows: npt.NDArray[np.int64]) -> LayerAnswers:
        return LayerAnswers(self.id, self.confidence[rows], self.right[rows], self.decisive[rows])

    def admits(self, gate: float) -> Flags:
        return self.decisive | (self.confidence >= gate)


class Count(Struct, frozen=True):
    """The results of gates on some rows."""

    rows: int
    decided: int
    wrong: int

    @property
    def coverage(self) -> float:
        return self.decided / self.rows if self.rows else 0.0

    @property
    def error(self) -> float:
        return self.wrong / self.decided if self.decided else math.nan


class GatePoint(Struct, frozen=True):
    """One gate vector of the path."""

    gates: Gates
    laid: Count
    """On the rows that laid the path; optimistic, because they chose it."""
    tested: Count
    """On the other rows."""
    p_value: float
    """Of the hypothesis that its error is above the limit, on the tested rows."""
    proven: bool = False


class LayerShare(Struct, frozen=True):
    """The decisions of one layer."""

    id: str
    decided: int
    wrong: int


class GateChoice(Struct, frozen=True):
    """The chosen gates and the evidence for them."""

    layers: tuple[str, ...]
    gated: tuple[str, ...]
    """The layers whose gate makes a difference to any question."""
    gates: Gates | None
    """One for each layer, in order; None if nothing could be proven."""
    max_error: float
    delta: float
    seed: int
    path: tuple[GatePoint, ...]
    start: int
    """The index on the path where testing began."""
    tested: Count
    """The chosen gates on the tested rows; the most promising gates if none were chosen."""
    ceiling: float
    """The upper bound of their error; it fails with a chance of at most `delta`."""
    shares: tuple[LayerShare, ...]
    rows_needed: int | None = None
    """If nothing was proven: about how many labelled rows like these would be enough, always more than there are. None
    if no number would, or if it cannot be estimated."""
    least_error: float = math.nan
    """If nothing was proven: the lowest error of any gates that decided something, over all rows."""


def choose_gates(layers: Sequence[LayerAnswers], *, max_error: float, delta: float, seed: int = 0) -> GateChoice:
    """The gates with which local layers decide most, at an error proven to be at most `max_error`."""
    check_chance("max_error", max_error)
    check_chance("delta", delta)
    laying_rows, testing_rows = _divide(_count_rows(layers), seed)
    laid = [layer.take(laying_rows) for layer in layers]
    tested = [layer.take(testing_rows) for layer in layers]
    path = _lay_best(laid, max_error)
    before = [count(laid, gates) for gates in path]
    start = _find_start(before, len(testing_rows), max_error, delta)
    after = [count(tested, gates) for gates in path]
    p_values = [p_of_few(one.wrong, one.decided, max_error) for one in after]
    proven = prove_in_sequence(p_values[start:], delta)

    points = tuple(
        GatePoint(gates, before[place], after[place], p_values[place], start <= place < start + proven)
        for place, gates in enumerate(path)
    )
    chosen = start + max(proven, 1) - 1
    seen = after[chosen]
    needed, least = (None, math.nan) if proven else _need_more(points, max_error, delta)
    return GateChoice(
        layers=tuple(layer.id for layer in layers),
        gated=tuple(layer.id for layer in layers if layer.gated),
        gates=path[chosen] if proven else None,
        max_error=max_error,
        delta=delta,
        seed=seed,
        path=points,
        start=start,
        tested=seen,
        ceiling=ceiling_of(seen.wrong, seen.decided, delta),
        shares=share(tested, path[chosen]),
        rows_needed=needed,
        least_error=least,
    )


def _divide(rows: int, seed: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    order = np.random.default_rng(seed).permutation(rows)
    cut = round(rows * LAYING)
    return order[:cut], order[cut:]


def count_tested(layers: Sequence[LayerAnswers], gates: Sequence[float], seed: int) -> Count:
    """The results of other gates on the rows that `choose_gates` tests with this seed."""
    _, tested = _divide(_count_rows(layers), seed)
    return count([layer.take(tested) for layer in layers], gates)


def _find_start(before: Sequence[Count], rows: int, max_error: float, delta: float) -> int:
    """The index where testing begins, with `rows` test rows: well below the point where errors reach the limit, because
    the chance of a proof is best there, but high enough that a single error does not end the testing."""
    reach = before[_find_reach(before, max_error)].coverage
    enough = least_count(1, max_error, delta) / max(rows, 1)
    wanted = min(max(reach * START, enough), reach)
    return next((place for place, one in enumerate(before) if one.coverage >= wanted), len(before) - 1)


def _find_reach(before: Sequence[Count], max_error: float) -> int:
    """The last point that keeps the limit, with hindsight; 0 if none does."""
    return max((place for place, one in enumerate(before) if one.decided and one.error <= max_error), default=0)


def _lay_best(layers: Sequence[LayerAnswers], max_error: float) -> list[Gates]:
    """The path over the layers that are worth it: each lets the path decide at least WORTH more than without it.

    Every fitted gate also fits noise and so makes a proof harder.
    """
    opened: frozenset[int] = frozenset()
    path, reach = lay_path(layers, opened), 0.0
    left = {place for place, layer in enumerate(layers) if layer.gated}
    while left:
        tried = []
        for place in sorted(left):
            candidate = lay_path(layers, opened | {place})
            counts = [count(layers, gates) for gates in candidate]
            tried.append((counts[_find_reach(counts, max_error)].coverage, -place, candidate))
        best, place, candidate = max(tried, key=lambda one: one[:2])
        if opened and best < reach + WORTH:
            break
        opened, path, reach = opened | {-place}, candidate, best
        left.discard(-place)
    return path


def lay_path(layers: Sequence[LayerAnswers], opened: Collection[int]) -> list[Gates]:
    """Gate vectors from all closed to all gates of `opened` open; no gate ever rises along the path."""
    gates = [CLOSED] * len(layers)
    path = [tuple(gates)]
    stride = max(1, _count_rows(layers) // STEPS)
    while (best := _best_step(layers, gates, stride, opened)) is not None:
        place, stops = best
        for stop in stops:
            # Rounded down, so that the row behind it still passes; never up again, because a path only opens.
            gates[place] = min(gates[place], math.floor(stop * 10**DECIMALS) / 10**DECIMALS)
            path.append(tuple(gates))
    # The last step also admits answers that are less sure than any seen here.
    path.append(tuple(0.0 if place in opened else CLOSED for place in range(len(layers))))
    return list(dict.fromkeys(path))


def _best_step(
    layers: Sequence[LayerAnswers], gates: list[float], stride: int, opened: Collection[int]
) -> tuple[int, list[float]] | None:
    """The gate to open next, and its intermediate values.

    The step is the one whose newly decided questions are likeliest to be right, by the mean with a Jeffreys prior: half
    an error and one question added, so that ten questions without an error go before one.
    """
    best: tuple[float, int, list[float]] | None = None
    free = np.ones(_count_rows(layers), bool)
    for place, layer in enumerate(layers):
        waiting = np.flatnonzero(free & ~layer.decisive & (layer.confidence < gates[place]))
        if waiting.size and place in opened:
            waiting = waiting[np.argsort(-layer.confidence[waiting], kind="stable")]
            later = [other.take(waiting) for other in layers[place + 1 :]]
            by = decide_by(later, gates[place + 1 :]) if later else np.full(len(waiting), -1)
            wrong = (~layer.right[waiting]).astype(np.int64)
            for at, other in enumerate(later):
                wrong -= (by == at) & ~other.right
            decided, wrong = np.cumsum(by < 0), np.cumsum(wrong)
            sure = layer.confidence[waiting]
            # Answers of equal confidence pass together.
            ends = np.flatnonzero(np.append(sure[1:] != sure[:-1], True))
            rate = (wrong[ends] + 0.5) / (decided[ends] + 1)
            # Of equally good steps the last, which is the longest.
            pick = len(rate) - 1 - int(np.argmin(rate[::-1]))
            if best is None or rate[pick] < best[0]:
                taken = ends[: pick + 1]
                marks = [taken[0]]
                for end in taken[1:]:
                    if end - marks[-1] >= stride:
                        marks.append(end)
                if marks[-1] != taken[-1]:
                    marks.append(taken[-1])
                best = float(rate[pick]), place, [float(sure[end]) for end in marks]
        free &= ~layer.admits(gates[place])
    return None if best is None else (best[1], best[2])


def count(layers: Sequence[LayerAnswers], gates: Sequence[float]) -> Count:
    """The results of these gates on all rows."""
    shares = share(layers, gates)
    return Count(_count_rows(layers), sum(one.decided for one in shares), sum(one.wrong for one in shares))


def _count_rows(layers: Sequence[LayerAnswers]) -> int:
    return len(layers[0].right) if layers else 0


def decide_by(layers: Sequence[LayerAnswers], gates: Sequence[float]) -> npt.NDArray[np.intp]:
    """The index of the layer that decides each question; -1 where none does."""
    by = np.full(_count_rows(layers), -1)
    for place, (layer, gate) in enumerate(zip(layers, gates, strict=True)):
        by[(by < 0) & layer.admits(gate)] = place
    return by


def share(layers: Sequence[LayerAnswers], gates: Sequence[float]) -> tuple[LayerShare, ...]:
    """How much each layer decides, and how much of that is wrong."""
    by = decide_by(layers, gates)
    return tuple(
        LayerShare(layer.id, int((by == place).sum()), int(((by == place) & ~layer.right).sum()))
        for place, layer in enumerate(layers)
    )


def _need_more(points: Sequence[GatePoint], max_error: float, delta: float) -> tuple[int | None, float]:
    """About how many rows would have proven something, and the lowest error of any gates, over all rows.

    The results with more rows are predicted from all rows: where testing would begin, how much is decided there and how
    much of that is wrong.
    """
    seen = [
        Count(laid.rows + tested.rows, laid.decided + tested.decided, laid.wrong + tested.wrong)
        for laid, tested in ((point.laid, point.tested) for point in points)
    ]
    errors = [one.error for one in seen if one.decided]
    least = min(errors, default=math.nan)
    if not least < max_error:
        return None, least
    rows = seen[0].rows + 1
    while rows <= MOST_ROWS:
        one = seen[_find_start(seen, round(rows * (1 - LAYING)), max_error, delta)]
        decided = round(one.coverage * rows * (1 - LAYING))
        if chance_to_prove(_predict_error(one, max_error), decided, max_error, delta) >= LIKELY:
            return rows, least
        rows += max(1, rows // GROWTH)
    return None, least


def _predict_error(one: Count, max_error: float) -> float:
    """The error that more rows will show: the observed one with half an error added, since gates chosen for few errors
    were also lucky. If so few are decided that this exceeds the limit, the observed error."""
    likely = (one.wrong + 0.5) / (one.decided + 1)
    return likely if likely < max_error else one.error
