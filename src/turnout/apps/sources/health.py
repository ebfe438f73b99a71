"""Checks whether each source can be asked, all at once and within a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from turnout.core.verdict import to_fault

from .source import Health, Source

# A person waits for the result.
CHECK_S = 5.0


async def check_all(names: Iterable[str], sources: Mapping[str, Source]) -> dict[str, Health]:
    """The health of every source, and `not_configured` for the other names."""
    checks = {name: asyncio.ensure_future(source.check()) for name, source in sources.items()}
    try:
        if checks:
            await asyncio.wait(checks.values(), timeout=CHECK_S)
        known = {name: _health(check) for name, check in checks.items()}
    finally:
        for check in checks.values():
            check.cancel()
    missing = {name: Health("not_configured", f"add [sources.{name}] to turnout.toml") for name in names}
    return missing | known


def _health(check: asyncio.Future[Health]) -> Health:
    if not check.done():
        return Health("error", f"no answer within {CHECK_S:g} s: is it busy or hung? try again", CHECK_S * 1000)
    error = asyncio.CancelledError() if check.cancelled() else check.exception()
    return check.result() if error is None else Health("error", to_fault(error).detail)
