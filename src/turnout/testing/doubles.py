"""Layers that follow a script: they answer, stall, raise, return rubbish, or pass.

They are part of the package because failures that a real layer has once a year must happen in tests on the first call.
A script is a list; its last entry repeats, so that a list of one is a layer with one answer. An entry is

- anything a layer may return, or may not: it is returned as it is;
- an exception, or a class of exceptions: it is raised;
- a `Stall`: the answer comes late;
- a function of the reading: what it returns is the entry.

Every reading a double was asked about is in its `calls`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from turnout.core.query import Reading
from turnout.core.verdict import Reason, Verdict

Explain = Callable[[Verdict], tuple[Reason, ...]]


class Stall(Struct, frozen=True):
    """An entry of a script that comes after some seconds, or as soon as the double is released."""

    seconds: float = 60.0
    then: object = None
    """The entry that follows the wait."""
    stubborn: bool = False
    """Ignore cancellation, as badly written code does."""


class PassLayer:
    """Always passes. Adding one to a profile must change nothing but the trace."""

    def __call__(self, reading: Reading) -> None:
        return None


class Script:
    """The entries of a script, and the calls it answered."""

    passing = "[None] for a layer that passes"

    def __init__(self, script: Sequence[object]) -> None:
        if not script:
            raise ValueError(f"an empty script: write {self.passing}")
        self.script = tuple(script)
        self.calls: list[Any] = []
        """What it was asked, in order."""
        self.cancelled = 0
        """How often a stall was cancelled, whether or not it ended."""
        self._released = threading.Event()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def release(self) -> None:
        """End every stall, now and later: call it at the end of a test, so that no thread or task outlives it."""
        self._released.set()
        for loop, over in list(self._waiting):
            loop.call_soon_threadsafe(over.set)

    def _next(self, asked: Any) -> object:
        self.calls.append(asked)
        return self._resolve(self.script[min(len(self.calls), len(self.script)) - 1], asked)

    def _resolve(self, entry: object, asked: Any) -> object:
        if isinstance(entry, BaseException) or (isinstance(entry, type) and issubclass(entry, BaseException)):
            raise entry
        return entry(asked) if callable(entry) else entry

    async def _answer(self, asked: Any) -> Any:
        """The next entry, after its stalls, each of which can be cancelled unless it is stubborn."""
        entry = self._next(asked)
        while isinstance(entry, Stall):
            await self._wait(entry)
            entry = self._resolve(entry.then, asked)
        return entry

    async def _wait(self, stall: Stall) -> None:
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        waiting = (loop, over)
        self._waiting.append(waiting)
        timer = loop.call_later(stall.seconds, over.set)
        try:
            while not (over.is_set() or self._released.is_set()):
                try:
                    await over.wait()
                except asyncio.CancelledError:
                    self.cancelled += 1
                    if not stall.stubborn:
                        raise
        finally:
            timer.cancel()
            self._waiting.remove(waiting)


class ScriptedLayer(Script):
    """Answers from a script, as a plain function does: a stall blocks the thread it is called in."""

    def __init__(self, script: Sequence[object], *, explain: Explain | None = None) -> None:
        super().__init__(script)
        self.explain = explain
        """Given to the profile like any layer's `explain`; None leaves the verdict's own reasons."""

    def __call__(self, reading: Reading) -> Any:
        entry = self._next(reading)
        while isinstance(entry, Stall):
            self._released.wait(entry.seconds)
            entry = self._resolve(entry.then, reading)
        return entry


class ScriptedNetworkLayer(ScriptedLayer):
    """The same as a coroutine, like a layer that asks a model: a stall can be cancelled, unless it is stubborn."""

    async def __call__(self, reading: Reading) -> Any:
        return await self._answer(reading)
