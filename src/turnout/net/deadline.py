"""One monotonic deadline per request: no wait goes beyond it."""

from __future__ import annotations

from time import monotonic

from msgspec import Struct


class Deadline(Struct, frozen=True, gc=False):
    at: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(monotonic() + seconds)

    @property
    def left(self) -> float:
        """Seconds until it passes, never negative."""
        return max(0.0, self.at - monotonic())

    def within(self, seconds: float) -> float:
        """The time left, at most these seconds."""
        return min(seconds, self.left)
