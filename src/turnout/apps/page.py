"""The article in a page of the public web."""

from __future__ import annotations

from turnout.core.verdict import Fault, contain
from turnout.net.public import Page
from turnout.text.page import read_html


def readable_text(page: Page, most_bytes: int | None = None) -> str:
    """The article of a page without what surrounds it; blank if there is none. Only `most_bytes` are read."""
    kind = page.headers.get("content-type", "text/html")
    if page.status != 200 or not kind.startswith(("text/", "application/xhtml")):
        return ""
    source = page.body[:most_bytes].decode("utf-8", "replace")
    if kind.startswith("text/plain"):
        return source
    text = contain(_extract, source)
    if isinstance(text, Fault) or not text:
        plainly = contain(read_html, source)
        return "" if isinstance(plainly, Fault) else str(plainly.text)
    return str(text)


def _extract(source: str) -> str | None:
    import trafilatura

    return trafilatura.extract(source, include_comments=False, include_tables=True)
