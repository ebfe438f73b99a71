"""The caller of a request: what its key may do and spend. Made by the server's authentication."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum

from msgspec import Struct, field

from turnout.core.errors import Refused

MINUTE_S = 60.0
DAY_S = 86_400.0


class Period(StrEnum):
    """The period of a limit: all time, or a calendar day or month in UTC."""

    TOTAL = "total"
    DAY = "day"
    MONTH = "month"

    def start(self, now_s: float) -> float:
        """When the period of this moment began, in seconds since 1970; all time begins there."""
        if self is Period.TOTAL:
            return 0.0
        now = datetime.fromtimestamp(now_s, UTC)
        day = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return (day if self is Period.DAY else day.replace(day=1)).timestamp()

    def end(self, now_s: float) -> float:
        """When the next period begins; all time does not end."""
        if self is Period.TOTAL:
            return math.inf
        # 31 days after the first of a month is always in the next month.
        return self.start(self.start(now_s) + (1 if self is Period.DAY else 31) * DAY_S)


# If several budgets are spent, the message names the one that takes longest to renew.
PERIODS = (Period.TOTAL, Period.MONTH, Period.DAY)


class Limits(Struct, frozen=True):
    """What a key may spend, in US dollars; None: without limit."""

    total: float | None = None
    day: float | None = None
    month: float | None = None

    def of(self, period: Period) -> float | None:
        limit: float | None = getattr(self, period)  # each has the name of its period
        return limit


UNLIMITED = Limits()


class PeriodTotal:
    """What was spent in the current period. A clock that is put back does not reopen an earlier period."""

    def __init__(self, period: Period, now_s: float) -> None:
        self.period = period
        self._end_s = period.end(now_s)
        self._spent_usd = 0.0

    def at(self, now_s: float) -> float:
        if now_s >= self._end_s:
            self._end_s, self._spent_usd = self.period.end(now_s), 0.0
        return self._spent_usd

    def add(self, amount_usd: float, now_s: float) -> None:
        self._spent_usd = self.at(now_s) + amount_usd

    def raise_to(self, amount_usd: float, at_s: float) -> None:
        """Use the store's sum for the period of that moment, unless the period is over or the sum here is higher."""
        if self.period.end(at_s) >= self._end_s:
            self._spent_usd = max(self.at(at_s), amount_usd)


