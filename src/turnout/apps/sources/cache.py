"""What is remembered between questions: bounded, each entry with its time, in memory and, where there is a store that
keeps text, in that too, so that it outlives the process.

An entry belongs to the tenant whose question it was made for: no tenant learns from a quick answer what another asked.
Losing an entry costs time, never truth, so writing is not waited for and a store that fails is done without.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from turnout.core.errors import StoreError
from turnout.store import Store


class Entry(NamedTuple):
    value: bytes
    expires_s: float


class Cache:
    """One kind of entries, at most so many."""

    def __init__(
        self, space: str, most: int, store: Store | None = None, *, clock: Callable[[], float] = time.time
    ) -> None:
        self.space = space
        self.most = most
        # Where a store keeps less than the whole text of questions, it gets no answers either.
        self.store = store if store is not None and store.journal.encoder.level == "full" else None
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str], Entry] = OrderedDict()
        self._writing: set[asyncio.Future[Any]] = set()

    async def get(self, tenant: str, key: tuple[str, ...]) -> bytes | None:
        """What is kept under a key, if it is fresh."""
        now, ident = self._clock(), self._ident(tenant, key)
        entry = self._kept.get((tenant, ident))
        if entry is None and self.store is not None:
            entry = await self._look(self.store, tenant, ident, now)
        if entry is None or entry.expires_s <= now:
            self._kept.pop((tenant, ident), None)
            return None
        self._keep(tenant, ident, entry)
        return entry.value

    def put(self, tenant: str, key: tuple[str, ...], value: bytes, fresh_s: float) -> None:
        """Keep a value for some seconds."""
        ident, entry = self._ident(tenant, key), Entry(value, self._clock() + fresh_s)
        self._keep(tenant, ident, entry)
        if self.store is not None:
            self._write(asyncio.to_thread(self._store, self.store, tenant, ident, entry))

    async def clear(self, tenant: str) -> int:
        """Forget what is kept for a tenant; how many entries there were."""
        gone = [key for key in self._kept if key[0] == tenant]
        for key in gone:
            del self._kept[key]
        await self.settle()
        stored = 0
        if self.store is not None:
            stored = await asyncio.to_thread(self.store.cache.clear, tenant, self.space)
        return max(len(gone), stored)

    async def count(self, tenant: str) -> int:
        """How many fresh entries there are for a tenant."""
        now = self._clock()
        here = sum(1 for key, entry in self._kept.items() if key[0] == tenant and entry.expires_s > now)
        if self.store is None:
            return here
        await self.settle()
        return await asyncio.to_thread(self.store.cache.count, tenant, self.space, round(now * 1000))

    async def settle(self) -> None:
        """Wait until everything is written that is going to be."""
        if self._writing:
            await asyncio.wait(self._writing)

    def _keep(self, tenant: str, ident: str, entry: Entry) -> None:
        self._kept[tenant, ident] = entry
        self._kept.move_to_end((tenant, ident))
        while len(self._kept) > self.most:
            self._kept.popitem(last=False)

    def _ident(self, tenant: str, key: tuple[str, ...]) -> str:
        """As short as a digest, however long the names are, and no text that a reader of the store could read."""
        told = hashlib.blake2b(digest_size=16, key=self.store.journal.encoder.key if self.store is not None else b"")
        for name in (self.space, tenant, *key):
            raw = name.encode("utf-8", "surrogatepass")
            told.update(b"%d:%b" % (len(raw), raw))
        return told.hexdigest()

    async def _look(self, store: Store, tenant: str, ident: str, now: float) -> Entry | None:
        try:
            found = await asyncio.to_thread(store.cache.get, tenant, ident, round(now * 1000))
        except StoreError:
            return None
        return Entry(found[0], found[1] / 1000) if found is not None else None

    def _store(self, store: Store, tenant: str, ident: str, entry: Entry) -> None:
        now_ms = round(self._clock() * 1000)
        try:
            store.cache.put(self.space, tenant, ident, entry.value, now_ms, round(entry.expires_s * 1000), self.most)
        except (StoreError, ValueError):  # it cannot be written to just now, or is closed by now
            return

    def _write(self, work: Any) -> None:
        writing = asyncio.ensure_future(work)
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)
