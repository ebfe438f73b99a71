"""kiwix-serve, in both generations of its URLs. Its search joins words with AND unless they are joined with OR."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Literal

from aiohttp import web

from .server import SourceDouble, Trouble

Book = Mapping[str, tuple[str, str]]
"""Pages: a path, and its title and text."""
_words = re.compile(r"\w+").findall


class KiwixDouble(SourceDouble):
    def __init__(
        self, books: Mapping[str, Book], generation: Literal["old", "new"] = "new", trouble: Trouble | None = None
    ) -> None:
        super().__init__(trouble)
        self.books = books
        self.prefix = "/content" if generation == "new" else ""

    def routes(self) -> Sequence[web.RouteDef]:
        return [
            web.get("/", self._first),
            web.get("/catalog/v2/entries", self._catalogue),
            web.get("/search", self._search),
            web.get(f"{self.prefix}/{{book}}/{{page:.*}}", self._page),
        ]

    async def _first(self, request: web.Request) -> web.Response:
        return web.Response(text="<title>Welcome to Kiwix Server</title>", content_type="text/html")

    async def _catalogue(self, request: web.Request) -> web.Response:
        entries = "".join(
            f"<entry><title>{escape(book)}</title><name>{escape(book)}</name>"
            f'<link type="text/html" href="{self.prefix}/{escape(book)}" /></entry>'
            for book in self.books
        )
        feed = f'<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom">{entries}</feed>'
        return web.Response(text=feed, content_type="application/atom+xml")

    async def _search(self, request: web.Request) -> web.Response:
        name = request.query.get("content") or request.query.get("books.name") or ""
        if name and name not in self.books:
            return web.Response(status=400, text='<?xml version="1.0"?><error>Invalid request</error>')
        pattern = request.query["pattern"]
        terms = [word.casefold() for word in _words(pattern) if word != "OR"]
        needed = 1 if " OR " in pattern else len(terms)
        items = []
        for book in [name] if name else self.books:
            for path, (title, text) in self.books[book].items():
                hits = sum(term in _words(f"{title} {text}".casefold()) for term in terms)
                if hits >= needed and not self.is_empty:
                    items.append((hits, f"{self.prefix}/{book}/{path}", title, text))
        items.sort(key=lambda item: -item[0])
        found = "".join(
            f"<item><title>{escape(title)}</title><link>{escape(link)}</link>"
            f"<description>{escape(text[:200])}...</description><wordCount>{len(text.split())}</wordCount></item>"
            for _, link, title, text in items[: int(request.query.get("pageLength", 25))]
        )
        feed = f'<?xml version="1.0"?><rss version="2.0"><channel><title>Search</title>{found}</channel></rss>'
        return web.Response(text=feed, content_type="application/rss+xml")

    async def _page(self, request: web.Request) -> web.Response:
        found = self.books.get(request.match_info["book"], {}).get(request.match_info["page"])
        if found is None:
            return web.Response(status=404, text="not found")
        title, text = found
        paragraphs = "".join(f"<p>{escape(line)}</p>" for line in text.split("\n"))
        page = f"<!doctype html><title>{escape(title)}</title><nav>Menu</nav><h1>{escape(title)}</h1>{paragraphs}"
        return web.Response(text=page, content_type="text/html")
