"""How many requests are served at once. The others wait a moment in a short queue, then get a 503 with a retry-after.

Refusing early keeps an overloaded server useful: admitted requests finish in time, and refused ones cost little. There
is room for as many as the settings say, and for fewer while the event loop is late.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import Callable, Iterator

from turnout.core.errors import Refused

# How fast the smoothed lag follows the measured one: ten late wake-ups in a row raise it, two in time lower it.
RISING, FALLING = 0.1, 0.5
# The factors for room at each look. While the loop is late, room shrinks as much as the lag is above its limit, but at
# most by half: a sudden load finds its room in a few looks, and a steady one keeps it. It is back to ten times in 1 s.
SHRINKING, GROWING = 0.5, 1.05
# The room that remains however late the loop is, so that no single client is refused because other programs keep the
# machine busy. One core serves so many requests of half a millisecond at once and stays quick.
LEAST = 32
# How much longer the pause between two looks is without requests: an idle server should cost nothing.
RESTING = 5
# Looks without a refusal until the server counts as having room again: half a second.
MOMENT = 25


class Admission:
    def __init__(self, limit: int, waiting: int, wait_s: float, lag_s: float) -> None:
        self.limit = limit
        self.waiting = waiting
        self.wait_s = wait_s
        self.lag_s = lag_s
        self.room = float(limit)
        """How many requests may be served now."""
        self.active = 0
        self.batches = 0
        """How many of the active requests decide a batch."""
        self.most_batches = max(1, min(limit, LEAST) // 2)
        """Half of the room that always remains, so that batches leave room for other requests."""
        self.refused = 0
        self._refused_before = 0
        self._refusing = 0
        """Looks left until the server counts as having room again."""
        self.on_refusing: Callable[[bool], None] | None = None
        """Called when the server begins to refuse requests, and when it has room again."""
        self.lag = 0.0
        """How late the event loop is, in seconds; kept by `watch`."""
        self.draining = False
        self._queue: deque[asyncio.Future[None]] = deque()

    @property
    def is_full(self) -> bool:
        """Whether a request that arrives now is refused."""
        if self.active < self.room:
            return False
        # The queue absorbs a burst. While the loop is late, waiting would only make it later.
        return self.room < self.limit or len(self._queue) >= self.waiting

    async def __aenter__(self) -> None:
        """Take a place, now or soon; raises Refused."""
        if self.draining:
            raise Refused(503, "overloaded_error", "the server is stopping: try another", retry_after_s=1.0)
        if self.is_full:
            raise self._full()
        if self.active < self.limit:
            self.active += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            async with asyncio.timeout(self.wait_s):
                await turn
        except (TimeoutError, asyncio.CancelledError) as error:
            got_it = turn.done() and not turn.cancelled()  # its turn came at the last moment
            if turn in self._queue:
                self._queue.remove(turn)
            if isinstance(error, asyncio.CancelledError):
                if got_it:
                    await self.__aexit__()
                raise
            if not got_it:
                raise self._full() from None

    async def __aexit__(self, *_: object) -> None:
        """Give the place to the next in the queue."""
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.active -= 1

    @contextlib.contextmanager
    def batch(self) -> Iterator[None]:
        """Decide a batch in a place already taken; raises Refused if too many batches are under way."""
        if self.batches >= self.most_batches:
            most = f"{self.batches} batches are under way, which is the limit"
            raise self._refuse(f"{most}: try again, or ask one by one")
        self.batches += 1
        try:
            yield
        finally:
            self.batches -= 1

    async def watch(self, every_s: float = 0.02) -> None:
        """Measure how late the event loop wakes this task: every other task is as late."""
        loop = asyncio.get_running_loop()
        while True:
            resting = not self.active and not self._refusing and self.room >= self.limit
            pause = RESTING * every_s if resting else every_s
            before = loop.time()
            await asyncio.sleep(pause)
            self.measure(max(0.0, loop.time() - before - pause))

    def measure(self, late: float) -> None:
        """Adjust room to a wake-up that was so many seconds late."""
        was_refusing = self._refusing > 0
        self._refusing = MOMENT if self.refused > self._refused_before else max(0, self._refusing - 1)
        self._refused_before = self.refused
        is_refusing = self._refusing > 0
        if self.on_refusing is not None and is_refusing != was_refusing:
            self.on_refusing(is_refusing)
        # A single pause is no overload: it may be a long prompt or a garbage collection.
        self.lag += (late - self.lag) * (RISING if late > self.lag else FALLING)
        if self.lag >= self.lag_s:
            shrinking = max(SHRINKING, self.lag_s / self.lag)
            self.room = max(min(LEAST, self.limit), min(self.room, self.active) * shrinking)
        else:
            self.room = min(self.limit, self.room * GROWING)

    def _full(self) -> Refused:
        return self._refuse(f"{self.active} requests are under way and {len(self._queue)} wait: try again")

    def _refuse(self, message: str) -> Refused:
        self.refused += 1
        wait = random.uniform(1.0, 3.0)  # noqa: S311 - spreads clients out, keeps no secret
        return Refused(503, "overloaded_error", message, retry_after_s=wait)
