"""The page in front of the reader, as an image that is read only if it is to be sent.

What an image is, its first bytes say: a name or a declared type is not asked. It goes to the model as it came.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable

from turnout.core.errors import Refused

# What providers take of one image: Anthropic's limit, the lowest of those we know.
MOST_BYTES = 5 * 1024 * 1024

PageImage = Callable[[], bytes]
"""Reads the image. Called at most once, and never on a route without one."""


def read_page(page: PageImage) -> str:
    """The image as it is sent; Refused if it is none, or too large."""
    raw = page()
    if len(raw) > MOST_BYTES:
        said = f"the image is {len(raw):,} bytes long, and models take {MOST_BYTES:,}: send a smaller one"
        raise Refused(413, "invalid_request_error", said)
    return f"data:{media_type(raw)};base64,{b64encode(raw).decode()}"


def media_type(raw: bytes) -> str:
    """What kind of image it is, by its first bytes."""
    if raw.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if raw.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP":
        return "image/webp"
    began = raw[:8].hex(" ") or "nothing"
    said = f"the image begins with {began}, which is neither JPEG nor PNG nor WebP: send one of these"
    raise Refused(415, "invalid_request_error", said)
