"""Keys and their spending in the store. The server decides what a key may do."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec
from msgspec import Struct

from turnout.core.errors import StoreError

from . import sql
from .backend import HOUR_MS, Backend, Record, Value
from .hours import add_sums, ranges
from .stats import ALWAYS, TimeSpan, names_of


class Key(Struct, frozen=True):
    """A key: its id, the digest of its secret, and what its holder may do."""

    id: str
    digest: str
    name: str
    tenant: str = ""
    """The tenant whose decisions it makes and sees. A key made without one is its own tenant, by its id."""
    scopes: tuple[str, ...] = ("ask", "route", "decisions:read", "feedback:write")
    profiles: tuple[str, ...] | None = None
    """The profiles it may use; None: all."""
    ceiling: str | None = None
    """The most expensive route it may have."""
    may_force: bool = True
    """Whether it may name a tier, a route or a model itself."""
    budget_usd: float | None = None
    per_minute: int | None = None
    created_ms: int = 0
    expires_ms: int | None = None
    revoked_ms: int | None = None
    budget_day_usd: float | None = None
    """What it may spend in a calendar day, and in a calendar month, in UTC."""
    budget_month_usd: float | None = None

    def is_valid(self, now_ms: int) -> bool:
        return self.revoked_ms is None and (self.expires_ms is None or now_ms < self.expires_ms)


class KeyUse(Struct, frozen=True):
    """The use of one key in a time span."""

    id: str
    """Empty for requests without a key."""
    name: str
    """Empty if the key was deleted."""
    tenant: str
    decisions: int
    last_ms: int
    spent_usd: float | None
    """None if unknown."""


class Keys:
    """The keys of a store."""

    def __init__(self, backend: Backend, settle: Callable[[float], bool]) -> None:
        self._backend = backend
        self._settle = settle

    def any(self) -> bool:
        """Whether there is any key, valid or not: a server requires a key if there is."""
        return bool(self._backend.read(sql.ANY_KEY, {}))

    def find(self, key_id: str) -> Key | None:
        found = self._backend.read(sql.KEY, {"id": key_id})
        return _key(found[0]) if found else None

    def all(self) -> list[Key]:
        return [_key(row) for row in self._backend.read(sql.KEYS, {})]

    def add(self, key: Key) -> None:
        columns = _columns(key) | {"tenant": key.tenant or key.id}
        with self._backend.transaction() as changes:
            if not changes.many(sql.ADD_KEY, [tuple(columns.values())]):
                raise StoreError(f"there is a key {key.id!r} already")

    def update(self, key: Key) -> bool:
        """Replace the key with this id, but for its tenant and its secret; returns whether there is one that is not
        revoked."""
        columns = _columns(key)
        fixed = ("digest", "tenant", "created_ms", "revoked_ms")
        return self._backend.change(sql.UPDATE_KEY, {name: columns[name] for name in columns if name not in fixed}) > 0

    def revoke(self, key_id: str) -> bool:
        """Revoke a key; returns whether there was one that was not revoked yet."""
        now = time.time_ns() // 1_000_000
        return self._backend.change(sql.REVOKE_KEY, {"id": key_id, "revoked_ms": now}) > 0

    def delete_all(self) -> int:
        """Delete all keys, if none of them is valid; returns how many. Their spending is kept."""
        return self._backend.change(sql.DELETE_KEYS, {"now_ms": time.time_ns() // 1_000_000})

    def spent(self, key_id: str, since_ms: int = 0) -> float:
        """What a key has spent since then, in US dollars."""
        self._settle(1.0)
        values: dict[str, Value] = {"id": key_id, "since_ms": since_ms}
        return float(self._backend.read(sql.SPENT_BY_KEY, values)[0][0] or 0.0)

    def own_tenants(self) -> list[str]:
        """The keys that are their own tenant and have made a decision."""
        self._settle(1.0)
        return [row[0] for row in self._backend.read(sql.OWN_TENANTS, {})]

    def use(
        self, *, span: TimeSpan = ALWAYS, profile: str | None = None, tenant: str | None = None, key: str | None = None
    ) -> list[KeyUse]:
        """The use of each key, the most expensive first. For the operator: it covers all tenants."""
        self._settle(1.0)
        only: dict[str, Value] = {**names_of(profile), "tenant": tenant, "key_id": key}
        named = {one.id: one.name for one in self.all()}
        rows = self._backend.read(sql.KEY_USE, {**span.values(), **only})
        found = [KeyUse(row[0], named.get(row[0], ""), *row[1:]) for row in rows]
        return sorted(found, key=lambda use: (-(use.spent_usd or 0.0), -use.decisions, use.id, use.tenant))

    def recent_use(self, since_ms: int, now_ms: int) -> dict[str, tuple[int, float | None]]:
        """Decisions and their cost by key in a span that ends now, from counted hours where there are any."""
        found: dict[Record, list[float | None]] = {}
        hours = self._backend.read(sql.COUNTED_HOURS, {"from_ms": since_ms, "to_ms": now_ms})
        for when in ranges((hour for hour, late, counted in hours if late == counted), since_ms, now_ms + HOUR_MS):
            if when.counted:
                rows = self._backend.read(sql.HOURS_OF_KEYS, when.values())
            else:
                used = self.use(span=TimeSpan(when.from_ms, when.to_ms))
                rows = [(one.id, one.decisions, one.spent_usd) for one in used]
            for key, decisions, cost in rows:
                add_sums(found, (key,), (decisions, cost))
        return {key: (int(decisions or 0), cost) for (key,), (decisions, cost) in found.items()}


def _columns(key: Key) -> dict[str, Value]:
    values = msgspec.structs.asdict(key)
    values["scopes"] = msgspec.json.encode(key.scopes).decode()
    values["profiles"] = None if key.profiles is None else msgspec.json.encode(key.profiles).decode()
    return values


def _key(row: Record) -> Key:
    fields = dict(zip(Key.__struct_fields__, row, strict=True))
    fields["scopes"] = tuple(msgspec.json.decode(fields["scopes"]))
    fields["profiles"] = None if fields["profiles"] is None else tuple(msgspec.json.decode(fields["profiles"]))
    fields["may_force"] = bool(fields["may_force"])
    return Key(**fields)
