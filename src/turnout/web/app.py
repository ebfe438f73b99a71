"""The ASGI application: every request and response passes through here, in one order.

Check the form of the request, find its row in the route table, check host and origin, take a place, authenticate, read
the body, call the handler, send the answer. Everything that is special about a route is in its row.
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
from starlette.types import Receive, Scope, Send

from turnout.apps.app import SOCKET, Answer, Call, Route, refusal
from turnout.apps.caller import Budget, Caller
from turnout.core.errors import Refused, StoreUnavailable
from turnout.models.wire import FORMATS

from .auth import check_own_page, header_map
from .server import Server
from .socket import TAKE_S, Gone, Socket, denying, headers_with_key
from .structure import VALUES, check_structure

log = logging.getLogger("turnout.web")

# The longest body that is read without authentication: the form to sign in.
PAGE_BYTES = 4096
# The status in the metrics if the client left before the response started.
LEFT = 499
# The time for a body in seconds, and the number of bytes that adds a second to it.
BODY_S = 10.0
BODY_RATE = 8192
# When to start watching for a disconnect; most handlers are done before. The promise is to stop 250 ms after one.
LISTEN_S = 0.05
# The most in a query string.
OPTIONS = 32
# Without this header Granian adds its own.
SERVER = (b"server", b"turnout")
# The key in a scope for the status of its response, once that has started.
STARTED = "turnout.started"
_SLASHES = re.compile(rb"%(?:2[Ff]|5[Cc])")


class Application:
    """The application of one listener; with `lifespan` the ASGI server opens and closes the server."""

    def __init__(self, server: Server, *, admin: bool = False, lifespan: bool = False) -> None:
        self.server = server
        self.admin = admin
        self.lifespan = lifespan
        paths: dict[str, dict[str, Route]] = {}
        for route in server.admin_routes if admin else server.routes:
            paths.setdefault(route.path, {})[route.method] = route
        self.paths = {path: routes for path, routes in paths.items() if "{" not in path}
        """The routes of each path by method."""
        self.patterns = [(compile_path(path)[0], routes) for path, routes in paths.items() if "{" in path]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] in ("http", "websocket"):
            here = current_task()
            self.server.requests.add(here)
            try:
                if scope["type"] == "websocket":
                    await receive()  # the client's wish to connect
                    send = denying(scope, send)
                await self._respond(scope, receive, send)
            finally:
                self.server.requests.discard(here)

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request. An unexpected error is one sentence for the client and a traceback for the log."""
        started, path, is_page = time.monotonic(), "", False
        answer: Answer | None = None
        try:
            _check_form(scope)
            route, params = self._find(scope)
            path, is_page = route.path, route.is_page
            if route.method == SOCKET:
                await self._connect(route, params, scope, receive, send)
            else:
                answer = await self._serve(route, params, scope, receive, send)
        except Refused as refused:
            is_lost = not path and refused.status == 404 and _is_browser(scope)
            answer = self._refuse(scope, refused, is_page=is_page or is_lost)
        except Gone:
            pass
        except StoreUnavailable as error:
            log.warning("a request could not use the decision log: %s", error)
            message = "the decision log cannot be used now, perhaps because its disk is full: the server's log says why"
            answer = self._refuse(scope, Refused(503, "not_available", message), is_page=is_page)
        except Exception:
            log.exception("a request failed unexpectedly")
            message = "something failed here; the log says what"
            answer = self._refuse(scope, Refused(500, "api_error", message), is_page=is_page)
        if STARTED in scope:
            answer = None  # too late for another: the ASGI server closes the connection
        if path:
            status = answer.status if answer is not None else scope.get(STARTED, LEFT)
            requests, seconds = self.server.metrics.of(path, status)
            requests.inc()
            seconds.observe(time.monotonic() - started)
        if answer is not None:
            # A stream ends when its client leaves. It holds no place.
            with nullcontext() if isinstance(answer.body, bytes) else WhileConnected(receive):
                await send_answer(send, answer)

    def _find(self, scope: Scope) -> tuple[Route, Mapping[str, str]]:
        """The row of the route table for a request, and the parameters in its path."""
        path, params = scope["path"], {}
        routes = self.paths.get(path)
        for pattern, those in self.patterns if routes is None else ():
            if (match := pattern.match(path)) is not None:
                routes, params = those, match.groupdict()
        if routes is None:
            raise Refused(404, "not_found_error", "no such path (/openapi.json of the public listener has a list)")
        is_socket = scope["type"] == "websocket"
        if SOCKET in routes and not is_socket:
            raise Refused(426, "invalid_request_error", "this path is a WebSocket: connect to it with ws:// or wss://")
        route = routes.get(SOCKET if is_socket else scope["method"])
        if route is None and is_socket:
            raise Refused(404, "not_found_error", "no WebSocket has this path")
        if route is None:
            scope["allow"] = ", ".join(routes)
            message = f"{scope['method']} is not allowed on this path: use {scope['allow']}"
            raise Refused(405, "invalid_request_error", message)
        return route, params

    async def _serve(
        self, route: Route, params: Mapping[str, str], scope: Scope, receive: Receive, send: Send
    ) -> Answer | None:
        """The answer of a route; None if it has been sent already."""
        server = self.server
        headers = header_map(scope["headers"])
        server.guard.check(headers)
        options = read_options(scope) if scope.get("query_string") else {}
        posts_form = route.is_page and route.method != "GET"
        if posts_form:
            check_own_page(headers)
        if not route.scope:
            body = await read_body(receive, PAGE_BYTES, headers) if posts_form else b""
            anyone = Caller("", "", frozenset(), Budget())
            return await route.handler(Call(server.runtime, anyone, body, headers, params, options))
        # The administrator's programs are always let in; pages wait their turn like other requests.
        async with nullcontext() if self.admin and not route.is_page else server.admission:
            if server.pages is not None and route.is_page:
                caller = await server.pages.caller(headers)
                if posts_form:  # only forms count against the key's rate
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

    async def _connect(
        self, route: Route, params: Mapping[str, str], scope: Scope, receive: Receive, send: Send
    ) -> None:
        """A WebSocket: admitted and authenticated like a request, and then counted apart."""
        server, keyed = self.server, headers_with_key(scope)
        headers = header_map(scope["headers"])
        server.guard.check(headers)

        async def check(*, counts: bool = False) -> Caller:
            caller = await server.auth.caller(keyed, admin=self.admin, counts=counts)
            _check_scope(caller, route)
            return caller

        async def sending(message: Any) -> None:
            scope.setdefault(STARTED, message.get("status", 101))  # an accepted socket has no status of its own
            await send(message)

        async with server.admission:
            caller = await check(counts=True)
            own = list(server.sockets.values()).count(caller.key_id) if caller.key_id else 0
            _check_sockets("", len(server.sockets), server.settings.sockets, "sockets")
            _check_sockets(" of this key", own, server.settings.key_sockets, "key_sockets")
            answer = await route.handler(Call(server.runtime, caller, b"", headers, params, read_options(scope)))
        here = current_task()
        server.sockets[here] = caller.key_id
        try:
            await Socket(scope, receive, sending, check).run(answer, lambda: server.admission.draining)
        finally:
            server.sockets.pop(here, None)

    async def _ask(self, route: Route, call: Call, scope: Scope, receive: Receive, send: Send) -> None:
        """Call a handler that may ask models, and send its answer. When the client leaves, the handler is cancelled:
        what was decided is recorded, and nothing more is paid for."""
        here, asking, answered = current_task(), self.server.asking, False
        asking.add(here)
        try:
            with WhileConnected(receive):
                answer = await route.handler(call)
                answered = True
                asking.discard(here)
                scope[STARTED] = answer.status
                await send_answer(send, answer)
        except asyncio.CancelledError:
            # Only `Server.cut` takes a task that has no answer out of the set.
            if here in asking or answered or here.uncancel():
                raise
            message = "the server stopped before a model answered: try another"
            raise Refused(503, "overloaded_error", message, retry_after_s=1.0) from None
        finally:
            asking.discard(here)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        if self.lifespan:
            await self.server.open()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        if self.lifespan:
            await self.server.drain()
            await self.server.close()
        await send({"type": "lifespan.shutdown.complete"})

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


