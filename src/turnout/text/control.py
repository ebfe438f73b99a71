"""Characters that steer whatever shows a text, or are not seen in it: one list, for the terminal, for JSON, for pages.

Some move a cursor, end a line or turn the reading direction around; some show nothing at all: joiners, marks, and the
tags in which a whole text can be hidden. A screen shows a picture in the place of what steers. JSON has an escape for
every one of them, so that it can be looked at safely and still reads back as the very same value.
"""

from __future__ import annotations

import functools
import re
import unicodedata

BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
SEPARATORS = "\u2028\u2029"
# Tags, variation selectors of names and what is reserved beside them: none of it is ever drawn.
_PLANE_14 = "\U000e0000-\U000e0fff"


@functools.cache
def _unsafe() -> re.Pattern[str]:
    """What JSON may hold as it is and should not: all of category Cf, in whatever version of Unicode this is. The ASCII
    controls are not here: in a string of JSON they are escaped already, outside of one they are line ends."""
    points = [chr(code) for code in range(0x80, 0x20000) if unicodedata.category(chr(code)) == "Cf"]
    return re.compile(f"[\x7f-\x9f{BIDI}{SEPARATORS}{''.join(points)}{_PLANE_14}]")


def escape_json(encoded: bytes) -> bytes:
    """JSON, with every character that steers or is not seen written as an escape. What it says stays the same."""
    if encoded.isascii() and b"\x7f" not in encoded:
        return encoded
    # Outside its strings JSON is ASCII, so what is found stands in a string, where an escape is the same character.
    # Bytes that are no UTF-8 stay what they are.
    text = encoded.decode("utf-8", "surrogateescape")
    return _unsafe().sub(_escape, text).encode("utf-8", "surrogateescape")


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
