"""Uptime Kuma: its metrics, behind an API key if it has one, and its public status page."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence

from aiohttp import web

from .server import SourceDouble, Trouble


class KumaDouble(SourceDouble):
    """Monitors by their name and state: 0 down, 1 up, 2 pending, 3 maintenance."""

    def __init__(self, monitors: Mapping[str, int], key: str = "", trouble: Trouble | None = None) -> None:
        super().__init__(trouble)
        self.monitors = dict(monitors)
        self.key = key

    def routes(self) -> Sequence[web.RouteDef]:
        return [
            web.get("/metrics", self._metrics),
            web.get("/api/status-page/{page}", self._page),
            web.get("/api/status-page/heartbeat/{page}", self._beats),
        ]

    async def _metrics(self, request: web.Request) -> web.Response:
        login = f"Basic {b64encode(f':{self.key}'.encode()).decode()}"
        if self.key and request.headers.get("authorization") != login:
            return web.Response(status=401, text="")
        lines = ["# HELP monitor_status Monitor Status (1 = UP, 0= DOWN, 2= PENDING, 3= MAINTENANCE)"]
        lines.append("# TYPE monitor_status gauge")
        for name, state in {} if self.is_empty else self.monitors.items():
            shown = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            lines.append(
                f'monitor_status{{monitor_name="{shown}",monitor_type="http",monitor_url="https://x.example/{{a}}",'
                f'monitor_hostname="null",monitor_port="null"}} {state}'
            )
        return web.Response(text="\n".join(lines))

    async def _page(self, request: web.Request) -> web.Response:
        monitors = [] if self.is_empty else [{"id": n, "name": name} for n, name in enumerate(self.monitors, 1)]
        groups = [{"id": 1, "name": "Services", "monitorList": monitors}]
        return web.json_response({"config": {"slug": request.match_info["page"]}, "publicGroupList": groups})

    async def _beats(self, request: web.Request) -> web.Response:
        states = [] if self.is_empty else self.monitors.values()
        beats = {
            str(n): [{"status": 1 - state % 2, "ping": 9}, {"status": state, "ping": 12}]
            for n, state in enumerate(states, 1)
        }
        return web.json_response({"heartbeatList": beats, "uptimeList": {}})
