"""How many requests are let in at once. The rest wait a moment, in a short line, and are then told to come back.

Refusing early is what keeps a server useful under too much load: work that is let in is finished in time, and work that
is not costs next to nothing. There is room for as many as the settings say, and for fewer while the event loop falls
behind: room shrinks quickly then, and grows back slowly.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import Callable, Iterator

from turnout.core.errors import Refused

# How fast the measured lag follows what is seen: five late wakings in a row are believed, two in time forgive them.
RISING, FALLING = 0.2, 0.5
# What room is multiplied by at each look while the loop is behind, and while it is not: a tenth in a fifth of a second,
# all of it back within two.
SHRINKING, GROWING = 0.8, 1.05
# Room there is always. A lone client is not refused because other programs keep the machine busy; and so many requests
# at once, at half a millisecond of work each, are as many as one core can have under way and still be quick.
LEAST = 48
# Times longer between two looks while no request is under way: a server that waits costs no more than it must.
RESTING = 5

# Looks without a refusal until requests count as let in again: half a second.
MOMENT = 25


class Admission:
    def __init__(self, limit: int, waiting: int, wait_s: float, lag_s: float) -> None:
        self.limit = limit
        self.waiting = waiting
        self.wait_s = wait_s
        self.lag_s = lag_s
        self.room = float(limit)
        """How many are let in just now."""
        self.active = 0
        self.batches = 0
        """Of those that are active, how many decide a whole batch."""
        self.refused = 0
        self._refused_before = 0
        self._refusing = 0
        """Looks that are left of the moment after a refusal."""
        self.on_refusing: Callable[[bool], None] | None = None
        """Told when requests begin to be refused, and when that is over."""
        self.lag = 0.0
        """How far the event loop is behind, seconds; kept by `watch`."""
        self.draining = False
        self._line: deque[asyncio.Future[None]] = deque()

    @property
    def is_full(self) -> bool:
        """Whether a request that comes now is refused."""
        if self.active < self.room:
            return False
        # A line is for a moment's crowd; while the loop is behind, waiting in it would only make that worse.
        return self.room < self.limit or len(self._line) >= self.waiting

    @property
    def is_refusing(self) -> bool:
        """Whether a request was refused a moment ago."""
        return self._refusing > 0

    async def __aenter__(self) -> None:
        if self.active < min(self.room, self.limit) and not self.draining:
            self.active += 1
        else:
            await self.enter()

    async def __aexit__(self, *_: object) -> None:
        self.leave()

    async def enter(self) -> None:
        """Take a place, now or soon; else raises Refused. Must be followed by `leave`."""
        if self.draining:
            raise Refused(503, "overloaded_error", "the server is stopping: try another", retry_after_s=1.0)
        if self.is_full:
            raise self._full()
        if self.active < self.limit:
            self.active += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append(turn)
        try:
            async with asyncio.timeout(self.wait_s):
                await turn
        except TimeoutError:
            if turn.done() and not turn.cancelled():  # its turn came at the last moment
                return
            self._leave_line(turn)
            raise self._full() from None
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            self._leave_line(turn)
            raise

    def leave(self) -> None:
        """Give the place to the next in line."""
        while self._line:
            turn = self._line.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.active -= 1

    @property
    def most_batches(self) -> int:
        """How many batches there may be at once: half of the room there always is, so that other requests find a place
        however many batches come, even while room is small."""
        return max(1, min(self.limit, LEAST) // 2)

    @contextlib.contextmanager
    def batch(self) -> Iterator[None]:
        """Decide a batch in the place one has; raises Refused while there are as many batches as there may be."""
        if self.batches >= self.most_batches:
            said = f"{self.batches} batches are under way, as many as are taken at once: try again, or ask one by one"
            raise self._refuse(said)
        self.batches += 1
        try:
            yield
        finally:
            self.batches -= 1

    def _leave_line(self, turn: asyncio.Future[None]) -> None:
        """Take a request that gave up waiting out of the line."""
        if turn in self._line:
            self._line.remove(turn)

    async def watch(self, every_s: float = 0.02) -> None:
        """Measure how late the event loop wakes us: that is how late it is for everybody."""
        loop = asyncio.get_running_loop()
        while True:
            resting = not self.active and not self.is_refusing and self.room >= self.limit
            pause = RESTING * every_s if resting else every_s
            before = loop.time()
            await asyncio.sleep(pause)
            self.measure(max(0.0, loop.time() - before - pause))

    def measure(self, late: float) -> None:
        """Take note of a waking that was so many seconds late, and make room accordingly."""
        before = self._refusing > 0
        self._refusing = MOMENT if self.refused > self._refused_before else max(0, self._refusing - 1)
        if self.on_refusing is not None and before != (self._refusing > 0):
            self.on_refusing(not before)
        self._refused_before = self.refused
        # One pause is no overload: a long prompt, a collection of garbage. Several in a row are.
        self.lag += (late - self.lag) * (RISING if late > self.lag else FALLING)
        if self.lag >= self.lag_s:
            self.room = max(min(LEAST, self.limit), min(self.room, self.active) * SHRINKING)
        else:
            self.room = min(self.limit, self.room * GROWING)

    def _full(self) -> Refused:
        return self._refuse(f"{self.active} requests are under way and {len(self._line)} wait: try again")

    def _refuse(self, said: str) -> Refused:
        self.refused += 1
        wait = random.uniform(1.0, 3.0)  # noqa: S311 - spreads clients out, keeps no secret
        return Refused(503, "overloaded_error", said, retry_after_s=wait)
