"""Keys and what they have spent, as the store has them. What a key may do is the server's to say."""

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
    """Whose decisions it makes and sees. In the store every key has one: one made without is its own, by its id."""
    scopes: tuple[str, ...] = ("ask", "route", "decisions:read", "feedback:write")
    profiles: tuple[str, ...] | None = None
    """The profiles it may use; None: all."""
    ceiling: str | None = None
    """The most expensive route it may have."""
    may_force: bool = True
    """It may name a tier, a route or a model itself."""
    budget_usd: float | None = None
    per_minute: int | None = None
    created_ms: int = 0
    expires_ms: int | None = None
    revoked_ms: int | None = None
    budget_day_usd: float | None = None
    """What it may spend in a day, and in a month: of the calendar, in UTC."""
    budget_month_usd: float | None = None

    def is_valid(self, now_ms: int) -> bool:
        return self.revoked_ms is None and (self.expires_ms is None or now_ms < self.expires_ms)


class KeyUse(Struct, frozen=True):
    """What one key asked for, within a time span."""

    id: str
    """Empty for what no key asked for."""
    name: str
    """Empty where the key is no longer there."""
    tenant: str
    decisions: int
    last_ms: int
    spent_usd: float | None
    """None where nothing is known of it."""


class Keys:
    """The keys of a store."""

    def __init__(self, backend: Backend, settle: Callable[[float], bool]) -> None:
        self._backend = backend
        self._settle = settle

    def any(self) -> bool:
        """Whether there is a key at all, valid or not: as long as there is, a server asks for one."""
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
        """Put this in the place of the key with its id; whether there is one that is not revoked. Whose it is and what
        its secret is do not change."""
        columns = _columns(key)
        fixed = ("digest", "tenant", "created_ms", "revoked_ms")
        return self._backend.change(sql.UPDATE_KEY, {name: columns[name] for name in columns if name not in fixed}) > 0

    def revoke(self, key_id: str) -> bool:
        """Whether there was such a key and it was valid until now."""
        now = time.time_ns() // 1_000_000
        return self._backend.change(sql.REVOKE_KEY, {"id": key_id, "revoked_ms": now}) > 0

    def delete_all(self) -> int:
        """Delete every key, if none is valid; how many there were. What they spent stays written down."""
        return self._backend.change(sql.DELETE_KEYS, {"now_ms": time.time_ns() // 1_000_000})

    def spent(self, key_id: str, since_ms: int = 0) -> float:
        """What a key has spent since then, US dollars."""
        self._settle(1.0)
        values: dict[str, Value] = {"id": key_id, "since_ms": since_ms}
        return float(self._backend.read(sql.SPENT_BY_KEY, values)[0][0] or 0.0)

    def own_tenants(self) -> list[str]:
        """The keys that are their own tenant and have asked for something."""
        self._settle(1.0)
        return [row[0] for row in self._backend.read(sql.OWN_TENANTS, {})]

    def use(
        self, *, span: TimeSpan = ALWAYS, profile: str | None = None, tenant: str | None = None, key: str | None = None
    ) -> list[KeyUse]:
        """Who asked how often, for how much; the most expensive first. For the operator: it tells of every tenant."""
        self._settle(1.0)
        only: dict[str, Value] = {**names_of(profile), "tenant": tenant, "key_id": key}
        named = {one.id: one.name for one in self.all()}
        rows = self._backend.read(sql.KEY_USE, {**span.values(), **only})
        found = [KeyUse(row[0], named.get(row[0], ""), *row[1:]) for row in rows]
        return sorted(found, key=lambda use: (-(use.spent_usd or 0.0), -use.decisions, use.id, use.tenant))

    def recent_use(self, since_ms: int, now_ms: int) -> dict[str, tuple[int, float | None]]:
        """Decisions and their cost by key, in a span that ends now: from counted hours as far as there are any."""
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
