"""The errors of decoding untrusted JSON, and messages for them."""

from __future__ import annotations

import re

import msgspec

UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)
"""Not JSON or not the right shape, not UTF-8, nested too deeply."""

# Matches every escape, so that an escaped backslash does not begin another one.
_escapes = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)


def why_unreadable(error: Exception, data: bytes | msgspec.Raw) -> str:
    """What is wrong with the JSON. A lone surrogate is named; the decoder only reports truncated data."""
    lone = next((found[1] for found in _escapes.finditer(bytes(data)) if found[1]), None)
    if lone is None:
        return str(error)
    return f"it has the lone surrogate {lone.decode()}, half of a character: write both halves or none"
