"""The events of sessions for any number of listeners: the past ones in order, then new ones as they come.

The store holds the only list. Listeners of a session share one reader, which wakes when this process stores an event
and polls for events of other processes, so a client may be connected to any worker.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from turnout.core.errors import StoreUnavailable
from turnout.store.session_log import SessionLog

from .event import ChatEvent, ends_question, read_event, write_event

# How often the store is polled for events of other processes.
POLL_S = 0.5

SessionKey = tuple[str, str]
"""A tenant and a session."""


class _SessionReader:
    """Reads the events of one session."""

    def __init__(self, log: SessionLog, key: SessionKey) -> None:
        self.events: list[ChatEvent] = []
        self.listeners = 0
        self.woken = asyncio.Event()
        self.grown = asyncio.Event()
        """Set when there are more events, and then replaced."""
        self._log = log
        self._key = key
        self._has_read = False
        self.task = asyncio.create_task(self._read())
        self.task.add_done_callback(lambda _: self._notify())

    async def _read(self) -> None:
        while True:
            self.woken.clear()
            known = self.events[-1].sequence if self.events else 0
            try:
                rows = await asyncio.to_thread(self._log.after, *self._key, known)
            except StoreUnavailable:  # the database may come back: listeners wait
                await asyncio.sleep(POLL_S)
                continue
            if rows or not self._has_read:
                self.events += [read_event(row.body, row.sequence, row.at_ms) for row in rows]
                self._has_read = True
                self._notify()
            if not rows:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_S):
                        await self.woken.wait()

    def _notify(self) -> None:
        grown, self.grown = self.grown, asyncio.Event()
        grown.set()

    @property
    def is_over(self) -> bool:
        """Whether the last event so far ends a question."""
        return bool(self.events) and ends_question(self.events[-1])


class Feed:
    """The sessions of a store. Used inside one running event loop; only `append` may be called from any thread."""

    def __init__(self, log: SessionLog) -> None:
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._readers: dict[SessionKey, _SessionReader] = {}

    def append(self, tenant: str, session: str, event: ChatEvent, once: str = "") -> ChatEvent:
        """Store an event and return it with its number. An event with a key in `once` is stored only once."""
        row = self._log.append(tenant, session, write_event(event), once)
        with contextlib.suppress(RuntimeError):  # the loop is closed: there are no listeners any more
            self._loop.call_soon_threadsafe(self._wake, (tenant, session))
        return read_event(row.body, row.sequence, row.at_ms)

    def _wake(self, key: SessionKey) -> None:
        if (reader := self._readers.get(key)) is not None:
            reader.woken.set()

    async def listen(self, tenant: str, session: str, after: int, follow: bool) -> AsyncGenerator[ChatEvent, None]:
        """The events after a number, in order, then new ones; without `follow`, up to one that ends a question."""
        key = (tenant, session)
        reader = self._readers.get(key)
        if reader is None or reader.task.done():
            reader = self._readers[key] = _SessionReader(self._log, key)
        reader.listeners += 1
        try:
            seen = 0
            while not reader.task.done():
                grown = reader.grown
                while seen < len(reader.events):
                    event = reader.events[seen]
                    seen += 1
                    if event.sequence > after:
                        yield event
                if not follow and reader.is_over:
                    return
                if grown is reader.grown:
                    await grown.wait()
            if not reader.task.cancelled():
                reader.task.result()  # raises the store's error
        finally:
            reader.listeners -= 1
            if not reader.listeners:
                reader.task.cancel()
                if self._readers.get(key) is reader:
                    del self._readers[key]

    async def close(self) -> None:
        for reader in list(self._readers.values()):
            reader.task.cancel()
        self._readers.clear()
        await asyncio.to_thread(self._log.close)
