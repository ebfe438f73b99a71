"""The answers of a student to its held-out rows, from which its pictures are drawn.

A student on the shelf keeps the rows themselves. A shipped one keeps only their keys, and the rows are read from its
seeds.
"""

from __future__ import annotations

from typing import NamedTuple

from turnout.config.champion import SHIPPED

from .dataset import OUT_OF_SCOPE, read_seeds, row_key
from .train import read_record


class HeldRows(NamedTuple):
    """The held-out rows with a route that the student answered, as three columns of one length."""

    true: list[str]
    said: list[str]
    confidence: list[float]

    @property
    def right(self) -> list[bool]:
        return [one == other for one, other in zip(self.true, self.said, strict=True)]


def read_held(profile: str, layer: str, digest: str) -> HeldRows | None:
    """The held-out rows of a student, `SHIPPED` for the shipped one; None if nothing is known about its training."""
    record = read_record(profile, layer, digest)
    if record is None or not record.answers:
        return None
    rows = record.held if digest != SHIPPED else read_seeds(profile).rows
    held = HeldRows([], [], [])
    for row in rows:
        answer = record.answers.get(row_key(row))
        if answer is None or answer.label is None or row.label == OUT_OF_SCOPE:
            continue
        held.true.append(row.label)
        held.said.append(answer.label)
        held.confidence.append(answer.confidence)
    return held