# --- checks


def _check_form(scope: Scope) -> None:
    """Refuse a request that different programs could read in different ways."""
    if [name for name, _ in scope["headers"]].count(b"host") > 1:
        raise Refused(400, "invalid_request_error", "more than one Host header: send exactly one")
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    if not path.startswith(b"/"):
        message = "the request's target is not a path of this server: begin it with /"
        raise Refused(400, "invalid_request_error", message)
    # The name of a model may have a slash, and client libraries encode it.
    names = path.upper().replace(b"%2F", b"") if path.startswith(b"/v1/models/") else path
    if (slash := _SLASHES.search(names)) is not None:
        message = f"{slash[0].decode()} is not allowed in a path: send the character itself, not encoded"
        raise Refused(400, "invalid_request_error", message)


def _check_scope(caller: Caller, route: Route) -> None:
    if route.scope not in caller.scopes:
        raise Refused(403, "permission_error", f"this key lacks the scope {route.scope!r}")


def _check_sockets(whose: str, open_now: int, most: int, setting: str) -> None:
    if open_now >= most:
        message = f"{most} WebSockets{whose} are open, which is the limit: close one, or raise {setting} in [server]"
        raise Refused(503, "overloaded_error", message, retry_after_s=5.0)


def _is_browser(scope: Scope) -> bool:
    """Whether a person will see the answer: browsers ask for HTML by name."""
    return any(name == b"accept" and b"text/html" in value for name, value in scope["headers"])


