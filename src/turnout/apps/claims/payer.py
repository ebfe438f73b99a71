"""The caller who pays for an audit that another process started: its key, as the store has it now."""

from __future__ import annotations

import time

from turnout.apps.caller import Budget, Caller, Limits, Period
from turnout.store import Store

from .audit import AuditOrder

SCOPES = frozenset(("ask",))


def find_payer(store: Store, order: AuditOrder) -> Caller | None:
    """The caller with its remaining budget; None if its key is no longer valid. Blocking."""
    if not order.key_id:
        return Caller("", order.tenant, SCOPES, Budget())
    now = time.time()
    key = store.keys.find(order.key_id)
    if key is None or not key.is_valid(int(now * 1000)):
        return None
    budget = Budget()
    spent = {period: store.keys.spent(key.id, int(period.start(now) * 1000)) for period in Period}
    budget.renew(Limits(key.budget_usd, key.budget_day_usd, key.budget_month_usd), spent, now)
    return Caller(key.id, order.tenant, SCOPES, budget)
