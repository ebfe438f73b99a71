"""Requests to a configured server over HTTP. They return a bounded answer, or a Failure; nothing is raised.

Only redirects to the same server are followed. No message made here contains a credential or a byte of the request
body.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
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
# A server redirects to the canonical address of a page, and perhaps from there to a language.
REDIRECTS = 3
# Of an answer in JSON, which is decoded in one step that cannot be interrupted: at worst 0.2 s for this much. A search,
# a forecast or a status page has a tenth of it.
JSON_BYTES = 1024 * 1024
# Concurrent requests to one source; others wait, within their own time limit. All sources share 512 connections.
AT_ONCE = 32
# Threads that parse the answers of one source.
READERS = 2


class Capacity:
    """The connections and threads of one source, so that one that hangs, or sends answers that take long to parse,
    takes nothing from the others. A cancelled caller removes its work from the queue; work that has begun ends soon,
    since its input is bounded."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self.at_once = at_once
        self.places = asyncio.Semaphore(at_once)
        self._readers: ThreadPoolExecutor | None = None

    async def read(self, call: Callable[..., T], *arguments: object) -> T:
        """Call a function in a thread of this source."""
        if self._readers is None:
            self._readers = ThreadPoolExecutor(READERS, "turnout-reads")
        return await asyncio.get_running_loop().run_in_executor(self._readers, call, *arguments)

    def close(self) -> None:
        if self._readers is not None:
            self._readers.shutdown(wait=False, cancel_futures=True)
            self._readers = None


class Site(Struct, frozen=True):
    """A server of a source, and how to ask it."""

    name: str
    """The source's name, for messages."""
    client: Client
    origin: Origin
    path: str = ""
    """The prefix of every path: "/kiwix"."""
    credential: tuple[str, Secret] | None = None
    """The name and value of a header."""
    plain_http: bool = False
    timeout_s: float = 10.0
    """Its own limit; the caller's deadline may be earlier."""
    capacity: Capacity = field(default_factory=Capacity)
    """Shared by all sites of the source."""

    async def get(
        self, path: str, params: Mapping[str, str | int] | None = None, *, limit: int = BODY_BYTES
    ) -> bytes | Failure:
        """Get a path below the configured one, or an absolute path, which begins with two slashes ("//tiny/page")."""
        return await self.send("GET", path, params, limit=limit)

    async def json(
        self, path: str, wanted: type[T], params: Mapping[str, str | int] | None = None, *, limit: int = JSON_BYTES
    ) -> T | Failure:
        """Get JSON and decode it as a type."""
        body = await self.get(path, params, limit=limit)
        return body if isinstance(body, Failure) else self.read(body, wanted)

    def read(self, body: bytes, wanted: type[T]) -> T | Failure:
        """Decode JSON as a type."""
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
        target = path.removeprefix("/") if path.startswith("//") else f"{self.path}{path}"
        target += f"?{urlencode(params)}" if params else ""
        request, deadline = self.request(method, target, body, headers), Deadline.after(self.timeout_s)
        try:
            async with asyncio.timeout(deadline.left):
                await self.capacity.places.acquire()
        except TimeoutError:
            waited = f"{self.capacity.at_once} requests to it are under way, and none ended within {self.timeout_s:g} s"
            return self.failed(Cause.TIMEOUT, f"{waited}: ask again later")
        try:
            return await self._exchange(deadline, request, path, limit)
        finally:
            self.capacity.places.release()

    async def _exchange(self, deadline: Deadline, request: Request, path: str, limit: int) -> bytes | Failure:
        try:
            for _ in range(REDIRECTS + 1):
                async with await self.client.open(request, deadline.left) as response:
                    if not 300 <= response.status < 400:
                        whole = await response.read(deadline, limit)
                        return whole if response.status < 300 else self.rejected(response.status, path)
                    moved = urljoin(f"{self.origin}{request.path}", response.headers.get("location", ""))
                if not self.is_here(moved):
                    return self.failed(Cause.DENIED, "it leads to another server: set url to where it leads")
                parts = urlsplit(moved)
                request = request._replace(path=f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}")
        except NetError as error:
            return self.lost(error)
        except ValueError:
            return self.failed(Cause.MALFORMED, "it leads to what is not an address: check url")
        return self.failed(Cause.MALFORMED, f"more than {REDIRECTS} redirects: check url")

    def request(self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Request:
        credential = (self.credential[0], self.credential[1].reveal()) if self.credential is not None else None
        return Request(
            self.origin, target or "/", body, method, headers or {}, credential, self.plain_http, inflates=True
        )

    def is_here(self, url: str) -> bool:
        """Whether a URL is on this server."""
        parts = urlsplit(url)
        try:
            return origin_of(f"{parts.scheme}://{parts.netloc}")[:3] == self.origin[:3]
        except EgressRefused:
            return False

    # --- failures

    def lost(self, error: NetError) -> Failure:
        match error:
            case EgressRefused():
                return self.failed(Cause.DENIED, str(error))
            case TimedOut():
                late = f"no answer within {self.timeout_s:g} s: ask again, or raise timeout_s"
                return self.failed(Cause.TIMEOUT, late)
            case Broken():
                return self.failed(Cause.MALFORMED, f"{error}: check what answers at {self.origin}")
            case _:
                return self.failed(Cause.UNREACHABLE, f"{error}: is it running at {self.origin}?")

    def rejected(self, status: int, path: str) -> Failure:
        if status in (401, 403):
            return self.failed(Cause.DENIED, f"it answered HTTP {status}: check the token, and what it may read")
        shown = path.partition("?")[0][:80]
        return self.failed(Cause.ERROR, f"it answered HTTP {status} to {shown}: see its own log, or check url")

    def misread(self, problem: str) -> Failure:
        message = f"what it sent cannot be read ({problem[:120]}): is it what url should lead to?"
        return self.failed(Cause.MALFORMED, message)

    def failed(self, why: Cause, problem: str) -> Failure:
        message = f"{self.name}: {problem}"
        return Failure(why, self.credential[1].hide(message) if self.credential is not None else message)


async def health_of(request: Awaitable[Any]) -> Health:
    """The health of a source by the outcome of a request, and how long it took."""
    started = monotonic()
    result = await request
    ms = (monotonic() - started) * 1000
    if not isinstance(result, Failure):
        return Health("ok", ms=ms)
    return Health("not_configured" if result.why is Cause.NOT_CONFIGURED else "error", result.said, ms)


def parsed(name: str, parse: Callable[..., T], *arguments: object) -> T | Failure:
    """Parse foreign bytes; whatever the library raises is a failure of the source."""
    result: T | Fault = contain(parse, *arguments)
    if isinstance(result, Fault):
        return Failure(Cause.MALFORMED, f"{name}: what it sent cannot be read ({result.detail[:120]})")
    return result


def read_time(text: str | None) -> datetime | None:
    """A time in ISO 8601; None if it is anything else."""
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
