"""A form with files (RFC 7578) as browsers and HTTP clients send it: its parts by name, as bytes.

Parts are not decoded: an image that no route needs stays unread.
"""

from __future__ import annotations

import re

from turnout.apps.request import invalid
from turnout.core.errors import Refused

# A question has five parts.
MOST_PARTS = 16
# The header of a part: a name, a file name and a type.
HEAD_BYTES = 4096
_BOUNDARY = re.compile(r'boundary=(?:"([^"\r\n]{1,70})"|([^\s;"]{1,70}))', re.IGNORECASE)
_NAME = re.compile(rb'[;\s]name="([^"\r\n]{1,100})"', re.IGNORECASE)


def read_form(content_type: str, body: bytes) -> dict[str, bytes]:
    """The parts of a form; Refused if it cannot be read."""
    found = _BOUNDARY.search(content_type)
    if found is None:
        raise _wrong("its content type names no boundary")
    delimiter = b"\r\n--" + (found[1] or found[2]).encode("latin-1")
    pieces = (b"\r\n" + body).split(delimiter, MOST_PARTS + 2)
    if len(pieces) < 3 or not pieces[-1].startswith(b"--"):
        raise _wrong(f"it does not end with its boundary, or has more than {MOST_PARTS} parts")
    parts: dict[str, bytes] = {}
    for piece in pieces[1:-1]:
        head, gap, content = piece.partition(b"\r\n\r\n")
        name = _NAME.search(head[:HEAD_BYTES])
        if not gap or name is None:
            raise _wrong("one of its parts has no name")
        called = name[1].decode("utf-8", "replace")
        if called in parts:
            raise _wrong(f"it has two parts {called[:40]!r}")
        parts[called] = content
    return parts


def _wrong(why: str) -> Refused:
    return invalid(f"the form cannot be read: {why}")
