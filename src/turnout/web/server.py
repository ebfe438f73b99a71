"""What serves: a runtime, the gateway over it, and who is let in to use them."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from turnout.apps.caller import Caller
from turnout.apps.gateway.gateway import Gateway
from turnout.core.errors import SHOWN, ConfigError, EmbedderError, Problem, Refused, UnknownProfile, suggest
from turnout.core.router import Router
from turnout.models.ask import Models
from turnout.runtime.runtime import Reload, Runtime
from turnout.store import Store

from .admission import Admission
from .auth import Auth
from .guard import Guard
from .key import read_pepper
from .metrics import Metrics
from .settings import ServerSettings, is_loopback

# What is cut has this long to tell its client so, and then as long again before its connection is closed.
CUT_S = 2.0


def check_exposure(settings: ServerSettings, store: Store | None) -> None:
    """Beyond loopback everybody can come: then a key must exist."""
    for name, host in (("host", settings.host), ("admin_host", settings.admin_host)):
        if not is_loopback(host) and (store is None or not store.keys.any()):
            said = f"{host} is reachable from other machines and there is no key: turnout keys create NAME"
            raise ConfigError([Problem(f"server.{name}", said)])


class Server:
    """One process's worth of server."""

    def __init__(self, settings: ServerSettings, runtime: Runtime) -> None:
        self.settings = settings
        self.runtime = runtime
        self.guard = Guard(settings)
        self.auth = Auth(runtime.store, read_pepper(), loopback=settings.loopback)
        self.admission = Admission(settings.requests, settings.waiting, settings.wait_s, settings.lag_s)
        if runtime.store is not None:
            runtime.store.journal.is_busy = lambda: self.admission.is_refusing
        self.metrics = Metrics()
        router = runtime.router
        self.gateway = Gateway(lambda: router, runtime.models, runtime.store)
        """Under the settings of the moment. A request keeps the one it began with."""
        runtime.changed = self._renew
        self.asking: set[asyncio.Task[Any]] = set()
        """Requests whose answer has not begun."""
        self.requests: set[asyncio.Task[Any]] = set()
        """All that are under way."""
        self._tasks: list[asyncio.Task[Any]] = []

    def _renew(self) -> None:
        self.auth.forget()
        router = self.runtime.router
        self.gateway = self.gateway.under(lambda: router, self.runtime.models)

    @property
    def store(self) -> Store | None:
        return self.runtime.store

    @property
    def models(self) -> Models:
        return self.runtime.models

    def stored(self) -> Store:
        if self.runtime.store is None:
            raise Refused(503, "not_available", "this server keeps no log: start it with a store")
        return self.runtime.store

    def check_profile(self, caller: Caller, profile: str | None = None) -> str:
        """The name of a profile this server serves and this caller may use; without one, the default."""
        name = profile or self.runtime.profile
        try:
            self.runtime.check_offered(name)
        except UnknownProfile as error:
            said = f"no profile {name[:SHOWN]!r} is served here{suggest(name, error.known)}: {', '.join(error.known)}"
            raise Refused(404, "not_found_error", said) from None
        if caller.profiles is not None and name not in caller.profiles:
            raise Refused(403, "permission_error", f"this key may not use the profile {name!r}")
        return name

    async def router(self, caller: Caller, profile: str | None) -> Router:
        name = self.check_profile(caller, profile)
        try:
            return await self.runtime.find_router(name)
        except UnknownProfile as error:
            raise Refused(404, "not_found_error", str(error)) from None
        except (ConfigError, EmbedderError):
            said = f"the profile {name!r} cannot be used: the server's log says what is wrong with it"
            raise Refused(503, "not_available", said) from None

    async def open(self) -> None:
        self._tasks = [asyncio.create_task(self.admission.watch()), asyncio.create_task(self.runtime.watch())]

    async def reload(self) -> Reload:
        """Read slots, profiles and keys again."""
        self.auth.forget()
        return await self.runtime.reload()

    async def drain(self, now: asyncio.Event | None = None) -> None:
        """Not ready; then wait for what is running, as long as the settings say or until `now`; then cut it."""
        self.admission.draining = True
        await self._wait(self.settings.drain_s, now)
        self.cut()
        # What is cut still has its last event to send.
        await self._wait(CUT_S, now)

    async def _wait(self, seconds: float, now: asyncio.Event | None) -> None:
        until = time.monotonic() + seconds
        while self.admission.active and time.monotonic() < until and not (now is not None and now.is_set()):
            await asyncio.sleep(0.02)

    def cut(self) -> None:
        """End every generation: streams say that they are incomplete, requests without an answer are refused."""
        self.gateway.cut()
        while self.asking:
            self.asking.pop().cancel()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.runtime.close()
