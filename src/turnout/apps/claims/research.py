"""The searches of an audit: the source checker sees what was found and names the next search, or none.

Searches cost time and money, so they end when the model names none or repeats one, when the last two found nothing new,
or at the limit of the settings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec

from turnout.apps.searxng import SearxngResults
from turnout.core.errors import Broken
from turnout.net.client import Client, Request
from turnout.net.deadline import Deadline
from turnout.net.egress import Origin
from turnout.text.page import plain

from .verify import ReadPage

# FIRE and other studies find little after the fifth.
SEARCHES = 5
# Results shown of one search, and how many of their pages are read.
RESULTS, PAGES = 5, 2
# Characters shown of a snippet and of a page.
SNIPPET_CHARACTERS, PAGE_CHARACTERS = 500, 3000
SEARCH_S = 15.0
SEARCH_BYTES = 2 * 1024 * 1024


class FoundPage(NamedTuple):
    """A result of a search."""

    url: str
    title: str
    text: str


Search = Callable[[str], Awaitable[Sequence[FoundPage]]]
"""Finds pages; raises NetError."""


class Research:
    """The searches of one audit and their results so far."""

    def __init__(self, search: Search | None, read: ReadPage | None, most: int = SEARCHES) -> None:
        self._search = search
        self._read = read
        self._most = most if search is not None else 0
        self._found_nothing = False
        """The last search found nothing new."""
        self.queries: list[str] = []
        self.found: dict[str, FoundPage] = {}
        self.ended = "no search is configured" if search is None else ""
        """Why there are no more searches."""

    async def go_on(self, query: str) -> bool:
        """Search; returns whether something new was found."""
        query = " ".join(query.split())[:400]
        if not query:
            self.ended = "enough is known"
        elif len(self.queries) >= self._most:
            self.ended = self.ended or f"{self._most} searches were made"
        elif query.casefold() in map(str.casefold, self.queries):
            self.ended = "the search was made already"
        if self.ended or self._search is None:
            return False
        self.queries.append(query)
        results = (await self._search(query))[:RESULTS]
        fresh = [one for one in results if one.url and one.url not in self.found]
        if not fresh and self._found_nothing:
            self.ended = "the last two searches found nothing new"
        self._found_nothing = not fresh
        read = await asyncio.gather(*(self._page(one) for one in fresh[:PAGES]))
        self.found |= {one.url: one for one in (*read, *fresh[PAGES:])}
        return bool(fresh)

    async def _page(self, found: FoundPage) -> FoundPage:
        """The result with the beginning of its page, if the page can be read."""
        page = await self._read(found.url) if self._read is not None else None
        if page is None or not page.text:
            return found
        return found._replace(text=page.text[:PAGE_CHARACTERS])


class SearxngSearch:
    """Searches with SearXNG."""

    def __init__(self, client: Client, origin: Origin, path: str = "") -> None:
        self._client = client
        self._origin = origin
        self._path = path.rstrip("/")

    async def __call__(self, query: str) -> Sequence[FoundPage]:
        deadline = Deadline.after(SEARCH_S)
        target = f"{self._path}/search?{urlencode({'q': query, 'format': 'json'})}"
        request = Request(self._origin, target, method="GET", inflates=True)
        async with await self._client.open(request, deadline.left) as response:
            body = await response.read(deadline, SEARCH_BYTES)
        if response.status != 200:
            raise Broken(f"the search answered HTTP {response.status}: does it allow format=json?")
        try:
            found = msgspec.json.decode(body, type=SearxngResults).results
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            raise Broken(
                "the search answered something that is not SearXNG's JSON: check [claims.audit] search"
            ) from None
        return [FoundPage(one.url, plain(one.title), plain(one.content or "")[:SNIPPET_CHARACTERS]) for one in found]
