"""Circuit breakers and the retry budget: a failing provider is left alone, and failures do not multiply requests.

Each endpoint has a breaker. After enough failures it opens and nothing is sent for a while; then one probe decides.
While it is open, requests that began earlier change nothing, however they end. A clock that goes back shortens a wait
and never lengthens it. The defaults are explained in docs/reference/models.md.

All endpoints share one retry budget. Without it a failing provider would get twice the requests when it can least bear
them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Literal

from msgspec import Struct

# Results within this time are counted together, so that memory does not grow with the traffic.
MOMENT_S = 0.01
# The longest wait that is taken from a header.
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
    at: float
    seen: int = 0
    failed: int = 0


class Breaker:
    def __init__(self, settings: BreakerSettings = BreakerSettings(), now: Callable[[], float] = monotonic) -> None:  # noqa: B008 - frozen
        self.settings = settings
        self._now = now
        self._recent: deque[_Moment] = deque()
        self._in_a_row = 0
        self._opened = 0
        self._since: float | None = None
        """When it opened; None while it is closed."""
        self._probing: float | None = None
        """When the probe under way began; None without one."""

    @property
    def state(self) -> State:
        if self._since is None:
            return "closed"
        settings = self.settings
        wait = min(settings.open_s * self._opened, settings.open_at_most_s)
        return "open" if 0 <= self._now() - self._since < wait else "half-open"

    def allows(self) -> bool:
        """Whether to send a request. While half open, the first is the probe, and the others are held back."""
        state = self.state
        if state != "half-open":
            return state == "closed"
        now = self._now()
        # A probe whose result is never reported must not keep the breaker open for ever.
        if self._probing is not None and 0 <= now - self._probing < self.settings.open_s:
            return False
        self._probing = now
        return True

    def succeeded(self, *, probe: bool = False) -> None:
        """Report the end of a request; only that of the probe counts while the breaker is open."""
        if self._since is None:
            self._in_a_row = 0
            self._note(failed=False)
        elif probe and self._probing is not None:
            self._since = self._probing = None
            self._opened = self._in_a_row = 0
            self._recent.clear()

    def failed(self, *, probe: bool = False) -> None:
        if self._since is not None:
            if probe and self._probing is not None:
                self._trip()
            return
        self._in_a_row += 1
        self._note(failed=True)
        if self._in_a_row >= self.settings.in_a_row or self._fails_often():
            self._trip()

    def forgive(self) -> None:
        """Let another request be the probe: this one ended without a result, because its caller left."""
        self._probing = None

    def _fails_often(self) -> bool:
        seen = sum(one.seen for one in self._recent)
        failed = sum(one.failed for one in self._recent)
        return seen >= self.settings.at_least and failed >= self.settings.share * seen

    def _trip(self) -> None:
        self._since = self._now()
        self._opened += 1
        self._probing = None

    def _note(self, *, failed: bool) -> None:
        now, recent = self._now(), self._recent
        if recent and now < recent[-1].at:
            recent.clear()
        if not recent or now - recent[-1].at >= MOMENT_S:
            recent.append(_Moment(now))
        recent[-1].seen += 1
        recent[-1].failed += failed
        while recent[0].at < now - self.settings.window_s:
            recent.popleft()


class RetryBudget:
    """Allows, for each request in its first attempt, `share` of a retry at a time, and always `floor` retries.

    When everything fails as fast as before, 1 + `share` times the requests are sent.
    """

    def __init__(self, share: float = 0.2, floor: int = 3) -> None:
        self.share = share
        self.floor = floor
        self.active = 0
        self.retrying = 0
        self.refused = 0

    def __enter__(self) -> None:
        """Count a request as under way for as long as the context lasts."""
        self.active += 1

    def __exit__(self, *_: object) -> None:
        self.active -= 1

    @contextmanager
    def retry(self) -> Iterator[bool]:
        """Whether one more retry is within the budget. It counts for as long as the context lasts."""
        allowed = self.retrying < max(self.floor, int(self.share * (self.active - self.retrying)))
        self.refused += not allowed
        self.retrying += allowed
        try:
            yield allowed
        finally:
            self.retrying -= allowed


def read_retry_after(value: str) -> float | None:
    """The seconds in a `retry-after` header; None without a number. A date is ignored, because clocks differ."""
    text = value.strip()
    if not text.isascii() or not text.replace(".", "", 1).isdecimal():
        return None
    return min(float(text[:32]), LONGEST_S)  # so many digits are more than LONGEST_S
