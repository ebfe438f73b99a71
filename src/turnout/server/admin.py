"""Is it alive, will it take work, what has it done: for machines that watch over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from turnout import __version__
from turnout.apps.gateway.gateway import Answer

from .api import answer
from .table import Call

if TYPE_CHECKING:
    from .house import House


async def health(house: House, call: Call) -> Answer:
    """Whether the process is alive."""
    return answer({"status": "ok"})


async def ready(house: House, call: Call) -> Answer:
    """Whether it takes work."""
    return answer({"status": "stopping"}, 503) if house.admission.draining else answer({"status": "ready"})


async def metrics(house: House, call: Call) -> Answer:
    return Answer(200, [(b"content-type", b"text/plain; version=0.0.4; charset=utf-8")], house.metrics.render(house))


async def status(house: House, call: Call) -> Answer:
    profile = house.gateway.router().profile
    slots = {
        name: {
            "model": slot.id,
            "usable": slot.usable,
            "needs_key": slot.needs_key,
            "breaker": house.models.breaker(slot).state,
        }
        for name, slot in house.models.slots.slots.items()
    }
    log = msgspec.to_builtins(house.store.counts()) if house.store is not None else None
    admission = {"active": house.admission.active, "refused": house.admission.refused, "lag_s": house.admission.lag}
    told = {"version": __version__, "profile": profile.name, "profile_hash": profile.hash, "slots": slots}
    return answer(told | {"log": log, "admission": admission})


async def reload(house: House, call: Call) -> Answer:
    return answer(await house.reload())


async def openapi(house: House, call: Call) -> Answer:
    """This document."""
    from .openapi import document

    return answer(document())
