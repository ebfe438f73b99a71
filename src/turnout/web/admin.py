"""Routes for monitoring and administration: health, readiness, metrics, status, reload."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout import __version__
from turnout.apps.app import Answer, Call, Route, answer

if TYPE_CHECKING:
    from .server import Server


class Admin:
    """`/health` and `/ready` need no key, and reveal nothing."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.open = (Route("GET", "/health", "", self.health), Route("GET", "/ready", "", self.ready))
        self.routes = (
            *self.open,
            Route("GET", "/metrics", "admin", self.metrics),
            Route("GET", "/admin/status", "admin", self.status),
            Route("POST", "/admin/reload", "admin", self.reload),
        )

    async def health(self, call: Call) -> Answer:
        """Whether the process is alive.

        `?sources=1` leads on to what has a health of its own, which needs a key."""
        for name in call.options:
            if any(route.path == (place := f"/{name}/health") for route in self.server.routes):
                return Answer(307, [(b"location", place.encode())], b"")
        return answer({"status": "ok"})

    async def ready(self, call: Call) -> Answer:
        """Whether it takes work."""
        return answer({"status": "stopping"}, 503) if self.server.admission.draining else answer({"status": "ready"})

    async def metrics(self, call: Call) -> Answer:
        kind = b"text/plain; version=0.0.4; charset=utf-8"
        return Answer(200, [(b"content-type", kind)], self.server.metrics.render(self.server))

    async def status(self, call: Call) -> Answer:
        profile, models, admission = call.runtime.router.profile, call.runtime.models, self.server.admission
        slots = {
            name: {
                "model": slot.id,
                "usable": slot.usable,
                "needs_key": slot.needs_key,
                "breaker": models.breaker(slot).state,
            }
            for name, slot in models.slots.slots.items()
        }
        log = call.runtime.store.counts() if call.runtime.store is not None else None
        status = {"version": __version__, "profile": profile.name, "profile_hash": profile.hash, "slots": slots}
        room = {"active": admission.active, "refused": admission.refused, "lag_s": admission.lag}
        return answer(status | {"log": log, "admission": room})

    async def reload(self, call: Call) -> Answer:
        return answer(await self.server.reload())
