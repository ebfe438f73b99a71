"""Access to the books of an encyclopedia: on a kiwix-serve, or as ZIM files on this machine (`zim`).

A shelf searches for terms and reads pages; it does not rank them. Invariant: it raises nothing but CancelledError, and
reads a bounded part of a page.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol
from urllib.parse import quote, urlsplit

from turnout.text.page import plain, read_xml

from .fetch import Capacity, Site, parsed
from .source import Cause, Failure

# Results of a search; they are ranked again.
RESULTS = 25
# Books that are searched at once; a shelf has hundreds, and each search costs a server a few milliseconds.
BOOKS = 12
# Of a list of results or books; 25 results have some 30 kB.
XML_BYTES = 1024 * 1024
# Of each page; ten of them take three seconds at worst. It is the first half of the longest articles.
READ_BYTES = 512 * 1024

_ATOM = "{http://www.w3.org/2005/Atom}"
_TOTAL = "{http://a9.com/-/spec/opensearch/1.1/}totalResults"


class PageHit(NamedTuple):
    title: str
    path: str
    excerpt: str
    place: int
    """Its rank in the search, from 1."""


class BookHits(NamedTuple):
    """The results of searching one book."""

    hits: list[PageHit]
    total: int
    """The number of matching pages, including those beyond `RESULTS`."""


class Bookshelf(Protocol):
    name: str
    """The name of the source."""
    capacity: Capacity

    async def books(self) -> tuple[str, ...] | Failure:
        """The names of the books."""
        ...

    async def search(self, pattern: str, book: str) -> BookHits | Failure:
        """The pages of a book that match a Xapian query, best first."""
        ...

    async def page(self, path: str) -> bytes | Failure:
        """The first `READ_BYTES` of a page, as HTML."""
        ...

    def address(self, path: str) -> str:
        """The address of a page for people."""
        ...


class KiwixServer:
    """kiwix-serve with either of its URL schemes: the paths of pages come from the search results ("/book/page" or
    "/content/book/page")."""

    def __init__(self, site: Site) -> None:
        self.name = site.name
        self.capacity = site.capacity
        self._site = site

    async def books(self) -> tuple[str, ...] | Failure:
        """An empty name means all books, for a server that does not list them."""
        body = await self._site.get("/catalog/v2/entries", {"count": BOOKS}, limit=XML_BYTES)
        if isinstance(body, Failure) and body.why is not Cause.ERROR:
            return body
        if isinstance(body, Failure):
            # Versions before 3.2 have no catalogue; the home page shows whether it is a kiwix-serve.
            first = await self._site.get("/")
            if isinstance(first, Failure):
                return first
            is_kiwix = b"kiwix" in first[:READ_BYTES].lower()
            return ("",) if is_kiwix else self._site.misread("neither a catalogue nor a page of kiwix-serve")
        feed = await self.capacity.read(parsed, self.name, read_xml, body)
        if isinstance(feed, Failure):
            return feed
        if feed.tag != f"{_ATOM}feed":
            return self._site.misread("no catalogue of books")
        links = [
            link.get("href", "")
            for entry in feed.iter(f"{_ATOM}entry")
            for link in entry.iter(f"{_ATOM}link")
            if link.get("type") == "text/html"
        ]
        return tuple(link.rstrip("/").rpartition("/")[2] for link in links if link) or ("",)

    async def search(self, pattern: str, book: str) -> BookHits | Failure:
        params: dict[str, str | int] = {"pattern": pattern, "format": "xml", "pageLength": RESULTS}
        params |= {"content": book} if book else {}
        body = await self._site.get("/search", params, limit=XML_BYTES)
        return body if isinstance(body, Failure) else await self.capacity.read(parsed, self.name, _results, body)

    async def page(self, path: str) -> bytes | Failure:
        body = await self._site.get(f"/{path}")
        return body if isinstance(body, Failure) else body[:READ_BYTES]

    def address(self, path: str) -> str:
        return f"{self._site.origin}{path}"


def _results(body: bytes) -> BookHits:
    hits: list[PageHit] = []
    tree = read_xml(body)
    for item in tree.iter("item"):
        link = item.findtext("link") or ""
        path = quote(urlsplit(link).path, safe="/%:@!$&'()*+,;=~-._")
        if path.startswith("/"):
            described = item.find("description")
            excerpt = " ".join("".join(described.itertext()).split()) if described is not None else ""
            title = plain(item.findtext("title") or "")
            hits.append(PageHit(title, path, plain(excerpt), len(hits) + 1))
    total = next((one.text or "" for one in tree.iter(_TOTAL)), "").replace(",", "")
    return BookHits(hits, int(total) if total.isdecimal() else len(hits))
