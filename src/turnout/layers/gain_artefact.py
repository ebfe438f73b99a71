"""What was learnt from outcomes, read back and asked: how much better would each dearer tier answer?

A folder holds `manifest.json`, `weights.npz` and a card. Nothing in it is run: the weights are plain arrays, checked
for their hash, their shapes and being finite before one is used. Each of three heads estimates the quality of every
tier (from n-grams, from the text's shape, from its sentence vector); a *setting* mixes them and says from which gain on
a dearer tier pays. There is one setting with vectors and one without, each with thresholds of its own, so that a
machine without the embedder decides by what it can see.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path as File
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta, Struct

from turnout.core.errors import ArtefactUnreadable
from turnout.text.ngram import Ngrams
from turnout.text.shape import NAMES, shape_of

from .artefact import (
    FORMAT,
    MANIFEST,
    MOST_LABELS,
    WEIGHTS,
    Finite,
    check_numbers,
    compare_forms,
    read_as,
    read_weights,
)
from .npz import Form, read_arrays

KIND: Literal["gain"] = "gain"
# What an embedder is given of a text: far more than the tokens it reads, far less than a page-long paste.
EMBEDDED_CHARACTERS = 2000

# A part of a text's shape that hardly varies is divided by 1 in training: nothing there is divided by less than this.
LEAST_SCALE = 1e-9

Head = Literal["ngram", "shape", "vector"]
HEADS: tuple[Head, ...] = ("ngram", "shape", "vector")


class Embedder(Struct, frozen=True):
    """Whose vectors the weights were fitted to."""

    name: str
    width: Annotated[int, Meta(ge=1, le=16_384)]


class Curve(Struct, frozen=True):
    """The chance that a tier does as well as any, from how much the best of them is expected to gain over it."""

    bias: Finite
    slope: Finite

    def at(self, regret: float) -> float:
        # Beyond 30 the sigmoid is 0 or 1 to the last digit shown.
        z = min(max(self.bias + self.slope * regret, -30.0), 30.0)
        return 1.0 / (1.0 + math.exp(-z))


class Setting(Struct, frozen=True):
    """How the heads are mixed and from where on a step up pays."""

    heads: Mapping[Head, Finite]
    """How much each head counts."""
    offsets: tuple[Finite, ...]
    """What is added for each tier."""
    price: Finite
    """The gain that one unit of cost must bring."""
    confidence: tuple[Curve, ...]
    """For each tier."""


class GainManifest(Struct, frozen=True):
    profile: str
    layer: str
    tiers: Annotated[tuple[str, ...], Meta(max_length=MOST_LABELS)]
    """Cheapest first."""
    costs: tuple[Finite, ...]
    """What an answer of each tier costs, on average."""
    ngrams: Ngrams
    embedder: Embedder | None
    text: Setting
    """Without vectors."""
    vector: Setting | None
    aim: str
    """What the price was chosen for, in words."""
    metrics: Mapping[str, Any]
    counts: Mapping[str, int]
    """Outcomes of each tier."""
    data_hash: str
    profile_hash: str
    seed: int
    created: str
    turnout: str
    files: Mapping[str, str]
    """The SHA-256 of every other file an answer depends on."""
    digest: str = ""
    """Names the artefact: the beginning of the SHA-256 of all the rest."""
    kind: Literal["gain"] = KIND
    format: int = FORMAT


class Weighed(NamedTuple):
    """What is expected of each tier for one text."""

    gains: tuple[float, ...]
    """Over the cheapest tier, whose own is 0."""
    chosen: int
    confidence: float
    """The chance that no other tier would have done better."""
    margin: float
    """By how much it is worth more than the next, its cost deducted."""
    needed: tuple[float, ...]
    """The gain over the cheapest from which each tier pays."""
    with_vector: bool


class Gains:
    """An artefact, ready to be asked."""

    def __init__(self, manifest: GainManifest, weights: Mapping[str, Any]) -> None:
        self.manifest = manifest
        self.weights = weights
        self.centre, self.scale = weights["shape_centre"], weights["shape_scale"]

    def weigh(self, folded: str, vector: Any = None, price: float | None = None) -> Weighed:
        """`vector` is the text's sentence vector, None where there is no embedder; `price` replaces the fitted one."""
        manifest = self.manifest
        setting = manifest.vector if vector is not None and manifest.vector is not None else manifest.text
        gains = self.mix(setting, self.read_heads(folded, vector if setting is manifest.vector else None))
        return self.decide(setting, gains, setting.price if price is None else price)

    def read_heads(self, folded: str, vector: Any = None) -> dict[Head, Any]:
        """What each head expects of every tier."""
        import numpy as np

        weights = self.weights
        indices, values = self.manifest.ngrams.of(folded)
        read: dict[Head, Any] = {
            "ngram": np.asarray(values, dtype=np.float32) @ weights["ngram"][indices] + weights["ngram_bias"],
            "shape": (np.asarray(shape_of(folded)) - self.centre) / self.scale @ weights["shape"]
            + weights["shape_bias"],
        }
        if vector is not None:
            read["vector"] = vector @ weights["vector"] + weights["vector_bias"]
        return read

    def mix(self, setting: Setting, read: Mapping[Head, Any]) -> list[float]:
        """The expected gain of each tier over the cheapest."""
        expected = [
            offset + sum(weight * float(read[head][tier]) for head, weight in setting.heads.items())
            for tier, offset in enumerate(setting.offsets)
        ]
        return [quality - expected[0] for quality in expected]

    def decide(self, setting: Setting, gains: list[float], price: float) -> Weighed:
        costs = self.manifest.costs
        needed = [price * (cost - costs[0]) for cost in costs]
        worth = [gain - need for gain, need in zip(gains, needed, strict=True)]
        # The first of equals is the cheapest.
        chosen = worth.index(max(worth))
        second = max(value for tier, value in enumerate(worth) if tier != chosen)
        confidence = setting.confidence[chosen].at(max(gains) - gains[chosen])
        return Weighed(
            tuple(gains),
            chosen,
            confidence,
            worth[chosen] - second,
            tuple(needed),
            setting is self.manifest.vector,
        )


