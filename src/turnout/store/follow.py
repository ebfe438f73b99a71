"""Decisions as they are committed: a filter for the log, and a follower that misses nothing and repeats nothing."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from turnout.core.errors import StoreUnavailable, UnknownDecision

from .listing import FIRST, LAST
from .records import PAGE, Judgement, Logged, LogPage, Records
from .redact import name
from .stats import TimeSpan, names_of

# Processes commit in groups, so a decision may become visible after one with a later id; hardly ever this much after.
OVERLAP_S = 2.0


class LogFilter(NamedTuple):
    """Which decisions are wanted."""

    span: TimeSpan
    profile: str | None
    by: str | None
    route: str | None
    outcome: str | None
    session: str | None
    contains: str | None
    key: str | None = None
    verdict: Judgement | None = None
    """What people said of it last."""

    def page(self, records: Records, *, below: str = LAST, above: str = FIRST, most: int = PAGE) -> LogPage:
        return records.page(**self._asdict(), below=below, above=above, most=most)

    def admits(self, row: Logged) -> bool:
        """Whether one that has just been logged is wanted; it has no outcome and no feedback yet."""
        outcome = zip(self.outcome or "", row.outcome, strict=False)
        names = names_of(self.profile).values()
        return (
            self.span.since_ms <= row.created_ms < self.span.until_ms
            and (self.profile is None or row.profile in names)
            and (self.by is None or row.by == self.by)
            and (self.route is None or self.route in row.routes)
            and all(want in ("?", letter) for want, letter in outcome)
            and (self.session is None or row.session == name(self.session))
            and (self.key is None or row.key_id == self.key)
            and self.verdict is None
            and (self.contains or "").casefold() in (row.question or "").casefold()
        )

    def select(self, records: Records, *, above: str = FIRST, oldest_first: bool = False) -> Iterator[Logged]:
        return records.decisions(**self._asdict(), above=above, oldest_first=oldest_first)


class Follower:
    """Sees every decision that is committed from now on, once each.

    It asks for whatever is above the id that was the newest a while ago, so a decision that becomes visible late is not
    missed; what it has seen before it does not see again.
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
        """Of what is new at once, so many of the newest are told; by default all."""
        self.wanted = wanted
        self.complain = complain
        """Told once when the database does not answer."""
        self.now = now
        page = list(islice(records.decisions(), PAGE))
        edge = page[0].created_ms - OVERLAP_S * 1000 if page else 0
        older = (row.id for row in page if row.created_ms < edge)
        self.above = next(older, FIRST if len(page) < PAGE else page[-1].id)
        self.seen = {row.id for row in page}
        self._newest: deque[tuple[float, str]] = deque()
        self._unavailable = False

    def poll(self) -> list[Logged]:
        """What is new, in order."""
        try:
            newest = self._last()
            rows: deque[Logged] = deque(maxlen=self.most)
            found: set[str] = set()
            for row in self.wanted.select(self.records, above=self.above, oldest_first=True):
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
