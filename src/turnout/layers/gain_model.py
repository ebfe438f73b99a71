"""A model of gains: predicts how much better each more expensive tier would answer.

It is read from a folder with `manifest.json`, `weights.npz` and a card; the weights are plain arrays, checked for their
hash, their shapes and being finite. Each of three heads estimates the quality of every tier: from n-grams, from the
text's shape, and from its sentence vector. A *setting* mixes them and has the price of a gain. There is one setting
with vectors and one without, so that a machine without the embedder can decide too.

Predictions do not carry over to questions of another kind. So the artefact also describes its training rows (their
shape, their n-grams, some of their vectors), to recognise texts that are unlike all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path as File
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from turnout.text.ngram import Ngrams
from turnout.text.shape import NUMBERS, shape_of

from .artefact import FORMAT, MOST_LABELS, Expected, Finite, Manifest, Share, read_artefact, unpack_arrays
from .student_model import mean_largest

# Characters of a text that are embedded: far more than the tokens an embedder reads, far less than a long paste.
EMBEDDED_CHARACTERS = 2000
# The least scale of a shape number; training replaces smaller ones by 1.
LEAST_SCALE = 1e-9
# Nearness is the mean cosine to this many of the nearest training rows; a single one may be similar by chance.
NEAREST = 5

Head = Literal["ngram", "shape", "vector"]


class ConfidenceCurve(Struct, frozen=True):
    """The chance that a tier does as well as any other, as a curve of the best tier's expected gain over it."""

    bias: Finite
    slope: Finite

    def at(self, regret: float) -> float:
        # Beyond 30 the sigmoid is 0 or 1 to the last digit shown.
        z = min(max(self.bias + self.slope * regret, -30.0), 30.0)
        return 1.0 / (1.0 + math.exp(-z))


class Setting(Struct, frozen=True):
    """The mix of the heads, and the price from which a step up pays."""

    heads: Mapping[Head, Finite]
    """The weight of each head."""
    offsets: tuple[Finite, ...]
    """Added to each tier's gain."""
    price: Finite
    """The gain that one unit of cost must bring."""
    confidence: tuple[ConfidenceCurve, ...]
    """One curve for each tier."""


class Scope(Struct, frozen=True):
    """How far from the training rows a text may be. Each limit excludes few of the held-out rows."""

    shape: Finite
    """The largest Mahalanobis distance of its shape from their mean."""
    ngrams: Share
    """The least share of its n-grams that occur in training rows."""
    vector: Finite | None
    """The least nearness to the rows of the bank; None without vectors."""


class GainManifest(Manifest, frozen=True, kw_only=True):
    KIND: ClassVar[str] = "a model of gains"

    ngrams: Ngrams
    tiers: Annotated[tuple[str, ...], Meta(max_length=MOST_LABELS)]
    """Cheapest first."""
    costs: tuple[Finite, ...]
    """The mean cost of an answer of each tier."""
    text: Setting
    """The setting without vectors."""
    vector: Setting | None
    aim: str
    """The aim of the price, in words."""
    scope: Scope | UnsetType = UNSET
    """Models of earlier versions have none and accept every text."""
    kind: Literal["gain"] = "gain"
    format: int = FORMAT

    def contradictions(self) -> list[str]:
        tiers = len(self.tiers)
        problems = []
        if tiers < 2 or len(self.costs) != tiers:
            problems.append(f"{tiers} tiers with {len(self.costs)} costs")
        if len(set(self.tiers)) < tiers:
            problems.append("a tier stands in it twice")
        for name, setting in (("text", self.text), ("vector", self.vector)):
            if setting is None:
                continue
            if len(setting.offsets) != tiers or len(setting.confidence) != tiers:
                problems.append(f"setting {name} is not for {tiers} tiers")
            if "vector" in setting.heads and (name == "text" or self.embedder is None):
                problems.append(f"setting {name} asks for vectors")
        if self.scope is not UNSET and self.scope.vector is not None and self.embedder is None:
            problems.append("its scope asks for vectors")
        return problems

    def arrays(self) -> Expected:
        tiers, shape = len(self.tiers), NUMBERS
        shapes: dict[str, tuple[int, ...]] = {
            "ngram": (self.ngrams.buckets, tiers),
            "ngram_bias": (tiers,),
            "shape": (shape, tiers),
            "shape_bias": (tiers,),
            "shape_centre": (shape,),
            "shape_scale": (shape,),
        }
        if self.embedder is not None:
            shapes |= {"vector": (self.embedder.width, tiers), "vector_bias": (tiers,)}
        expected: dict[str, tuple[str, tuple[int | str, ...]]] = {n: ("float32", size) for n, size in shapes.items()}
        if self.scope is not UNSET:
            expected["scope_shape"] = ("float32", (shape, shape))
            expected["scope_ngrams"] = ("bool", (self.ngrams.buckets,))
            if self.scope.vector is not None and self.embedder is not None:
                expected["scope_bank"] = ("float16", ("known", self.embedder.width))
        return expected

    def faults_of(self, arrays: Mapping[str, Any]) -> list[str]:
        small = (arrays["shape_scale"] < LEAST_SCALE).any()
        return [f"shape_scale has numbers under {LEAST_SCALE:g}"] if small else []