def read_gains(folder: File) -> Gains:
    """What a folder holds, after every check; ArtefactUnreadable says what is wrong with it."""
    path = folder / MANIFEST
    manifest = read_as(path, GainManifest, "what turnout train --outcomes writes")
    for problem in _unfit(manifest):
        raise ArtefactUnreadable(path, problem)
    path = folder / WEIGHTS
    raw = read_weights(path, manifest.files)
    weights = read_arrays(path, raw, lambda forms: _check_forms(manifest, forms))
    problems = check_numbers(weights)
    if not problems and (weights["shape_scale"] < LEAST_SCALE).any():
        problems.append(f"shape_scale has numbers under {LEAST_SCALE:g}")
    for problem in problems:
        raise ArtefactUnreadable(path, problem)
    return Gains(manifest, weights)


def _unfit(manifest: GainManifest) -> list[str]:
    """What does not fit together."""
    tiers = len(manifest.tiers)
    problems = []
    if tiers < 2 or len(manifest.costs) != tiers:
        problems.append(f"{tiers} tiers with {len(manifest.costs)} costs")
    if len(set(manifest.tiers)) < tiers:
        problems.append("a tier stands in it twice")
    for name, setting in (("text", manifest.text), ("vector", manifest.vector)):
        if setting is None:
            continue
        if len(setting.offsets) != tiers or len(setting.confidence) != tiers:
            problems.append(f"setting {name} is not for {tiers} tiers")
        if "vector" in setting.heads and (name == "text" or manifest.embedder is None):
            problems.append(f"setting {name} asks for vectors")
    return problems


def _check_forms(manifest: GainManifest, forms: Mapping[str, Form]) -> list[str]:
    tiers = len(manifest.tiers)
    shapes: dict[str, tuple[int, ...]] = {
        "ngram": (manifest.ngrams.buckets, tiers),
        "ngram_bias": (tiers,),
        "shape": (len(NAMES), tiers),
        "shape_bias": (tiers,),
        "shape_centre": (len(NAMES),),
        "shape_scale": (len(NAMES),),
    }
    if manifest.embedder is not None:
        shapes |= {"vector": (manifest.embedder.width, tiers), "vector_bias": (tiers,)}
    return compare_forms(forms, {name: ("float32", shape) for name, shape in shapes.items()}, "gains")
