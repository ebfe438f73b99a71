"""When a provider may be asked again, and how often that is done.

However bad things are, retries stay a small share of the requests under way. Without such a budget a provider that
fails makes every client ask twice, just when it can least bear it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

# Further than this no client waits; a header may say anything.
LONGEST_S = 86_400.0


def read_retry_after(value: str) -> float | None:
    """The seconds a `retry-after` header asks for; None if it states no number. A date is not read: clocks differ."""
    text = value.strip()
    if not text.isascii() or not text.replace(".", "", 1).isdecimal():
        return None
    # More digits than these say no more: it is too far off to wait for.
    return min(float(text[:32]), LONGEST_S)


class RetryBudget:
    """For each request in its first attempt at most `share` of a retry at any moment, and never fewer than `floor`.

    When everything fails and a retry takes as long as a first attempt, 1 + `share` times as much is sent.
    """

    def __init__(self, share: float = 0.2, floor: int = 3) -> None:
        self.share = share
        self.floor = floor
        self.active = 0
        self.retrying = 0
        self.refused = 0

    def __enter__(self) -> None:
        """While the context lasts a request is under way. Any number may be."""
        self.active += 1

    def __exit__(self, *_: object) -> None:
        self.active -= 1

    @contextmanager
    def retry(self) -> Iterator[bool]:
        """Whether one more retry is within the budget; it counts for as long as the block lasts."""
        allowed = self.retrying < max(self.floor, int(self.share * (self.active - self.retrying)))
        if not allowed:
            self.refused += 1
            yield False
            return
        self.retrying += 1
        try:
            yield True
        finally:
            self.retrying -= 1
