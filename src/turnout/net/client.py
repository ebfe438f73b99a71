"""The one HTTP client. It connects where the egress guard allows, attaches a credential only to the host it belongs to,
follows no redirect, takes no proxy from the environment, and names what went wrong.

It speaks HTTP/1.1 and no more of it than a provider needs: a request with a length, an answer in any framing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from turnout.core.errors import Broken, EgressRefused, NetError, TimedOut, Unreachable

from .connection import HEADER_BYTES, Connection, Response, said_of
from .deadline import Deadline
from .egress import PORTS, Egress, Origin, is_exposed
from .pool import Closed, Pool

__all__ = ["HEADER_BYTES", "Client", "Request", "Response"]

# A place in the pool, the name, the connection and TLS together; a provider that takes longer is as good as down.
CONNECT_S = 2.0
CONNECTIONS = 512
# Answers are asked for as they are: what is small on the wire and huge in memory is not inflated at all.
PLAIN = frozenset(("", "identity"))
# What requests have in common is kept if it is as short as it nearly always is: some of it is a client's to choose.
KEPT_CHARACTERS = 2048
_PATH = re.compile(r"/[\x21\x22\x24-\x7e]*")
_BROKEN_LINE = re.compile(r"[\x00\r\n]")


class Request(NamedTuple):
    """What is sent. The path begins with a slash; the credential is a header of its own, for this origin only."""

    origin: Origin
    path: str
    body: bytes = b""
    method: str = "POST"
    headers: Mapping[str, str] = {}
    credential: tuple[str, str] | None = None
    """A header's name and value."""
    plain_http: bool = False
    """The credential may go to a public address unencrypted."""

    def __repr__(self) -> str:
        return f"Request({self.method} {self.origin}{self.path}, {len(self.body)} bytes)"


class Client:
    """Opens exchanges. One for the whole process; used inside one running event loop."""

    def __init__(self, egress: Egress) -> None:
        self.egress = egress
        self._pool: Pool | None = None
        self._origins: frozenset[Origin] = frozenset()
        self._retired: list[Pool] = []

    def _current_pool(self) -> Pool:
        """Under other rules, names resolved and connections made under the old ones are not used again."""
        origins = self.egress.origins
        if self._pool is None or (self._origins is not origins and self._origins != origins):
            if self._pool is not None:
                self._pool.retire()
                self._retired = [one for one in (*self._retired, self._pool) if not one.is_empty]
            self._pool = Pool(self.egress, CONNECTIONS)
        self._origins = origins
        return self._pool

    async def open(self, request: Request, wait_s: float) -> Response:
        """Send a request; the response, once its headers are here."""
        origin = self.egress.allows(request.origin)
        head = _head(origin, request)
        where, deadline = origin.host, Deadline.after(wait_s)
        connections = self._current_pool()
        connection = connections.take_idle(origin)
        if connection is None:
            connection = await self._connect(connections, origin, deadline.within(CONNECT_S), wait_s)
        if request.credential is not None and not request.plain_http and is_exposed(origin, connection.address):
            connection.drop()
            said = f"{where} leads to {connection.address}, a public address: a key is not sent there over http"
            raise EgressRefused(f"{said}; use https, or set plain_http = true if that is meant")
        response = Response(connection, where)
        begun = False
        try:
            if not await response.send(head, request.body, deadline):
                raise TimedOut(f"{where}: no answer within {wait_s:g} s")
            begun = response.headers.get("content-encoding", "").strip().lower() in PLAIN
        except NetError as error:
            error.was_sent = True
            raise
        finally:
            if not begun:
                response.close()
        if not begun:
            encoding = response.headers["content-encoding"].strip().lower()
            raise Broken(f"{where}: the answer is encoded ({encoding[:40]}), which was not asked for")
        return response

    async def _connect(self, connections: Pool, origin: Origin, connect_s: float, wait_s: float) -> Connection:
        try:
            return await connections.take(origin, connect_s)
        except TimeoutError:
            if connect_s < CONNECT_S:
                raise TimedOut(f"{origin.host}: no answer within {wait_s:g} s") from None
            raise Unreachable(f"{origin.host}: no connection within {CONNECT_S:g} s") from None
        except Closed:
            raise Unreachable(f"{origin.host}: the client was closed") from None
        except OSError as error:
            raise Unreachable(f"{origin.host}: {said_of(error)}") from error

    async def close(self) -> None:
        pools = [*self._retired, *([self._pool] if self._pool is not None else [])]
        self._pool = None
        self._retired.clear()
        for one in pools:
            await one.close()


def _head(origin: Origin, request: Request) -> bytes:
    """The request's first lines; refused if they could be read as more than they are."""
    if not _PATH.fullmatch(request.path):
        raise EgressRefused(f"{request.path[:120]!r} leads away from {origin}: no connection is made")
    secret = "" if request.credential is None else request.credential[0].lower()
    headers = tuple(request.headers.items())
    is_short = sum(len(name) + len(value) for name, value in headers) <= KEPT_CHARACTERS
    head = (_kept if is_short else _standing)(origin, request.method, request.path, headers, secret)
    if request.credential is not None:
        head += _line(*request.credential)
    if request.body or request.method == "POST":
        head += f"content-length: {len(request.body)}\r\n"
    return f"{head}\r\n".encode()


def _standing(origin: Origin, method: str, path: str, headers: tuple[tuple[str, str], ...], secret: str) -> str:
    """What is the same in many requests; a credential, which comes later, replaces what is there under its name."""
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    place = host if origin.port == PORTS[origin.scheme] else f"{host}:{origin.port}"
    lines = [f"{method} {path} HTTP/1.1\r\nhost: {place}\r\naccept-encoding: identity\r\n"]
    lines += [_line(name, value) for name, value in headers if name.lower() != secret]
    if "user-agent" not in [secret, *(name.lower() for name, _ in headers)]:
        lines.append("user-agent: turnout\r\n")
    return "".join(lines)


_kept = lru_cache(maxsize=256)(_standing)


def _line(name: str, value: str) -> str:
    """A header, which is one line."""
    if _BROKEN_LINE.search(name) or _BROKEN_LINE.search(value):
        raise ValueError(f"the header {name[:40]!r} holds a line end or a NUL")
    return f"{name}: {value}\r\n"
