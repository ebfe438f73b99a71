"""Asks sources: equal questions share one request, and fresh answers come from the cache.

Whatever a source does becomes a result: one that raises, returns something invalid or does not exist has failed. A
caller can leave at any time; a request that no caller waits for is cancelled.
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

# The specification's lifetimes in seconds, by kind of source; answers of other kinds are not cached.
FRESH_S: Mapping[str, float] = {
    "kiwix": 86_400,
    "forecast": 1_800,
    "news": 900,
    "web": 3_600,
    "uptime": 60,
    "ha": 30,
    "changes": 120,
}
# An answer of a few pages; longer ones are not cached, so that five hundred of them stay below 128 MB.
KEPT_BYTES = 256 * 1024
_answers = msgspec.json.Decoder(SourceAnswer)


class DeskResult(NamedTuple):
    """A source's result, new or cached."""

    result: Result
    cached: bool = False


class Flight:
    """One question in progress, and how many callers wait for it."""

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
        """`stamps` identify the settings of each source, since answers of another server must not be reused; `kinds`
        has the kind of each source that is not named after it."""
        self.sources = sources
        self.cache = cache
        self._stamps = stamps or {}
        self._kinds = kinds or {}
        self._flights: dict[tuple[str, ...], Flight] = {}
        self._left: set[asyncio.Task[Any]] = set()
        """Cancelled tasks that have not ended: one without a reference may be garbage-collected."""

    def fresh_s(self, name: str) -> float:
        """How long an answer of a source is fresh; 0 if it is not cached."""
        return FRESH_S.get(self._kinds.get(name, name), 0.0)

    async def ask(self, name: str, question: SourceQuestion, tenant: str = "") -> DeskResult:
        """A source's result for a question; raises nothing but CancelledError."""
        source = self.sources.get(name)
        if source is None:
            problem = f"{name} is not configured: add [sources.{name}] to turnout.toml"
            return DeskResult(Failure(Cause.NOT_CONFIGURED, problem))
        since = question.since.isoformat() if question.since is not None else ""
        words = " ".join(fold(question.text).text.split())
        key = (name, self._stamps.get(name, source.description), words, question.lang, since)
        fresh_s = self.fresh_s(name)
        cached = await self.cache.get(tenant, key) if fresh_s else None
        if cached is not None:
            return DeskResult(_answers.decode(cached), cached=True)
        flight = await self._join((tenant, *key), lambda: source.ask(question))
        result = _result(flight.task, name)
        if isinstance(result, SourceAnswer) and fresh_s and not flight.kept:
            flight.kept = True
            encoded = msgspec.json.encode(result)
            if len(encoded) <= KEPT_BYTES:
                self.cache.put(tenant, key, encoded, fresh_s)
        return DeskResult(result)

    async def _join(self, key: tuple[str, ...], start: Callable[[], Awaitable[Result]]) -> Flight:
        """Wait for the flight of a question, which is started if there is none."""
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
        # Retrieves the exception, so that the event loop does not log it as never retrieved.
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
    return Failure(Cause.MALFORMED, f"{name} returned {type(result).__name__}, which is not a result")
