"""How quick something is, on a machine that is doing other things too.

Timed tests ask for the work done, not for the wait: the processor time of this thread alone, at its best of several
tries. A neighbour's threads, a garbage collection or a cold cache disturb a try; they do not disturb all of them, while
code that has become slow is slow in every one. A limit in seconds is one for the machine of docs/benchmarks.md: on a
slower one, or beside a neighbour that shares its core, it is as much longer as a piece of work that never changes.
"""

import gc
import threading
import time
from collections.abc import Callable
from typing import Self

TRIES = 6
# How often the delay is looked at, and how often work goes from one thread to another on the longest of the ways that
# are timed: a client's loop, the server's, a worker, the provider's, and back.
TICK_S = 0.005
HANDOVERS = 6
# What `unchanging` takes on that machine, at its best.
UNCHANGING_S = 0.014


def unchanging() -> int:
    total = 0
    for number in range(200_000):
        total += number * number % 7
    return total


def quickest(work: Callable[[], object], *, enough: float = 0.0, tries: int = TRIES) -> float:
    """Seconds of the best try; the first that takes less than `enough` ends the trying."""
    best = float("inf")
    for _ in range(tries):
        gc.disable()
        try:
            started = time.thread_time()
            work()
            best = min(best, time.thread_time() - started)
        finally:
            gc.enable()
        if best < enough:
            break
    return best


def slowness(tries: int = TRIES) -> float:
    """How many times slower this machine is at the moment than the one that limits were set on."""
    return max(1.0, quickest(unchanging, tries=tries) / UNCHANGING_S)


def is_within(seconds: float, work: Callable[[], object], *, tries: int = TRIES) -> bool:
    """Whether one try takes less than `seconds`, on a machine as slow as it is right before and right after that try:
    a shared core is half as quick for seconds at a time."""
    for _ in range(tries):
        before = slowness(1)
        took = quickest(work, tries=1)
        if took < seconds or took < seconds * (before + slowness(1)) / 2:
            return True
    return False


def is_linear(short: Callable[[], object], long: Callable[[], object], *, most: float, grain: float) -> bool:
    """Whether `long` takes at most `most` times as long as `short`, give or take the clock's `grain`; measured side by
    side, and again before it is called a fault."""
    for _ in range(4):
        enough = most * quickest(short, tries=3) + grain
        if quickest(long, enough=enough, tries=3) < enough:
            return True
    return False


class Delays:
    """How late threads of this process are waked while it is entered. A limit in wall time holds on a machine with
    nothing else to do; on a busy one every hand-over from thread to thread may come as late as this, besides."""

    def __init__(self) -> None:
        self.worst_s = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        last = time.monotonic()
        while not self._done.wait(TICK_S):
            now = time.monotonic()
            self.worst_s = max(self.worst_s, now - last - TICK_S)
            last = now

    def allow(self, seconds: float) -> float:
        """What may take so long on an idle machine may take so long on this one."""
        return seconds + HANDOVERS * self.worst_s
