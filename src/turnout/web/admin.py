"""Is it alive, will it take work, what has it done: for machines that watch over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from turnout import __version__
from turnout.apps.gateway.gateway import Answer

from .api import answer
from .table import Call

if TYPE_CHECKING:
    from .server import Server


async def health(server: Server, call: Call) -> Answer:
    """Whether the process is alive."""
    return answer({"status": "ok"})


async def ready(server: Server, call: Call) -> Answer:
    """Whether it takes work."""
    return answer({"status": "stopping"}, 503) if server.admission.draining else answer({"status": "ready"})


async def metrics(server: Server, call: Call) -> Answer:
    return Answer(200, [(b"content-type", b"text/plain; version=0.0.4; charset=utf-8")], server.metrics.render(server))


async def status(server: Server, call: Call) -> Answer:
    profile = server.gateway.router().profile
    slots = {
        name: {
            "model": slot.id,
            "usable": slot.usable,
            "needs_key": slot.needs_key,
            "breaker": server.models.breaker(slot).state,
        }
        for name, slot in server.models.slots.slots.items()
    }
    log = msgspec.to_builtins(server.store.counts()) if server.store is not None else None
    admission = {"active": server.admission.active, "refused": server.admission.refused, "lag_s": server.admission.lag}
    told = {"version": __version__, "profile": profile.name, "profile_hash": profile.hash, "slots": slots}
    return answer(told | {"log": log, "admission": admission})


async def reload(server: Server, call: Call) -> Answer:
    return answer(await server.reload())


async def openapi(server: Server, call: Call) -> Answer:
    """This document."""
    from .openapi import document

    return answer(document())
