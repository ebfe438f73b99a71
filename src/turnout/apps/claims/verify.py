"""Verifies sources: fetches the page of each and looks for its quotation.

An address is verified when it was fetched, a quotation when it was found word for word; only spaces and quotation marks
are folded, so an altered, missing or cut word leaves it unverified. Pages are fetched through the public web only:
nothing private is reached, whatever a model or a page says.
"""

from __future__ import annotations

import asyncio
import unicodedata
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from turnout.apps.page import readable_text
from turnout.core.errors import NetError
from turnout.core.verdict import Fault, contain
from turnout.net.deadline import Deadline
from turnout.net.public import Page, PublicWeb
from turnout.text.page import read_html

from .card import CardSource

# Letters and digits of the shortest quotation that is checked.
SHORTEST = 6
# For one page: a slow server holds up one source, not the audit.
PAGE_S = 20.0
# Pages cached between the search and the check of quotations.
REMEMBERED = 64
# Pages fetched at the same time.
AT_ONCE = 4

_MARKS = dict.fromkeys(map(ord, "“”„‟«»″‶〝〞＂"), '"') | dict.fromkeys(map(ord, "‘’‚‛′‵`´＇‹›"), "'")
# Soft hyphens and zero-width characters, which the reader of a page does not see.
_UNSEEN = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"), None)
_FOLD = _MARKS | _UNSEEN


def fold_quote(text: str) -> str:
    """The text with one kind of space and one kind of each quotation mark."""
    return " ".join(unicodedata.normalize("NFC", text).translate(_FOLD).split())


def occurs(quote: str, text: str) -> bool:
    """Whether a text has a quotation word for word. Both are folded; the quotation may have its own quotation marks."""
    if len(quote) > 1 and quote[0] == quote[-1] and quote[0] in "\"'":
        quote = quote[1:-1].strip()
    if sum(map(str.isalnum, quote)) < SHORTEST:
        return False
    at = text.find(quote)
    while at >= 0:
        if not _splits_word(text, at) and not _splits_word(text, at + len(quote)):
            return True
        at = text.find(quote, at + 1)
    return False


def _splits_word(text: str, at: int) -> bool:
    """Whether this position is inside a word."""
    return 0 < at < len(text) and _is_of_word(text[at - 1]) and _is_of_word(text[at])


def _is_of_word(character: str) -> bool:
    # Scripts without spaces have no word boundaries.
    return character.isalnum() and character < "\u3040"


class PageText(NamedTuple):
    """The text of a page."""

    url: str
    text: str
    """Its article; blank if none was recognized."""
    folded: tuple[str, ...] = ()
    """The article and the whole page, folded, to find quotations in."""

    def has(self, quote: str) -> bool:
        folded = fold_quote(quote)
        return any(occurs(folded, text) for text in self.folded)


ReadPage = Callable[[str], Awaitable["PageText | None"]]
"""Reads a page; None if it could not be read."""


def page_text(page: Page) -> PageText | None:
    """The text of a fetched page; None if its server returned an error."""
    if not 200 <= page.status < 300:
        return None
    article = readable_text(page)
    kind = page.headers.get("content-type", "text/html")
    whole = ""
    if "html" in kind:
        read = contain(read_html, page.body.decode("utf-8", "replace"))
        whole = "" if isinstance(read, Fault) else " ".join((read.title, *read.paragraphs))
    return PageText(page.url, article, tuple(dict.fromkeys(fold_quote(text) for text in (article, whole) if text)))


class PageReader:
    """Reads pages of the public web and caches the last ones."""

    def __init__(self, public: PublicWeb) -> None:
        self._public = public
        self._pages: OrderedDict[str, PageText] = OrderedDict()
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def __call__(self, url: str) -> PageText | None:
        if found := self._pages.get(url):
            return found
        async with self._turns:
            if found := self._pages.get(url):  # read meanwhile for another source
                return found
            try:
                page = await self._public.get(url, Deadline.after(PAGE_S))
            except NetError:
                return None
        found = await asyncio.to_thread(page_text, page)
        if found is not None:
            self._pages[url] = found
            if len(self._pages) > REMEMBERED:
                self._pages.popitem(last=False)
        return found

    async def close(self) -> None:
        await self._public.close()


async def verify(sources: Sequence[CardSource], read: ReadPage | None) -> list[CardSource]:
    """The sources with their statuses; without a reader, unchanged."""
    if read is None:
        return list(sources)
    return list(await asyncio.gather(*(_verify(source, read) for source in sources)))


async def _verify(source: CardSource, read: ReadPage) -> CardSource:
    if not source.url:
        return source
    page = await read(source.url)
    if page is None:
        return replace(source, url_status="failed", quote_status="unverified")
    # In a thread: pages and quotations may be long.
    found = bool(source.quote_text) and await asyncio.to_thread(page.has, source.quote_text)
    return replace(source, url_status="verified", quote_status="verified" if found else "unverified")
