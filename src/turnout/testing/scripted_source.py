"""A source of knowledge that does as it is told: answers, has nothing, fails, is late, hangs, raises.

A script is a list; its last entry repeats. An entry is a result of the protocol, a text (an answer that says just
that), an exception (it is raised, which no source may do), a `Late` (what follows comes after a while), or anything
else, which is returned as it is. Every question that was asked is in `calls`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from turnout.apps.sources.source import Health, SourceAnswer, SourceQuestion

# Longer than any test waits.
FOREVER_S = 3600.0
# How often a stubborn wait looks whether it is over.
TICK_S = 0.01


class Late(Struct, frozen=True):
    """An entry that comes after some seconds."""

    seconds: float = FOREVER_S
    then: object = "late"
    stubborn: bool = False
    """It ignores being cancelled, as a badly written source does."""


HANG = Late()
"""Never answers."""


WELL = Health("ok")


class ScriptedSource:
    """A source with a script."""

    def __init__(
        self,
        name: str,
        script: Sequence[object],
        *,
        description: str = "",
        words: Sequence[str] = (),
        health: Health = WELL,
    ) -> None:
        if not script:
            raise ValueError("an empty script: write [Empty()] for a source that has nothing")
        self.name = name
        self.description = description or f"what {name} knows"
        self.script = tuple(script)
        self.health = health
        self.calls: list[SourceQuestion] = []
        self.cancelled = 0
        """How often a wait was cancelled, whether or not it gave in."""
        self._words = tuple(words)
        self._released = asyncio.Event()

    async def ask(self, question: SourceQuestion) -> Any:
        self.calls.append(question)
        entry = self.script[min(len(self.calls), len(self.script)) - 1]
        while isinstance(entry, Late):
            await self._wait(entry)
            entry = entry.then
        if isinstance(entry, BaseException):
            raise entry
        return SourceAnswer(entry) if isinstance(entry, str) else entry

    async def check(self) -> Health:
        return self.health

    def words(self) -> Sequence[str]:
        return self._words

    def release(self) -> None:
        """End every wait, now and later."""
        self._released.set()

    async def _wait(self, late: Late) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + late.seconds
        while not self._released.is_set() and loop.time() < until:
            try:
                async with asyncio.timeout(min(TICK_S if late.stubborn else FOREVER_S, until - loop.time())):
                    await self._released.wait()
            except TimeoutError:
                continue
            except asyncio.CancelledError:
                self.cancelled += 1
                if not late.stubborn:
                    raise
                # Else the next tick would count as cancelled, too (before Python 3.11.3).
                if (task := asyncio.current_task()) is not None:
                    task.uncancel()
