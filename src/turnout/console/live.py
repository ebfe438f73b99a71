"""Decisions as they are logged, for every page that shows them: one look at a tenant's log for all its viewers.

Nothing grows: a viewer gets at most so many rows a look, waits for at most so many looks, and is sent away when it
takes none of them. The look ends with the last viewer.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from turnout.core.errors import StoreUnavailable
from turnout.store.follow import Follower
from turnout.store.records import LogFilter, Logged, Records

# How often the log is looked at: a person does not see less.
LOOK_S = 0.5
# Rows sent after one look: more than a screen has, which moves on at once.
MOST_ROWS = 50
# Of a look, for pages with filters: after a pause there may be any number, more than anyone reads.
LOOKED_AT = 1000
# Looks that wait for a viewer who takes none: 15 s.
WAITING = 30
# Open pages; a console is for a team.
MOST_VIEWERS = 256
# Of one tenant's: others have theirs.
TENANT_VIEWERS = 64
# Of one key's: a person has a few pages open.
KEY_VIEWERS = 16
# A connection that says nothing for long is cut by what stands between; a viewer that left is noticed by then.
STILL_S = 15.0
# After this a browser connects again by itself: whoever may no longer look has been looking for so long.
LIFE_S = 25.0

EVERYTHING = LogFilter()


class Viewer:
    """One open page, and what it shows."""

    def __init__(self, wanted: LogFilter, key_id: str = "") -> None:
        self.wanted = wanted
        self.key_id = key_id
        self.waiting: asyncio.Queue[bytes] = asyncio.Queue(WAITING)

    def tell(self, event: bytes) -> bool:
        """Whether there was room for it."""
        try:
            self.waiting.put_nowait(event)
        except asyncio.QueueFull:
            return False
        return True


class LiveTail:
    """The one that looks at one tenant's log."""

    def __init__(self, records: Callable[[], Records], render: Callable[[list[Logged]], str]) -> None:
        self.records = records
        self.render = render
        """Rows, the newest first, as a page has them."""
        self.viewers: set[Viewer] = set()
        self._look: asyncio.Task[None] | None = None

    def count(self, key_id: str) -> int:
        """The viewers of one key."""
        return sum(viewer.key_id == key_id for viewer in self.viewers)

    def enter(self, viewer: Viewer) -> None:
        self.viewers.add(viewer)
        if self._look is None or self._look.done():
            self._look = asyncio.create_task(self._follow())

    def leave(self, viewer: Viewer) -> None:
        self.viewers.discard(viewer)
        if not self.viewers and self._look is not None:
            self._look.cancel()
            self._look = None

    async def _follow(self) -> None:
        try:
            follower = await self._begin()
            while self.viewers:
                await asyncio.sleep(LOOK_S)
                if rows := await asyncio.to_thread(follower.poll):
                    self._tell(rows)
        finally:
            # Whatever ended it: whoever still looks connects again.
            if self._look is asyncio.current_task():
                self.viewers.clear()

    async def _begin(self) -> Follower:
        while True:
            try:
                return await asyncio.to_thread(
                    lambda: Follower(self.records(), EVERYTHING, lambda _: None, most=LOOKED_AT)
                )
            except StoreUnavailable:
                await asyncio.sleep(LOOK_S)

    def _start(self) -> Follower:
        return Follower(self.records(), EVERYTHING, lambda _: None, most=LOOKED_AT)

    def _tell(self, rows: list[Logged]) -> None:
        rendered: dict[tuple[str, ...], bytes] = {}
        for viewer in list(self.viewers):
            wanted = [row for row in rows if viewer.wanted.admits(row)][-MOST_ROWS:]
            if not wanted:
                continue
            # Most viewers look at the same.
            key = tuple(row.id for row in wanted)
            if key not in rendered:
                rendered[key] = write_event("row", self.render(wanted[::-1]), wanted[-1].id)
            if not viewer.tell(rendered[key]):
                self.leave(viewer)


def write_event(name: str, text: str, ident: str) -> bytes:
    lines = "".join(f"data: {line}\n" for line in re.split(r"\r\n|\r|\n", text.strip()))
    return f"id: {ident}\nevent: {name}\n{lines}\n".encode("utf-8", "replace")


class LiveBody(NamedTuple):
    """What one viewer is sent, as it comes."""

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
                    event = await self.viewer.waiting.get()
            except TimeoutError:
                event = b": still here\n\n"
            yield event

    async def aclose(self) -> None:
        self.tail.leave(self.viewer)
