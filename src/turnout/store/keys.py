"""Keys and what they have spent, as the store has them. What a key may do is the server's to say."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec
from msgspec import Struct

from . import sql
from .backend import Backend, Record


class Key(Struct, frozen=True):
    """A key: its id, the digest of its secret, and what its holder may do."""

    id: str
    digest: str
    name: str
    tenant: str = ""
    scopes: tuple[str, ...] = ("ask", "route", "decisions:read", "feedback:write")
    profiles: tuple[str, ...] | None = None
    """The profiles it may use; None: all."""
    ceiling: str | None = None
    """The dearest route it may have."""
    may_force: bool = True
    """It may name a tier, a route or a model itself."""
    budget_usd: float | None = None
    per_minute: int | None = None
    created_ms: int = 0
    expires_ms: int | None = None
    revoked_ms: int | None = None

    def is_valid(self, now_ms: int) -> bool:
        return self.revoked_ms is None and (self.expires_ms is None or now_ms < self.expires_ms)


class Keys:
    """The keys of a store."""

    def __init__(self, backend: Backend, settle: Callable[[float], bool]) -> None:
        self._backend = backend
        self._settle = settle

    def any(self) -> bool:
        """Whether there is a key at all, valid or not: from then on a server asks for one."""
        return bool(self._backend.read(sql.ANY_KEY, {}))

    def find(self, key_id: str) -> Key | None:
        found = self._backend.read(sql.KEY, {"id": key_id})
        return _key(found[0]) if found else None

    def all(self) -> list[Key]:
        return [_key(row) for row in self._backend.read(sql.KEYS, {})]

    def add(self, key: Key) -> None:
        values = msgspec.structs.asdict(key)
        values["scopes"] = msgspec.json.encode(key.scopes).decode()
        values["profiles"] = None if key.profiles is None else msgspec.json.encode(key.profiles).decode()
        self._backend.change(sql.ADD_KEY, values)

    def revoke(self, key_id: str) -> bool:
        """Whether there was such a key and it was valid until now."""
        now = time.time_ns() // 1_000_000
        return self._backend.change(sql.REVOKE_KEY, {"id": key_id, "revoked_ms": now}) > 0

    def spent(self, key_id: str) -> float:
        """What a key has spent so far, US dollars."""
        self._settle(1.0)
        return float(self._backend.read(sql.SPENT_BY_KEY, {"id": key_id})[0][0] or 0.0)


def _key(row: Record) -> Key:
    fields = dict(zip(Key.__struct_fields__, row, strict=True))
    fields["scopes"] = tuple(msgspec.json.decode(fields["scopes"]))
    fields["profiles"] = None if fields["profiles"] is None else tuple(msgspec.json.decode(fields["profiles"]))
    fields["may_force"] = bool(fields["may_force"])
    return Key(**fields)
