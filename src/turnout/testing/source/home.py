"""Home Assistant: states over HTTP, the registries over its WebSocket, and a template for users without access to them.

It switches nothing and counts requests that try to: a source that only reads makes none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from aiohttp import WSMsgType, web

from .server import SourceDouble, Trouble

VERSION = "2024.3.3"


class HomeDouble(SourceDouble):
    """Rows of `/api/states`; areas by id; for each entity its area, and its aliases."""

    def __init__(
        self,
        states: Sequence[Mapping[str, Any]],
        areas: Mapping[str, str] | None = None,
        area_of: Mapping[str, str] | None = None,
        aliases: Mapping[str, Sequence[str]] | None = None,
        token: str = "token",  # noqa: S107 - of a double
        trouble: Trouble | None = None,
        *,
        registries: bool = True,
    ) -> None:
        super().__init__(trouble)
        self.states = list(states)
        self.areas = areas or {}
        self.area_of = area_of or {}
        self.aliases = aliases or {}
        self.token = token
        self.registries = registries
        """Whether the user may list the registries."""
        self.switched = 0

    def routes(self) -> Sequence[web.RouteDef]:
        return [
            web.get("/api/states", self._states),
            web.get("/api/websocket", self._talk),
            web.post("/api/template", self._template),
            web.post("/api/services/{domain}/{service}", self._switch),
        ]

    def _knows(self, request: web.Request) -> bool:
        return request.headers.get("authorization") == f"Bearer {self.token}"

    async def _states(self, request: web.Request) -> web.Response:
        if not self._knows(request):
            return web.Response(status=401, text="401: Unauthorized")
        return web.json_response([] if self.is_empty else self.states)

    async def _switch(self, request: web.Request) -> web.Response:
        self.switched += 1
        return web.json_response([])

    async def _template(self, request: web.Request) -> web.Response:
        if not self._knows(request):
            return web.Response(status=401, text="401: Unauthorized")
        rows = [
            {"area_id": area, "name": name, "entities": [one for one, of in self.area_of.items() if of == area]}
            for area, name in self.areas.items()
        ]
        return web.Response(body=msgspec.json.encode(rows), content_type="text/plain")

    async def _talk(self, request: web.Request) -> web.StreamResponse:
        talk = web.WebSocketResponse()
        await talk.prepare(request)
        await talk.send_json({"type": "auth_required", "ha_version": VERSION})
        login = await talk.receive_json()
        if login.get("access_token") != self.token:
            await talk.send_json({"type": "auth_invalid", "message": "Invalid access token or password"})
            await talk.close()
            return talk
        await talk.send_json({"type": "auth_ok", "ha_version": VERSION})
        async for message in talk:
            if message.type is WSMsgType.TEXT:
                await self._reply(talk, msgspec.json.decode(message.data))
        return talk

    async def _reply(self, talk: web.WebSocketResponse, asked: Any) -> None:
        entries = [
            {"entity_id": entity, "area_id": self.area_of.get(entity), "device_id": None, "hidden_by": None}
            for entity in (str(row["entity_id"]) for row in self.states)
        ]
        lists: dict[str, object] = {
            "config/area_registry/list": [
                {"area_id": area, "name": name, "aliases": [], "picture": None} for area, name in self.areas.items()
            ],
            "config/entity_registry/list": entries,
            "config/device_registry/list": [],
            "config/entity_registry/get_entries": {
                str(one["entity_id"]): {**one, "aliases": list(self.aliases.get(str(one["entity_id"]), ()))}
                for one in entries
            },
        }
        if not self.registries or asked["type"] not in lists:
            error = {"code": "unauthorized", "message": "Unauthorized"}
            await talk.send_json({"id": asked["id"], "type": "result", "success": False, "error": error})
        elif self.trouble == "malformed":
            await talk.send_str('{"id": 1, "type": "res')
        else:
            result = {"id": asked["id"], "type": "result", "success": True, "result": lists[asked["type"]]}
            await talk.send_json(result)
