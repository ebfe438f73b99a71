"""The pictures of a model card, as SVG in place: reliability, coverage, confusion, and quality over cost."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Sequence

import numpy as np

from turnout.text.control import BIDI

from .frontier import FrontierPoint
from .metric import Bin, Confusion, Curve

# Half the width of a card, so that text in the picture has the size it says.
WIDTH, HEIGHT = 440, 330
LEFT, RIGHT, TOP, BOTTOM = 44, 14, 28, 34
# Room of the histogram under the reliability diagram.
COUNTS = 54
# Cells of a confusion matrix that hold their number; more are a picture only.
NUMBERED = 14
# Labels whose names stand beside a confusion matrix.
NAMED = 60
# Confusions listed in words, the most frequent first.
LISTED = 8
# A share of fewer answers than this jumps about; the curve begins where there are so many.
STEADY = 20
# A name beside a picture.
NAME_CHARACTERS = 24

Place = Callable[[float], float]
"""From a share to where it stands in the picture."""

# What XML cannot hold, and what would turn the reading direction around.
_unfit = re.compile(f"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f{BIDI}\ud800-\udfff\ufffe\uffff]")


def safe(text: str) -> str:
    """A stranger's words, as they may stand in the page: shown, never obeyed."""
    return html.escape(_unfit.sub("\ufffd", text))


def percent(share: float) -> str:
    return "–" if math.isnan(share) else f"{100 * share:.1f} %"


def draw_reliability(bins: Sequence[Bin], confidence: Sequence[float]) -> str:
    bottom = HEIGHT - BOTTOM - COUNTS

    def x(share: float) -> float:
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(share: float) -> float:
        return bottom - share * (bottom - TOP)

    parts = [_frame(x, y, [0, 0.25, 0.5, 0.75, 1], [0, 0.25, 0.5, 0.75, 1], foot=HEIGHT - BOTTOM)]
    parts.append(f"<line class='ideal' x1='{x(0):.1f}' y1='{y(0):.1f}' x2='{x(1):.1f}' y2='{y(1):.1f}'/>")
    counts, edges = np.histogram(np.asarray(confidence, np.float64), bins=20, range=(0.0, 1.0))
    for count, low, high in zip(counts, edges[:-1], edges[1:], strict=True):
        tall = (COUNTS - 12) * count / max(int(counts.max(initial=0)), 1)
        parts.append(
            f"<rect class='count' x='{x(low) + 1:.1f}' y='{HEIGHT - BOTTOM - tall:.1f}' "
            f"width='{x(high) - x(low) - 2:.1f}' height='{tall:.1f}'>"
            f"<title>{low:.2f} to {high:.2f}: {count:,}</title></rect>"
        )
    for one in bins:
        at = x(one.confidence)
        parts.append(
            f"<line class='span' x1='{at:.1f}' x2='{at:.1f}' y1='{y(one.floor):.1f}' y2='{y(one.ceiling):.1f}'/>"
        )
    points = " ".join(f"{x(one.confidence):.1f},{y(one.accuracy):.1f}" for one in bins)
    parts.append(f"<polyline class='mark' points='{points}'/>")
    parts += [
        f"<circle class='dot' cx='{x(one.confidence):.1f}' cy='{y(one.accuracy):.1f}' r='4'>"
        f"<title>says {one.confidence:.3f}, is right {one.accuracy:.3f} of {one.count:,}</title></circle>"
        for one in bins
    ]
    parts.append(_axis_names("confidence", "right"))
    return _svg(HEIGHT, "Reliability diagram", parts)


