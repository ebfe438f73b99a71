"""One monotonic deadline per request: every wait is the smaller of its own limit and what is left."""

from __future__ import annotations

from time import monotonic

from msgspec import Struct


class Deadline(Struct, frozen=True, gc=False):
    """A moment that does not move. `Deadline.after(2.0)` is two seconds from now."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(monotonic() + seconds)

    @property
    def left(self) -> float:
        """Seconds until it passes, never negative."""
        return max(0.0, self.at - monotonic())

    def within(self, seconds: float) -> float:
        """How long something may take that has a limit of its own."""
        return min(seconds, self.left)
