"""Reads an HTML page's title, paragraphs and headings, without navigation and the like; and XML without entities.

Time is linear in the page. Unclosed elements end as in browsers; nothing is run or fetched.
"""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from typing import NamedTuple
from xml.etree.ElementTree import Element, ParseError, fromstring

# The longest article of the English Wikipedia has some 2 MB of HTML.
PAGE_CHARACTERS = 4_000_000

# Search engines' snippets have some 300 characters.
SNIPPET_CHARACTERS = 4_000
# The deepest nesting that is followed; no page has more.
DEPTH = 256

# A "<" without a ">" before the next "<". For each of them, the parser would search the rest of the page for an end.
_unclosed = re.compile(r"<(?=[^<>]*(?:<|\Z))")
_tag = re.compile(r"<[^<>]*>")
_tags = str.split
_SKIPPED = frozenset(_tags("script style noscript template svg math nav footer form button select head"))
_BLOCKS = frozenset(
    _tags(
        "address article aside blockquote br caption dd div dl dt fieldset figcaption figure h1 h2 h3 h4 h5 h6 header"
        " hr li main ol p pre section table td th tr ul body html"
    )
)


class PageHeading(NamedTuple):
    """A heading of a page, or a defined term with an id."""

    at: int
    """Its index among the paragraphs."""
    level: int
    anchor: str
    """Its id in the page, if any."""


class HtmlText(NamedTuple):
    title: str
    paragraphs: tuple[str, ...]
    """One line each, except preformatted text."""
    headings: tuple[PageHeading, ...] = ()

    @property
    def text(self) -> str:
        return "\n".join(self.paragraphs)


_HEADINGS = {f"h{level}": level for level in range(1, 7)}
# The level of a defined term: below every heading, and deeper in nested lists.
TERM = 7


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title: list[str] = []
        self.paragraphs: list[str] = []
        self.headings: list[PageHeading] = []
        self._line: list[str] = []
        self._skipping: list[str] = []
        """The open elements whose content is not text, such as the head."""
        self._in_title = False
        self._preformatted = False
        self._navigation: tuple[str, int] = ("", 0)
        """The open element with the role of navigation, and how many elements of that name are open."""
        self._heading = 0
        """The level of the open heading."""
        self._anchor = ""
        """The last id since the previous paragraph."""
        self._lists = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._navigation[1]:
            self._navigation = (self._navigation[0], self._navigation[1] + (tag == self._navigation[0]))
            return
        attributes = dict(attrs)
        if tag in _BLOCKS and self._skipping[:1] == ["head"]:
            self._skipping.clear()  # an unclosed head ends where the body begins
        self._in_title = tag == "title"
        if tag in _SKIPPED and len(self._skipping) < DEPTH:
            self._skipping.append(tag)
        if tag in _BLOCKS:
            self.end_line()
        if attributes.get("role") == "navigation" and tag in _BLOCKS:
            self._navigation = (tag, 1)
        self._anchor = attributes.get("id") or self._anchor
        self._preformatted = self._preformatted or tag == "pre"
        self._lists += tag == "dl"
        if tag in _HEADINGS:
            self._heading = _HEADINGS[tag]
        elif tag == "dt" and attributes.get("id"):
            self._heading = TERM + min(self._lists, DEPTH)

    def handle_endtag(self, tag: str) -> None:
        if self._navigation[1]:
            self._navigation = (self._navigation[0], self._navigation[1] - (tag == self._navigation[0]))
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
        elif not self._skipping and not self._navigation[1]:
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
    """A snippet of HTML as one line of text."""
    return " ".join(unescape(_tag.sub(" ", markup[:SNIPPET_CHARACTERS])).split())


def read_xml(body: bytes) -> Element:
    """The root of an XML document; raises ValueError, also if it has a DTD: entities can expand without limit."""
    # The NUL check refuses UTF-16, in which a DTD would not be found.
    if b"<!DOCTYPE" in body or b"<!ENTITY" in body or b"\0" in body[:64]:
        raise ValueError("it has a document type, or is UTF-16: no answer of this kind does")
    try:
        return fromstring(body)  # noqa: S314 - without a document type there is nothing to expand or to fetch
    except (ParseError, LookupError) as error:
        raise ValueError(str(error)) from None
