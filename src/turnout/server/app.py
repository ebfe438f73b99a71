"""The one way in and out of every request: guard, who asks, is there room, read, answer, write down.

A pure ASGI application over Starlette's router. Nothing of a request decides anything before the table's row for it has
been found, and what decides afterwards is that row.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any

from starlette.routing import Route as Path
from starlette.routing import Router as Paths

from turnout.apps.caller import Caller
from turnout.apps.gateway.gateway import Answer, refusal
from turnout.core.aside import aside
from turnout.core.errors import Refused
from turnout.models.wire import FORMATS

from .auth import header_map
from .house import House
from .structure import check_structure
from .table import ROUTES, Listener, Route
from .wire import Gone, Message, Receive, Scope, Send, WhileConnected, messages, read_body, send_answer

log = logging.getLogger("turnout.server")

# When to come back, in turn: clients that are all told the same come back together.
WAITS_S = (1.0, 2.0, 3.0)


def application(house: House, listener: Listener = "public", *, lifespan: bool = False) -> Any:
    """The ASGI application of one listener; with `lifespan` it opens and closes the house with the server."""
    paths: dict[str, dict[str, Endpoint]] = {}
    for route in ROUTES:
        if route.listener == listener:
            paths.setdefault(route.path, {})[route.method] = Endpoint(house, route)
    served = {path: Methods(methods) for path, methods in paths.items()}
    # Most paths are just themselves; a pattern is tried for those that are not.
    plain = {path: methods for path, methods in served.items() if "{" not in path}
    patterns = [Path(path, methods, include_in_schema=False) for path, methods in served.items() if path not in plain]
    found = Outermost(house, plain, Paths(patterns, redirect_slashes=False, default=NotFound()), lifespan)
    if listener == "public":
        # Whoever looks after the server gets in all the same; what is read says in its headers who reads it.
        asked = [route for route in ROUTES if route.scope and route.method == "POST" and route.path in plain]
        found.refusals = {route.path: _refusals(route) for route in asked}
    return found


class Methods:
    """The methods of one path."""

    def __init__(self, methods: dict[str, Endpoint]) -> None:
        self.methods = methods

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = self.methods.get(scope["method"])
        if endpoint is not None:
            await endpoint(scope, receive, send)
            return
        allowed = ", ".join(self.methods)
        refused = Refused(405, "invalid_request_error", f"{scope['method']} is not for this path: use {allowed}")
        answer = _write(scope, refused)
        await send_answer(send, answer._replace(headers=[*answer.headers, (b"allow", allowed.encode())]))


class NotFound:
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_answer(send, _write(scope, Refused(404, "not_found_error", "no such path (see /openapi.json)")))


class Outermost:
    """What nobody expected ends here: a sentence for the client, the rest for the log."""

    def __init__(self, house: House, plain: dict[str, Methods], patterns: Paths, lifespan: bool) -> None:
        self.house = house
        self.plain = plain
        self.patterns = patterns
        self.lifespan = lifespan
        self.refusals: dict[str, list[tuple[Message, Message]]] = {}
        """By path, what is sent when there is no room, ready beforehand and sent before anything else is done: what
        is refused must cost next to nothing, or refusing is all a server does."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] != "http":
            return
        refusals = self.refusals.get(scope["path"])
        if refusals is not None and self.house.admission.refuses():
            for message in refusals[self.house.admission.refused % len(refusals)]:
                await send(message)
            self.house.metrics.note(scope["path"], 503, 0.0)
            return
        here = asyncio.current_task()
        assert here is not None  # noqa: S101 - this runs in a task
        self.house.requests.add(here)
        started = False

        async def sending(message: Any) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            self.house.guard.check_form(scope)
            await (self.plain.get(scope["path"]) or self.patterns)(scope, receive, sending)
        except Refused as refused:
            await send_answer(send, _write(scope, refused))
        except Exception:
            log.exception("a request failed in a way nobody foresaw")
            # An answer that has begun is left as it is: the server ends it.
            if not started:
                said = "something failed here; the log says what"
                await send_answer(send, _write(scope, Refused(500, "api_error", said)))
        finally:
            self.house.requests.discard(here)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if self.lifespan and message["type"] == "lifespan.startup":
                await self.house.open()
            elif self.lifespan:
                await self.house.drain()
                await self.house.close()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return


