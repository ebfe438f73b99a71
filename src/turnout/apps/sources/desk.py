"""Where sources are asked: each question once at a time, and not at all while its last answer is fresh.

Whatever a source does becomes a result: one that raises, returns something else or is not there has failed, and a
caller that no longer waits leaves at once. A source without a waiting caller is cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from turnout.core.verdict import to_fault
from turnout.text.fold import fold

from .cache import Cache
from .source import Cause, Empty, Failure, Result, Source, SourceAnswer, SourceQuestion

# Seconds an answer of each kind is fresh, the specification's; a source of another kind is asked every time.
FRESH_S: Mapping[str, float] = {
    "kiwix": 86_400,
    "forecast": 1_800,
    "news": 900,
    "web": 3_600,
    "uptime": 60,
    "ha": 30,
    "changes": 120,
}
# An answer of some pages; a longer one is asked for again, so that five hundred of them stay below 128 MB.
KEPT_BYTES = 256 * 1024
_answers = msgspec.json.Decoder(SourceAnswer)


class Told(NamedTuple):
    """What a source said, now or before."""

    result: Result
    cached: bool = False


class Flight:
    """One question under way, and how many wait for it."""

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self.task = task
        self.waiting = 0
        self.kept = False
        """Its answer is in the cache."""


class Desk:
    """The sources of one process."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        cache: Cache,
        stamps: Mapping[str, str] | None = None,
        kinds: Mapping[str, str] | None = None,
    ) -> None:
        """`stamps` stand for the settings of each source: another server's answers are not this one's. `kinds`: of
        those that are not named after theirs."""
        self.sources = sources
        self.cache = cache
        self._stamps = stamps or {}
        self._kinds = kinds or {}
        self._flights: dict[tuple[str, ...], Flight] = {}
        self._left: set[asyncio.Task[Any]] = set()
        """Cancelled and not ended yet: a task nobody refers to may vanish."""

    def fresh_s(self, name: str) -> float:
        """How long an answer of a source is fresh; 0: it is asked every time."""
        return FRESH_S.get(self._kinds.get(name, name), 0.0)

    async def ask(self, name: str, question: SourceQuestion, tenant: str = "") -> Told:
        """What a source says to a question; raises nothing but CancelledError."""
        source = self.sources.get(name)
        if source is None:
            said = f"{name} is not configured: add [sources.{name}] to turnout.toml"
            return Told(Failure(Cause.NOT_CONFIGURED, said))
        since = question.since.isoformat() if question.since is not None else ""
        words = " ".join(fold(question.text).text.split())
        key = (name, self._stamps.get(name, source.description), words, question.lang, since)
        fresh_s = self.fresh_s(name)
        kept = await self.cache.get(tenant, key) if fresh_s else None
        if kept is not None:
            return Told(_answers.decode(kept), cached=True)
        flight = await self._join((tenant, *key), lambda: source.ask(question))
        result = _result(flight.task, name)
        if isinstance(result, SourceAnswer) and fresh_s and not flight.kept:
            flight.kept = True
            encoded = msgspec.json.encode(result)
            if len(encoded) <= KEPT_BYTES:
                self.cache.put(tenant, key, encoded, fresh_s)
        return Told(result)

    async def _join(self, key: tuple[str, ...], start: Callable[[], Awaitable[Result]]) -> Flight:
        """The flight of a question, once it has landed."""
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = Flight(asyncio.ensure_future(_awaited(start)))
        flight.waiting += 1
        try:
            await asyncio.wait((flight.task,))
        finally:
            flight.waiting -= 1
            if not flight.waiting and self._flights.get(key) is flight:
                del self._flights[key]
                if not flight.task.done():
                    self._leave(flight.task)
        return flight

    def _leave(self, task: asyncio.Task[Any]) -> None:
        self._left.add(task)
        task.add_done_callback(self._left.discard)
        # Asked for, so that the event loop does not tell of an error that nobody waits for.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        task.cancel()


async def _awaited(start: Callable[[], Awaitable[Result]]) -> Result:
    return await start()


def _result(task: asyncio.Task[Any], name: str) -> Result:
    error = asyncio.CancelledError() if task.cancelled() else task.exception()
    if error is not None:
        return Failure(Cause.ERROR, f"{name} broke: {to_fault(error).detail}")
    result = task.result()
    if isinstance(result, SourceAnswer) and not result.text.strip():
        return Empty()
    if isinstance(result, SourceAnswer | Empty | Failure):
        return result
    return Failure(Cause.MALFORMED, f"{name} returned {type(result).__name__}, which is no result")
