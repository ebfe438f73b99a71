"""Connections, made where the egress guard allows and kept for the next request.

A name's addresses are all checked before any is used, and a connection goes to one that was: no answer of a name server
that comes later leads anywhere. Under other rules nothing that was made under the old ones is used again.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from ipaddress import ip_address
from typing import NamedTuple

from .connection import Connection
from .egress import Egress, Origin

KEEP_ALIVE_S = 30.0
# How long a name's addresses, once checked, are used.
NAMES_S = 30.0
# Of a name with many addresses, so many are tried: each has its share of the time there is.
TRIED = 4


class Closed(Exception):
    """The pool was closed while somebody waited for a connection."""


class _Known(NamedTuple):
    addresses: list[str]
    until: float


class Pool:
    """At most so many connections, idle and busy."""

    def __init__(self, egress: Egress, most: int) -> None:
        self.egress = egress
        self._most = most
        self._loop = asyncio.get_running_loop()
        self._made = 0
        self._open: dict[Connection, Origin] = {}
        self._idle: dict[Origin, list[Connection]] = {}
        self._line: deque[asyncio.Future[None]] = deque()
        self._names: dict[Origin, _Known] = {}
        self._lookups: dict[Origin, asyncio.Task[list[str]]] = {}
        self._making: set[asyncio.Task[Connection]] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._tls: ssl.SSLContext | None = None
        self.closed = False

    def take_idle(self, origin: Origin) -> Connection | None:
        """One that is there already."""
        idle = self._idle.get(origin)
        while idle:
            connection = idle.pop()
            if not connection.gone:
                return connection
        return None

    async def take(self, origin: Origin, within_s: float) -> Connection:
        """One that is there, or a new one, or the next that is given back. Raises TimeoutError, OSError, NetError."""
        async with asyncio.timeout(within_s):
            while (connection := self.take_idle(origin)) is None:
                if self.closed:
                    raise Closed
                if self._made < self._most or self._drop_idle():
                    return await self._make(origin, within_s)
                await self._stand_in_line()
            return connection

    async def _stand_in_line(self) -> None:
        turn: asyncio.Future[None] = self._loop.create_future()
        self._line.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._call_next()  # the turn was ours, and we have left
            else:
                self._line.remove(turn)
            raise

    def _call_next(self) -> None:
        while self._line:
            turn = self._line.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    async def _make(self, origin: Origin, within_s: float) -> Connection:
        """A new one. Whoever asked for it may leave, and it is given to another, or given up."""
        self._made += 1
        making = self._loop.create_task(self._reach(origin, within_s))
        self._making.add(making)
        making.add_done_callback(self._settle)
        try:
            connection = await making
        except asyncio.CancelledError:
            if making.done() and not making.cancelled() and making.exception() is None:
                self._open[making.result()] = origin
                self._give(making.result())
            here = asyncio.current_task()
            if self.closed and here is not None and not here.cancelling():
                raise Closed from None
            raise
        self._open[connection] = origin
        return connection

    def _settle(self, making: asyncio.Task[Connection]) -> None:
        self._making.discard(making)
        if making.cancelled() or making.exception() is not None:
            self._made -= 1
            self._call_next()

    async def _reach(self, origin: Origin, within_s: float) -> Connection:
        addresses = await self._addresses(origin)
        tls: ssl.SSLContext | None = None
        if origin.scheme == "https":
            tls = self._tls = self._tls or trusted()
        failed: OSError | None = None
        for address in addresses:
            try:
                async with asyncio.timeout(within_s / len(addresses) if address != addresses[-1] else None):
                    _, connection = await self._loop.create_connection(
                        lambda: Connection(self._give, self._lose),
                        address,
                        origin.port,
                        ssl=tls,
                        server_hostname=origin.host if tls is not None else None,
                    )
            except OSError as error:  # TimeoutError is one
                failed = error if str(error) else failed  # a TimeoutError says nothing
                continue
            connection.address = address
            if address != addresses[0]:
                # The one that answers is the first to be tried next time.
                addresses.remove(address)
                addresses.insert(0, address)
            return connection
        raise failed or OSError("none of its addresses answers")

    async def _addresses(self, origin: Origin) -> list[str]:
        try:
            return [self.egress.admits(origin.host, origin.port, str(ip_address(origin.host)))]
        except ValueError:
            pass  # a name
        known = self._names.get(origin)
        if known is not None and known.until > self._loop.time():
            return known.addresses
        lookup = self._lookups.get(origin)
        if lookup is None:
            lookup = self._lookups[origin] = self._loop.create_task(self._look_up(origin))
            lookup.add_done_callback(lambda done: self._looked_up(origin, done))
        # Whoever gives up waiting leaves the question to the others who asked it.
        return await asyncio.shield(lookup)

    async def _look_up(self, origin: Origin) -> list[str]:
        found = await self._loop.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "it has no address")
        for address in addresses:
            self.egress.admits(origin.host, origin.port, address)
        return addresses[:TRIED]

    def _looked_up(self, origin: Origin, done: asyncio.Task[list[str]]) -> None:
        self._lookups.pop(origin, None)
        # Asked for, so that a failure nobody waited for is no stray error.
        if not done.cancelled() and done.exception() is None:
            self._names[origin] = _Known(done.result(), self._loop.time() + NAMES_S)

    # --- what connections tell

    def _give(self, connection: Connection) -> None:
        """It is free again."""
        origin = self._open.get(connection)
        if origin is None or self.closed or connection.gone:
            connection.drop()
            return
        connection.idle_since = self._loop.time()
        self._idle.setdefault(origin, []).append(connection)
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(KEEP_ALIVE_S, self._sweep)
        if self._line:
            self._call_next()

    def _lose(self, connection: Connection) -> None:
        """It is gone."""
        origin = self._open.pop(connection, None)
        self._made -= origin is not None
        idle = self._idle.get(origin) if origin is not None else None
        if idle and connection in idle:
            idle.remove(connection)
        self._call_next()

    def _drop_idle(self) -> bool:
        """Make room: what is idle here may be wanted elsewhere."""
        for idle in self._idle.values():
            if idle:
                self._retire(idle.pop(0))
                return True
        return False

    def _retire(self, connection: Connection) -> None:
        self._made -= self._open.pop(connection, None) is not None
        connection.drop()

    def _sweep(self) -> None:
        """Drop what has been idle for too long."""
        old = self._loop.time() - KEEP_ALIVE_S / 2
        for idle in self._idle.values():
            while idle and (idle[0].idle_since <= old or idle[0].gone):
                self._retire(idle.pop(0))
        some = any(self._idle.values())
        self._sweeper = self._loop.call_later(KEEP_ALIVE_S / 2, self._sweep) if some else None

    @property
    def is_empty(self) -> bool:
        return not self._made

    def retire(self) -> None:
        """Nothing made so far is used again; what is under way goes on."""
        self.closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for idle in self._idle.values():
            for connection in idle:
                connection.drop()
        self._idle.clear()

    async def close(self) -> None:
        """End everything, and wait until it has."""
        self.retire()
        for task in (*self._making, *self._lookups.values()):
            task.cancel()
        if self._making:
            await asyncio.wait(self._making)
        await asyncio.gather(*(connection.lost() for connection in list(self._open)))


def trusted() -> ssl.SSLContext:
    """The certificates this system trusts."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