def _is_anthropic(scope: Scope) -> bool:
    """Whether the client reads errors in Anthropic's format: by the path, or on a path for both formats by the header
    that Anthropic's clients always send."""
    path = f"{scope['path']}/"
    if path.startswith("/v1/messages/"):
        return True
    return path.startswith("/v1/models/") and any(name == b"anthropic-version" for name, _ in scope["headers"])


# --- reading a request, writing an answer


async def read_body(receive: Receive, limit: int, headers: Mapping[str, str]) -> bytes:
    """The whole body. The limit holds for the bytes that arrive; content-length only allows to refuse early."""
    length, chunked = headers.get("content-length"), "transfer-encoding" in headers
    # With a content-length the body ends at its last byte, even if the ASGI server says so later.
    whole = int(length) if length is not None and length.isascii() and length.isdigit() and not chunked else -1
    if whole > limit:
        raise _too_large(limit)
    parts: list[bytes] = []
    size, more = 0, True
    deadline = asyncio.get_running_loop().time() + BODY_S
    while more:
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError:
            raise Refused(408, "invalid_request_error", f"the body did not come within {BODY_S:g} s") from None
        if message["type"] == "http.disconnect":
            # ASGI servers report malformed chunks like a client that left.
            raise Refused(400, "invalid_request_error", "the body ended early, or its chunked encoding is invalid")
        part: bytes = message.get("body", b"")
        size += len(part)
        more = message.get("more_body", False) and size != whole
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
        deadline += len(part) / BODY_RATE
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(limit: int) -> Refused:
    return Refused(413, "request_too_large", f"the body is longer than the limit of {limit:,} bytes")


def read_options(scope: Scope) -> dict[str, str]:
    query = scope.get("query_string", b"").decode("latin-1")
    try:
        return dict(parse_qsl(query, keep_blank_values=True, max_num_fields=OPTIONS))
    except ValueError:
        message = f"more than {OPTIONS} options behind the `?`: leave out what the path does not take"
        raise Refused(400, "invalid_request_error", message) from None


async def send_answer(send: Send, answer: Answer) -> None:
    """Send an answer. A stream is closed however sending it ends."""
    headers, body = [*answer.headers, SERVER], answer.body
    if isinstance(body, bytes):
        headers.append((b"content-length", b"%d" % len(body)))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        return
    async with aclosing(body):
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        async for chunk in body:
            try:
                async with asyncio.timeout(TAKE_S):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            except TimeoutError:
                raise Gone from None
    # Only after the stream and its account are closed: a client that has the whole answer finds it in the log.
    await send({"type": "http.response.body", "body": b""})


def current_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - ASGI servers call the application in a task
    return task


class WhileConnected:
    """A context that is cancelled, and ends without an error, when the client disconnects.

    The body must have been read: then `receive` can only report a disconnect. It is awaited in a task of its own, which
    is started only if the work takes longer than a moment.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._task = current_task()
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
        # Suppress the cancellation that `_leave` caused, but none from outside.
        return self._gone and not self._task.uncancel() and kind is asyncio.CancelledError


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
