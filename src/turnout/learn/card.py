"""A model's card: one HTML file that says what a model is, what it was made from, how good it is and where it is not.

It stands alone: no script, nothing fetched, pictures drawn in place, readable by day and by night and as XML.
Labels and texts are strangers' words: every one of them is escaped, and none can reverse or hide what is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from turnout.layers.artefact import Manifest

from .card_plot import draw_confusion, draw_coverage, draw_reliability, listed_confusions, percent, safe
from .metric import accuracy, bin_reliability, brier, confuse, coverage_at, curve, ece, score_labels

# Precision that a gate is usually asked for.
PRECISIONS = (0.95, 0.98, 0.99)
# Labels listed one by one; of more, the weakest.
MOST_LABELS = 40


class Picture(NamedTuple):
    title: str
    drawing: str
    """SVG."""
    caption: str


class Card(Struct, frozen=True):
    """What a card says, of whatever kind of model. Answers come from questions the model has not seen."""

    title: str
    what: str
    """One or two sentences: what it decides, for whom."""
    true: Sequence[str] = ()
    said: Sequence[str] = ()
    confidence: Sequence[float] = ()
    labels: Sequence[str] = ()
    """The order of labels; others come behind them."""
    judged_on: str = "questions it has not seen"
    """Where `true` and `said` come from."""
    facts: Sequence[tuple[str, str]] = ()
    """What identifies it: digest, profile, when it was made."""
    data_hash: str = ""
    counts: Mapping[str, int] = {}
    """Rows learnt from, by label."""
    sources: Mapping[str, int] = {}
    """Rows learnt from, by who labelled them."""
    fitted: Sequence[tuple[str, str]] = ()
    """How it was fitted: features, heads, seed."""
    metrics: Sequence[tuple[str, str, str]] = ()
    """More figures than those computed here: name, value, what it means."""
    gate: float | None = None
    """The gate it stands behind, marked in the curve."""
    pictures: Sequence[Picture] = ()
    """Others than those drawn here of its answers."""
    limits: Sequence[str] = ()
    """What it is known not to do."""
    repeat: Sequence[str] = ()
    """Commands that make it again."""


def identify(manifest: Manifest) -> list[tuple[str, str]]:
    """The facts that say which model a card is of."""
    return [
        ("digest", manifest.digest),
        ("profile", f"{manifest.profile} {manifest.profile_hash}"),
        ("made", manifest.created),
        ("Turnout", manifest.turnout),
    ]


def render_card(card: Card) -> str:
    """The file's text."""
    right = [one == other for one, other in zip(card.true, card.said, strict=True)]
    body = [
        f"<header><p class='kicker'>model card</p><h1>{safe(card.title)}</h1><p class='what'>{safe(card.what)}</p>",
        _tiles(card, right),
        "</header>",
    ]
    if right:
        body.append(_plots(card, right))
    body += [_figure(*picture) for picture in card.pictures]
    body += [_section("What it is", _pairs(card.facts)), _made_from(card), _section("Fitted", _pairs(card.fitted))]
    body += [_section("Figures", _figures(card, right)), _section("Labels", _label_table(card) if right else "")]
    body += [
        _section("Known limits", "".join(f"<li>{safe(limit)}</li>" for limit in card.limits), "ul"),
        _section("How to repeat", _commands(card.repeat)),
    ]
    return (
        "<!DOCTYPE html>\n<html lang='en' xmlns='http://www.w3.org/1999/xhtml'><head><meta charset='utf-8'/>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'/>"
        f"<title>{safe(card.title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><main>\n{chr(10).join(filter(None, body))}\n</main></body></html>\n"
    )


def _tiles(card: Card, right: Sequence[bool]) -> str:
    if not right:
        return ""
    covered, gate = coverage_at(right, card.confidence, precision=0.98)
    at_gate = f"gate {gate:.2f}" if covered else "no gate gives it"
    tiles = [
        (percent(accuracy(right)), "right", f"of {len(right):,} questions"),
        (percent(covered), "decided at 98 % precision", at_gate),
        (percent(ece(right, card.confidence)), "calibration error", "15 bins of equal mass"),
    ]
    if card.counts:
        tiles.append((f"{sum(card.counts.values()):,}", "questions learnt from", f"{len(card.counts):,} labels"))
    cells = "".join(
        f"<div class='tile'><b>{value}</b><span>{safe(name)}</span><small>{safe(note)}</small></div>"
        for value, name, note in tiles
    )
    return f"<div class='tiles'>{cells}</div>"


