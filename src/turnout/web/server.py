"""The server of one process: a runtime, the applications, and who may use them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from turnout.apps.app import Answer, App, Call, Route, answer, find_apps
from turnout.apps.caller import Caller
from turnout.config.server import ServerSettings, is_loopback
from turnout.core.errors import ConfigError, Problem, Refused
from turnout.runtime.pepper import read_pepper
from turnout.runtime.runtime import Reload, Runtime
from turnout.store import Store

from .admin import Admin
from .admission import Admission
from .auth import Auth, Guard
from .metrics import Metrics
from .openapi import document

# How long a request that is cut has to tell its client, and after that its connection to close.
CUT_S = 2.0


def check_exposure(settings: ServerSettings, store: Store | None) -> None:
    """Refuse to listen beyond loopback without a key."""
    for name, host in (("host", settings.host), ("admin_host", settings.admin_host)):
        if not is_loopback(host) and (store is None or not store.keys.any()):
            message = f"{host} is reachable from other machines and there is no key: turnout keys create NAME"
            raise ConfigError([Problem(f"server.{name}", message)])
    if not is_loopback(settings.admin_host) and not settings.admin_public:
        reach = f"{settings.admin_host} lets other machines reach administration and the console"
        message = f"{reach}: use 127.0.0.1, or say admin_public = true beside it"
        raise ConfigError([Problem("server.admin_host", message)])


class Pages(Protocol):
    """The console: routes for people with a browser."""

    routes: Sequence[Route]

    async def caller(self, headers: Mapping[str, str]) -> Caller:
        """Who requests a page; refused before they have signed in."""

    def refuse(self, refused: Refused, headers: Mapping[str, str]) -> Answer:
        """A refusal as a page, or a redirect to the page to sign in."""


async def say_where_pages_are(call: Call) -> Answer:
    """Where the console is, when it is not here."""
    text = b"This is where programs ask. The console is on the admin listener, for the operator of this server.\n"
    return Answer(404, [(b"content-type", b"text/plain; charset=utf-8")], text)


class Server:
    def __init__(
        self,
        settings: ServerSettings,
        runtime: Runtime,
        apps: Sequence[App] | None = None,
        pages: Callable[[Server], Pages] | None = None,
    ) -> None:
        self.settings = settings
        self.runtime = runtime
        self.apps = [make(runtime) for make in find_apps()] if apps is None else apps
        self.guard = Guard(settings)
        self.auth = Auth(runtime.store, read_pepper(), loopback=settings.loopback)
        self.admission = Admission(settings.requests, settings.waiting, settings.wait_s, settings.lag_s)
        if runtime.store is not None:
            self.admission.on_refusing = runtime.store.journal.hold_back
        self.metrics = Metrics()
        admin = Admin(self)
        self.admin_routes: Sequence[Route] = admin.routes
        """The routes of the admin listener."""
        own = (Route("GET", "/openapi.json", "", self.openapi), *admin.open)
        self.routes = [*(route for app in self.apps for route in app.routes), *own]
        """The route table of the public listener. Each row names the scope it needs."""
        self.pages = pages(self) if pages is not None else None
        if self.pages is not None and settings.is_private:
            self.routes += self.pages.routes
        elif self.pages is not None:
            self.admin_routes = [*self.admin_routes, *self.pages.routes]
            self.routes.append(Route("GET", "/", "", say_where_pages_are))
        runtime.on_reload.append(self.auth.forget)
        self.asking: set[asyncio.Task[Any]] = set()
        """Requests whose response has not started."""
        self.requests: set[asyncio.Task[Any]] = set()
        """All requests under way."""
        self.sockets: dict[asyncio.Task[Any], str] = {}
        """Open WebSockets, each with the id of its key."""
        self._background: list[asyncio.Future[None]] = []

    async def openapi(self, call: Call) -> Answer:
        """This document."""
        return answer(document(self.routes))

    async def open(self) -> None:
        work = (self.admission.watch, self.runtime.watch, *self.runtime.on_open)
        self._background = [asyncio.ensure_future(begin()) for begin in work]

    async def reload(self) -> Reload:
        """Read slots, profiles and keys again."""
        self.auth.forget()
        return await self.runtime.reload()

    async def drain(self, now: asyncio.Event | None = None) -> None:
        """Stop accepting requests and wait for those under way, as long as the settings say or until `now`; then cut
        them. WebSockets are closed at once: their clients connect elsewhere."""
        self.admission.draining = True
        for socket in list(self.sockets):
            socket.cancel()
        await self._wait(self.settings.drain_s, now)
        self.cut()
        await self._wait(CUT_S, now)  # for their last events

    async def _wait(self, seconds: float, now: asyncio.Event | None) -> None:
        until = time.monotonic() + seconds
        while (self.admission.active or self.sockets) and time.monotonic() < until and not (now and now.is_set()):
            await asyncio.sleep(0.02)

    def cut(self) -> None:
        """End all generations: streams say that they are incomplete, and requests without a response are refused."""
        self.runtime.models.cut()
        while self.asking:
            self.asking.pop().cancel()

    async def close(self) -> None:
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self.runtime.close()