class TierChoice(NamedTuple):
    """The predictions for one text, and the tier that follows."""

    gains: tuple[float, ...]
    """The gain of each tier over the cheapest, whose own is 0."""
    chosen: int
    confidence: float
    """The chance that no other tier would have done better."""
    margin: float
    """How much more it is worth than the next tier, costs deducted."""
    needed: tuple[float, ...]
    """The gain over the cheapest at which each tier pays."""
    with_vector: bool


class GainModel:
    """A model of gains in memory."""

    def __init__(self, manifest: GainManifest, weights: Mapping[str, Any]) -> None:
        self.manifest = manifest
        self.weights = weights
        self.centre, self.scale = weights["shape_centre"], weights["shape_scale"]

    def weigh(self, folded: str, vector: Any = None, price: float | None = None) -> TierChoice:
        """Choose a tier. `vector` is the text's sentence vector, None without an embedder; `price` replaces the fitted
        one."""
        manifest = self.manifest
        setting = manifest.vector if vector is not None and manifest.vector is not None else manifest.text
        gains = self.mix(setting, self.read_heads(folded, vector if setting is manifest.vector else None))
        return self.decide(setting, gains, setting.price if price is None else price)

    def is_unlike(self, folded: str, vector: Any = None) -> bool:
        """Whether a text is unlike all training rows."""
        scope, weights = self.manifest.scope, self.weights
        if scope is UNSET:
            return False
        standard, buckets = self._standard(folded), self.manifest.ngrams.of(folded)[0]
        # `scope_shape` is the inverse of the covariance.
        if math.sqrt(max(float(standard @ weights["scope_shape"] @ standard), 0.0)) > scope.shape:
            return True
        # A text without any n-gram has nothing in common with the rows.
        if (float(weights["scope_ngrams"][buckets].mean()) if buckets else 0.0) < scope.ngrams:
            return True
        return (
            vector is not None
            and scope.vector is not None
            and mean_largest(weights["scope_bank"].astype(vector.dtype) @ vector, NEAREST) < scope.vector
        )

    def _standard(self, folded: str) -> Any:
        import numpy as np

        return (np.asarray(shape_of(folded)) - self.centre) / self.scale

    def read_heads(self, folded: str, vector: Any = None) -> dict[Head, Any]:
        """The quality of every tier that each head predicts."""
        import numpy as np

        weights = self.weights
        indices, values = self.manifest.ngrams.of(folded)
        read: dict[Head, Any] = {
            "ngram": np.asarray(values, dtype=np.float32) @ weights["ngram"][indices] + weights["ngram_bias"],
            "shape": self._standard(folded) @ weights["shape"] + weights["shape_bias"],
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

    def decide(self, setting: Setting, gains: list[float], price: float) -> TierChoice:
        costs = self.manifest.costs
        needed = [price * (cost - costs[0]) for cost in costs]
        worth = [gain - need for gain, need in zip(gains, needed, strict=True)]
        # Of equals the first, which is the cheapest.
        chosen = worth.index(max(worth))
        second = max(value for tier, value in enumerate(worth) if tier != chosen)
        confidence = setting.confidence[chosen].at(max(gains) - gains[chosen])
        return TierChoice(
            tuple(gains),
            chosen,
            confidence,
            worth[chosen] - second,
            tuple(needed),
            setting is self.manifest.vector,
        )


def read_gains(folder: File) -> GainModel:
    """The model in a folder, after every check; raises ArtefactUnreadable."""
    manifest, packed = read_artefact(folder, GainManifest)
    weights = unpack_arrays(folder, manifest, packed)
    # Earlier versions had another name for the most expensive tier.
    metrics = {name.replace("_dearest", "_most_expensive"): value for name, value in manifest.metrics.items()}
    return GainModel(replace(manifest, metrics=metrics), weights)
