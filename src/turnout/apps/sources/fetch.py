"""A configured server, asked over HTTP: a bounded answer, or what went wrong as a value; nothing is raised.

Redirects lead to the same server or nowhere. No sentence made here holds a credential or a byte of what was sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Any, TypeVar
from urllib.parse import urlencode, urljoin, urlsplit

import msgspec
from msgspec import Struct, field

from turnout.core.errors import Broken, EgressRefused, NetError, TimedOut
from turnout.core.verdict import Fault, contain
from turnout.models.secret import Secret
from turnout.net.client import Client, Request
from turnout.net.deadline import Deadline
from turnout.net.egress import Origin, origin_of

from .source import Cause, Failure, Health

T = TypeVar("T")

# Of one answer. All states of a home with 3,000 entities have some 2 MB, a feed of 500 articles as much.
BODY_BYTES = 8 * 1024 * 1024
# A server moves a page to its canonical address, and at most from there to a language.
REDIRECTS = 3
# Of an answer in JSON, which is decoded in one step that nothing interrupts: at worst 0.2 s for so much of it. A
# search, a forecast or a status page has a tenth of this.
JSON_BYTES = 1024 * 1024
# Requests to one source that are under way; the others wait, within their own time. All sources share 512 connections.
AT_ONCE = 32
# Threads that read what one source sent.
READERS = 2


class Capacity:
    """What one source may take of this process at once, so that one that hangs, or sends what is long to read, takes
    nothing from the others: connections, and threads of its own. A caller that leaves ends what has not begun; what has
    is over soon, since what is read is cut before."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self.at_once = at_once
        self.places = asyncio.Semaphore(at_once)
        self._readers: ThreadPoolExecutor | None = None

    async def read(self, call: Callable[..., T], *arguments: object) -> T:
        """What a call returns that works on what was sent, beside the event loop."""
        if self._readers is None:
            self._readers = ThreadPoolExecutor(READERS, "turnout-reads")
        return await asyncio.get_running_loop().run_in_executor(self._readers, call, *arguments)

    def close(self) -> None:
        if self._readers is not None:
            self._readers.shutdown(wait=False, cancel_futures=True)
            self._readers = None