def draw_coverage(found: Curve, gate: float | None) -> str:
    bottom = HEIGHT - BOTTOM
    steady = found.coverage * _rows(found) >= min(STEADY, _rows(found) / 2)
    found = Curve(found.gate[steady], found.coverage[steady], found.accuracy[steady])
    lowest = float(found.accuracy.min(initial=1.0))
    # The scale begins at a round number below the curve, so that the part that matters is not a line at the top.
    floor = next((low for low in (0.95, 0.9, 0.8, 0.6, 0.4, 0.2) if lowest >= low), 0.0)

    def x(share: float) -> float:
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(share: float) -> float:
        return bottom - (share - floor) / (1 - floor) * (bottom - TOP)

    ticks = [floor + (1 - floor) * step / 5 for step in range(6)]
    parts = [_frame(x, y, [0, 0.25, 0.5, 0.75, 1], ticks, foot=bottom)]
    # As many points as there are pixels: a curve of a million questions is no larger a file.
    keep = np.unique(np.linspace(0, len(found.coverage) - 1, min(len(found.coverage), WIDTH)).astype(np.int64))
    line = [(x(float(found.coverage[at])), y(float(found.accuracy[at]))) for at in keep]
    if line:
        points = " ".join(f"{left:.1f},{top:.1f}" for left, top in line)
        parts.append(f"<polygon class='area' points='{line[0][0]:.1f},{bottom} {points} {line[-1][0]:.1f},{bottom}'/>")
        parts.append(f"<polyline class='mark' points='{points}'/>")
    marks = [(f"{precision:.0%}", np.flatnonzero(found.accuracy >= precision - 1e-12)) for precision in (0.99, 0.98)]
    for name, good in marks:
        if good.size:
            at = good[-1]
            left, top = x(float(found.coverage[at])), y(float(found.accuracy[at]))
            words = f"{found.coverage[at]:.0%} at {name}"
            anchor, shift = ("end", -8) if left > WIDTH * 0.6 else ("start", 8)
            parts.append(f"<circle class='dot' cx='{left:.1f}' cy='{top:.1f}' r='4.5'/>")
            parts.append(
                f"<text class='ink' x='{left + shift:.1f}' y='{top + 15:.1f}' text-anchor='{anchor}'>{words}</text>"
            )
    if gate is not None and (passing := np.flatnonzero(found.gate >= gate)).size:
        share = float(found.coverage[passing[-1]])
        anchor, shift = ("end", -5) if share > 0.5 else ("start", 5)
        parts.append(f"<line class='gate' x1='{x(share):.1f}' x2='{x(share):.1f}' y1='{TOP}' y2='{bottom}'/>")
        parts.append(
            f"<text x='{x(share) + shift:.1f}' y='{bottom - 8}' text-anchor='{anchor}'>"
            f"gate {gate:.2f}: {share:.0%} decided</text>"
        )
    parts.append(_axis_names("decided", "right of those"))
    return _svg(HEIGHT, "Coverage against accuracy", parts)


def _rows(found: Curve) -> float:
    """How many answers a curve is of, as far as it tells: its smallest step is one of them, or a few alike."""
    return 1 / float(np.diff(found.coverage, prepend=0.0).min(initial=1.0))


def draw_confusion(found: Confusion) -> str:
    size = len(found.labels)
    named, numbered = size <= NAMED, size <= NUMBERED
    wide = WIDTH + 110
    beside = 150 if named else 4
    above = 110 if named else 4
    cell = min((wide - beside - 30) / max(size, 1), 64.0)
    tile = cell - min(1.5, cell / 10)
    totals = np.maximum(found.counts.sum(axis=1), 1)
    parts: list[str] = []
    for row in range(size):
        for column in range(size):
            count = int(found.counts[row, column])
            if not count and not numbered:
                continue
            share = count / totals[row]
            kind = "good" if row == column else "bad"
            left, top = beside + column * cell, above + row * cell
            # A handful of mistakes must be seen beside hundreds of right answers: the square root lifts them.
            strength = 0.04 if not count else 0.08 + 0.87 * math.sqrt(share)
            parts.append(
                f"<rect class='{kind}' x='{left:.1f}' y='{top:.1f}' width='{tile:.1f}' "
                f"height='{tile:.1f}' rx='{min(cell / 12, 4):.1f}' fill-opacity='{strength:.3f}'>"
                f"<title>{safe(found.labels[row])} taken for {safe(found.labels[column])}: {count:,}</title></rect>"
            )
            if numbered and count:
                tone = "on" if strength > 0.6 else "ink"
                parts.append(
                    f"<text class='{tone}' x='{left + tile / 2:.1f}' y='{top + tile / 2 + 4:.1f}' "
                    f"text-anchor='middle'>{count:,}</text>"
                )
    if named:
        font = min(11.0, max(cell * 0.8, 5.0))
        for place, label in enumerate(found.labels):
            name = safe(label if len(label) <= NAME_CHARACTERS else f"{label[: NAME_CHARACTERS - 1]}…")
            middle = place * cell + cell / 2
            parts.append(
                f"<text x='{beside - 8}' y='{above + middle + font / 3:.1f}' text-anchor='end' "
                f"style='font-size:{font:.1f}px'>{name}</text>"
            )
            parts.append(
                f"<text transform='translate({beside + middle + font / 3:.1f} {above - 8}) rotate(-45)' "
                f"style='font-size:{font:.1f}px'>{name}</text>"
            )
    return _svg(above + cell * size + 8, "Confusion matrix", parts, width=wide)


