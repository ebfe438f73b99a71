"""Runs work on long inputs in a thread, to keep the event loop responsive.

A thread does not make the work faster, but other threads get the interpreter every five milliseconds and whenever a C
call returns. So no single C call may take long either; the limits on inputs see to that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

# Bytes or characters that take a few milliseconds at worst; a thread costs a tenth of a millisecond.
INLINE = 32_768

P = ParamSpec("P")
R = TypeVar("R")


async def aside(size: int, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function with an input of that size: inline if it is short, else in a thread."""
    return call(*args, **kwargs) if size <= INLINE else await asyncio.to_thread(call, *args, **kwargs)
