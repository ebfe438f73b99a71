"""A whole server for a test: real sockets, its own event loop in a thread, its own store and settings."""

import asyncio
import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import uvicorn
from msgspec.structs import replace

from turnout.apps.gateway.app import Gateway, GatewayApp
from turnout.config.server import ServerSettings, server_settings
from turnout.runtime.runtime import Runtime
from turnout.store import Store, open_store
from turnout.web.app import Application
from turnout.web.serve import serve
from turnout.web.server import Server


class RunningServer(NamedTuple):
    url: str
    """Where clients connect."""
    admin: str
    server: Server
    store: Store
    loop: asyncio.AbstractEventLoop
    stop: Any
    """Called, begins the drain and returns at once."""

    @property
    def gateway(self) -> Gateway:
        return next(app.gateway for app in self.server.apps if isinstance(app, GatewayApp))


class Row(NamedTuple):
    """A row of the route table, and where it listens."""

    listener: str
    method: str
    path: str
    scope: str


@functools.cache
def route_table() -> tuple[Row, ...]:
    """Every route there is, of a server that is not started."""
    with mock.patch.dict(os.environ, TURNOUT_PEPPER="p" * 16):
        server = Server(ServerSettings(), Runtime(config=""))
    rows = [("public", route) for route in server.routes] + [("admin", route) for route in server.admin_routes]
    return tuple(Row(listener, route.method, route.path, route.scope) for listener, route in rows)


SERVERS = ("granian", "uvicorn")
"""The one that ships, and another that runs the same application."""


async def under_uvicorn(server: Server, started: Callable[[list[str]], None], stop: asyncio.Event) -> None:
    """As somebody does who has a server of their own; the admin listener beside it is for the test."""
    quiet: dict[str, Any] = {"port": 0, "log_level": "warning", "access_log": False}
    servers = [
        uvicorn.Server(uvicorn.Config(Application(server, lifespan=True), lifespan="on", **quiet)),
        uvicorn.Server(uvicorn.Config(Application(server, admin=True), lifespan="off", **quiet)),
    ]
    tasks = [asyncio.create_task(server.serve()) for server in servers]
    while not all(server.started for server in servers):
        await asyncio.sleep(0.01)
    started([f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}" for server in servers])
    await stop.wait()
    for server in servers:
        server.should_exit = True
    await asyncio.gather(*tasks)


@contextlib.contextmanager
def serving(
    folder: Path, settings: str, *, server: str = SERVERS[0], pages: Any = None, **store: Any
) -> Iterator[RunningServer]:
    """Serve with this turnout.toml (ports are chosen by the system) until the block ends; then drain."""
    file = folder / "turnout.toml"
    file.write_text(settings, encoding="utf-8")
    opened = open_store(str(folder / "turnout.db"), config=str(file), **store)
    started = threading.Event()
    found: dict[str, Any] = {}

    async def main() -> None:
        chosen = replace(server_settings(str(file)), port=0, admin_port=0)
        runtime = Runtime(opened, profile=chosen.profile, profiles=chosen.profiles, config=str(file))
        made = Server(chosen, runtime, pages=pages)
        found.update(server=made, loop=asyncio.get_running_loop(), stop=asyncio.Event())

        def listening(addresses: list[str]) -> None:
            found["addresses"] = addresses
            started.set()

        if server == "uvicorn":
            await under_uvicorn(made, listening, found["stop"])
        else:
            await serve(made, listening, stop=found["stop"], signals=False)

    def run() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            found["error"] = error
        finally:
            started.set()

    thread = threading.Thread(target=run, name="served", daemon=True)
    thread.start()
    started.wait(20)
    if "error" in found:
        opened.close()
        raise found["error"]

    def stop() -> None:
        found["loop"].call_soon_threadsafe(found["stop"].set)

    try:
        public, admin = found["addresses"]
        yield RunningServer(public, admin, found["server"], opened, found["loop"], stop)
    finally:
        with contextlib.suppress(RuntimeError):
            stop()
        thread.join(40)
    if "error" in found:
        raise found["error"]
