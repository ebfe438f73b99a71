"""Layers that do as they are told: answer from a script, stall, raise, return rubbish, or pass.

They are shipped because every author of a router needs the failures a real layer has once a year to happen on the first
call. A script is a list; its last entry repeats, so a list of one is a layer that always answers alike. An entry is

- anything a layer may return, and anything it may not: it is returned as it is;
- an exception, or a class of exceptions: it is raised;
- a `Stall`: the answer comes late;
- a function of the reading: what it returns is the entry.

Every reading a double was asked about is in its `calls`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

from msgspec import Struct

from turnout.core.query import Reading
from turnout.core.verdict import Reason, Verdict

# How often a stalled double looks whether it was released: far below any deadline, far above the cost of looking.
TICK_SECONDS = 0.005

Explain = Callable[[Verdict], tuple[Reason, ...]]


class Stall(Struct, frozen=True):
    """An entry of a script that comes after some seconds, or as soon as the double is released."""

    seconds: float = 60.0
    then: object = None
    """The entry that follows the wait."""
    stubborn: bool = False
    """Ignore cancellation, as a badly written layer does."""


class PassLayer:
    """Has no opinion on anything. Adding one to a profile must change nothing but the trace."""

    def __call__(self, reading: Reading) -> None:
        return None


class ScriptedLayer:
    """Answers from a script, as a plain function does: a stall blocks the thread it is called in."""

    def __init__(self, script: Sequence[object], *, explain: Explain | None = None) -> None:
        if not script:
            raise ValueError("an empty script: write [None] for a layer that passes")
        self.script = tuple(script)
        self.explain = explain
        """Given to the profile like any layer's `explain`; None leaves the verdict's own reasons."""
        self.calls: list[Reading] = []
        self.cancelled = 0
        """How often a stall was cancelled, whether or not it gave in."""
        self._released = threading.Event()

    def __call__(self, reading: Reading) -> Any:
        entry = self._entry(reading)
        while isinstance(entry, Stall):
            self._released.wait(entry.seconds)
            entry = self._resolve(entry.then, reading)
        return entry

    def release(self) -> None:
        """End every stall, now and later: what a test does in the end, so that no thread or task outlives it."""
        self._released.set()

    def _entry(self, reading: Reading) -> object:
        self.calls.append(reading)
        return self._resolve(self.script[min(len(self.calls), len(self.script)) - 1], reading)

    def _resolve(self, entry: object, reading: Reading) -> object:
        if isinstance(entry, BaseException) or (isinstance(entry, type) and issubclass(entry, BaseException)):
            raise entry
        return entry(reading) if callable(entry) else entry


class ScriptedNetworkLayer(ScriptedLayer):
    """The same as a coroutine, as a layer that asks a model is: a stall can be cancelled, unless it is stubborn."""

    async def __call__(self, reading: Reading) -> Any:
        entry = self._entry(reading)
        while isinstance(entry, Stall):
            await self._wait(entry)
            entry = self._resolve(entry.then, reading)
        return entry

    async def _wait(self, stall: Stall) -> None:
        end = monotonic() + stall.seconds
        while not self._released.is_set() and (left := end - monotonic()) > 0:
            try:
                await asyncio.sleep(min(left, TICK_SECONDS))
            except asyncio.CancelledError:
                self.cancelled += 1
                if not stall.stubborn:
                    raise
