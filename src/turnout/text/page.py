"""A page of HTML as its title and its paragraphs, without what stands around them; and XML, without entities.

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


class HtmlText(NamedTuple):
    title: str
    paragraphs: tuple[str, ...]
    headings: tuple[tuple[int, str, int, int, str], ...] = ()
    """Level, name, where it begins in the text, where what it heads begins, and its anchor."""

    @property
    def text(self) -> str:
        return "\n".join(self.paragraphs)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title: list[str] = []
        self.paragraphs: list[str] = []
        self._line: list[str] = []
        self._skipping: list[str] = []
        """Open elements whose content is not text; the title is in one of them."""
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _BLOCKS and self._skipping[:1] == ["head"]:
            self._skipping.clear()  # a head that nobody closed ends where the body begins
        self._in_title = tag == "title"
        if tag in _SKIPPED and len(self._skipping) < DEPTH:
            self._skipping.append(tag)
        if tag in _BLOCKS:
            self.end_line()

    def handle_endtag(self, tag: str) -> None:
        self._in_title = False
        if tag in self._skipping:
            del self._skipping[self._skipping.index(tag) :]
        if tag in _BLOCKS:
            self.end_line()

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title.append(data)
        elif not self._skipping:
            self._line.append(data)

    def end_line(self) -> None:
        line = " ".join("".join(self._line).split())
        if line:
            self.paragraphs.append(line)
        self._line.clear()


def read_html(source: str) -> HtmlText:
    reader = _Reader()
    reader.feed(_unclosed.sub("&lt;", source[:PAGE_CHARACTERS]))
    reader.close()
    reader.end_line()
    return HtmlText(" ".join("".join(reader.title).split()), tuple(reader.paragraphs))


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
