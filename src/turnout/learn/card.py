"""A model's card: one HTML file that says what a model is, what it was made from and how good it is.

The file is self-contained: no script, nothing fetched, pictures as inline SVG, light and dark mode, valid XML.
Labels and texts are untrusted: all are escaped, and control characters that reverse or hide text are replaced.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from turnout.layers.artefact import Manifest
from turnout.text.control import BIDI

from .frontier import FrontierPoint
from .metric import (
    Bin,
    Confusion,
    Curve,
    accuracy,
    bin_reliability,
    brier,
    confuse,
    coverage_at,
    curve,
    ece,
    score_labels,
)

# Precisions that gates are usually chosen for.
PRECISIONS = (0.95, 0.98, 0.99)
# Labels in a table; of more, only the weakest or the largest are listed.
MOST_LABELS = 40
# Half the width of a card, so that text in a picture has its nominal size.
WIDTH, HEIGHT = 440, 330
LEFT, RIGHT, TOP, BOTTOM = 44, 14, 28, 34
# The height of the histogram under the reliability diagram.
COUNTS = 54
# A confusion matrix of at most this many labels has numbers in its cells.
NUMBERED = 14
# A confusion matrix of at most this many labels shows their names, cut to this many characters.
NAMED, NAME_CHARACTERS = 60, 24
# Confusions listed in words, the most frequent first.
LISTED = 8
# The share of fewer answers than this is unsteady; the curve begins here.
STEADY = 20
QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)

# Characters that XML cannot hold, and those that change the reading direction.
_unfit = re.compile(f"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f{BIDI}\ud800-\udfff\ufffe\uffff]")


class Picture(NamedTuple):
    title: str
    drawing: str
    """SVG."""
    caption: str


class ModelCard(Struct, frozen=True):
    """The content of a card, for any kind of model. Its answers are to questions the model has not seen."""

    title: str
    what: str
    """What the model decides, and for which profile, in one or two sentences."""
    true: Sequence[str] = ()
    said: Sequence[str] = ()
    confidence: Sequence[float] = ()
    labels: Sequence[str] = ()
    """The order of the labels; any others follow."""
    judged_on: str = "questions it has not seen"
    """Where `true` and `said` come from."""
    facts: Sequence[tuple[str, str]] = ()
    """What identifies the model: digest, profile, when it was made."""
    data_hash: str = ""
    counts: Mapping[str, int] = {}
    """Training rows by label."""
    sources: Mapping[str, int] = {}
    """Training rows by who labelled them."""
    fitted: Sequence[tuple[str, str]] = ()
    """How it was fitted: features, heads, seed."""
    metrics: Sequence[tuple[str, str, str]] = ()
    """Figures beside those computed here: name, value, meaning."""
    gate: float | None = None
    """The gate of its layer, marked in the curve."""
    pictures: Sequence[Picture] = ()
    """Pictures beside those drawn here of its answers."""
    limits: Sequence[str] = ()
    """Known limits."""
    repeat: Sequence[str] = ()
    """Commands that make the model again."""


def identify(manifest: Manifest) -> list[tuple[str, str]]:
    """The facts that say which model a card belongs to."""
    return [
        ("digest", manifest.digest),
        ("profile", f"{manifest.profile} {manifest.profile_hash}"),
        ("made", manifest.created),
        ("Turnout", manifest.turnout),
    ]


def safe(text: str) -> str:
    """Untrusted text, escaped for the page."""
    return html.escape(_unfit.sub("\ufffd", text))


def percent(share: float) -> str:
    return "–" if math.isnan(share) else f"{100 * share:.1f} %"


def render_card(card: ModelCard) -> str:
    """The HTML of the card."""
    right = [one == other for one, other in zip(card.true, card.said, strict=True)]
    body = [
        f"<header><p class='kicker'>model card</p><h1>{safe(card.title)}</h1><p class='what'>{safe(card.what)}</p>",
        _tiles(card, right) if right else "",
        "</header>",
        _plots(card, right) if right else "",
        *(_figure(*picture) for picture in card.pictures),
        _section("What it is", _table(card.facts)),
        _section("Made from", _made_from(card)),
        _section("Fitted", _table(card.fitted)),
        _section("Figures", _table(_figures(card, right), " class='n'", " class='dim'")),
        _section("Labels", _label_table(card) if right else ""),
        _section("Known limits", "".join(f"<li>{safe(limit)}</li>" for limit in card.limits), "ul"),
        _section("How to repeat", f"<pre>{safe(chr(10).join(card.repeat))}</pre>" if card.repeat else ""),
    ]
    return (
        "<!DOCTYPE html>\n<html lang='en' xmlns='http://www.w3.org/1999/xhtml'><head><meta charset='utf-8'/>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'/>"
        f"<title>{safe(card.title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><main>\n{chr(10).join(filter(None, body))}\n</main></body></html>\n"
    )


def _tiles(card: ModelCard, right: Sequence[bool]) -> str:
    covered, gate = coverage_at(right, card.confidence, precision=0.98)
    tiles = [
        (percent(accuracy(right)), "right", f"of {len(right):,} questions"),
        (percent(covered), "decided at 98 % precision", f"gate {gate:.2f}" if covered else "no gate gives it"),
        (percent(ece(right, card.confidence)), "calibration error", "15 bins of equal mass"),
    ]
    if card.counts:
        tiles.append((f"{sum(card.counts.values()):,}", "questions learnt from", f"{len(card.counts):,} labels"))
    cells = (
        f"<div class='tile'><b>{value}</b><span>{name}</span><small>{note}</small></div>" for value, name, note in tiles
    )
    return f"<div class='tiles'>{''.join(cells)}</div>"


def _plots(card: ModelCard, right: Sequence[bool]) -> str:
    confusion = confuse(card.true, card.said, card.labels)
    reliability = _figure(
        "Does its confidence hold?",
        draw_reliability(bin_reliability(right, card.confidence), card.confidence),
        "Each dot is a fifteenth of the questions, with its 95 % interval. On the line, 0.9 means right nine times in "
        "ten. The bars below count questions.",
    )
    coverage = _figure(
        "How much can it decide?",
        draw_coverage(curve(right, card.confidence), card.gate),
        "From the surest questions (left) to all of them: the share decided, and the share of those that is right.",
    )
    caption = "A row for each true label, a column for each answer; the diagonal is right." + list_confusions(confusion)
    mistakes = _figure("Which label is taken for which?", draw_confusion(confusion), caption, kind=" class='wide'")
    return f"<div class='plots'>{reliability}{coverage}</div>{mistakes}"


def _figure(title: str, picture: str, caption: str, *, kind: str = "") -> str:
    return f"<figure{kind}><h2>{title}</h2>{picture}<figcaption>{caption}</figcaption></figure>"


def _section(title: str, content: str, tag: str = "div") -> str:
    return f"<section><h2>{title}</h2><{tag}>{content}</{tag}></section>" if content else ""


def _table(rows: Iterable[Sequence[str]], *kinds: str, head: str = "") -> str:
    """A table with a name and its values in each row; `kinds` are the class attributes of the value columns."""
    lines = [
        f"<tr><th>{safe(name)}</th>"
        + "".join(f"<td{kind}>{safe(cell)}</td>" for kind, cell in zip(kinds or [""], cells, strict=True))
        for name, *cells in rows
    ]
    return f"<table>{head}{'</tr>'.join([*lines, ''])}</table>" if lines else ""


def _made_from(card: ModelCard) -> str:
    rows = [("content, sha256", card.data_hash)] if card.data_hash else []
    if card.sources:
        rows.append(("labelled by", ", ".join(f"{who} {count:,}" for who, count in card.sources.items())))
    if not card.counts:
        return _table(rows)
    shown = sorted(card.counts.items(), key=lambda item: (-item[1], item[0]))
    lines = "".join(
        f"<tr><th>{safe(label)}</th><td class='n'>{count:,}</td>"
        f"<td class='bar'><i style='width:{100 * count / (shown[0][1] or 1):.1f}%'></i></td></tr>"
        for label, count in shown[:MOST_LABELS]
    )
    return f"{_table(rows)}<table class='bars'>{lines}</table>{_more(len(shown), 'largest')}"


def _figures(card: ModelCard, right: Sequence[bool]) -> Iterable[tuple[str, str, str]]:
    if right:
        sure = card.confidence
        yield "accuracy", percent(accuracy(right)), f"of {len(right):,}: {card.judged_on}"
        yield "ECE, equal mass", percent(ece(right, sure)), "mean distance of confidence from the share that is right"
        yield "ECE, equal width", percent(ece(right, sure, cut="width")), "the same with bins of one width"
        yield "Brier score", f"{brier(right, sure):.4f}", "mean squared distance; lower is better"
        for precision in PRECISIONS:
            covered, gate = coverage_at(right, sure, precision=precision)
            note = f"with hindsight, at gate {gate:.3f}" if covered else "no gate gives it"
            yield f"decided at {precision:.0%} precision", percent(covered), note
    yield from card.metrics


def _label_table(card: ModelCard) -> str:
    labels = list(dict.fromkeys((*card.labels, *sorted({*card.true, *card.said}))))
    scores = score_labels(card.true, card.said, labels)
    if len(labels) > MOST_LABELS:
        scores = sorted(scores, key=lambda one: (one.f1 if not math.isnan(one.f1) else 2.0, one.label))[:MOST_LABELS]
    rows = [(one.label, *map(percent, (one.precision, one.recall, one.f1)), f"{one.support:,}") for one in scores]
    head = "<tr class='head'><th></th><td>precision</td><td>recall</td><td>F1</td><td>questions</td></tr>"
    return _table(rows, *[" class='n'"] * 4, head=head) + _more(len(labels), "weakest")


def _more(count: int, which: str) -> str:
    return f"<p class='dim'>the {which} are shown of {count:,}</p>" if count > MOST_LABELS else ""


# --- pictures


class _Plot:
    """A picture with two axes; coordinates are in the units of the axes."""

    def __init__(self, across: tuple[float, float], up: tuple[float, float], bottom: float = HEIGHT - BOTTOM) -> None:
        self.across, self.up, self.bottom = across, up, bottom
        self.parts: list[str] = []

    def x(self, value: float) -> float:
        low, high = self.across
        return LEFT + (value - low) / (high - low or 1.0) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        low, high = self.up
        return self.bottom - (value - low) / (high - low or 1.0) * (self.bottom - TOP)

    def line(self, kind: str, start: tuple[float, float], end: tuple[float, float]) -> None:
        (x1, y1), (x2, y2) = ((self.x(across), self.y(up)) for across, up in (start, end))
        self.parts.append(f"<line class='{kind}' x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}'/>")

    def text(self, x: float, y: float, text: str, anchor: str = "start", kind: str = "tick") -> None:
        """Write a text; `x` and `y` are in pixels."""
        self.parts.append(f"<text class='{kind}' x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}'>{text}</text>")

    def curve(self, points: Iterable[tuple[float, float]], kind: str = "mark") -> str:
        listed = " ".join(f"{self.x(across):.1f},{self.y(up):.1f}" for across, up in points)
        self.parts.append(f"<polyline class='{kind}' points='{listed}'/>")
        return listed

    def dot(self, across: float, up: float, title: str = "") -> None:
        note = f"<title>{title}</title>" if title else ""
        self.parts.append(f"<circle class='dot' cx='{self.x(across):.1f}' cy='{self.y(up):.1f}' r='4'>{note}</circle>")

    def ticks(self, across: Sequence[float], up: Sequence[float], form: str = "{:g}", scale: float = 100) -> None:
        for value in up:
            self.line("grid", (self.across[0], value), (self.across[1], value))
            self.text(LEFT - 6, self.y(value) + 4, form.format(scale * value), "end")
        for value in across:
            self.text(self.x(value), HEIGHT - BOTTOM + 14, form.format(scale * value), "middle")

    def svg(self, name: str, across: str, up: str) -> str:
        self.text(WIDTH - RIGHT, HEIGHT - 4, across, "end", "ink")
        self.text(LEFT - 26, TOP - 14, up, kind="ink")
        return _svg(HEIGHT, name, self.parts)


def _svg(height: float, name: str, parts: Sequence[str], width: float = WIDTH) -> str:
    return (
        f"<svg viewBox='0 0 {width:.0f} {height:.0f}' role='img' aria-label='{name}' "
        f"xmlns='http://www.w3.org/2000/svg'>{''.join(parts)}</svg>"
    )


def draw_reliability(bins: Sequence[Bin], confidence: Sequence[float]) -> str:
    plot = _Plot((0, 1), (0, 1), HEIGHT - BOTTOM - COUNTS)
    plot.ticks(QUARTERS, QUARTERS)
    plot.line("ideal", (0, 0), (1, 1))
    counts, edges = np.histogram(np.asarray(confidence, np.float64), bins=20, range=(0.0, 1.0))
    for count, low, high in zip(counts, edges[:-1], edges[1:], strict=True):
        tall = (COUNTS - 12) * count / max(int(counts.max(initial=0)), 1)
        plot.parts.append(
            f"<rect class='count' x='{plot.x(low) + 1:.1f}' y='{HEIGHT - BOTTOM - tall:.1f}' "
            f"width='{plot.x(high) - plot.x(low) - 2:.1f}' height='{tall:.1f}'>"
            f"<title>{low:.2f} to {high:.2f}: {count:,}</title></rect>"
        )
    for one in bins:
        plot.line("span", (one.confidence, one.floor), (one.confidence, one.ceiling))
    plot.curve((one.confidence, one.accuracy) for one in bins)
    for one in bins:
        title = f"says {one.confidence:.3f}, is right {one.accuracy:.3f} of {one.count:,}"
        plot.dot(one.confidence, one.accuracy, title)
    return plot.svg("Reliability diagram", "confidence, %", "right, %")


def draw_coverage(gates: Curve, gate: float | None) -> str:
    # The number of answers, estimated from the curve's smallest step: one answer, or a few of equal confidence.
    rows = 1 / float(np.diff(gates.coverage, prepend=0.0).min(initial=1.0))
    steady = gates.coverage * rows >= min(STEADY, rows / 2)
    shown = Curve(gates.gate[steady], gates.coverage[steady], gates.accuracy[steady])
    lowest = float(shown.accuracy.min(initial=1.0))
    # The scale begins at a round number below the curve; from 0 the curve would be a line at the top.
    floor = next((low for low in (0.95, 0.9, 0.8, 0.6, 0.4, 0.2) if lowest >= low), 0.0)
    plot = _Plot((0, 1), (floor, 1))
    plot.ticks(QUARTERS, [floor + (1 - floor) * step / 5 for step in range(6)])
    # At most one point per pixel, so the file does not grow with the number of questions.
    keep = np.unique(np.linspace(0, len(shown.coverage) - 1, min(len(shown.coverage), WIDTH)).astype(np.int64))
    if len(keep):
        line = plot.curve(zip(shown.coverage[keep], shown.accuracy[keep], strict=True))
        first, last = (plot.x(shown.coverage[keep[at]]) for at in (0, -1))
        plot.parts.append(f"<polygon class='area' points='{first:.1f},{plot.bottom} {line} {last:.1f},{plot.bottom}'/>")
    # Left of a point the curve is above it, so its label goes below, in a row of its own above the gate's label.
    for row, precision in enumerate((0.99, 0.98)):
        good = np.flatnonzero(shown.accuracy >= precision - 1e-12)
        if good.size:
            share, height = float(shown.coverage[good[-1]]), float(shown.accuracy[good[-1]])
            anchor, shift = ("end", -5) if plot.x(share) > WIDTH * 0.4 else ("start", 5)
            below = plot.bottom - 28 - 18 * row
            plot.parts.append(
                f"<line class='grid' x1='{plot.x(share):.1f}' y1='{plot.y(height):.1f}' "
                f"x2='{plot.x(share):.1f}' y2='{below:.1f}'/>"
            )
            plot.dot(share, height)
            plot.text(plot.x(share) + shift, below, f"{share:.0%} at {precision:.0%}", anchor, "ink")
    if gate is not None and (passing := np.flatnonzero(shown.gate >= gate)).size:
        share = float(shown.coverage[passing[-1]])
        anchor, shift = ("end", -5) if share > 0.5 else ("start", 5)
        plot.line("gate", (share, floor), (share, 1))
        plot.text(plot.x(share) + shift, plot.bottom - 8, f"gate {gate:.2f}: {share:.0%} decided", anchor)
    return plot.svg("Coverage against accuracy", "decided, %", "right of those, %")


def draw_frontier(curves: Sequence[tuple[Sequence[FrontierPoint], FrontierPoint]]) -> str:
    """Quality over cost, with the chosen point of each curve. The first curve is solid; random choice is dotted."""
    every = [point for points, _ in curves for point in points]
    costs, qualities = [point.cost for point in every], [point.quality for point in every]
    plot = _Plot((min(costs), max(costs)), (min(qualities), max(qualities)))
    plot.ticks(plot.across, plot.up, "{:.4g}", 1)
    for number, (points, chosen) in enumerate(curves):
        plot.curve(sorted((point.cost, point.quality) for point in points), f"mark{' dashed' if number else ''}")
        plot.dot(chosen.cost, chosen.quality)
    ends = [(point.cost, point.quality) for point in (curves[0][0][0], curves[0][0][-1])]
    plot.line("ideal", *ends)
    return plot.svg("Cost and quality", "cost of an answer", "quality")


def draw_confusion(confusion: Confusion) -> str:
    size = len(confusion.labels)
    named, numbered = size <= NAMED, size <= NUMBERED
    wide, beside, above = WIDTH + 110, 150 if named else 4, 110 if named else 4
    cell = min((wide - beside - 30) / max(size, 1), 64.0)
    tile = cell - min(1.5, cell / 10)
    totals = np.maximum(confusion.counts.sum(axis=1), 1)
    parts: list[str] = []
    for row, column in np.ndindex(size, size):
        count = int(confusion.counts[row, column])
        if not count and not numbered:
            continue
        left, top = beside + column * cell, above + row * cell
        # The square root keeps a handful of mistakes visible beside hundreds of right answers.
        strength = 0.04 if not count else 0.08 + 0.87 * math.sqrt(count / totals[row])
        parts.append(
            f"<rect class='{'good' if row == column else 'bad'}' x='{left:.1f}' y='{top:.1f}' width='{tile:.1f}' "
            f"height='{tile:.1f}' rx='{min(cell / 12, 4):.1f}' fill-opacity='{strength:.3f}'>"
            f"<title>{safe(confusion.labels[row])} taken for {safe(confusion.labels[column])}: {count:,}</title></rect>"
        )
        if numbered and count:
            parts.append(
                f"<text class='{'on' if strength > 0.6 else 'ink'}' x='{left + tile / 2:.1f}' "
                f"y='{top + tile / 2 + 4:.1f}' text-anchor='middle'>{count:,}</text>"
            )
    font = min(11.0, max(cell * 0.8, 5.0))
    for place, label in enumerate(confusion.labels if named else ()):
        name = safe(label if len(label) <= NAME_CHARACTERS else f"{label[: NAME_CHARACTERS - 1]}…")
        middle = place * cell + cell / 2 + font / 3
        places = (
            f"x='{beside - 8}' y='{above + middle:.1f}' text-anchor='end'",
            f"transform='translate({beside + middle:.1f} {above - 8}) rotate(-45)'",
        )
        parts += [f"<text {where} font-size='{font:.1f}'>{name}</text>" for where in places]
    return _svg(above + cell * size + 8, "Confusion matrix", parts, width=wide)


def list_confusions(confusion: Confusion) -> str:
    """The most frequent mistakes, in words."""
    off = confusion.counts.copy()
    np.fill_diagonal(off, 0)
    order = np.argsort(-off, axis=None, kind="stable")[:LISTED]
    lines = "".join(
        f"<li>{safe(confusion.labels[row])} taken for {safe(confusion.labels[column])}: {off[row, column]:,} of "
        f"{confusion.counts[row].sum():,}</li>"
        for row, column in zip(*np.unravel_index(order, off.shape), strict=True)
        if off[row, column]
    )
    return f"<ol>{lines}</ol>" if lines else ""


_STYLE = """
:root { color-scheme: light dark; --back: #f6f6f3; --sheet: #fff; --ink: #1c1d22; --dim: #6a6c78; --line: #e2e2dd;
  --mark: #0f62c4; --soft: #0f62c422; --good: #12805c; --bad: #c2410c }
@media (prefers-color-scheme: dark) { :root { --back: #111216; --sheet: #191b21; --ink: #e9eaf0; --dim: #9b9eac;
  --line: #2d3039; --mark: #7ab4ff; --soft: #7ab4ff2b; --good: #4fd1a1; --bad: #ff9a62 } }
* { box-sizing: border-box }
body { margin: 0; background: var(--back); color: var(--ink); font: 15px/1.55 system-ui, "Segoe UI", sans-serif }
main { max-width: 62rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem }
h1 { font-size: 2rem; line-height: 1.2; margin: .1rem 0 .5rem; letter-spacing: -.02em; overflow-wrap: anywhere }
h2 { font-size: 1rem; margin: 0 0 .6rem }
.kicker { text-transform: uppercase; letter-spacing: .12em; font-size: .72rem; color: var(--mark); margin: 0 }
.what { color: var(--dim); max-width: 46rem; margin: 0 0 1.5rem }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .75rem;
  margin-bottom: .75rem }
.tile, figure, section { background: var(--sheet); border: 1px solid var(--line); border-radius: .7rem;
  padding: 1rem 1.15rem }
.tile b { display: block; font-size: 1.75rem; line-height: 1.2; letter-spacing: -.02em;
  font-variant-numeric: tabular-nums }
.tile span { display: block } .tile small { color: var(--dim) }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(21rem, 1fr)); gap: .75rem }
figure { margin: 0 } figure.wide, section { margin-top: .75rem }
@media (min-width: 46rem) { figure.wide { display: grid; grid-template-columns: 3fr 2fr; gap: 0 1.5rem }
  figure.wide h2 { grid-column: 1 / -1 } }