class Site(Struct, frozen=True):
    """Where a source is, and how it is asked."""

    name: str
    """The source's, for sentences."""
    client: Client
    origin: Origin
    path: str = ""
    """What stands before every path: "/kiwix"."""
    credential: tuple[str, Secret] | None = None
    """A header's name and its value."""
    plain_http: bool = False
    timeout_s: float = 10.0
    """Its own limit; the caller's deadline may be sooner."""
    capacity: Capacity = field(default_factory=Capacity)
    """Of the source; its sites share it."""

    async def get(
        self, path: str, params: Mapping[str, str | int] | None = None, *, limit: int = BODY_BYTES
    ) -> bytes | Failure:
        """What is at a path below the configured one, or at an absolute one ("//tiny/page" is the latter)."""
        return await self.send("GET", path, params, limit=limit)

    async def json(
        self, path: str, wanted: type[T], params: Mapping[str, str | int] | None = None, *, limit: int = JSON_BYTES
    ) -> T | Failure:
        """The same as a value of a type."""
        body = await self.get(path, params, limit=limit)
        return body if isinstance(body, Failure) else self.read(body, wanted)

    def read(self, body: bytes, wanted: type[T]) -> T | Failure:
        """JSON as a value of a type."""
        try:
            return msgspec.json.decode(body, type=wanted)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            return self.misread(str(error))

    async def send(
        self,
        method: str,
        path: str,
        params: Mapping[str, str | int] | None = None,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        limit: int = BODY_BYTES,
    ) -> bytes | Failure:
        deadline = Deadline.after(self.timeout_s)
        try:
            async with asyncio.timeout(deadline.left):
                await self.capacity.places.acquire()
        except TimeoutError:
            said = f"{self.capacity.at_once} requests to it are under way, and none ended within {self.timeout_s:g} s"
            return self.failed(Cause.TIMEOUT, f"{said}: ask again later")
        try:
            return await self._exchange(deadline, method, path, params, body, headers, limit)
        finally:
            self.capacity.places.release()

    async def _exchange(
        self,
        deadline: Deadline,
        method: str,
        path: str,
        params: Mapping[str, str | int] | None,
        body: bytes,
        headers: Mapping[str, str] | None,
        limit: int,
    ) -> bytes | Failure:
        target = path.removeprefix("/") if path.startswith("//") else f"{self.path}{path}"
        target += f"?{urlencode(params)}" if params else ""
        try:
            for _ in range(REDIRECTS + 1):
                request = self.request(method, target, body, headers or {})
                async with await self.client.open(request, deadline.left) as response:
                    if not 300 <= response.status < 400:
                        whole = await response.read(deadline, limit)
                        return whole if response.status < 300 else self.rejected(response.status, path)
                    moved = urljoin(f"{self.origin}{target}", response.headers.get("location", ""))
                if not self.is_here(moved):
                    return self.failed(Cause.DENIED, "it leads to another server: set url to where it leads")
                parts = urlsplit(moved)
                target = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
        except NetError as error:
            return self.lost(error)
        except ValueError:
            return self.failed(Cause.MALFORMED, "it leads to what is no address: check url")
        return self.failed(Cause.MALFORMED, f"more than {REDIRECTS} redirects: check url")

    def request(self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Request:
        shown = self.credential
        return Request(
            self.origin,
            target or "/",
            body,
            method,
            headers or {},
            (shown[0], shown[1].reveal()) if shown is not None else None,
            self.plain_http,
            inflates=True,
        )

    def is_here(self, url: str) -> bool:
        """Whether an address is this server's."""
        parts = urlsplit(url)
        try:
            return origin_of(f"{parts.scheme}://{parts.netloc}")[:3] == self.origin[:3]
        except EgressRefused:
            return False

    # --- what went wrong

    def lost(self, error: NetError) -> Failure:
        """What a failure on the way means."""
        match error:
            case EgressRefused():
                return self.failed(Cause.DENIED, str(error))
            case TimedOut():
                return self.failed(
                    Cause.TIMEOUT, f"no answer within {self.timeout_s:g} s: ask again, or raise timeout_s"
                )
            case Broken():
                return self.failed(Cause.MALFORMED, f"{error}: check what answers at {self.origin}")
            case _:
                return self.failed(Cause.UNREACHABLE, f"{error}: is it running at {self.origin}?")

    def rejected(self, status: int, path: str) -> Failure:
        if status in (401, 403):
            return self.failed(Cause.DENIED, f"it answered HTTP {status}: check the token, and what it may read")
        shown = path.partition("?")[0][:80]
        return self.failed(Cause.ERROR, f"it answered HTTP {status} to {shown}: see its own log, or check url")

    def misread(self, said: str) -> Failure:
        return self.failed(
            Cause.MALFORMED, f"what it sent cannot be read ({said[:120]}): is it what url should lead to?"
        )

    def failed(self, why: Cause, said: str) -> Failure:
        said = f"{self.name}: {said}"
        return Failure(why, self.credential[1].hide(said) if self.credential is not None else said)


async def health_of(asked: Awaitable[Any]) -> Health:
    """How it went, and how long it took."""
    began = monotonic()
    got = await asked
    ms = (monotonic() - began) * 1000
    if not isinstance(got, Failure):
        return Health("ok", ms=ms)
    return Health("not_configured" if got.why is Cause.NOT_CONFIGURED else "error", got.said, ms)


def parsed(name: str, parse: Callable[..., T], *arguments: object) -> T | Failure:
    """What a library makes of foreign bytes; whatever it raises is a failure of the source."""
    found: T | Fault = contain(parse, *arguments)
    if isinstance(found, Fault):
        return Failure(Cause.MALFORMED, f"{name}: what it sent cannot be read ({found.detail[:120]})")
    return found
