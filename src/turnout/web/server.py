"""What serves: a runtime, the applications over it, and who is let in to use them."""

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

# What is cut has this long to tell its client so, and then as long again before its connection is closed.
CUT_S = 2.0


def check_exposure(settings: ServerSettings, store: Store | None) -> None:
    """Beyond loopback everybody can come: then a key must exist."""
    for name, host in (("host", settings.host), ("admin_host", settings.admin_host)):
        if not is_loopback(host) and (store is None or not store.keys.any()):
            said = f"{host} is reachable from other machines and there is no key: turnout keys create NAME"
            raise ConfigError([Problem(f"server.{name}", said)])
    if not is_loopback(settings.admin_host) and not settings.admin_public:
        said = f"{settings.admin_host} lets other machines reach administration and the console: use 127.0.0.1, or say"
        raise ConfigError([Problem("server.admin_host", f"{said} admin_public = true beside it")])


class Pages(Protocol):
    """What people look at."""

    routes: Sequence[Route]

    async def caller(self, headers: Mapping[str, str]) -> Caller:
        """Who looks at a page; refused until they have signed in."""
        ...

    def refuse(self, refused: Refused, headers: Mapping[str, str]) -> Answer:
        """A refusal as a page, or the way to where one can sign in."""
        ...


async def say_where_pages_are(call: Call) -> Answer:
    """Where the console is, when it is not here."""
    said = b"This is where programs ask. The console is on the admin listener, for the operator of this server.\n"
    return Answer(404, [(b"content-type", b"text/plain; charset=utf-8")], said)


class Server:
    """One process's worth of server."""

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
        """Of a listener of their own."""
        document = Route("GET", "/openapi.json", "", self.openapi)
        self.routes = [*(route for app in self.apps for route in app.routes), document, *admin.open]
        """Every route there is for clients. What is not in this table does not exist; each names the scope it needs."""
        self.pages = pages(self) if pages is not None else None
        if self.pages is not None and settings.is_private:
            self.routes += self.pages.routes
        elif self.pages is not None:
            self.admin_routes = [*self.admin_routes, *self.pages.routes]
            self.routes.append(Route("GET", "/", "", say_where_pages_are))
        runtime.on_reload.append(self.auth.forget)
        self.asking: set[asyncio.Task[Any]] = set()
        """Requests whose answer has not begun."""
        self.requests: set[asyncio.Task[Any]] = set()
        """All that are under way."""
        self.sockets: dict[asyncio.Task[Any], str] = {}
        """WebSockets that are open, each with the id of its key."""
        self._tasks: list[asyncio.Task[Any]] = []
        """What goes on as long as it serves."""
        self._opening: list[asyncio.Future[None]] = []
        """What applications do when it begins to."""

    async def openapi(self, call: Call) -> Answer:
        """This document."""
        from .openapi import document

        return answer(document(self.routes))

    async def open(self) -> None:
        self._tasks = [asyncio.create_task(self.admission.watch()), asyncio.create_task(self.runtime.watch())]
        self._opening = [asyncio.ensure_future(opened()) for opened in self.runtime.on_open]

    async def reload(self) -> Reload:
        """Read slots, profiles and keys again."""
        self.auth.forget()
        return await self.runtime.reload()

    async def drain(self, now: asyncio.Event | None = None) -> None:
        """Not ready; then wait for what is running, as long as the settings say or until `now`; then cut it. WebSockets
        only tell, and their clients connect elsewhere."""
        self.admission.draining = True
        for socket in list(self.sockets):
            socket.cancel()
        await self._wait(self.settings.drain_s, now)
        self.cut()
        # What is cut still has its last event to send.
        await self._wait(CUT_S, now)

    async def _wait(self, seconds: float, now: asyncio.Event | None) -> None:
        until = time.monotonic() + seconds
        while (self.admission.active or self.sockets) and time.monotonic() < until:
            if now is not None and now.is_set():
                return
            await asyncio.sleep(0.02)

    def cut(self) -> None:
        """End every generation: streams say that they are incomplete, requests without an answer are refused."""
        self.runtime.models.cut()
        while self.asking:
            self.asking.pop().cancel()

    async def close(self) -> None:
        for task in (*self._tasks, *self._opening):
            task.cancel()
        await asyncio.gather(*self._tasks, *self._opening, return_exceptions=True)
        await self.runtime.close()
