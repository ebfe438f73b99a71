"""Reads a file as text with sections: where each begins and ends, and the headings above it.

Markdown, reStructuredText, HTML, source code, PDF and plain text differ only in what a heading is: each format is read
for its headings, and one function makes sections of them.

Invariant: sections are in order and do not overlap; only headings and white space are outside of them.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterator
from io import BytesIO
from typing import NamedTuple

from turnout.core.errors import TurnoutError
from turnout.text.page import TERM, read_html

from .outline import CODE, Heading, code, markdown, python, restructured

# Pages of one PDF that are read.
PDF_PAGES = 500
# A page takes a few milliseconds; a hostile one can take as many seconds.
PDF_S = 10.0
# Where readers look for the mark a PDF begins with (ISO 32000-1, annex H.3, note 13).
PDF_MARK, PDF_MARK_WITHIN = b"%PDF-", 1024
MARKDOWN = (".md", ".markdown", ".mdx")
ENDINGS = CODE.union(MARKDOWN, (".txt", ".text", ".rst", ".org", ".html", ".htm", ".pdf"))
_OUTLINES = {**dict.fromkeys(MARKDOWN, markdown), **dict.fromkeys(CODE, code), ".rst": restructured, ".py": python}
# Joins the paragraphs of an HTML page; passages are cut there if possible.
PARAGRAPHS = "\n\n"
_unsafe = re.compile(r"[^\w.-]+")


class FileUnreadable(TurnoutError):
    """A document cannot be read; the message is a sentence that says why."""


class FileSection(NamedTuple):
    heading: tuple[str, ...]
    """The headings above it, outermost first."""
    start: int
    end: int
    anchor: str
    """The fragment of its URL, after `#`; empty before the first heading."""


class FileText(NamedTuple):
    title: str
    text: str
    sections: tuple[FileSection, ...]


def read_file(path: str, raw: bytes) -> FileText:
    """Read a file by its ending. Raises FileUnreadable, or whatever the library for the format raises."""
    stem, ending = os.path.splitext(os.path.basename(path))
    match ending.lower():
        case ".pdf":
            text, headings = _pdf(raw)
        case ".html" | ".htm":
            return _html(raw.decode("utf-8", "replace"), stem)
        case other:
            text = raw.decode("utf-8-sig", "replace")
            text = _without_comments(text) if other in MARKDOWN else text
            headings = list(_OUTLINES[other](text)) if other in _OUTLINES else []
    first = headings[0] if headings else None
    # The first heading is the title of the file, if it is the only one of its level.
    alone = first and first.level == 1 and sum(each.level == 1 for each in headings) == 1 and ending not in CODE
    return FileText(first.name if first and alone else stem, text, tuple(_sections(text, headings)))


def _without_comments(text: str) -> str:
    """Markdown with its HTML comments blanked out. Every other character keeps its offset."""
    parts, at = [], 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start)) >= 0:
        hidden = text[start : end + 3]
        parts += [text[at:start], "".join("\n" if one == "\n" else " " for one in hidden)]
        at = end + 3
    return "".join([*parts, text[at:]])


def _sections(text: str, headings: list[Heading]) -> Iterator[FileSection]:
    """The text between one heading and the next, unless it is blank."""
    first = headings[0].start if headings else len(text)
    if text[:first].strip():
        yield FileSection((), 0, first, "")
    above: list[Heading] = []
    for at, heading in enumerate(headings):
        while above and above[-1].level >= heading.level:
            above.pop()
        above.append(heading)
        end = headings[at + 1].start if at + 1 < len(headings) else len(text)
        if text[heading.body : end].strip():
            names = tuple(each.name for each in above)
            yield FileSection(
                names, heading.body, end, heading.anchor or _unsafe.sub("-", names[-1].lower()).strip("-")
            )


def _html(source: str, stem: str) -> FileText:
    page = read_html(source)
    starts = [0]
    for paragraph in page.paragraphs:
        starts.append(starts[-1] + len(paragraph) + len(PARAGRAPHS))
    headings = []
    for each in page.headings:
        name, start, end = page.paragraphs[each.at], starts[each.at], starts[each.at + 1]
        if each.level >= TERM:
            # The heading of a function is its name; the parameters stay in the text.
            name, end = name.partition("(")[0].strip() or name, start
        headings.append(Heading(each.level, name, start, end, each.anchor))
    first = next((each.name for each in headings if each.level == 1), "")
    text = PARAGRAPHS.join(page.paragraphs)
    return FileText(first or page.title or stem, text, tuple(_sections(text, headings)))


def _pdf(raw: bytes) -> tuple[str, list[Heading]]:
    """The text, with a heading for each page."""
    try:
        from pypdf import PdfReader
    except ImportError:
        raise FileUnreadable("PDFs need the extra `sources`: pip install 'turnout[sources]'") from None
    # It logs every oddity of a file; what keeps it from reading one it raises, and the folder lists such files.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    if PDF_MARK not in raw[:PDF_MARK_WITHIN]:
        raise FileUnreadable("it is no PDF, whatever its name says")
    pages = PdfReader(BytesIO(raw)).pages
    text, headings = "", []
    until = time.monotonic() + PDF_S
    for number in range(min(PDF_PAGES, len(pages))):
        if time.monotonic() > until:
            raise FileUnreadable(f"it takes longer than {PDF_S:g} s to read, at page {number + 1} of {len(pages)}")
        headings.append(Heading(2, f"page {number + 1}", len(text), len(text), f"page={number + 1}"))
        text += pages[number].extract_text() + "\n\n"
    return text, headings
