"""What happens in sessions, told to any number of listeners: all that was, in order, and then what comes.

The store is the one list. Listeners of a session share one reader, which is woken by what this process stores, and
looks now and then for what others did: it makes no difference which worker a client is connected to.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from turnout.core.errors import StoreUnavailable
from turnout.store.session_log import SessionLog

from .event import ChatEvent, read_event, write_event

# How late an event of another process may be told.
LOOK_S = 0.5

Whose = tuple[str, str]
"""A tenant and a session."""


class _SessionReader:
    """The events of one session, as far as they are known here."""

    def __init__(self, log: SessionLog, whose: Whose) -> None:
        self.events: list[ChatEvent] = []
        self.listeners = 0
        self.woken = asyncio.Event()
        self.grown = asyncio.Event()
        """Set when there is more, and then replaced."""
        self._log = log
        self._whose = whose
        self._looked = False
        self.task = asyncio.create_task(self._read())
        self.task.add_done_callback(lambda _: self._tell())

    async def _read(self) -> None:
        while True:
            self.woken.clear()
            known = self.events[-1].sequence if self.events else 0
            try:
                found = await asyncio.to_thread(self._log.after, *self._whose, known)
            except StoreUnavailable:  # for a while: who listens waits
                await asyncio.sleep(LOOK_S)
                continue
            if found or not self._looked:
                self.events += [read_event(row.body, row.sequence, row.at_ms) for row in found]
                self._looked = True
                self._tell()
            if not found:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await self.woken.wait()

    def _tell(self) -> None:
        grown, self.grown = self.grown, asyncio.Event()
        grown.set()

    @property
    def is_over(self) -> bool:
        """Whether the last event ends a question, and none has followed yet."""
        return bool(self.events) and self.events[-1].ends


class Feed:
    """The sessions of a store. Used inside one running event loop, but for `append`."""

    def __init__(self, log: SessionLog) -> None:
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._readers: dict[Whose, _SessionReader] = {}

    def append(self, tenant: str, session: str, event: ChatEvent, once: str = "") -> ChatEvent:
        """Store an event, from any thread; the event with its number."""
        row = self._log.append(tenant, session, write_event(event), once)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
            self._loop.call_soon_threadsafe(self._wake, (tenant, session))
        return read_event(row.body, row.sequence, row.at_ms)

    def _wake(self, whose: Whose) -> None:
        if (reader := self._readers.get(whose)) is not None:
            reader.woken.set()

    async def listen(self, tenant: str, session: str, after: int, follow: bool) -> AsyncGenerator[ChatEvent, None]:
        whose = (tenant, session)
        reader = self._readers.get(whose)
        if reader is None or reader.task.done():
            reader = self._readers[whose] = _SessionReader(self._log, whose)
        reader.listeners += 1
        try:
            told = 0
            while not reader.task.done():
                grown = reader.grown
                while told < len(reader.events):
                    event = reader.events[told]
                    told += 1
                    if event.sequence > after:
                        yield event
                if not follow and reader.is_over:
                    return
                if grown is reader.grown:
                    await grown.wait()
            if not reader.task.cancelled():
                reader.task.result()  # what the store said
        finally:
            reader.listeners -= 1
            if not reader.listeners:
                reader.task.cancel()
                if self._readers.get(whose) is reader:
                    del self._readers[whose]

    async def close(self) -> None:
        for reader in list(self._readers.values()):
            reader.task.cancel()
        self._readers.clear()
        await asyncio.to_thread(self._log.close)
