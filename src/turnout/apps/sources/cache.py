"""A bounded cache of answers and choices that expire, in memory and, if a store keeps full text, in the store too, so
that it outlives the process.

An entry belongs to the tenant that asked: no tenant can tell from a quick answer what another asked. Losing an entry
costs only time, so writes are not awaited, and errors of the store are ignored.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from turnout.core.errors import StoreError
from turnout.store import Store


class Entry(NamedTuple):
    value: bytes
    expires_s: float


class Cache:
    """Entries of one kind, at most `most`."""

    def __init__(
        self, space: str, most: int, store: Store | None = None, *, clock: Callable[[], float] = time.time
    ) -> None:
        self.space = space
        self.most = most
        # A store that keeps less than the full text of questions gets no answers either.
        self.store = store if store is not None and store.journal.encoder.level == "full" else None
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str], Entry] = OrderedDict()
        self._writing: set[asyncio.Future[None]] = set()

    async def get(self, tenant: str, key: tuple[str, ...]) -> bytes | None:
        """The value of a key, unless it has expired."""
        now, ident = self._clock(), self._ident(tenant, key)
        entry = self._kept.get((tenant, ident))
        if entry is None and self.store is not None:
            entry = await self._load(self.store, tenant, ident, now)
        if entry is None or entry.expires_s <= now:
            self._kept.pop((tenant, ident), None)
            return None
        self._keep(tenant, ident, entry)
        return entry.value

    def put(self, tenant: str, key: tuple[str, ...], value: bytes, fresh_s: float) -> None:
        """Store a value for some seconds."""
        ident, entry = self._ident(tenant, key), Entry(value, self._clock() + fresh_s)
        self._keep(tenant, ident, entry)
        if self.store is not None:
            writing = asyncio.ensure_future(asyncio.to_thread(self._save, self.store, tenant, ident, entry))
            self._writing.add(writing)
            writing.add_done_callback(self._writing.discard)

    async def clear(self, tenant: str) -> int:
        """Delete a tenant's entries; returns how many there were."""
        keys = [key for key in self._kept if key[0] == tenant]
        for key in keys:
            del self._kept[key]
        await self.settle()
        stored = 0
        if self.store is not None:
            stored = await asyncio.to_thread(self.store.cache.clear, tenant, self.space)
        return max(len(keys), stored)

    async def count(self, tenant: str) -> int:
        """The number of a tenant's entries that have not expired."""
        now = self._clock()
        if self.store is None:
            return sum(1 for key, entry in self._kept.items() if key[0] == tenant and entry.expires_s > now)
        await self.settle()
        return await asyncio.to_thread(self.store.cache.count, tenant, self.space, round(now * 1000))

    async def settle(self) -> None:
        """Wait for pending writes."""
        if self._writing:
            await asyncio.wait(self._writing)

    def _keep(self, tenant: str, ident: str, entry: Entry) -> None:
        self._kept[tenant, ident] = entry
        self._kept.move_to_end((tenant, ident))
        while len(self._kept) > self.most:
            self._kept.popitem(last=False)

    def _ident(self, tenant: str, key: tuple[str, ...]) -> str:
        """A digest, so that a reader of the store sees no text."""
        digest = hashlib.blake2b(digest_size=16, key=self.store.journal.encoder.key if self.store is not None else b"")
        for name in (self.space, tenant, *key):
            raw = name.encode("utf-8", "surrogatepass")
            digest.update(b"%d:%b" % (len(raw), raw))
        return digest.hexdigest()

    async def _load(self, store: Store, tenant: str, ident: str, now: float) -> Entry | None:
        try:
            row = await asyncio.to_thread(store.cache.get, tenant, ident, round(now * 1000))
        except StoreError:
            return None
        return Entry(row[0], row[1] / 1000) if row is not None else None

    def _save(self, store: Store, tenant: str, ident: str, entry: Entry) -> None:
        now_ms = round(self._clock() * 1000)
        try:
            store.cache.put(self.space, tenant, ident, entry.value, now_ms, round(entry.expires_s * 1000), self.most)
        except (StoreError, ValueError):  # unavailable, or closed meanwhile
            return
