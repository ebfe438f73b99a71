"""A cache of answers and choices that outlives the process.

Each space has a limit of entries: adding one removes those that have expired, and the oldest beyond the limit.
"""

from __future__ import annotations

from . import sql
from .backend import Backend, Value
from .redact import name


class CacheRows:
    """The entries of one database. Every read names its tenant."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def get(self, tenant: str, ident: str, now_ms: int) -> tuple[bytes, int] | None:
        """An entry and when it expires; None if there is no fresh one."""
        found = self._backend.read(sql.CACHED, {"tenant": name(tenant), "id": ident, "now_ms": now_ms})
        return (found[0][0].encode(), found[0][1]) if found else None

    def put(self, space: str, tenant: str, ident: str, entry: bytes, now_ms: int, expires_ms: int, most: int) -> None:
        row = (ident, space, name(tenant), entry.decode(), now_ms, expires_ms)
        with self._backend.transaction() as changes:
            changes.many(sql.KEEP_CACHED, [row])
            changes.change(sql.TRIM_CACHED, {"space": space, "now_ms": now_ms, "most": most})

    def count(self, tenant: str, space: str, now_ms: int) -> int:
        """How many fresh entries a tenant has."""
        values: dict[str, Value] = {"tenant": name(tenant), "space": space, "now_ms": now_ms}
        return int(self._backend.read(sql.COUNT_CACHED, values)[0][0])

    def clear(self, tenant: str, space: str) -> int:
        """Delete a tenant's entries; returns how many."""
        return self._backend.change(sql.CLEAR_CACHED, {"tenant": name(tenant), "space": space})
