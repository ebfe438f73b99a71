"""Control and invisible characters: one list for the terminal, JSON and pages.

Some move the cursor, end a line or reverse the reading direction; some are invisible: joiners, marks, and tags, which
can hide a whole text. A screen shows a replacement picture for control characters. JSON escapes all of them, so it is
safe to display and still decodes to the same value.
"""

from __future__ import annotations

import functools
import json
import re
import unicodedata

BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
SEPARATORS = "\u2028\u2029"
# Tags, variation selectors and reserved characters, all invisible.
_PLANE_14 = "\U000e0000-\U000e0fff"


@functools.cache
def _unsafe() -> re.Pattern[str]:
    """The characters that valid JSON may contain unescaped but should not: among others, all of category Cf. Not the
    ASCII controls: JSON escapes them inside strings, and outside they are line ends."""
    points = [chr(code) for code in range(0x80, 0x20000) if unicodedata.category(chr(code)) == "Cf"]
    return re.compile(f"[\x7f-\x9f{BIDI}{SEPARATORS}{''.join(points)}{_PLANE_14}]")


def escape_json(encoded: bytes) -> bytes:
    """JSON with control and invisible characters escaped; it decodes to the same value."""
    if encoded.isascii() and b"\x7f" not in encoded:
        return encoded
    # JSON is ASCII outside its strings, so every match is inside a string, where it can be escaped. Invalid UTF-8 is
    # kept.
    text = encoded.decode("utf-8", "surrogateescape")
    return _unsafe().sub(_escape, text).encode("utf-8", "surrogateescape")


def _escape(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]