figcaption, .dim { color: var(--dim); font-size: .85rem } svg { display: block; width: 100%; height: auto }
figcaption ol { margin: .5rem 0 0; padding-left: 1.2rem }
table { border-collapse: collapse } th, td { text-align: left; vertical-align: top; padding: .18rem 1.4rem .18rem 0 }
th { font-weight: 500; overflow-wrap: anywhere } td { overflow-wrap: anywhere }
td.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
tr.head td { color: var(--dim); font-size: .85rem } table.bars { width: 100% } td.bar { width: 60% }
td.bar i { display: block; height: .6rem; margin-top: .45rem; background: var(--mark); border-radius: .2rem;
  opacity: .75 }
ul { margin: 0; padding-left: 1.1rem } pre { margin: 0; overflow-x: auto; font-size: .85rem; line-height: 1.5 }
svg text { fill: var(--dim); font: 11px system-ui, sans-serif } svg .ink { fill: var(--ink) }
  svg .on { fill: var(--sheet) }
svg .grid { stroke: var(--line) } svg .ideal { stroke: var(--dim); stroke-dasharray: 3 4 }
svg .mark { stroke: var(--mark); fill: none; stroke-width: 2 } svg .dot { fill: var(--mark);
  stroke: var(--sheet); stroke-width: 1.5 }
svg .span { stroke: var(--mark); stroke-width: 1.5; opacity: .45 } svg .area { fill: var(--soft) }
svg .count { fill: var(--mark); opacity: .35 } svg .good { fill: var(--good) } svg .bad { fill: var(--bad) }
svg .gate { stroke: var(--bad); stroke-dasharray: 4 3 } svg .dashed { stroke-dasharray: 5 4 }
"""
