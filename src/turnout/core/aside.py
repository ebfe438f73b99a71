"""Work that grows with its input is done beside the event loop, once the input is long.

A thread does not make it quicker: it lets others have their turn in between, every five milliseconds and whenever a
call into C returns. So no single such call may take long either, which is what the limits on inputs are for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

# Bytes or characters that are worked on in a few milliseconds, whatever they are; a thread costs a tenth of one.
INLINE = 32_768

P = ParamSpec("P")
R = TypeVar("R")


async def aside(size: int, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call with an input of that size: here if it is short, else in a thread."""
    return call(*args, **kwargs) if size <= INLINE else await asyncio.to_thread(call, *args, **kwargs)
