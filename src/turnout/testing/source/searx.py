"""SearXNG's JSON, with engines that do not answer and pages that can be read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from aiohttp import web

from .server import SourceDouble, Trouble

_words = re.compile(r"\w+").findall


class WebResult(NamedTuple):
    url: str
    title: str
    content: str = ""


class SearxDouble(SourceDouble):
    """Finds results that have one of the words; with `silent`, its engines do not answer."""

    def __init__(
        self, results: Sequence[WebResult], silent: Sequence[str] = (), trouble: Trouble | None = None
    ) -> None:
        super().__init__(trouble)
        self.results = results
        self.silent = silent

    def routes(self) -> Sequence[web.RouteDef]:
        return [web.get("/", self._first), web.get("/search", self._search)]

    async def _first(self, request: web.Request) -> web.Response:
        return web.Response(text="<title>SearXNG</title>", content_type="text/html")

    async def _search(self, request: web.Request) -> web.Response:
        if request.query.get("format") != "json":
            return web.Response(status=403, text="Forbidden")
        query = request.query["q"]
        wanted = set(_words(query.casefold()))
        found = [one for one in self.results if wanted & set(_words(f"{one.title} {one.content}".casefold()))]
        found = [] if self.is_empty or self.silent else found
        results = [
            {"url": one.url, "title": one.title, "content": one.content, "engine": "double", "score": 1.0 / place}
            for place, one in enumerate(found, 1)
        ]
        return web.json_response(
            {
                "query": query,
                "number_of_results": len(results),
                "results": results,
                "answers": [],
                "corrections": [],
                "infoboxes": [],
                "suggestions": [],
                "unresponsive_engines": [[name, "timeout"] for name in self.silent],
            }
        )
