"""Who asks: what a key may do, and what it has left to spend. Made by the server's one authentication."""

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
    """What a limit is for: all time, or a calendar day or month in UTC."""

    TOTAL = "total"
    DAY = "day"
    MONTH = "month"

    def start(self, now_s: float) -> float:
        """When the period of this moment began, seconds since 1970; all time began with them."""
        if self is Period.TOTAL:
            return 0.0
        now = datetime.fromtimestamp(now_s, UTC)
        day = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return (day if self is Period.DAY else day.replace(day=1)).timestamp()

    def end(self, now_s: float) -> float:
        """When the next one begins; all time does not end."""
        if self is Period.TOTAL:
            return math.inf
        # 31 days after the first of any month it is the next month.
        return self.start(self.start(now_s) + (1 if self is Period.DAY else 31) * DAY_S)


# Of several budgets that are spent, the one that takes longest to renew is the one to be told.
PERIODS = (Period.TOTAL, Period.MONTH, Period.DAY)


class Limits(Struct, frozen=True):
    """What a key may spend, US dollars; None: as much as it likes."""

    total: float | None = None
    day: float | None = None
    month: float | None = None

    def of(self, period: Period) -> float | None:
        limit: float | None = getattr(self, period)  # each has the name of its period
        return limit


UNLIMITED = Limits()


class PeriodTotal:
    """What was spent in a period; it begins again when the next period does. A clock that is put back opens no period
    that is over."""

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
        """Take over what the store says was spent in the period of that moment, unless the period is over or more is
        known here."""
        if self.period.end(at_s) >= self._end_s:
            self._spent_usd = max(self.at(at_s), amount_usd)


class Budget:
    """Money a key may spend: reserved before a call, settled after it, so that no burst can overspend.

    A call is booked in the day and month in which it is settled, as its row in the store is. What is reserved counts
    against whatever period it is now: a call under way at midnight will be paid for by the new day.
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
        """In all."""
        return self._spent[Period.TOTAL].at(self._clock())

    @property
    def left_usd(self) -> float | None:
        """What may still be spent: the least that any of the limits leaves; None without one."""
        if not self.is_limited:
            return None
        now = self._clock()
        found = [left for period in PERIODS if (left := self._left(period, now)) is not None]
        return min(found, default=None)

    def _left(self, period: Period, now: float) -> float | None:
        limit = self.limits.of(period)
        return None if limit is None else max(0.0, limit - self._spent[period].at(now) - self.reserved_usd)

    def check(self) -> None:
        """Refused where nothing is left: even deciding may cost something."""
        if not self.is_limited:
            return
        now = self._clock()
        for period in PERIODS:
            if self._left(period, now) == 0:
                said = f"{self._named(period)} is spent: {_renewal(period, now)}raise the budget, or use another key"
                raise Refused(402, "insufficient_quota", said, retry_after_s=_wait(period, now))

    def reserve(self, amount_usd: float) -> float:
        """Set money aside for a call; refused if there is not enough left."""
        self.check()
        # What a client says of itself may be absurd, but it never makes room for others.
        amount_usd = math.inf if math.isnan(amount_usd) else max(0.0, amount_usd)
        now = self._clock()
        for period in PERIODS:
            left, limit = self._left(period, now), self.limits.of(period)
            if left is None or limit is None or amount_usd <= left:
                continue
            # A call that a whole new day cannot pay for need not wait for one.
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
        """What a call really cost, instead of what was set aside. Takes any number: one that no call can cost is
        booked as what was set aside, and none gives anything back."""
        reserved_usd = min(max(0.0, reserved_usd), self.reserved_usd) if math.isfinite(reserved_usd) else 0.0
        spent_usd = max(0.0, spent_usd) if math.isfinite(spent_usd) else reserved_usd
        self.reserved_usd -= reserved_usd
        if spent_usd:
            now = self._clock()
            for tally in self._spent.values():
                tally.add(spent_usd, now)

    def renew(self, limits: Limits, spent: Mapping[Period, float], at_s: float) -> None:
        """Take what the store says of a key: its limits, and what all processes together had spent at that moment in
        each period. What this one has booked and the store has not yet counts all the same."""
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
    """How often a key may ask: within any minute, so many decisions, alone or in a batch."""

    def __init__(self, per_minute: int | None = None) -> None:
        self.per_minute = per_minute
        self.recent: deque[float] = deque()

    def count(self) -> None:
        """One more; refused, and not counted, where that is too many."""
        if self.per_minute is None:
            return
        now = time.monotonic()
        recent = self.recent
        while recent and now - recent[0] >= MINUTE_S:
            recent.popleft()
        if len(recent) >= self.per_minute:
            wait = MINUTE_S - (now - recent[0]) if recent else MINUTE_S
            said = f"this key may ask {self.per_minute} times a minute: wait {wait:.0f} s"
            raise Refused(429, "rate_limit_exceeded", said, retry_after_s=wait)
        recent.append(now)


class Caller(Struct, frozen=True, eq=False):
    """One authenticated caller."""

    key_id: str
    tenant: str
    scopes: frozenset[str]
    budget: Budget
    ceiling: str | None = None
    """The most expensive route it may have."""
    may_force: bool = True
    """It may name a tier itself."""
    profiles: frozenset[str] | None = None
    """The profiles it may use; None: all."""
    rate: Rate = field(default_factory=Rate)
    """What it has asked lately. A request counts when it is authenticated, a batch's further questions one by one."""

    def check_profile(self, name: str) -> None:
        """Refused where the key may not use a profile."""
        if self.profiles is not None and name not in self.profiles:
            raise Refused(403, "permission_error", f"this key may not use the profile {name!r}")
