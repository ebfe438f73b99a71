"""Starts and stops the listeners. A server that stops says it is not ready, takes no new requests, lets those under way
finish, and cuts the rest, so that their clients see an error and not an end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
import threading
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

# The time for a request's head, from the start of the connection or the end of the last response. Granian has one limit
# for slow heads and for idle connections.
HEAD_S = 10.0
# An administrator needs few; 256 pages of the console may follow the log.
ADMIN_CONNECTIONS = 512
# The time between two looks at the queue of connections that wait to be accepted.
LOOK_S = 1.0
# Where Linux lists the threads of this process.
THREADS = "/proc/self/task"
# New objects until the garbage collector runs; a request makes a few hundred, and leaves almost none.
COLLECT_AFTER = 10_000
# Granian's own logging set-up would close the handlers of the process: this one only sets a level.
_LOGGING: dict[str, Any] = {"incremental": True, "formatters": {}, "handlers": {}, "loggers": {}}


class BoundGranian(Granian):
    """Granian in our event loop, on a socket that is already open."""

    def __init__(self, app: Any, listener: Listener, connections: int, header_bytes: int) -> None:
        super().__init__(
            app,
            interface=Interfaces.ASGINL,
            http=HTTPModes.http1,
            websockets=True,
            backlog=BACKLOG,
            backpressure=connections,
            http1_settings=HTTP1Settings(
                header_read_timeout=round(HEAD_S * 1000),
                max_buffer_size=max(8192, header_bytes),  # Granian's least
            ),
            log_level=LogLevels.error,
            log_dictconfig=_LOGGING,
        )
        self.listener = listener

    def _init_shared_socket(self) -> None:
        """Use the listener's socket instead of opening one: see `turnout.net.listener`."""
        options = (self.listener.share(), False, BACKLOG)
        # Only there does it take a backlog.
        self._shd = SocketHolder(*(options if sys.platform.startswith(("linux", "freebsd")) else options[:2]))  # type: ignore[assignment]

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
    """Serve until the event is set or a signal comes; then drain. A second signal ends the drain at once."""
    settings = server.settings
    stop = stop or asyncio.Event()
    now = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        (now if stop.is_set() else stop).set()

    if signals:
        for sign in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(sign, on_signal)
        loop.add_signal_handler(signal.SIGHUP, lambda: asyncio.ensure_future(server.reload()))
    connections = most_connections(settings.connections, settings.requests, raise_limit=signals)
    public = Listener(settings.host, settings.port)
    admin = Listener(settings.admin_host, settings.admin_port)
    listening = [
        BoundGranian(Application(server), public, connections, settings.header_bytes),
        BoundGranian(Application(server, admin=True), admin, ADMIN_CONNECTIONS, settings.header_bytes),
    ]
    await server.open()
    if signals:  # the process is ours
        # What exists now stays until the end: the garbage collector need not look at it, nor come often.
        gc.collect()
        gc.freeze()
        gc.set_threshold(COLLECT_AFTER, *gc.get_threshold()[1:])
    started([public.url, admin.url])
    if signals and sys.platform == "linux" and os.sched_getscheduler(0) == os.SCHED_OTHER:
        loop.call_later(LOOK_S, _step_back, set(os.listdir(THREADS)))
    tasks = [asyncio.create_task(one.serve()) for one in listening]
    stopping = asyncio.create_task(stop.wait())
    watching = [stopping, asyncio.create_task(_watch(public, connections))]
    try:
        await asyncio.wait((stopping, *tasks), return_when=asyncio.FIRST_COMPLETED)
        await server.drain(now)
    finally:
        for work in watching:
            work.cancel()
        for one in listening:
            one.stop()
        await _end(server, tasks, now)
        if signals:
            for sign in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.remove_signal_handler(sign)
        await server.close()
    for task in tasks:
        if task.done():
            task.result()  # raises why it ended by itself


async def _watch(listener: Listener, connections: int) -> None:
    """Warn once each time that all connections are taken and others wait, at two looks in a row."""
    looks = 0
    while True:
        await asyncio.sleep(LOOK_S)
        waiting = listener.waiting
        looks = looks + 1 if waiting else 0
        if looks == 2:
            advice = "raise connections in [server] or the limit of open files (ulimit -n), or see who holds them"
            log.warning("%d connections are open, which is the limit, and %d wait: %s", connections, waiting, advice)


def _step_back(own: set[str]) -> None:
    """Let Granian's threads, neither our `own` nor Python's, wait until the event loop pauses. On a shared core they
    would interrupt it twice a request."""
    pythons = {str(thread.native_id) for thread in threading.enumerate()}
    for thread in set(os.listdir(THREADS)) - own - pythons:
        with contextlib.suppress(OSError):  # it has ended, or a sandbox forbids it
            os.sched_setscheduler(int(thread), os.SCHED_BATCH, os.sched_param(0))


async def _end(server: Server, tasks: list[asyncio.Task[None]], now: asyncio.Event) -> None:
    """Wait shortly for connections to close. Requests that are left end while the log is still open."""
    hurry = asyncio.create_task(now.wait())
    closing = asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.wait((hurry, closing), timeout=CUT_S, return_when=asyncio.FIRST_COMPLETED)
    hurry.cancel()
    for task in server.requests:
        task.cancel()
    if server.requests:
        await asyncio.wait(server.requests, timeout=CUT_S)
    await asyncio.wait((closing,), timeout=0 if now.is_set() else CUT_S)
