"""New decisions for all open pages that follow the log: one task polls a tenant's log for all its viewers.

Memory is bounded: a viewer gets a limited number of rows for each poll, has a limited queue, and is dropped when the
queue is full. Polling ends with the last viewer.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from turnout.core.errors import StoreUnavailable
from turnout.store.follow import Follower
from turnout.store.records import LogFilter, Logged, Records

# How often the log is polled: fast enough for a person.
POLL_S = 0.5
# The most rows sent after one poll: more than a screen has.
MOST_ROWS = 50
# The most rows read in one poll, for pages with filters: after a pause there may be any number.
MOST_READ = 1000
# Updates queued for a viewer that takes none: 15 s.
QUEUED = 30
# Open pages; a console is for a team.
MOST_VIEWERS = 256
# Open pages of one tenant, so that others have some left.
TENANT_VIEWERS = 64
# Open pages of one key: a person has a few.
KEY_VIEWERS = 16
# Proxies cut connections that are silent for long. It is also how a viewer that left is noticed.
STILL_S = 15.0
# After this time the browser connects again, and its right to look is checked again.
LIFE_S = 25.0

EVERYTHING = LogFilter()


class Viewer:
    """One open page and its filter."""

    def __init__(self, wanted: LogFilter, key_id: str = "") -> None:
        self.wanted = wanted
        self.key_id = key_id
        self.queue: asyncio.Queue[bytes] = asyncio.Queue(QUEUED)

    def send(self, event: bytes) -> bool:
        """Queue an event; returns whether there was room for it."""
        try:
            self.queue.put_nowait(event)
        except asyncio.QueueFull:
            return False
        return True


class LiveTail:
    """Polls the log of one tenant."""

    def __init__(self, records: Callable[[], Records], render: Callable[[list[Logged]], str]) -> None:
        self.records = records
        self.render = render
        """Makes the HTML of rows, the newest first."""
        self.viewers: set[Viewer] = set()
        self._task: asyncio.Task[None] | None = None

    def count(self, key_id: str) -> int:
        """The number of one key's viewers."""
        return sum(viewer.key_id == key_id for viewer in self.viewers)

    def enter(self, viewer: Viewer) -> None:
        self.viewers.add(viewer)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._follow())

    def leave(self, viewer: Viewer) -> None:
        self.viewers.discard(viewer)
        if not self.viewers and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _follow(self) -> None:
        try:
            follower = await self._begin()
            while self.viewers:
                await asyncio.sleep(POLL_S)
                if rows := await asyncio.to_thread(follower.poll):
                    self._send(rows)
        finally:
            # However it ended, pages that are still open connect again.
            if self._task is asyncio.current_task():
                self.viewers.clear()

    async def _begin(self) -> Follower:
        def start() -> Follower:
            return Follower(self.records(), EVERYTHING, lambda _: None, most=MOST_READ)

        while True:
            try:
                return await asyncio.to_thread(start)
            except StoreUnavailable:
                await asyncio.sleep(POLL_S)

    def _send(self, rows: list[Logged]) -> None:
        rendered: dict[tuple[str, ...], bytes] = {}
        for viewer in list(self.viewers):
            wanted = [row for row in rows if viewer.wanted.admits(row)][-MOST_ROWS:]
            if not wanted:
                continue
            # Most viewers see the same rows.
            key = tuple(row.id for row in wanted)
            if key not in rendered:
                rendered[key] = write_event("row", self.render(wanted[::-1]), wanted[-1].id)
            if not viewer.send(rendered[key]):
                self.leave(viewer)


def write_event(name: str, text: str, ident: str) -> bytes:
    lines = "".join(f"data: {line}\n" for line in re.split(r"\r\n|\r|\n", text.strip()))
    return f"id: {ident}\nevent: {name}\n{lines}\n".encode("utf-8", "replace")


class LiveBody(NamedTuple):
    """The stream of one viewer."""

    tail: LiveTail
    viewer: Viewer
    first: bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        until = loop.time() + LIFE_S
        yield self.first or b": here\n\n"
        while self.viewer in self.tail.viewers and loop.time() < until:
            try:
                async with asyncio.timeout(STILL_S):
                    event = await self.viewer.queue.get()
            except TimeoutError:
                event = b": still here\n\n"
            yield event

    async def aclose(self) -> None:
        self.tail.leave(self.viewer)