class Budget:
    """The money a key may spend: reserved before a call and settled after it, so that no burst can overspend.

    A call is booked in the day and month in which it is settled, like its row in the store. Reserved money counts
    against the current periods: a call under way at midnight is paid for by the new day.
    """

    def __init__(
        self,
        total_usd: float | None = None,
        spent_usd: float = 0.0,
        *,
        day_usd: float | None = None,
        month_usd: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._limit(Limits(total_usd, day_usd, month_usd))
        self.reserved_usd = 0.0
        self._clock = clock
        now = clock()
        self._spent = {period: PeriodTotal(period, now) for period in PERIODS}
        self._spent[Period.TOTAL].add(spent_usd, now)

    def _limit(self, limits: Limits) -> None:
        self.limits = limits
        self.is_limited = limits != UNLIMITED

    @property
    def spent_usd(self) -> float:
        """In total."""
        return self._spent[Period.TOTAL].at(self._clock())

    @property
    def left_usd(self) -> float | None:
        """What may still be spent under all limits; None without a limit."""
        if not self.is_limited:
            return None
        now = self._clock()
        return min((left for period in PERIODS if (left := self._left(period, now)) is not None), default=None)

    def _left(self, period: Period, now: float) -> float | None:
        limit = self.limits.of(period)
        return None if limit is None else max(0.0, limit - self._spent[period].at(now) - self.reserved_usd)

    def check(self) -> None:
        """Refuse if nothing is left: even deciding may cost something."""
        if not self.is_limited:
            return
        now = self._clock()
        for period in PERIODS:
            if self._left(period, now) == 0:
                message = f"{self._named(period)} is spent: {_renewal(period, now)}raise the budget, or use another key"
                raise Refused(402, "insufficient_quota", message, retry_after_s=_wait(period, now))

    def reserve(self, amount_usd: float) -> float:
        """Reserve money for a call; refused if not enough is left."""
        self.check()
        # An absurd amount from a client must not increase what is left.
        amount_usd = math.inf if math.isnan(amount_usd) else max(0.0, amount_usd)
        now = self._clock()
        for period in PERIODS:
            left, limit = self._left(period, now), self.limits.of(period)
            if left is None or limit is None or amount_usd <= left:
                continue
            # Waiting does not help if the call costs more than a whole period's limit.
            helps = amount_usd <= limit
            raise Refused(
                402,
                "insufficient_quota",
                f"{self._named(period)} has ${left:.4f} left and this call may cost ${amount_usd:.4f}: "
                f"{_renewal(period, now) if helps else ''}raise the budget, or ask for fewer tokens",
                retry_after_s=_wait(period, now) if helps else None,
            )
        amount_usd = amount_usd if math.isfinite(amount_usd) else 0.0
        self.reserved_usd += amount_usd
        return amount_usd

    def settle(self, reserved_usd: float, spent_usd: float) -> None:
        """Book what a call really cost instead of what was reserved. An impossible cost is booked as what was reserved,
        and none gives money back."""
        reserved_usd = min(max(0.0, reserved_usd), self.reserved_usd) if math.isfinite(reserved_usd) else 0.0
        spent_usd = max(0.0, spent_usd) if math.isfinite(spent_usd) else reserved_usd
        self.reserved_usd -= reserved_usd
        if spent_usd:
            now = self._clock()
            for total in self._spent.values():
                total.add(spent_usd, now)

    def renew(self, limits: Limits, spent: Mapping[Period, float], at_s: float) -> None:
        """Update from the store: the key's limits, and what all processes had spent at that moment in each period. What
        this one has booked and the store does not have yet still counts."""
        self._limit(limits)
        for period, amount in spent.items():
            self._spent[period].raise_to(amount, at_s)

    def _named(self, period: Period) -> str:
        every = "" if period is Period.TOTAL else f" a {period.value}"
        return f"this key's budget of ${self.limits.of(period):.4f}{every}"


def _renewal(period: Period, now: float) -> str:
    if period is Period.TOTAL:
        return ""
    return f"it renews at {datetime.fromtimestamp(period.end(now), UTC):%Y-%m-%d %H:%M} UTC; wait for that, "


def _wait(period: Period, now: float) -> float | None:
    return None if period is Period.TOTAL else period.end(now) - now


class Rate:
    """How many decisions a key may ask for within any minute, alone or in a batch."""

    def __init__(self, per_minute: int | None = None) -> None:
        self.per_minute = per_minute
        self.recent: deque[float] = deque()

    def count(self) -> None:
        """Count a decision; refused, and not counted, if that is too many."""
        if self.per_minute is None:
            return
        now = time.monotonic()
        recent = self.recent
        while recent and now - recent[0] >= MINUTE_S:
            recent.popleft()
        if len(recent) >= self.per_minute:
            wait = MINUTE_S - (now - recent[0]) if recent else MINUTE_S
            message = f"this key may ask {self.per_minute} times a minute: wait {wait:.0f} s"
            raise Refused(429, "rate_limit_exceeded", message, retry_after_s=wait)
        recent.append(now)


class Caller(Struct, frozen=True, eq=False):
    key_id: str
    tenant: str
    scopes: frozenset[str]
    budget: Budget
    ceiling: str | None = None
    """The most expensive route it may use."""
    may_force: bool = True
    """Whether it may choose a tier itself."""
    profiles: frozenset[str] | None = None
    """The profiles it may use; None: all."""
    rate: Rate = field(default_factory=Rate)
    """A request counts when it is authenticated, and each further question of a batch when it is decided."""

    def check_profile(self, name: str) -> None:
        """Refuse a profile that the key may not use."""
        if self.profiles is not None and name not in self.profiles:
            raise Refused(403, "permission_error", f"this key may not use the profile {name!r}")
