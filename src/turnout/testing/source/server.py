"""Code shared by the doubles of sources: a real server on loopback, and the ways it can fail.

A trouble changes only what is sent, so that every trouble works for every protocol.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Sequence
from functools import cache
from types import TracebackType
from typing import Any, Literal, Self, get_args

from aiohttp import web

Trouble = Literal["slow", "empty", "malformed", "deep", "down", "denied", "hung", "huge", "bomb", "page", "elsewhere"]
"""
- `slow`: answers after `slow_s`.
- `empty`: has no results, in the protocol's own way.
- `malformed`: half of the answer.
- `deep`: a hundred thousand nested brackets.
- `down`: status 503.
- `denied`: status 401.
- `hung`: takes the request and never answers.
- `huge`: an answer without an end.
- `bomb`: 32 MB, compressed to a few bytes.
- `page`: a page of HTML, status 200, as a captive portal sends it.
- `elsewhere`: a redirect to a cloud's metadata service.
"""
TROUBLES: tuple[Trouble, ...] = get_args(Trouble)

HOST = "127.0.0.1"
_PAGE = "<!doctype html><title>Welcome</title><h1>Please sign in to this network</h1>"
_CHUNK = b" " * 65_536
_BOMB_BYTES = 32 * 1024 * 1024


@cache
def _bomb() -> bytes:
    return gzip.compress(b" " * _BOMB_BYTES, 1)


class SourceDouble:
    """A server that answers as its protocol says. Use it with `async with`."""

    def __init__(self, trouble: Trouble | None = None, slow_s: float = 0.2) -> None:
        self.trouble: Trouble | None = trouble
        self.slow_s = slow_s
        self.requests: list[tuple[str, str]] = []
        """Method and path of each request, with its query."""
        self.headers: list[dict[str, str]] = []
        """By lower-case name."""
        self.port = 0
        self._runner: web.AppRunner | None = None
        self._free = asyncio.Event()

    def routes(self) -> Sequence[web.RouteDef]:
        raise NotImplementedError

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def is_empty(self) -> bool:
        return self.trouble == "empty"

    async def __aenter__(self) -> Self:
        app = web.Application(middlewares=[self._answer])
        app.add_routes(self.routes())
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, HOST, self.port)
        await site.start()
        self.port = int(self._runner.addresses[0][1])
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Stop the server, as if there were none."""
        self._free.set()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @web.middleware
    async def _answer(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.requests.append((request.method, request.path_qs))
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        match self.trouble:
            case "slow":
                await asyncio.sleep(self.slow_s)
            case "down":
                return web.Response(status=503, text="unavailable")
            case "denied":
                return web.Response(status=401, text="unauthorised")
            case "hung":
                await self._free.wait()
            case "page":
                return web.Response(text=_PAGE, content_type="text/html")
            case "elsewhere":
                return web.Response(status=302, headers={"location": "http://169.254.169.254/latest/meta-data/"})
            case "deep":
                return web.Response(body=b"[" * 100_000, content_type="application/json")
            case "bomb":
                headers = {"content-encoding": "gzip", "content-type": "application/json"}
                return web.Response(body=_bomb(), headers=headers)
            case "huge":
                return await self._flood(request)
            case _:
                pass
        answer: web.StreamResponse = await handler(request)
        if self.trouble == "malformed" and isinstance(answer, web.Response) and isinstance(answer.body, bytes):
            return web.Response(body=answer.body[: len(answer.body) // 2], content_type=answer.content_type)
        return answer

    async def _flood(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while not self._free.is_set():
            try:
                await answer.write(_CHUNK)
            except ConnectionError:
                break
        return answer


class JsonDouble(SourceDouble):
    """An endpoint that answers every GET with one JSON value."""

    def __init__(self, value: object, empty: object = None, trouble: Trouble | None = None) -> None:
        super().__init__(trouble)
        self.value = value
        self.empty = empty

    def routes(self) -> Sequence[web.RouteDef]:
        return [web.get("/{path:.*}", self._value)]

    async def _value(self, request: web.Request) -> web.Response:
        return web.json_response(self.empty if self.is_empty else self.value)
