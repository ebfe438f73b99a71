"""What a student said of rows that it had not learnt from yet, beside what they were: what its pictures are drawn from.

A student on the shelf keeps the rows themselves; of one that ships only their keys are kept: its seeds have the rest.
"""

from __future__ import annotations

from typing import NamedTuple

from turnout.config.champion import SHIPPED

from .dataset import OUT_OF_SCOPE, read_seeds, row_key
from .train import read_record


class HeldRows(NamedTuple):
    """Rows for some route, the student having answered: three columns of one length."""

    true: list[str]
    said: list[str]
    confidence: list[float]

    @property
    def right(self) -> list[bool]:
        return [one == other for one, other in zip(self.true, self.said, strict=True)]


def read_held(profile: str, layer: str, digest: str) -> HeldRows | None:
    """The held-out rows of a student, `SHIPPED` for the one that ships; None where nothing is known of its training."""
    record = read_record(profile, layer, digest)
    if record is None or not record.answers:
        return None
    rows = record.held if digest != SHIPPED else read_seeds(profile).rows
    found = HeldRows([], [], [])
    for row in rows:
        answer = record.answers.get(row_key(row))
        if answer is None or answer.label is None or row.label == OUT_OF_SCOPE:
            continue
        found.true.append(row.label)
        found.said.append(answer.label)
        found.confidence.append(answer.confidence)
    return found
