"""An application that a command runs for one question: what must be installed, what it runs with, and who asks.

Invariant: whatever becomes of the question, what was opened for it is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from turnout.core.errors import TurnoutError

from .option import StoreOptions

if TYPE_CHECKING:
    from turnout.apps.caller import Caller
    from turnout.runtime.runtime import Runtime

T = TypeVar("T")


@contextlib.contextmanager
def needing(what: str, extra: str = "serve") -> Iterator[None]:
    """What is imported inside needs the packages of an extra; `what` is how the sentence begins that says so."""
    try:
        yield
    except ImportError as error:
        needed = (error.name or "").partition(".")[0]
        raise TurnoutError(f"{what} {needed}: pip install 'turnout[{extra}]'") from None


def open_runtime(where: StoreOptions, profile: str | None, *, log: bool = True) -> Runtime:
    """What the application runs with; without a log nothing of the question is written down."""
    from turnout.runtime.log import quiet
    from turnout.store import open_store

    with needing("this needs"):
        from turnout.runtime.runtime import Runtime

    quiet()
    store = open_store(where.db, config=where.config) if log else None
    return Runtime(store, profile=profile, config=where.config)


def run(runtime: Runtime, work: Coroutine[Any, Any, T]) -> T:
    """What the work comes to; the runtime is closed in the loop that it was used in."""

    async def closing() -> T:
        try:
            return await work
        finally:
            await runtime.close()

    return asyncio.run(closing())


@contextlib.contextmanager
def opened_runtime(where: StoreOptions, profile: str) -> Iterator[Runtime]:
    """The same for what needs no loop."""
    runtime = open_runtime(where, profile)
    try:
        yield runtime
    finally:
        asyncio.run(runtime.close())


def local_caller(scopes: Iterable[str] = ("ask",)) -> Caller:
    """Who asks on the command line: nobody's key, and as much money as it takes."""
    from turnout.apps.caller import Budget, Caller

    return Caller("", "", frozenset(scopes), Budget())