def _plots(card: Card, right: Sequence[bool]) -> str:
    confusion = confuse(card.true, card.said, card.labels)
    pairs = listed_confusions(confusion)
    return "".join(
        (
            "<div class='plots'>",
            _figure(
                "Does its confidence hold?",
                draw_reliability(bin_reliability(right, card.confidence), card.confidence),
                "Each dot is a fifteenth of the questions, with its 95 % interval. On the line, 0.9 means right nine "
                "times in ten. The bars below count questions.",
            ),
            _figure(
                "How much can it decide?",
                draw_coverage(curve(right, card.confidence), card.gate),
                "From the surest questions on the left to all of them: so many decided, that share of them right.",
            ),
            "</div>",
            _figure(
                "Who is taken for whom?",
                draw_confusion(confusion),
                "A row for each true label, a column for each answer; the diagonal is right." + pairs,
                kind=" class='wide'",
            ),
        )
    )


def _figure(title: str, picture: str, caption: str, *, kind: str = "") -> str:
    return f"<figure{kind}><h2>{title}</h2>{picture}<figcaption>{caption}</figcaption></figure>"


def _made_from(card: Card) -> str:
    rows = [("content, sha256", card.data_hash)] if card.data_hash else []
    if card.sources:
        rows.append(("labelled by", ", ".join(f"{who} {count:,}" for who, count in card.sources.items())))
    parts = _pairs(rows)
    if card.counts:
        most = max(card.counts.values(), default=0) or 1
        shown = sorted(card.counts.items(), key=lambda item: (-item[1], item[0]))
        lines = "".join(
            f"<tr><th>{safe(label)}</th><td class='n'>{count:,}</td>"
            f"<td class='bar'><i style='width:{100 * count / most:.1f}%'></i></td></tr>"
            for label, count in shown[:MOST_LABELS]
        )
        parts += f"<table class='bars'>{lines}</table>" + _more(len(shown))
    return _section("Made from", parts)


def _figures(card: Card, right: Sequence[bool]) -> str:
    rows: list[tuple[str, str, str]] = []
    if right:
        sure = card.confidence
        rows += [
            ("accuracy", percent(accuracy(right)), f"of {len(right):,}: {card.judged_on}"),
            ("ECE, equal mass", percent(ece(right, sure)), "mean distance of confidence from the share that is right"),
            ("ECE, equal width", percent(ece(right, sure, cut="width")), "the same with bins of one width"),
            ("Brier score", f"{brier(right, sure):.4f}", "mean squared distance; lower is better"),
        ]
        for precision in PRECISIONS:
            covered, gate = coverage_at(right, sure, precision=precision)
            told = f"with hindsight, at gate {gate:.3f}" if covered else "no gate gives it"
            rows.append((f"decided at {precision:.0%} precision", percent(covered), told))
    rows += card.metrics
    lines = "".join(
        f"<tr><th>{safe(name)}</th><td class='n'>{safe(value)}</td><td class='dim'>{safe(note)}</td></tr>"
        for name, value, note in rows
    )
    return f"<table>{lines}</table>" if lines else ""


def _label_table(card: Card) -> str:
    labels = list(dict.fromkeys((*card.labels, *sorted({*card.true, *card.said}))))
    scores = score_labels(card.true, card.said, labels)
    shown = scores
    if len(scores) > MOST_LABELS:
        shown = sorted(scores, key=lambda one: (one.f1 if not math.isnan(one.f1) else 2.0, one.label))[:MOST_LABELS]
    lines = "".join(
        f"<tr><th>{safe(one.label)}</th><td class='n'>{percent(one.precision)}</td>"
        f"<td class='n'>{percent(one.recall)}</td><td class='n'>{percent(one.f1)}</td>"
        f"<td class='n'>{one.support:,}</td></tr>"
        for one in shown
    )
    head = "<tr class='head'><th></th><td>precision</td><td>recall</td><td>F1</td><td>questions</td></tr>"
    return f"<table>{head}{lines}</table>" + _more(len(scores), "the weakest are shown")


def _more(count: int, which: str = "the largest are shown") -> str:
    return f"<p class='dim'>{which} of {count:,}</p>" if count > MOST_LABELS else ""


def _pairs(rows: Iterable[tuple[str, str]]) -> str:
    lines = "".join(f"<tr><th>{safe(name)}</th><td>{safe(value)}</td></tr>" for name, value in rows)
    return f"<table>{lines}</table>" if lines else ""


def _commands(lines: Sequence[str]) -> str:
    return f"<pre>{safe(chr(10).join(lines))}</pre>" if lines else ""


def _section(title: str, content: str, tag: str = "div") -> str:
    return f"<section><h2>{title}</h2><{tag}>{content}</{tag}></section>" if content else ""


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
