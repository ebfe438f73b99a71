"""News: a feed of RSS or Atom, and FreshRSS's Google-Reader API with its login."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from html import escape
from typing import Literal, NamedTuple

from aiohttp import web

from .server import SourceDouble, Trouble


class Article(NamedTuple):
    title: str
    summary: str = ""
    url: str = ""
    at: datetime = datetime(2026, 1, 1, tzinfo=UTC)


class FeedDouble(SourceDouble):
    """A feed, at any path."""

    def __init__(
        self, articles: Sequence[Article], form: Literal["rss", "atom"] = "rss", trouble: Trouble | None = None
    ) -> None:
        super().__init__(trouble)
        self.articles = articles
        self.form = form

    def routes(self) -> Sequence[web.RouteDef]:
        return [web.get("/{path:.*}", self._feed)]

    async def _feed(self, request: web.Request) -> web.Response:
        articles = () if self.is_empty else self.articles
        if self.form == "rss":
            items = "".join(
                f"<item><title>{escape(one.title)}</title><link>{escape(one.url)}</link>"
                f"<description>{escape(one.summary)}</description><pubDate>{format_datetime(one.at)}</pubDate></item>"
                for one in articles
            )
            text = f'<?xml version="1.0"?><rss version="2.0"><channel><title>Daily</title>{items}</channel></rss>'
            return web.Response(text=text, content_type="application/rss+xml")
        entries = "".join(
            f'<entry><title>{escape(one.title)}</title><link href="{escape(one.url)}"/>'
            f"<summary>{escape(one.summary)}</summary><updated>{one.at.isoformat()}</updated></entry>"
            for one in articles
        )
        text = f'<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>Daily</title>{entries}</feed>'
        return web.Response(text=text, content_type="application/atom+xml")


class FreshRssDouble(SourceDouble):
    def __init__(self, articles: Sequence[Article], user: str, password: str, trouble: Trouble | None = None) -> None:
        super().__init__(trouble)
        self.articles = articles
        self.login = user, password
        self.token = "alice/0123456789abcdef"  # noqa: S105 - of a double
        self.logins = 0

    def routes(self) -> Sequence[web.RouteDef]:
        api = "/api/greader.php"
        stream = f"{api}/reader/api/0/stream/contents/user/-/state/com.google/reading-list"
        return [web.post(f"{api}/accounts/ClientLogin", self._log_in), web.get(stream, self._stream)]

    async def _log_in(self, request: web.Request) -> web.Response:
        form = await request.post()
        self.logins += 1
        if (form.get("Email"), form.get("Passwd")) != self.login:
            return web.Response(status=401, text="Unauthorized!")
        return web.Response(text=f"SID={self.token}\nLSID=null\nAuth={self.token}\n")

    async def _stream(self, request: web.Request) -> web.Response:
        if request.headers.get("authorization") != f"GoogleLogin auth={self.token}":
            return web.Response(status=401, text="Unauthorized!")
        items = [
            {
                "id": f"tag:google.com,2005:reader/item/{number:016x}",
                "published": int(one.at.timestamp()),
                "title": one.title,
                "canonical": [{"href": one.url}],
                "alternate": [{"href": one.url}],
                "summary": {"content": one.summary},
                "origin": {"streamId": "feed/1", "title": "Daily"},
            }
            for number, one in enumerate(() if self.is_empty else self.articles)
        ]
        return web.json_response({"id": "user/-/state/com.google/reading-list", "updated": 0, "items": items})
