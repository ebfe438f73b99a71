"""From a file of outcomes to an artefact a `gain.v1` layer serves: read, fit, write, read back."""

from __future__ import annotations

import math
import os
from pathlib import Path as File
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from turnout.config.check import own_keys
from turnout.core.embed import Embeds
from turnout.core.profile import Profile
from turnout.core.query import Query
from turnout.layers.artefact import Embedder
from turnout.layers.gain import GainConfig
from turnout.layers.gain_model import GainManifest

from .card import Card, Picture, draw_frontier, identify, percent, render_card
from .contest import GAIN, find_layer
from .fit import Say
from .frontier import Aim
from .gain import GainFit, fit_gains, read_inputs
from .outcome import read_outcomes
from .registry import check_new, keep_model


class GainTraining(NamedTuple):
    """What came of training: the artefact's folder, what it says of itself, and the fit."""

    folder: File
    manifest: GainManifest
    fitted: GainFit


def find_gain_layer(profile: Profile, name: str | None = None) -> tuple[str, GainConfig]:
    """The id and the configuration of the layer a profile has for gains."""
    hint = ": outcomes train such a layer, as tiers-learned has"
    layer, entry = find_layer(profile.name, profile.resolved["layers"], (GAIN,), name, hint)
    return layer, msgspec.convert(own_keys(entry), GainConfig)


def train_gains(
    profile: Profile,
    path: str | os.PathLike[str],
    *,
    layer: str | None = None,
    aim: Aim | None = None,
    embedder: Embeds | None = None,
    seed: int = 0,
    out: File | None = None,
    say: Say = lambda _what, _done: None,
) -> GainTraining:
    """Train a profile's gain layer on a file of outcomes and put it on the shelf, as a candidate; or write it to `out`,
    a folder that is new."""
    name, config = find_gain_layer(profile, layer)
    if out is not None:
        check_new(out)
    outcomes = read_outcomes(path, profile)
    folded = [profile.read(Query(text)).folded for text in outcomes.texts]
    inputs = read_inputs(folded, embedder=embedder, say=say)
    known = Embedder(embedder.name, embedder.width) if embedder is not None else None
    fitted = fit_gains(outcomes, inputs, costs=config.costs or None, aim=aim, embedder=known, seed=seed, say=say)
    draft = replace(fitted.draft, profile=profile.name, layer=name, profile_hash=profile.hash)
    folder, manifest = keep_model(draft, fitted.weights, lambda made: draw_gain_card(made, fitted), out)
    return GainTraining(folder, manifest, fitted)


def draw_gain_card(manifest: GainManifest, fitted: GainFit) -> str:
    """The card: what it saves, on the curve its threshold is on. All figures are of questions that were held out."""
    best, metrics = fitted.vector or fitted.text, manifest.metrics

    def share(name: str) -> str:
        value = metrics.get(name)
        return percent(math.nan if value is None else value)

    curves = [fitted.vector] if fitted.vector is not None else []
    curves.append(fitted.text)
    dashed = "Solid: with vectors, dashed: without; dotted" if fitted.vector is not None else "Dotted"
    first, last = manifest.tiers[0], manifest.tiers[-1]
    figures = [
        (f"always {first}", f"{metrics['quality_cheapest']:.3f}", f"mean cost {metrics['cost_cheapest']:.4g}"),
        ("this model", f"{metrics['quality']:.3f}", f"mean cost {metrics['cost']:.4g}"),
        (
            f"always {last}",
            f"{metrics['quality_most_expensive']:.3f}",
            f"mean cost {metrics['cost_most_expensive']:.4g}",
        ),
        ("always the best, known beforehand", f"{metrics['quality_best']:.3f}", "what no router can beat"),
        ("calibration error", f"{metrics['ece']:.3f}", "of the chance that no other tier would have done better"),
    ]
    if metrics.get("apgr") is not None:
        figures.append(("APGR", f"{metrics['apgr']:.3f}", "average performance gap recovered; random is about .5"))
    figures += [
        (f"answered by {tier}", percent(part), "of the questions")
        for tier, part in zip(manifest.tiers, metrics["shares"], strict=True)
    ]
    what = (
        f"Keeps {share('kept')} of the quality gap (95 % interval {share('kept_low')} to {share('kept_high')}) for "
        f"{share('cost_share')} of the most expensive tier's extra cost, on {metrics['rows']:,} questions held out."
    )
    return render_card(
        Card(
            title=f"{manifest.profile} / {manifest.layer}",
            what=what,
            pictures=[
                Picture(
                    "What does quality cost?",
                    draw_frontier([(tuned.curve, tuned.point) for tuned in curves]),
                    f"{dashed}: tiers drawn by lot. The dot is the chosen setting.",
                )
            ],
            facts=identify(manifest),
            data_hash=manifest.data_hash,
            counts=manifest.counts,
            fitted=[
                ("tiers, cheapest first", ", ".join(manifest.tiers)),
                ("costs", ", ".join(f"{cost:.6g}" for cost in manifest.costs)),
                ("aim", manifest.aim),
                ("the price", f"a step up must gain {best.setting.price:.4g} for each unit of cost"),
                ("embedder", manifest.embedder.name if manifest.embedder else "none"),
                ("seed", str(manifest.seed)),
            ],
            metrics=figures,
            limits=[
                *fitted.remarks,
                "What words tell about gains does not carry over from one kind of question to another: train on "
                "outcomes of your own traffic, and train again when it changes.",
            ],
        )
    )
