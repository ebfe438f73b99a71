"""A file as its text and the sections it is made of: where each begins and ends, and the headings it stands under.

Markdown, reStructuredText, HTML, source code, PDF and plain text differ in what a heading is, and in nothing else: each
is read for its headings, and one function makes sections of them.

Invariant: sections lie in the text in order and do not overlap; what they leave out is headings and white space.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import NamedTuple

from turnout.text.page import TERM, read_html

from .outline import CODE, Heading, code, markdown, python, restructured

# Pages of one PDF that are read.
PDF_PAGES = 500
# A page takes some milliseconds; one that was made to take long takes as many seconds.
PDF_S = 10.0
# Where readers look for the mark a PDF begins with (ISO 32000-1, annex H.3, note 13).
PDF_MARK, PDF_MARK_WITHIN = b"%PDF-", 1024
MARKDOWN = (".md", ".markdown", ".mdx")
PROSE = frozenset((".md", ".markdown", ".mdx", ".txt", ".text", ".rst", ".org", ".html", ".htm", ".pdf"))
ENDINGS = PROSE | CODE
# Between the paragraphs of a page: a passage ends there rather than anywhere else.
PARAGRAPHS = "\n\n"
_unsafe = re.compile(r"[^\w.-]+")


class FileSection(NamedTuple):
    heading: tuple[str, ...]
    """The headings it stands under, the outermost first."""
    start: int
    end: int
    anchor: str
    """What an address of it ends with, after `#`; empty before the first heading."""


class FileText(NamedTuple):
    title: str
    text: str
    sections: tuple[FileSection, ...]


def read_file(path: str, raw: bytes) -> FileText:
    """Raises whatever a library does that reads the format."""
    stem, ending = os.path.splitext(os.path.basename(path))
    match ending.lower():
        case ".pdf":
            text, headings = _pdf(raw)
        case ".html" | ".htm":
            return _html(raw.decode("utf-8", "replace"), stem)
        case other:
            text = raw.decode("utf-8-sig", "replace")
            text = _without_comments(text) if other in MARKDOWN else text
            headings = list(_read_outline(other, text))
    first = headings[0] if headings else None
    # A file is called by its first heading, if no other stands beside it.
    alone = first and first.level == 1 and sum(each.level == 1 for each in headings) == 1 and ending not in CODE
    return _file(first.name if first and alone else stem, text, headings)


def _without_comments(text: str) -> str:
    """Markdown without what no reader sees. Every other character stays where it is."""
    parts, at = [], 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start)) >= 0:
        hidden = text[start : end + 3]
        parts += [text[at:start], "".join("\n" if one == "\n" else " " for one in hidden)]
        at = end + 3
    return "".join([*parts, text[at:]])


def _read_outline(ending: str, text: str) -> Iterable[Heading]:
    match ending:
        case other if other in MARKDOWN:
            return markdown(text)
        case ".rst":
            return restructured(text)
        case ".py":
            return python(text)
        case other if other in CODE:
            return code(text)
        case _:
            return ()


def _file(title: str, text: str, headings: list[Heading]) -> FileText:
    return FileText(title, text, tuple(_sections(text, headings)))


def _sections(text: str, headings: list[Heading]) -> Iterator[FileSection]:
    """What stands between one heading and the next; without what is blank."""
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
            # A function is called by its name; what it takes is a line of the text.
            name, end = name.partition("(")[0].strip() or name, start
        headings.append(Heading(each.level, name, start, end, each.anchor))
    first = next((each.name for each in headings if each.level == 1), "")
    return _file(first or page.title or stem, PARAGRAPHS.join(page.paragraphs), headings)


def _pdf(raw: bytes) -> tuple[str, list[Heading]]:
    """Each page under its number."""
    try:
        from pypdf import PdfReader
    except ImportError:
        raise RuntimeError("PDFs need the extra `sources`: pip install 'turnout[sources]'") from None
    # It logs each oddity of a file; what matters of them is raised, and goes where files that cannot be read are named.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    if PDF_MARK not in raw[:PDF_MARK_WITHIN]:
        raise RuntimeError("it is no PDF, whatever its name says")
    pages = PdfReader(BytesIO(raw)).pages
    text, headings = "", []
    until = time.monotonic() + PDF_S
    for number in range(min(PDF_PAGES, len(pages))):
        if time.monotonic() > until:
            raise RuntimeError(f"it takes longer than {PDF_S:g} s to read, at page {number + 1} of {len(pages)}")
        headings.append(Heading(2, f"page {number + 1}", len(text), len(text), f"page={number + 1}"))
        text += pages[number].extract_text() + "\n\n"
    return text, headings
