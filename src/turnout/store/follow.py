"""Follows decisions as they are committed, without missing or repeating one."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from itertools import islice

from turnout.core.errors import StoreUnavailable, UnknownDecision

from .listing import FIRST
from .records import PAGE, LogFilter, Logged, Records

# Processes commit in groups, so a decision may become visible after one with a later id, hardly ever by this much.
OVERLAP_S = 2.0


class Follower:
    """Returns every decision that is committed from now on, once.

    It reads from the id that was the newest a while ago, so that it does not miss a decision that becomes visible late,
    and leaves out the ids it has seen.
    """

    def __init__(
        self,
        records: Records,
        wanted: LogFilter,
        complain: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
        most: int | None = None,
    ) -> None:
        self.records = records
        self.most = most
        """The most decisions one poll returns, the newest of them; None: all."""
        self.wanted = wanted
        self.complain = complain
        """Called once when the database does not answer."""
        self.now = now
        page = list(islice(records.decisions(), PAGE))
        edge = page[0].created_ms - OVERLAP_S * 1000 if page else 0
        older = (row.id for row in page if row.created_ms < edge)
        self.above = next(older, FIRST if len(page) < PAGE else page[-1].id)
        self.seen = {row.id for row in page}
        self._newest: deque[tuple[float, str]] = deque()
        self._unavailable = False

    def poll(self) -> list[Logged]:
        """New decisions, in order."""
        try:
            newest = self._last()
            rows: deque[Logged] = deque(maxlen=self.most)
            found: set[str] = set()
            for row in self.records.decisions(**self.wanted._asdict(), above=self.above, oldest_first=True):
                if row.id not in self.seen:
                    found.add(row.id)
                    rows.append(row)
        except StoreUnavailable as error:
            if not self._unavailable:
                self.complain(f"{error}; still trying")
            self._unavailable = True
            return []
        self._unavailable = False
        self.seen |= found
        now = self.now()
        self._newest.append((now, newest))
        while self._newest[0][0] <= now - OVERLAP_S:
            self.above = max(self.above, self._newest.popleft()[1])
        self.seen = {ident for ident in self.seen if ident > self.above}
        return list(rows)

    def _last(self) -> str:
        try:
            return self.records.get("last").id
        except UnknownDecision:
            return FIRST
