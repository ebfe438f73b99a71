"""From a file of outcomes to an artefact a `gain.v1` layer serves: read, fit, write, read back."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path as File
from typing import Any, NamedTuple

import msgspec

from turnout import __version__
from turnout.config.check import own_keys
from turnout.core.embed import Embeds
from turnout.core.profile import Profile
from turnout.core.query import Query
from turnout.layers.artefact import Embedder
from turnout.layers.gain import GainConfig
from turnout.layers.gain_model import GainManifest

from .artefact import now, write_artefact
from .frontier import Aim
from .gain import FittedGains, fit_gains, read_inputs
from .gain_card import render_gain_card
from .layer import GAIN, find_layer
from .outcome import Outcomes, read_outcomes


class TrainedGains(NamedTuple):
    """What came of training: the artefact's folder, what it says of itself, and the fit."""

    folder: File
    manifest: GainManifest
    fitted: FittedGains

    @property
    def metrics(self) -> Mapping[str, Any]:
        return self.fitted.best.metrics

    @property
    def remarks(self) -> tuple[str, ...]:
        return self.fitted.remarks


def find_gain_layer(profile: Profile, name: str | None = None) -> tuple[str, GainConfig]:
    """The id and the configuration of the layer a profile has for gains."""
    hint = ": outcomes train such a layer, as tiers-learned has"
    layer, entry = find_layer(profile.name, profile.resolved["layers"], (GAIN,), name, hint)
    return layer, msgspec.convert(own_keys(entry), GainConfig)


def train_outcomes(
    profile: Profile,
    path: str | os.PathLike[str],
    folder: File,
    *,
    layer: str | None = None,
    aim: Aim | None = None,
    embedder: Embeds | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> TrainedGains:
    """Train a profile's gain layer on a file of outcomes and write the artefact into `folder`, which must be new."""
    name, config = find_gain_layer(profile, layer)
    outcomes = read_outcomes(path, profile)
    folded = [profile.read(Query(text)).folded for text in outcomes.texts]
    inputs = read_inputs(folded, embedder=embedder, progress=progress)
    known = Embedder(embedder.name, embedder.width) if embedder is not None else None
    fitted = fit_gains(
        outcomes, inputs, costs=config.costs or None, aim=aim, embedder=known, seed=seed, progress=progress
    )
    manifest = write_gains(folder, fitted, outcomes, profile=profile, layer=name, seed=seed)
    return TrainedGains(folder, manifest, fitted)


def write_gains(
    folder: File, fitted: FittedGains, outcomes: Outcomes, *, profile: Profile, layer: str, seed: int
) -> GainManifest:
    draft = GainManifest(
        profile=profile.name,
        layer=layer,
        tiers=fitted.tiers,
        costs=fitted.costs,
        ngrams=fitted.ngrams,
        embedder=fitted.embedder,
        text=fitted.text.setting,
        vector=fitted.vector.setting if fitted.vector is not None else None,
        aim=str(fitted.aim),
        metrics=fitted.best.metrics | {"penalties": fitted.penalties},
        counts=outcomes.counts(),
        data_hash=outcomes.digest(),
        profile_hash=profile.hash,
        seed=seed,
        created=now(),
        turnout=__version__,
        files={},
    )
    return write_artefact(folder, draft, fitted.weights, lambda manifest: render_gain_card(manifest, fitted))
