"""Who asks: what a key may do, and what it has left to spend. Made by the server's one authentication."""

from __future__ import annotations

import time
from collections import deque

from msgspec import Struct, field

from turnout.core.errors import TurnoutError

MINUTE_S = 60.0


class Refused(TurnoutError):
    """A caller may not do what it asks. `status` is the HTTP status, `kind` the error's name in the wire formats."""

    def __init__(self, status: int, kind: str, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.retry_after_s = retry_after_s


class Budget:
    """Money a key may spend: reserved before a call, settled after it, so that no burst can overspend."""

    def __init__(self, budget_usd: float | None = None, spent_usd: float = 0.0) -> None:
        self.budget_usd = budget_usd
        self.spent_usd = spent_usd
        self.reserved_usd = 0.0

    @property
    def is_limited(self) -> bool:
        return self.budget_usd is not None

    @property
    def left_usd(self) -> float | None:
        if self.budget_usd is None:
            return None
        return max(0.0, self.budget_usd - self.spent_usd - self.reserved_usd)

    def check(self) -> None:
        """Refused where nothing is left: even deciding may cost something."""
        if self.left_usd == 0:
            said = f"this key's budget of ${self.budget_usd:.4f} is spent: raise the budget, or use another key"
            raise Refused(402, "insufficient_quota", said)

    def reserve(self, amount_usd: float) -> float:
        """Set money aside for a call; refused if there is not enough left."""
        self.check()
        # What a client says of itself may be absurd, but it never makes room for others.
        amount_usd = max(0.0, amount_usd)
        left = self.left_usd
        if left is not None and amount_usd > left:
            raise Refused(
                402,
                "insufficient_quota",
                f"this key's budget of ${self.budget_usd:.4f} has ${left:.4f} left and this call may cost "
                f"${amount_usd:.4f}: raise the budget, or ask for fewer tokens",
            )
        self.reserved_usd += amount_usd
        return amount_usd

    def settle(self, reserved_usd: float, spent_usd: float) -> None:
        """What a call really cost, instead of what was set aside."""
        self.reserved_usd = max(0.0, self.reserved_usd - reserved_usd)
        self.spent_usd += spent_usd


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
    """The dearest route it may have."""
    may_force: bool = True
    """It may name a tier itself."""
    profiles: frozenset[str] | None = None
    """The profiles it may use; None: all."""
    rate: Rate = field(default_factory=Rate)
    """What it has asked lately. A request counts when it is authenticated, a batch's further questions one by one."""

    def must(self, scope: str) -> None:
        if scope not in self.scopes:
            raise Refused(403, "permission_error", f"this key lacks the scope {scope!r}")
