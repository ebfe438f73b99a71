"""Starts and stops the listeners. Told to stop, a server first says it is not ready, then takes nothing new, then lets
what is running finish, and only then cuts what is left, which its clients see as an error and not as an end."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable

import uvicorn

from turnout.core.errors import ConfigError, Problem
from turnout.store import Store

from .app import application
from .house import House
from .protocol import bounded
from .settings import ServerSettings, is_loopback

# What is cut has this long to tell its client so, and then as long again before its connection is closed.
CUT_S = 2
# New objects that are not freed by themselves before the garbage collector looks; a request makes a few hundred in all.
COLLECT_AFTER = 10_000


def check_exposure(settings: ServerSettings, store: Store | None) -> None:
    """Beyond loopback everybody can come: then a key must exist."""
    for name, host in (("host", settings.host), ("admin_host", settings.admin_host)):
        if not is_loopback(host) and (store is None or not store.keys.any()):
            said = f"{host} is reachable from other machines and there is no key: turnout keys create NAME"
            raise ConfigError([Problem(f"server.{name}", said)])


class Listening(uvicorn.Server):
    """A listener whose signals are handled by us: there are two of them and one process."""

    def install_signal_handlers(self) -> None:
        """Left to `serve`."""


async def serve(
    house: House,
    started: Callable[[list[str]], None],
    *,
    stop: asyncio.Event | None = None,
    signals: bool = True,
) -> None:
    """Listen until told to stop, by the event or by a signal; then drain."""
    settings = house.settings
    stop = stop or asyncio.Event()
    now = asyncio.Event()
    loop = asyncio.get_running_loop()

    def told() -> None:
        (now if stop.is_set() else stop).set()

    if signals:
        for sign in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(sign, told)
        loop.add_signal_handler(signal.SIGHUP, lambda: asyncio.ensure_future(house.reload()))
    await house.open()
    if signals:  # the process is ours
        _spare_collector()
    places = (("public", settings.host, settings.port), ("admin", settings.admin_host, settings.admin_port))
    servers = [
        Listening(
            uvicorn.Config(
                application(house, listener),  # type: ignore[arg-type]
                host=host,
                port=port,
                log_level="warning",
                access_log=False,
                server_header=False,
                date_header=False,
                lifespan="off",
                proxy_headers=False,
                timeout_keep_alive=20,
                timeout_graceful_shutdown=CUT_S,
                http=bounded(settings.header_bytes, house.admission if listener == "public" else None),
                backlog=2048,
            )
        )
        for listener, host, port in places
    ]
    tasks = [asyncio.create_task(server._serve()) for server in servers]
    try:
        while not all(server.started for server in servers):
            if any(task.done() for task in tasks):
                break
            await asyncio.sleep(0.01)
        if not any(task.done() for task in tasks):
            started([_address(server) for server in servers])
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait((stopping, *tasks), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        await _drain(house, now)
    finally:
        forcing = asyncio.create_task(_force(servers, now))
        for server in servers:
            server.should_exit = True
        await asyncio.gather(*tasks, return_exceptions=True)
        forcing.cancel()
        await _end_requests(servers)
        if signals:
            for sign in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.remove_signal_handler(sign)
        await house.close()


def _spare_collector() -> None:
    """What is there now stays until the end: the garbage collector need not look at it again and again, nor come by
    more often than once in some twenty requests, which leave next to nothing for it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, *gc.get_threshold()[1:])


async def _drain(house: House, now: asyncio.Event) -> None:
    """Not ready; then nothing new; then wait for what is running."""
    house.admission.draining = True
    until = asyncio.get_running_loop().time() + house.settings.drain_s
    while house.admission.active and asyncio.get_running_loop().time() < until and not now.is_set():
        await asyncio.sleep(0.02)
    house.cut()
    # What is cut still has its last event to send.
    until = asyncio.get_running_loop().time() + CUT_S
    while house.admission.active and asyncio.get_running_loop().time() < until and not now.is_set():
        await asyncio.sleep(0.02)


async def _force(servers: list[Listening], now: asyncio.Event) -> None:
    """Told a second time, wait for nobody."""
    await now.wait()
    for server in servers:
        server.force_exit = True


async def _end_requests(servers: list[Listening]) -> None:
    """Requests that were not waited for end here, while there is still a log to write that to."""
    left = {task for server in servers for task in server.server_state.tasks}
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=CUT_S)


def _address(server: uvicorn.Server) -> str:
    host, port = server.servers[0].sockets[0].getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
