"""The page in front of the reader, an image that is read only if it is sent.

Its first bytes tell its format, whatever its name or declared type. It is sent unchanged.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable

from turnout.core.errors import Refused

# Anthropic's limit for one image, the lowest of the known providers.
MOST_BYTES = 5 * 1024 * 1024

PageImage = Callable[[], bytes]
"""Reads the image. Called at most once, and never on a route without one."""


def read_page(page: PageImage) -> str:
    """The image as a data URL; Refused if it is no image or too large."""
    raw = page()
    if len(raw) > MOST_BYTES:
        size = f"the image is {len(raw):,} bytes long, and models take {MOST_BYTES:,}"
        raise Refused(413, "invalid_request_error", f"{size}: send a smaller one")
    return f"data:{media_type(raw)};base64,{b64encode(raw).decode()}"


def media_type(raw: bytes) -> str:
    """The type of an image by its first bytes."""
    if raw.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if raw.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP":
        return "image/webp"
    start = raw[:8].hex(" ") or "nothing"
    wrong = f"the image begins with {start}, which is neither JPEG nor PNG nor WebP: send one of these"
    raise Refused(415, "invalid_request_error", wrong)
