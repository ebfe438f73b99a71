"""A small student for tests: some questions of three kinds, an embedder that knows a few words, and their artefact."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from msgspec.structs import replace

from turnout.layers.student_model import StudentManifest
from turnout.learn.fit import StudentFit, fit
from turnout.learn.registry import write_artefact

LABELS = ("first", "second", "third")
"""The routes of `turnout.testing`."""

_ASKED = {
    "first": ("where is my {}", "track the {} for me", "has the {} arrived yet", "when does the {} come"),
    "second": ("cancel the {} please", "i want to return the {}", "give me money back for the {}", "refund my {}"),
    "third": ("write code that sorts a {}", "implement a function for the {}", "fix this bug in the {} parser"),
}
_THINGS = ("parcel", "letter", "order", "book", "lamp", "chair", "ticket", "phone", "jacket", "table")
MANY_THINGS = (
    *_THINGS,
    "sofa",
    "radio",
    "mirror",
    "carpet",
    "bottle",
    "camera",
    "wallet",
    "helmet",
    "guitar",
    "candle",
)
"""Enough of them that a student with vectors learns when its words alone are enough."""
OUTSIDE = [(f"{what} on the moon {i}", None) for i, what in enumerate(("zebras", "opera", "weather", "soup", "chess"))]


def questions(labels: Sequence[str] = LABELS, things: Sequence[str] = _THINGS) -> list[tuple[str, str | None]]:
    return [
        (asked.format(thing), label)
        for label, own in zip(labels, LABELS, strict=False)
        for asked in _ASKED[own]
        for thing in things
    ]


@dataclass(frozen=True)
class Words:
    """An embedder: a text's vector is the sum of its words', which are random and always the same."""

    name: str = "words-16"
    width: int = 16

    def embed(self, texts: Sequence[str], /) -> Any:
        found = np.zeros((len(texts), self.width), np.float32)
        for at, text in enumerate(texts):
            for word in text.split():
                found[at] += np.random.default_rng(crc32(word.encode("utf-8", "replace"))).normal(size=self.width)
            found[at] /= max(float(np.linalg.norm(found[at])), 1e-9)
        return found


@cache
def teach(embedder: Words | None = None, *, seed: int = 0, labels: tuple[str, ...] = LABELS) -> StudentFit:
    return fit([*questions(labels), *OUTSIDE], embedder=embedder, seed=seed)


@cache
def teach_staged() -> StudentFit:
    """A student of two stages, taught with `Words()`."""
    return fit([*questions(things=MANY_THINGS), *OUTSIDE], embedder=Words())


def keep(folder: Path, fitted: StudentFit, *, profile: str = "taught") -> StudentManifest:
    draft = replace(fitted.draft, profile=profile, data_hash="rows", created="2026-01-01T00:00:00+00:00")
    return write_artefact(folder, draft, fitted.arrays)