class Endpoint:
    """One row of the table, served."""

    def __init__(self, house: House, route: Route) -> None:
        self.house = house
        self.route = route
        self.path = route.path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        house, route = self.house, self.route
        started = time.monotonic()
        headers = header_map(scope["headers"])
        status = 499
        entered = False
        try:
            house.guard.check(headers)
            if not route.scope:
                answer = await self._plain(_OPEN, b"", scope, receive)
            else:
                if route.listener == "public":
                    if not house.admission.enter_now():
                        await house.admission.enter()
                    entered = True
                caller = await house.auth.caller(scope["headers"], admin=route.listener == "admin")
                caller.must(route.scope)
                body = await read_body(receive, house.settings.body_bytes, headers.get("content-length"))
                await aside(len(body), check_structure, body)
                if route.wire is not None:
                    status = await self._ask(body, caller, headers, receive, send)
                    return
                answer = await self._plain(caller, body, scope, receive)
        except Refused as refused:
            answer = _write(scope, refused)
        except Gone:
            return
        finally:
            if entered:
                house.admission.leave()
            if status != 499:
                house.metrics.note(self.path, status, time.monotonic() - started)
        house.metrics.note(self.path, answer.status, time.monotonic() - started)
        await send_answer(send, answer)

    async def _plain(self, caller: Caller, body: bytes, scope: Scope, receive: Receive) -> Answer:
        """A handler's answer. One that may ask models is stopped when its client leaves: what it has decided by then it
        has written down, and nothing more is paid for."""
        handler, params = self.route.plain, scope.get("path_params", {})
        assert handler is not None  # noqa: S101 - a row has a handler or a format
        if not self.route.asks:
            return await handler(self.house, caller, body, params)
        with WhileConnected(receive):
            return await handler(self.house, caller, body, params)
        raise Gone

    async def _ask(self, body: bytes, caller: Caller, headers: Mapping[str, str], receive: Receive, send: Send) -> int:
        """A generation: as long as it takes, and not a moment longer than its client is there."""
        wire = self.route.wire
        here = asyncio.current_task()
        assert wire is not None  # noqa: S101 - a row has a handler or a format
        assert here is not None  # noqa: S101 - this runs in a task
        asking = self.house.asking
        asking.add(here)
        status = 499

        try:
            with WhileConnected(receive):
                self.house.router(caller)  # refused where the gateway's profile is none of the caller's
                answer = await self.house.gateway.handle(wire, body, caller, headers)
                status = answer.status
                asking.discard(here)
                await send_answer(send, answer)
        except asyncio.CancelledError:
            # Only a server that stops takes somebody off the list who has no answer.
            if here in asking or status != 499 or here.uncancel():
                raise
            said = "the server stopped before a model answered: try another"
            raise Refused(503, "overloaded_error", said, retry_after_s=1.0) from None
        finally:
            asking.discard(here)
        return status


_OPEN = Caller("", "", frozenset(), budget=None)  # type: ignore[arg-type]


def _write(scope: Scope, refused: Refused) -> Answer:
    """A refusal in the format the client reads."""
    return refusal(FORMATS["anthropic-messages" if _is_anthropic(scope) else "openai-chat"], refused)


def _refusals(route: Route) -> list[tuple[Message, Message]]:
    """That there is no room, with each of the times to come back after."""
    scope: Scope = {"path": route.path, "headers": ()}
    said = "there is no room for more requests just now: try again in {:g} s"
    refused = [Refused(503, "overloaded_error", said.format(wait), retry_after_s=wait) for wait in WAITS_S]
    return [messages(_write(scope, one)) for one in refused]


def _is_anthropic(scope: Scope) -> bool:
    """Whether a client of Anthropic's asks: by the path, whatever becomes of it, and where both kinds of client ask the
    same path, by the header that theirs always send. Nothing but the form of an error depends on it."""
    path = f"{scope['path']}/"
    if path.startswith("/v1/messages/"):
        return True
    return path.startswith("/v1/models/") and any(name == b"anthropic-version" for name, _ in scope["headers"])
