"""A page of HTML that stands alone: well-formed, nothing fetched, nothing run."""

import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser


class Page(HTMLParser):
    """What a browser would make of it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        self.text += data


DOCUMENT = {"html", "head", "meta", "title", "style", "body", "main", "header", "section", "figure", "figcaption"}
TEXT = {"div", "p", "h1", "h2", "b", "span", "small", "table", "tr", "th", "td", "i", "ul", "ol", "li", "pre"}
PICTURE = {"svg", "line", "text", "rect", "circle", "polyline", "polygon", "title"}
ALLOWED = DOCUMENT | TEXT | PICTURE
# The names of the two vocabularies, which are not fetched.
NAMESPACES = {"http://www.w3.org/1999/xhtml", "http://www.w3.org/2000/svg"}


def check(text: str) -> Page:
    ElementTree.fromstring(text)  # noqa: S314 - our own
    page = Page(text)
    assert {tag for tag, _ in page.tags} <= ALLOWED
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name not in ("src", "href", "srcset", "action", "data", "xlink:href"), (tag, name)
            assert name != "style" or re.fullmatch(r"(width|font-size):[\d.]+(%|px)", value or ""), value
            if name == "xmlns":
                assert value in NAMESPACES
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    assert "url(" not in style[1]
    assert "@import" not in style[1]
    return page