def listed_confusions(found: Confusion) -> str:
    """The most frequent mistakes, in words."""
    off = found.counts.copy()
    np.fill_diagonal(off, 0)
    order = np.argsort(-off, axis=None, kind="stable")[:LISTED]
    pairs = [(int(at) // len(found.labels), int(at) % len(found.labels)) for at in order]
    lines = "".join(
        f"<li>{safe(found.labels[row])} taken for {safe(found.labels[column])}: {off[row, column]:,} of "
        f"{found.counts[row].sum():,}</li>"
        for row, column in pairs
        if off[row, column]
    )
    return f"<ol>{lines}</ol>" if lines else ""


def draw_frontier(curves: Sequence[tuple[Sequence[FrontierPoint], FrontierPoint]]) -> str:
    """Quality over cost, with the chosen point of each curve; the first is solid. Dotted: tiers drawn by lot."""
    bottom, every = HEIGHT - BOTTOM, [point for curve, _ in curves for point in curve]
    left, right = min(point.cost for point in every), max(point.cost for point in every)
    low, high = min(point.quality for point in every), max(point.quality for point in every)

    def place(point: FrontierPoint) -> tuple[float, float]:
        x = LEFT + (point.cost - left) / (right - left or 1.0) * (WIDTH - LEFT - RIGHT)
        return x, bottom - (point.quality - low) / (high - low or 1.0) * (bottom - TOP)

    parts = [f"<line class='grid' x1='{LEFT}' x2='{WIDTH - RIGHT}' y1='{at}' y2='{at}'/>" for at in (TOP, bottom)]
    for at, quality in ((bottom, low), (TOP, high)):
        parts.append(f"<text x='{LEFT - 6}' y='{at + 4}' text-anchor='end'>{quality:.2f}</text>")
    for at, cost, anchor in ((LEFT, left, "start"), (WIDTH - RIGHT, right, "end")):
        parts.append(f"<text x='{at}' y='{bottom + 14}' text-anchor='{anchor}'>{cost:.4g}</text>")
    for number, (curve, chosen) in enumerate(curves):
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, sorted(curve, key=lambda point: point.cost)))
        x, y = place(chosen)
        parts.append(f"<polyline class='mark{' dashed' if number else ''}' points='{points}'/>")
        parts.append(f"<circle class='dot' cx='{x:.1f}' cy='{y:.1f}' r='4.5'/>")
    (x1, y1), (x2, y2) = place(curves[0][0][0]), place(curves[0][0][-1])
    parts.append(f"<line class='ideal' x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}'/>")
    parts.append(f"<text class='ink' x='{WIDTH - RIGHT}' y='{HEIGHT - 4}' text-anchor='end'>cost of an answer</text>")
    parts.append(f"<text class='ink' x='{LEFT - 26}' y='{TOP - 14}'>quality</text>")
    return _svg(HEIGHT, "Cost and quality", parts)


def _frame(x: Place, y: Place, across: Sequence[float], up: Sequence[float], *, foot: float) -> str:
    parts = []
    for share in up:
        at = y(share)
        parts.append(f"<line class='grid' x1='{LEFT}' x2='{WIDTH - RIGHT}' y1='{at:.1f}' y2='{at:.1f}'/>")
        parts.append(f"<text x='{LEFT - 6}' y='{at + 4:.1f}' text-anchor='end'>{100 * share:g}</text>")
    for share in across:
        at = x(share)
        parts.append(f"<text x='{at:.1f}' y='{foot + 14:.1f}' text-anchor='middle'>{100 * share:g}</text>")
    return "".join(parts)


def _axis_names(across: str, up: str) -> str:
    return (
        f"<text class='ink' x='{WIDTH - RIGHT}' y='{HEIGHT - 4}' text-anchor='end'>{across}, %</text>"
        f"<text class='ink' x='{LEFT - 26}' y='{TOP - 14}'>{up}, %</text>"
    )


def _svg(height: float, name: str, parts: Sequence[str], width: float = WIDTH) -> str:
    return (
        f"<svg viewBox='0 0 {width:.0f} {height:.0f}' role='img' aria-label='{name}' "
        f"xmlns='http://www.w3.org/2000/svg'>{''.join(parts)}</svg>"
    )
