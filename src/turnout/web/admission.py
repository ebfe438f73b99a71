"""How many requests are served at once. The rest wait a moment in a short queue, then get a 503 with a retry-after.

Refusing early keeps an overloaded server useful: requests that are let in finish in time, and the others cost next to
nothing. There is room for as many as the settings say, and for fewer while the event loop falls behind: room shrinks
quickly and grows back slowly.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import Callable, Iterator

from turnout.core.errors import Refused

# How fast the smoothed lag follows what is measured: five late wake-ups in a row raise it, two in time lower it.
RISING, FALLING = 0.2, 0.5
# The factor for room at each look, while the loop is behind and while it is not: down to a tenth within a fifth of a
# second, and back within two seconds.
SHRINKING, GROWING = 0.8, 1.05
# The room there always is, however late the loop. A single client is not refused because other programs keep the
# machine busy, and so many requests of half a millisecond each are what one core can serve at once and stay quick.
LEAST = 48
# How much longer the pause between two looks is while no request is under way: an idle server should cost nothing.
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
        # The queue absorbs a burst. While the loop is behind, waiting would only put it further behind.
        return self.room < self.limit or len(self._queue) >= self.waiting

    @property
    def is_refusing(self) -> bool:
        """Whether a request was refused a moment ago."""
        return self._refusing > 0

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

    @property
    def most_batches(self) -> int:
        """How many batches may be decided at once: half of the room there always is, so that batches never keep other
        requests out."""
        return max(1, min(self.limit, LEAST) // 2)

    @contextlib.contextmanager
    def batch(self) -> Iterator[None]:
        """Decide a batch in a place already taken; raises Refused while as many batches are under way as may be."""
        if self.batches >= self.most_batches:
            message = (
                f"{self.batches} batches are under way, as many as are taken at once: try again, or ask one by one"
            )
            raise self._refuse(message)
        self.batches += 1
        try:
            yield
        finally:
            self.batches -= 1

    async def watch(self, every_s: float = 0.02) -> None:
        """Measure how late the event loop wakes this task: every other task is as late."""
        loop = asyncio.get_running_loop()
        while True:
            resting = not self.active and not self.is_refusing and self.room >= self.limit
            pause = RESTING * every_s if resting else every_s
            before = loop.time()
            await asyncio.sleep(pause)
            self.measure(max(0.0, loop.time() - before - pause))

    def measure(self, late: float) -> None:
        """Adjust room to a wake-up that was so many seconds late."""
        was_refusing = self.is_refusing
        self._refusing = MOMENT if self.refused > self._refused_before else max(0, self._refusing - 1)
        self._refused_before = self.refused
        if self.on_refusing is not None and self.is_refusing != was_refusing:
            self.on_refusing(self.is_refusing)
        # One pause is no overload: it may be a long prompt or a garbage collection.
        self.lag += (late - self.lag) * (RISING if late > self.lag else FALLING)
        if self.lag >= self.lag_s:
            self.room = max(min(LEAST, self.limit), min(self.room, self.active) * SHRINKING)
        else:
            self.room = min(self.limit, self.room * GROWING)

    def _full(self) -> Refused:
        return self._refuse(f"{self.active} requests are under way and {len(self._queue)} wait: try again")

    def _refuse(self, message: str) -> Refused:
        self.refused += 1
        wait = random.uniform(1.0, 3.0)  # noqa: S311 - spreads clients out, keeps no secret
        return Refused(503, "overloaded_error", message, retry_after_s=wait)
