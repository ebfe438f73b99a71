"""The one way in and out of every request: find the table's row, guard, is there room, who asks, read, answer.

A pure ASGI application. Nothing of a request decides anything before the table's row for it has been found, and what
decides afterwards is that row.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Mapping
from contextlib import aclosing, nullcontext
from typing import Any
from urllib.parse import parse_qsl

from starlette.routing import compile_path

from turnout.apps.app import SOCKET, Answer, Call, Route, refusal
from turnout.apps.caller import Caller
from turnout.core.errors import Refused, StoreUnavailable
from turnout.models.wire import FORMATS

from .auth import check_own_page, header_map
from .server import Server
from .socket import Socket, denying, headers_with_key
from .structure import VALUES, check_structure
from .wire import TAKE_S, Gone, Receive, Scope, Send

log = logging.getLogger("turnout.web")

# Of a form that anybody may send: the one to sign in with.
PAGE_BYTES = 4096
# What is noted of a request whose client left before its answer was there.
LEFT = 499
# A body slower than this holds a place rather than asks.
BODY_S = 10.0
# Bytes a second below which that time runs out.
BODY_RATE = 8192
# After so long a client is listened for: what it no longer waits for ends within a quarter of a second of its leaving.
LISTEN_S = 0.05
# Options of a request of ours: one or two.
OPTIONS = 32
# Where there is none, a server may name itself.
SERVER = (b"server", b"turnout")
# Where a request's scope says with which status its answer has begun.
BEGUN = "turnout.begun"
MODELS = b"/v1/models/"
_SLASHES = re.compile(rb"%(?:2[Ff]|5[Cc])")


class Application:
    """One listener's application; with `lifespan` it opens and closes the server with the server."""

    def __init__(self, server: Server, *, admin: bool = False, lifespan: bool = False) -> None:
        self.server = server
        self.admin = admin
        self.lifespan = lifespan
        self.paths: dict[str, dict[str, Route]] = {}
        """The routes of each path by method."""
        for route in server.admin_routes if admin else server.routes:
            self.paths.setdefault(route.path, {})[route.method] = route
        self.patterns = [(compile_path(path)[0], routes) for path, routes in self.paths.items() if "{" in path]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] in ("http", "websocket"):
            here = asyncio.current_task()
            assert here is not None  # noqa: S101 - this runs in a task
            self.server.requests.add(here)
            try:
                if scope["type"] == "websocket":
                    await receive()  # it says that a client wants to connect
                    send = denying(scope, send)
                await self._respond(scope, receive, send)
            finally:
                self.server.requests.discard(here)

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, and say what went wrong. An unexpected error is a sentence for the client; the rest of it
        is for the log."""
        began, path, is_page = time.monotonic(), "", False
        answer: Answer | None = None
        try:
            _check_form(scope)
            route, params = self._find(scope)
            path, is_page = route.path, route.is_page
            if route.method == SOCKET:
                await self._attend(route, params, scope, receive, send)
            else:
                answer = await self._serve(route, params, scope, receive, send)
        except Refused as refused:
            is_lost = not path and refused.status == 404 and _is_browser(scope)
            answer = self._refuse(scope, refused, is_page=is_page or is_lost)
        except Gone:
            pass
        except StoreUnavailable as error:
            log.warning("a request could not use the decision log: %s", error)
            said = "the decision log cannot be used now, perhaps because its disk is full: the server's log says why"
            answer = self._refuse(scope, Refused(503, "not_available", said), is_page=is_page)
        except Exception:
            log.exception("a request failed unexpectedly")
            said = "something failed here; the log says what"
            answer = self._refuse(scope, Refused(500, "api_error", said), is_page=is_page)
        # An answer that has begun is left as it is: the server ends it.
        answer = None if BEGUN in scope else answer
        if path:
            ended, took = self.server.metrics.of(path, answer.status if answer is not None else scope.get(BEGUN, LEFT))
            ended.inc()
            took.observe(time.monotonic() - began)
        if answer is not None and isinstance(answer.body, bytes):
            await send_answer(send, answer)
        elif answer is not None:
            # What goes on by itself ends with its client; it keeps nobody out, and no place.
            here = asyncio.current_task()
            assert here is not None  # noqa: S101 - this runs in a task
            with WhileConnected(receive, here):
                await send_answer(send, answer)

    def _find(self, scope: Scope) -> tuple[Route, Mapping[str, str]]:
        """The table's row for a request, and what its path names."""
        path, params = scope["path"], {}
        routes = self.paths.get(path)
        for pattern, those in self.patterns if routes is None else ():
            if (found := pattern.match(path)) is not None:
                routes, params = those, found.groupdict()
        if routes is None:
            raise Refused(404, "not_found_error", "no such path (see /openapi.json)")
        method = SOCKET if scope["type"] == "websocket" else scope["method"]
        route = routes.get(method)
        if SOCKET in routes and scope["type"] == "http":
            raise Refused(426, "invalid_request_error", "this path is a WebSocket: connect to it with ws:// or wss://")
        if route is None and scope["type"] == "websocket":
            raise Refused(404, "not_found_error", "no WebSocket has this path")
        if route is None:
            scope["allow"] = ", ".join(routes)
            said = f"{scope['method']} is not for this path: use {scope['allow']}"
            raise Refused(405, "invalid_request_error", said)
        return route, params

    async def _serve(
        self, route: Route, params: Mapping[str, str], scope: Scope, receive: Receive, send: Send
    ) -> Answer | None:
        """The answer of a route, unless that was sent as it came."""
        server = self.server
        headers = server.guard.read(scope["headers"])
        options = read_options(scope) if scope.get("query_string") else {}
        if route.is_page and route.method != "GET":
            check_own_page(headers)
        if not route.scope:
            limit = PAGE_BYTES if route.is_page and route.method != "GET" else 0
            body = await read_body(receive, limit, headers) if limit else b""
            return await route.handler(Call(server.runtime, _ANYBODY, body, headers, params, options))
        # The administrator is always let in; who looks at pages waits like others.
        async with nullcontext() if self.admin and not route.is_page else server.admission:
            if route.is_page:
                caller = await server.auth.visitor(headers.get("cookie", ""))
                if route.method != "GET":  # looking is free, asking counts
                    caller.rate.count()
            else:
                caller = await server.auth.caller(scope["headers"], admin=self.admin)
            _check_scope(caller, route)
            with server.admission.batch() if route.is_batch else nullcontext():
                body = await read_body(receive, server.settings.body_bytes, headers)
                if len(body) > VALUES:  # a byte is at most one value
                    await asyncio.to_thread(check_structure, body)
                call = Call(server.runtime, caller, body, headers, params, options)
                if not route.asks:
                    return await route.handler(call)
                await self._ask(route, call, scope, receive, send)
        return None

    async def _attend(
        self, route: Route, params: Mapping[str, str], scope: Scope, receive: Receive, send: Send
    ) -> None:
        """A socket: let in as a request is, and counted as one until then."""
        server, keyed = self.server, headers_with_key(scope)
        headers = server.guard.read(scope["headers"])

        async def check(*, counts: bool = False) -> Caller:
            caller = await server.auth.caller(keyed, admin=self.admin, counts=counts)
            _check_scope(caller, route)
            return caller

        async def sending(message: Any) -> None:
            # A socket that is accepted has no other.
            scope.setdefault(BEGUN, message.get("status", 101))
            await send(message)

        async with server.admission:
            caller = await check(counts=True)
            if len(server.sockets) >= (most := server.settings.sockets):
                said = f"{most} WebSockets are open, as many as there may be: close one, or raise sockets in [server]"
                raise Refused(503, "overloaded_error", said, retry_after_s=5.0)
            own = list(server.sockets.values()).count(caller.key_id) if caller.key_id else 0
            if own >= (most := server.settings.key_sockets):
                said = f"{most} WebSockets of this key are open, as many as may be: close one, or raise key_sockets"
                raise Refused(503, "overloaded_error", f"{said} in [server]", retry_after_s=5.0)
            answer = await route.handler(Call(server.runtime, caller, b"", headers, params, read_options(scope)))
        here = asyncio.current_task()
        assert here is not None  # noqa: S101 - this runs in a task
        server.sockets[here] = caller.key_id
        try:
            await Socket(scope, receive, sending, check).run(answer, lambda: server.admission.draining)
        finally:
            server.sockets.pop(here, None)

    async def _ask(self, route: Route, call: Call, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer where models may be asked: as long as it takes, and not a moment longer than the client is there. What
        was decided by then is written down, and nothing more is paid for."""
        here = asyncio.current_task()
        assert here is not None  # noqa: S101 - this runs in a task
        asking, answered = self.server.asking, False
        asking.add(here)
        try:
            with WhileConnected(receive, here):
                answer = await route.handler(call)
                answered = True
                asking.discard(here)
                scope[BEGUN] = answer.status
                await send_answer(send, answer)
        except asyncio.CancelledError:
            # Only a server that stops takes a request off the list that has no answer.
            if here in asking or answered or here.uncancel():
                raise
            said = "the server stopped before a model answered: try another"
            raise Refused(503, "overloaded_error", said, retry_after_s=1.0) from None
        finally:
            asking.discard(here)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if self.lifespan and message["type"] == "lifespan.startup":
                await self.server.open()
            elif self.lifespan:
                await self.server.drain()
                await self.server.close()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    def _refuse(self, scope: Scope, refused: Refused, *, is_page: bool) -> Answer:
        """A refusal in the format the client reads."""
        if is_page and self.server.pages is not None:
            return self.server.pages.refuse(refused, header_map(scope["headers"]))
        answer = refusal(FORMATS["anthropic-messages" if _is_anthropic(scope) else "openai-chat"], refused)
        if refused.status == 405:
            answer.headers.append((b"allow", scope["allow"].encode()))
        if refused.status == 426:
            answer.headers.append((b"upgrade", b"websocket"))
        return answer


def _check_form(scope: Scope) -> None:
    """Refuse a request that two readers could read in two ways: with two hosts, or a path that is not one."""
    if [name for name, _ in scope["headers"]].count(b"host") > 1:
        raise _unclear("more than one Host header: send exactly one")
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    if not path.startswith(b"/"):
        raise _unclear("the request's target is not a path of this server: begin it with /")
    # The name of a model may have a slash, and client libraries encode it.
    names = path.upper().replace(b"%2F", b"") if path.startswith(MODELS) else path
    if (found := _SLASHES.search(names)) is not None:
        raise _unclear(f"{found[0].decode()} in a path is not taken: write the character itself, or another path")


def _unclear(said: str) -> Refused:
    return Refused(400, "invalid_request_error", said)


_ANYBODY = Caller("", "", frozenset(), budget=None)  # type: ignore[arg-type]


def _is_browser(scope: Scope) -> bool:
    """Whether a person looks at the answer: a browser asks for a page by its name."""
    return any(name == b"accept" and b"text/html" in value for name, value in scope["headers"])


def _check_scope(caller: Caller, route: Route) -> None:
    if route.scope not in caller.scopes:
        raise Refused(403, "permission_error", f"this key lacks the scope {route.scope!r}")


def _is_anthropic(scope: Scope) -> bool:
    """Whether a client of Anthropic's asks: by the path, whatever becomes of it, and where both kinds of client ask the
    same path, by the header that theirs always send. Nothing but the form of an error depends on it."""
    path = f"{scope['path']}/"
    if path.startswith("/v1/messages/"):
        return True
    return path.startswith("/v1/models/") and any(name == b"anthropic-version" for name, _ in scope["headers"])


# --- reading a request, writing an answer


async def read_body(receive: Receive, limit: int, headers: Mapping[str, str]) -> bytes:
    """The whole body, counted while it comes; what its sender says of its length is only a first look."""
    length, chunked = headers.get("content-length"), "transfer-encoding" in headers
    # Framed by its length, a body has ended with its last byte, whether or not the server has said so.
    whole = int(length) if length is not None and length.isascii() and length.isdigit() and not chunked else -1
    if whole > limit:
        raise _too_large(limit)
    parts: list[bytes] = []
    size = 0
    loop = asyncio.get_running_loop()
    # Ten seconds, and more for a body that keeps coming at a fair rate.
    until = loop.time() + BODY_S
    more = True
    while more:
        try:
            async with asyncio.timeout_at(until):
                message = await receive()
        except TimeoutError:
            raise Refused(408, "invalid_request_error", f"the body did not come within {BODY_S:g} s") from None
        if message["type"] == "http.disconnect":
            # Gone, or there still after chunks that are none: servers do not tell these apart.
            raise Refused(400, "invalid_request_error", "the body broke off, or its chunks are not as HTTP has them")
        part: bytes = message.get("body", b"")
        size += len(part)
        more = message.get("more_body", False) and size != whole
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
        until += len(part) / BODY_RATE
    return parts[0] if len(parts) == 1 else b"".join(parts)


def read_options(scope: Scope) -> dict[str, str]:
    """What stands behind the `?`."""
    said = scope.get("query_string", b"").decode("latin-1")
    try:
        return dict(parse_qsl(said, keep_blank_values=True, max_num_fields=OPTIONS)) if said else {}
    except ValueError:
        said = f"more than {OPTIONS} options behind the `?`: leave out what the path does not take"
        raise Refused(400, "invalid_request_error", said) from None


def _too_large(limit: int) -> Refused:
    return Refused(413, "request_too_large", f"the body is longer than {limit:,} bytes, which is as much as is taken")


async def send_answer(send: Send, answer: Answer) -> None:
    """Write an answer; a stream is closed however it ends."""
    body = answer.body
    if isinstance(body, bytes):
        headers = [*answer.headers, SERVER, (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        return
    async with aclosing(body):
        await send({"type": "http.response.start", "status": answer.status, "headers": [*answer.headers, SERVER]})
        async for chunk in body:
            try:
                async with asyncio.timeout(TAKE_S):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            except TimeoutError:
                raise Gone from None
    # A client that has all of an answer finds it in the log: the stream is closed, and its account with it.
    await send({"type": "http.response.body", "body": b""})


class WhileConnected:
    """What a task does in this context is cancelled when the client disconnects, and ends quietly.

    The body must have been read: from then on a server has nothing to tell but that. What is answered at once is not
    watched: listening takes a task of its own.
    """

    __slots__ = ("_gone", "_later", "_receive", "_task", "_watch")

    def __init__(self, receive: Receive, task: asyncio.Task[Any]) -> None:
        self._receive = receive
        self._task = task
        self._gone = False
        self._watch: asyncio.Future[None] | None = None

    def __enter__(self) -> None:
        self._later = asyncio.get_running_loop().call_later(LISTEN_S, self._listen)

    def _listen(self) -> None:
        self._watch = asyncio.ensure_future(_disconnect(self._receive))
        self._watch.add_done_callback(self._leave)

    def _leave(self, watch: asyncio.Future[None]) -> None:
        if not watch.cancelled():
            self._gone = True
            self._task.cancel()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        self._later.cancel()
        if self._watch is not None:
            self._watch.remove_done_callback(self._leave)
            self._watch.cancel()
        # Cancelled by ourselves, the work has ended in order; cancelled from outside, the error is passed on.
        return self._gone and not self._task.uncancel() and kind is asyncio.CancelledError


async def _disconnect(receive: Receive) -> None:
    # Awaited here: what a server returns need not be a coroutine, and a task can only be made of one.
    while (await receive())["type"] != "http.disconnect":
        pass
