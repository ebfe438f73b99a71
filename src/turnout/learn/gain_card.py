"""The card of a model fitted on outcomes: what it was fitted on, what it saves, and the curve its threshold is on.

One HTML file without scripts or anything fetched, readable in light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from turnout.layers.gain_model import GainManifest

from .frontier import Point
from .gain import FittedGains, Tuned

WIDTH, HEIGHT, EDGE = 560, 320, 48

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1f; --dim: #6b6b76; --line: #d8d8e0; --mark: #0b6bcb; --back: #fff }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8ee; --dim: #9a9aa6; --line: #3a3a44; --mark: #6db3ff; --back: #16161a }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back) }
body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse } td, th { text-align: left; padding: .2rem 1.2rem .2rem 0; vertical-align: top }
td.n { text-align: right; font-variant-numeric: tabular-nums } th, .dim { color: var(--dim); font-weight: normal }
svg { max-width: 100% } svg text { fill: var(--dim); font-size: 12px }
"""


def render_gain_card(manifest: GainManifest, fitted: FittedGains) -> str:
    best = fitted.best
    metrics = best.metrics
    rows = [
        ("tiers, cheapest first", ", ".join(manifest.tiers)),
        ("costs", ", ".join(f"{cost:.6g}" for cost in manifest.costs)),
        ("outcomes", ", ".join(f"{tier} {count:,}" for tier, count in manifest.counts.items())),
        ("aim", manifest.aim),
        ("the price", f"a step up must gain {best.setting.price:.4g} for each unit of cost"),
        ("embedder", manifest.embedder.name if manifest.embedder else "none"),
        ("profile", f"{manifest.profile} {manifest.profile_hash}, layer {manifest.layer}"),
        ("data", manifest.data_hash[:16]),
        ("seed, made", f"{manifest.seed}, {manifest.created}, Turnout {manifest.turnout}"),
    ]
    told = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    remarks = "".join(f"<li>{escape(remark)}</li>" for remark in fitted.remarks)
    curves = [("with vectors", fitted.vector)] if fitted.vector else []
    curves.append(("text alone", fitted.text))
    kept = _share(metrics["kept"])
    low, high = _share(metrics["kept_low"]), _share(metrics["kept_high"])
    apgr = f", APGR {metrics['apgr']:.3f} (random about .5)" if metrics.get("apgr") is not None else ""
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(manifest.profile)} {escape(manifest.digest)}</title><style>{_STYLE}</style>
<h1>{escape(manifest.profile)} <span class="dim">{escape(manifest.digest)}</span></h1>
<p>Keeps {kept} of the quality gap (95 % interval {low} to {high}) for {_share(metrics["cost_share"])} of the dearest
tier's extra cost{apgr}. All figures are of questions that were held out ({metrics["rows"]:,} of them).</p>
{_draw(curves)}
{_table(manifest, best)}
<p>Its confidence is the chance that no other tier would have done better; expected calibration error
{metrics["ece"]:.3f}.</p>
<table>{told}</table>
{f"<ul>{remarks}</ul>" if remarks else ""}
<p class="dim">What words tell about gains does not carry over from one kind of question to another: train on outcomes
of your own traffic, and train again when it changes.</p>
</html>
"""


def _share(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.1%}"


def _table(manifest: GainManifest, best: Tuned) -> str:
    metrics = best.metrics
    lines = [
        (f"always {manifest.tiers[0]}", metrics["quality_cheapest"], metrics["cost_cheapest"]),
        ("this model", metrics["quality"], metrics["cost"]),
        (f"always {manifest.tiers[-1]}", metrics["quality_dearest"], metrics["cost_dearest"]),
        ("always the best, known beforehand", metrics["quality_best"], None),
    ]
    body = "".join(
        f'<tr><td>{escape(name)}</td><td class="n">{quality:.3f}</td>'
        f'<td class="n">{"" if cost is None else f"{cost:.4g}"}</td></tr>'
        for name, quality, cost in lines
    )
    shares = ", ".join(f"{tier} {share:.1%}" for tier, share in zip(manifest.tiers, metrics["shares"], strict=True))
    return f"<table><tr><th></th><th>quality</th><th>cost</th></tr>{body}</table><p>Answered by: {escape(shares)}.</p>"


def _draw(curves: Sequence[tuple[str, Tuned]]) -> str:
    """Quality over cost, the chosen point, and the straight line a coin would give."""
    ends = [point for _, tuned in curves for point in tuned.curve]
    left, right = min(point.cost for point in ends), max(point.cost for point in ends)
    low, high = min(point.quality for point in ends), max(point.quality for point in ends)
    wide, tall = right - left or 1.0, high - low or 1.0

    def place(point: Point) -> tuple[float, float]:
        x = EDGE + (point.cost - left) / wide * (WIDTH - 2 * EDGE)
        return x, HEIGHT - EDGE - (point.quality - low) / tall * (HEIGHT - 2 * EDGE)

    parts = [
        f'<line x1="{EDGE}" y1="{HEIGHT - EDGE}" x2="{WIDTH - EDGE}" y2="{HEIGHT - EDGE}" stroke="var(--line)"/>',
        f'<line x1="{EDGE}" y1="{EDGE}" x2="{EDGE}" y2="{HEIGHT - EDGE}" stroke="var(--line)"/>',
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 10}" text-anchor="middle">cost of an answer</text>',
        f'<text x="{EDGE}" y="{EDGE - 12}">quality</text>',
        f'<text x="{EDGE}" y="{HEIGHT - EDGE + 16}">{left:.4g}</text>',
        f'<text x="{WIDTH - EDGE}" y="{HEIGHT - EDGE + 16}" text-anchor="end">{right:.4g}</text>',
        f'<text x="{EDGE - 6}" y="{HEIGHT - EDGE}" text-anchor="end">{low:.2f}</text>',
        f'<text x="{EDGE - 6}" y="{EDGE + 4}" text-anchor="end">{high:.2f}</text>',
    ]
    for number, (name, tuned) in enumerate(curves):
        ordered = sorted(tuned.curve, key=lambda point: point.cost)
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, ordered))
        dash = ' stroke-dasharray="5 4"' if number else ""
        parts.append(f'<polyline points="{path}" fill="none" stroke="var(--mark)" stroke-width="2"{dash}/>')
        x, y = place(tuned.point)
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="var(--mark)"><title>{escape(name)}</title></circle>'
        )
    (x1, y1), (x2, y2) = place(curves[0][1].curve[0]), place(curves[0][1].curve[-1])
    parts.append(
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="var(--dim)" stroke-dasharray="2 4"/>'
    )
    said = "solid: with vectors, dashed: without, " if len(curves) > 1 else ""
    caption = f"Cost and quality; {said}dotted: tiers drawn by lot. The point is the chosen setting."
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(caption)}">{"".join(parts)}</svg>'
        f'<p class="dim">{escape(caption)}</p>'
    )
