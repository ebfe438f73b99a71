"""How quick something is, on a machine that is doing other things too.

Timed tests ask for the work done, not for the wait: the processor time of this thread alone, at its best of several
tries. A neighbour's threads, a garbage collection or a cold cache disturb a try; they do not disturb all of them, while
code that has become slow is slow in every one.
"""

import gc
import time
from collections.abc import Callable

TRIES = 6


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


def is_within(seconds: float, work: Callable[[], object], *, tries: int = TRIES) -> bool:
    return quickest(work, enough=seconds, tries=tries) < seconds


def is_linear(short: Callable[[], object], long: Callable[[], object], *, most: float, grain: float) -> bool:
    """Whether `long` takes at most `most` times as long as `short`, give or take the clock's `grain`; measured side by
    side, and again before it is called a fault."""
    for _ in range(4):
        enough = most * quickest(short, tries=3) + grain
        if quickest(long, enough=enough, tries=3) < enough:
            return True
    return False
