"""Circuit breaking: a provider that fails is left alone, and failures do not multiply what is sent.

A breaker for each endpoint: after enough failures nothing is sent for a while, then one probe decides. Closed, open,
half-open; the clock is handed in, so that every transition can be tested without waiting. The numbers are Turnout's
defaults (see docs/reference/models.md): five failures in a row, or half of at least twenty in ten seconds; open for
30 s times how often it has opened, at most 300 s. Once it has opened, only a probe's end changes anything: requests
that began before and end now, well or badly, say nothing about how things are. A clock that goes back shortens a wait,
never lengthens it.

A retry budget for all of them: however bad things are, retries stay a small share of the requests under way. Without
it a provider that fails makes every client ask twice, just when it can least bear it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Literal

from msgspec import Struct

# What ends within so long of each other is counted together: memory does not grow with the traffic.
MOMENT_S = 0.01
# Further than this no client waits; a header may say anything.
LONGEST_S = 86_400.0

State = Literal["closed", "open", "half-open"]


class BreakerSettings(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    in_a_row: int = 5
    share: float = 0.5
    at_least: int = 20
    window_s: float = 10.0
    open_s: float = 30.0
    open_at_most_s: float = 300.0


class _Moment(Struct, gc=False):
    """What ended at about the same time."""

    at: float
    seen: int = 0
    failed: int = 0


class Breaker:
    def __init__(self, settings: BreakerSettings = BreakerSettings(), now: Callable[[], float] = monotonic) -> None:  # noqa: B008 - frozen
        self.settings = settings
        self._now = now
        self._recent: deque[_Moment] = deque()
        self._seen = self._failed = 0
        """In all the moments together."""
        self._in_a_row = 0
        self._opened = 0
        self._since: float | None = None
        """When it opened; None while it is closed."""
        self._probing: float | None = None
        """When the probe was let through whose end is awaited."""

    @property
    def state(self) -> State:
        if self._since is None:
            return "closed"
        settings = self.settings
        wait = min(settings.open_s * self._opened, settings.open_at_most_s)
        return "open" if 0 <= self._now() - self._since < wait else "half-open"

    def allows(self) -> bool:
        """Whether to try. Half open, the first to ask is the probe, and the others wait for what becomes of it."""
        state = self.state
        if state != "half-open":
            return state == "closed"
        now = self._now()
        # A probe without a report, because its caller went away, does not keep the breaker open for ever.
        if self._probing is not None and 0 <= now - self._probing < self.settings.open_s:
            return False
        self._probing = now
        return True

    def succeeded(self) -> None:
        if self._since is None:
            self._in_a_row = 0
            self._note(failed=False)
        elif self._probing is not None:
            self._since = self._probing = None
            self._opened = self._in_a_row = 0
            self._forget()

    def failed(self) -> None:
        if self._since is not None:
            if self._probing is not None:
                self._trip()
            return
        self._in_a_row += 1
        self._note(failed=True)
        settings = self.settings
        often = self._seen >= settings.at_least and self._failed >= settings.share * self._seen
        if self._in_a_row >= settings.in_a_row or often:
            self._trip()

    def forgive(self) -> None:
        """The probe ended without an answer either way: its caller went away."""
        self._probing = None

    def _trip(self) -> None:
        self._since = self._now()
        self._opened += 1
        self._probing = None

    def _note(self, *, failed: bool) -> None:
        now, recent = self._now(), self._recent
        if recent and now < recent[-1].at:
            self._forget()
        if not recent or now - recent[-1].at >= MOMENT_S:
            recent.append(_Moment(now))
        recent[-1].seen += 1
        recent[-1].failed += failed
        self._seen += 1
        self._failed += failed
        while recent[0].at < now - self.settings.window_s:
            old = recent.popleft()
            self._seen -= old.seen
            self._failed -= old.failed

    def _forget(self) -> None:
        self._recent.clear()
        self._seen = self._failed = 0


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


def read_retry_after(value: str) -> float | None:
    """The seconds a `retry-after` header asks for; None if it states no number. A date is not read: clocks differ."""
    text = value.strip()
    if not text.isascii() or not text.replace(".", "", 1).isdecimal():
        return None
    # More digits than these say no more: it is too far off to wait for.
    return min(float(text[:32]), LONGEST_S)
