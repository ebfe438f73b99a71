"""Where a plug-in's failure becomes a value.

A layer, an adjustment, a splitter or an `explain` may fail in any way; routing, and reading a decision, may not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from .verdict import Fault

# An error's message may hold the whole question; a trace is no place for it.
MESSAGE_CHARACTERS = 200


def contain(call: Callable[..., Any], *arguments: object) -> Any:
    """What the call returns, or the fault that says how it failed."""
    try:
        return call(*arguments)
    # Called inline, it cannot be cancelled from outside: a CancelledError is the plug-in's own, an error like others.
    except (Exception, asyncio.CancelledError) as error:
        return to_fault(error)


def to_fault(error: BaseException) -> Fault:
    name = type(error).__name__
    message = contain_message(error)
    return Fault("error", f"{name}: {message}" if message else name)


def contain_message(error: BaseException) -> str:
    try:
        message = str(error)
    except Exception:
        return "(its message cannot be read)"
    return readable(message[:MESSAGE_CHARACTERS])


def readable(text: str) -> str:
    """The text as it can be written down: a lone surrogate has no UTF-8 form."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
