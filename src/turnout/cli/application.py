"""Running an application for one command: what must be installed, the runtime it uses, and who is asking.

Invariant: everything opened for a command is closed, however the command ends.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from turnout.core.errors import TurnoutError

from .option import StoreOptions

if TYPE_CHECKING:
    from turnout.apps.caller import Caller
    from turnout.apps.event import Event
    from turnout.runtime.runtime import Runtime

T = TypeVar("T")
E = TypeVar("E", bound="Event")


@contextlib.contextmanager
def needing(what: str, extra: str = "serve") -> Iterator[None]:
    """Turn an import that fails inside into a sentence: `what`, the missing package and the extra that has it."""
    try:
        yield
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        raise TurnoutError(f"{what} {package}: pip install 'turnout[{extra}]'") from None


def open_runtime(where: StoreOptions, profile: str | None, *, log: bool = True) -> Runtime:
    """The runtime of an application; without a log nothing about the question is stored."""
    from turnout.runtime.log import quiet
    from turnout.store import open_store

    with needing("this needs"):
        from turnout.runtime.runtime import Runtime

    quiet()
    store = open_store(where.db, config=where.config) if log else None
    return Runtime(store, profile=profile, config=where.config)


def run(runtime: Runtime, work: Coroutine[Any, Any, T]) -> T:
    """The result of the work; the runtime is closed in the event loop that used it."""

    async def run_and_close() -> T:
        try:
            return await work
        finally:
            await runtime.close()

    return asyncio.run(run_and_close())


async def follow(events: AsyncGenerator[Event, None], kind: type[E], show: Callable[[Event], None]) -> E:
    """Show an application's events as they happen; returns the last one of a kind, the result."""
    result: E | None = None
    async with contextlib.aclosing(events):
        async for event in events:
            show(event)
            if isinstance(event, kind):
                result = event
    assert result is not None  # noqa: S101 - applications end with their result
    return result


@contextlib.contextmanager
def opened_runtime(where: StoreOptions, profile: str) -> Iterator[Runtime]:
    """The runtime, for work that needs no event loop."""
    runtime = open_runtime(where, profile)
    try:
        yield runtime
    finally:
        asyncio.run(runtime.close())


def local_caller(scopes: Iterable[str] = ("ask",)) -> Caller:
    """The caller on the command line: no key, no limit on spending."""
    from turnout.apps.caller import Budget, Caller

    return Caller("", "", frozenset(scopes), Budget())
