"""Where the books of an encyclopedia stand: behind kiwix-serve, or as ZIM files on this machine (`zim`).

A shelf finds pages by terms and reads them; what is the best of them is not its matter. Invariant: it raises nothing
but CancelledError, and what it reads of a page is bounded.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol
from urllib.parse import quote, urlsplit

from turnout.text.page import plain, read_xml

from .fetch import Capacity, Site, parsed
from .source import Cause, Failure

# How many results a search has; they are ranked again.
RESULTS = 25
# How many books are searched at once; a shelf has hundreds, and each search costs a server a few milliseconds.
BOOKS = 12
# Of a list of results or books; 25 results have some 30 kB.
XML_BYTES = 1024 * 1024
# Of each page that is read; ten of them take three seconds at worst. Of the longest articles it is the first half.
READ_BYTES = 512 * 1024

_ATOM = "{http://www.w3.org/2005/Atom}"
_TOTAL = "{http://a9.com/-/spec/opensearch/1.1/}totalResults"


class Found(NamedTuple):
    """A result of a search."""

    title: str
    path: str
    excerpt: str
    place: int
    """Among the results of its search, from 1."""


class Searched(NamedTuple):
    """What a search of one book found."""

    found: list[Found]
    total: int
    """How many pages there are, those beyond `RESULTS` too."""


class Bookshelf(Protocol):
    name: str
    """The source's."""
    capacity: Capacity

    async def books(self) -> tuple[str, ...] | Failure:
        """The names of the books there are."""
        ...

    async def search(self, pattern: str, book: str) -> Searched | Failure:
        """The pages of a book that fit a query of Xapian's, the best first."""
        ...

    async def page(self, path: str) -> bytes | Failure:
        """A page that was found, as HTML: its first `READ_BYTES`."""
        ...

    def address(self, path: str) -> str:
        """Where a reader finds it."""
        ...


class KiwixServer:
    """kiwix-serve, of both generations of its URLs. Where a page is, is what the search says ("/book/page" or
    "/content/book/page"), so that no generation need be told from the other."""

    def __init__(self, site: Site) -> None:
        self.name = site.name
        self.capacity = site.capacity
        self._site = site

    async def books(self) -> tuple[str, ...] | Failure:
        """An empty name is all of them, for a server that does not tell."""
        body = await self._site.get("/catalog/v2/entries", {"count": BOOKS}, limit=XML_BYTES)
        if isinstance(body, Failure) and body.why is not Cause.ERROR:
            return body
        if isinstance(body, Failure):
            # Before 3.2 there was no such page; whether there is a server at all is told by its first.
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

    async def search(self, pattern: str, book: str) -> Searched | Failure:
        params: dict[str, str | int] = {"pattern": pattern, "format": "xml", "pageLength": RESULTS}
        params |= {"content": book} if book else {}
        body = await self._site.get("/search", params, limit=XML_BYTES)
        return body if isinstance(body, Failure) else await self.capacity.read(parsed, self.name, _results, body)

    async def page(self, path: str) -> bytes | Failure:
        body = await self._site.get(f"/{path}")
        return body if isinstance(body, Failure) else body[:READ_BYTES]

    def address(self, path: str) -> str:
        return f"{self._site.origin}{path}"


def _results(body: bytes) -> Searched:
    found: list[Found] = []
    listed = read_xml(body)
    for item in listed.iter("item"):
        link = item.findtext("link") or ""
        path = quote(urlsplit(link).path, safe="/%:@!$&'()*+,;=~-._")
        if path.startswith("/"):
            described = item.find("description")
            excerpt = " ".join("".join(described.itertext()).split()) if described is not None else ""
            title = plain(item.findtext("title") or "")
            found.append(Found(title, path, plain(excerpt), len(found) + 1))
    total = next((one.text or "" for one in listed.iter(_TOTAL)), "").replace(",", "")
    return Searched(found, int(total) if total.isdecimal() else len(found))
