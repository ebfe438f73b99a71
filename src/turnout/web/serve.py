"""Starts and stops the listeners. Told to stop, a server first says it is not ready, then takes nothing new, then lets
what is running finish, and only then cuts what is left, which its clients see as an error and not as an end."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Callable
from typing import Any

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.net import SocketHolder  # type: ignore[attr-defined]
from granian.server.embed import Server as Granian

from turnout.net.listener import BACKLOG, Listener, most_connections

from .app import Application
from .server import CUT_S, Server

log = logging.getLogger("turnout.web")

# From the beginning of a connection, or the end of the last answer on it, to the end of the next request's head: the
# server has one time for slow heads and for connections that rest.
HEAD_S = 10.0
# An administrator needs few; of the console's pages 256 may follow the log, where it is there.
ADMIN_CONNECTIONS = 512
# How often the queue of connections that wait to be accepted is looked at; one that is there twice is no moment's.
LOOK_S = 1.0
# New objects that are not freed by themselves before the garbage collector looks; a request makes a few hundred in all.
COLLECT_AFTER = 10_000
# The library's own set-up of logging would close what the process has: it only gets a level.
_LOGGING: dict[str, Any] = {"incremental": True, "formatters": {}, "handlers": {}, "loggers": {}}


class Listening(Granian):
    """Granian, in our event loop and on a socket that is bound already."""

    def __init__(self, app: Any, listener: Listener, connections: int, header_bytes: int) -> None:
        super().__init__(
            app,
            interface=Interfaces.ASGINL,
            http=HTTPModes.http1,
            websockets=True,
            backlog=BACKLOG,
            backpressure=connections,
            http1_settings=HTTP1Settings(
                # A head shorter than 8 KiB cannot be asked for.
                header_read_timeout=round(HEAD_S * 1000),
                max_buffer_size=max(8192, header_bytes),
            ),
            log_level=LogLevels.error,
            log_dictconfig=_LOGGING,
        )
        self.listener = listener

    def _init_shared_socket(self) -> None:
        """Instead of opening one that shares its port with others: see `turnout.net.listener`."""
        held = (self.listener.share(), False, BACKLOG)
        # Elsewhere it does not listen once more, and takes no backlog.
        self._shd = SocketHolder(*(held if sys.platform.startswith(("linux", "freebsd")) else held[:2]))  # type: ignore[assignment]

    def stop(self) -> None:
        self.listener.close()
        super().stop()  # type: ignore[no-untyped-call]


async def serve(
    server: Server,
    started: Callable[[list[str]], None],
    *,
    stop: asyncio.Event | None = None,
    signals: bool = True,
) -> None:
    """Listen until told to stop, by the event or by a signal; then drain."""
    settings = server.settings
    stop = stop or asyncio.Event()
    now = asyncio.Event()
    loop = asyncio.get_running_loop()

    def told() -> None:
        (now if stop.is_set() else stop).set()

    if signals:
        for sign in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(sign, told)
        loop.add_signal_handler(signal.SIGHUP, lambda: asyncio.ensure_future(server.reload()))
    connections = most_connections(settings.connections, settings.requests, raise_limit=signals)
    public = Listener(settings.host, settings.port)
    admin = Listener(settings.admin_host, settings.admin_port)
    listening = [
        Listening(Application(server), public, connections, settings.header_bytes),
        Listening(Application(server, admin=True), admin, ADMIN_CONNECTIONS, settings.header_bytes),
    ]
    await server.open()
    if signals:  # the process is ours
        _spare_collector()
    started([public.url, admin.url])
    tasks = [asyncio.create_task(one.serve()) for one in listening]
    watching = asyncio.create_task(_watch(public, connections))
    try:
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait((stopping, *tasks), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        await server.drain(now)
    finally:
        watching.cancel()
        for one in listening:
            one.stop()
        await _end(server, tasks, now)
        if signals:
            for sign in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.remove_signal_handler(sign)
        await server.close()


def _spare_collector() -> None:
    """What is there now stays until the end: the garbage collector need not look at it again and again, nor come by
    more often than once in some twenty requests, which leave next to nothing for it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, *gc.get_threshold()[1:])


async def _watch(listener: Listener, connections: int) -> None:
    """Say so when there are as many connections as are taken and others wait: once, until that is over."""
    before = said = False
    while True:
        await asyncio.sleep(LOOK_S)
        waiting = listener.waiting
        if waiting and before and not said:
            log.warning(
                "%d connections are open, as many as are taken, and %d wait: raise connections in [server] or the "
                "limit of open files (ulimit -n), or see who holds them",
                connections,
                waiting,
            )
            said = True
        before, said = bool(waiting), said and bool(waiting)


async def _end(server: Server, tasks: list[asyncio.Task[None]], now: asyncio.Event) -> None:
    """Wait for connections to close, though not for long; requests that are left end while there is still a log."""
    hurry = asyncio.create_task(now.wait())
    closing = asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.wait((hurry, closing), timeout=CUT_S, return_when=asyncio.FIRST_COMPLETED)
    hurry.cancel()
    for task in server.requests:
        task.cancel()
    if server.requests:
        await asyncio.wait(server.requests, timeout=CUT_S)
    await asyncio.wait((closing,), timeout=0 if now.is_set() else CUT_S)
