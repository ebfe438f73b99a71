"""A page of HTML as its title, its paragraphs and its headings, without what stands around; and XML, without entities.

Time is linear in the page. What is not closed is closed by what follows, as browsers do; nothing is run or fetched.
"""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from typing import NamedTuple
from xml.etree.ElementTree import Element, ParseError, fromstring

# Of one page; the longest article of the English encyclopedia has some 2 MB of HTML.
PAGE_CHARACTERS = 4_000_000

# Of a snippet; search engines give some 300.
SNIPPET_CHARACTERS = 4_000
# Elements that are open inside one another; more of them no page has.
DEPTH = 256

# A tag that another one begins in is none. The parser would look for its end to the end of the page, for each of them.
_unclosed = re.compile(r"<(?=[^<>]*(?:<|\Z))")
_tag = re.compile(r"<[^<>]*>")
_names = str.split
_SKIPPED = frozenset(_names("script style noscript template svg math nav footer form button select head"))
_BLOCKS = frozenset(
    _names(
        "address article aside blockquote br caption dd div dl dt fieldset figcaption figure h1 h2 h3 h4 h5 h6 header"
        " hr li main ol p pre section table td th tr ul body html"
    )
)


class PageHeading(NamedTuple):
    """A heading of a page, or a term that is defined under a name of its own."""

    at: int
    """Which of the paragraphs it is."""
    level: int
    anchor: str
    """The id by which addresses call it; empty if it has none."""


class HtmlText(NamedTuple):
    title: str
    paragraphs: tuple[str, ...]
    """Of one line each, but for what is preformatted."""
    headings: tuple[PageHeading, ...] = ()

    @property
    def text(self) -> str:
        return "\n".join(self.paragraphs)


_HEADINGS = {f"h{level}": level for level in range(1, 7)}
# A defined term stands below every heading, and inside of the terms around it.
TERM = 7


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title: list[str] = []
        self.paragraphs: list[str] = []
        self.headings: list[PageHeading] = []
        self._line: list[str] = []
        self._skipping: list[str] = []
        """Open elements whose content is not text; the title is in one of them."""
        self._in_title = False
        self._preformatted = False
        self._beside: tuple[str, int] = ("", 0)
        """The element that is open and only leads elsewhere, and how many of its name are open in it."""
        self._heading = 0
        """The level of the heading that is open."""
        self._anchor = ""
        """The id of what began since the last paragraph."""
        self._lists = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._beside[1]:
            self._beside = (self._beside[0], self._beside[1] + (tag == self._beside[0]))
            return
        said = dict(attrs)
        if tag in _BLOCKS and self._skipping[:1] == ["head"]:
            self._skipping.clear()  # a head that nobody closed ends where the body begins
        self._in_title = tag == "title"
        if tag in _SKIPPED and len(self._skipping) < DEPTH:
            self._skipping.append(tag)
        if tag in _BLOCKS:
            self.end_line()
        if said.get("role") == "navigation" and tag in _BLOCKS:
            self._beside = (tag, 1)
        self._anchor = said.get("id") or self._anchor
        self._preformatted = self._preformatted or tag == "pre"
        self._lists += tag == "dl"
        if tag in _HEADINGS:
            self._heading = _HEADINGS[tag]
        elif tag == "dt" and said.get("id"):
            self._heading = TERM + min(self._lists, DEPTH)

    def handle_endtag(self, tag: str) -> None:
        if self._beside[1]:
            self._beside = (self._beside[0], self._beside[1] - (tag == self._beside[0]))
            return
        self._in_title = False
        if tag in self._skipping:
            del self._skipping[self._skipping.index(tag) :]
        if tag in _BLOCKS:
            self.end_line()
        self._preformatted = self._preformatted and tag != "pre"
        self._lists -= tag == "dl" and self._lists > 0

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title.append(data)
        elif not self._skipping and not self._beside[1]:
            self._line.append(data)

    def end_line(self) -> None:
        line = "".join(self._line)
        line = line.strip("\n").rstrip() if self._preformatted else " ".join(line.split())
        self._line.clear()
        if self._heading:
            line = line.rstrip("¶ ")
        if not line.strip():
            return
        if self._heading:
            self.headings.append(PageHeading(len(self.paragraphs), self._heading, self._anchor))
        self.paragraphs.append(line)
        self._heading, self._anchor = 0, ""


def read_html(source: str) -> HtmlText:
    reader = _Reader()
    reader.feed(_unclosed.sub("&lt;", source[:PAGE_CHARACTERS]))
    reader.close()
    reader.end_line()
    title = " ".join("".join(reader.title).split())
    return HtmlText(title, tuple(reader.paragraphs), tuple(reader.headings))


def plain(markup: str) -> str:
    """A snippet of HTML as one line."""
    return " ".join(unescape(_tag.sub(" ", markup[:SNIPPET_CHARACTERS])).split())


def read_xml(body: bytes) -> Element:
    """An XML document; raises ValueError. One that defines entities is refused: they can make a few bytes huge."""
    # In UTF-16 the two could not be seen.
    if b"<!DOCTYPE" in body or b"<!ENTITY" in body or b"\0" in body[:64]:
        raise ValueError("it has a document type, or is UTF-16: no answer of this kind does")
    try:
        return fromstring(body)  # noqa: S314 - without a document type there is nothing to expand or to fetch
    except (ParseError, LookupError) as error:
        raise ValueError(str(error)) from None
