"""Removes addresses and pictures from a written answer, except addresses that its sections contain.

A page can tell a model to write a link whose address contains what another source said about the home. A chat client
that shows Markdown loads a picture by itself, and a reader may follow a link. An address that is in the sections was
known to their authors, so that it leaks nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from .fusion import FusedSection

REMOVED: Final = "(an address that is not in the sources)"
# Nested links: a picture inside a link.
_DEPTH: Final = 3
_link: Final = re.compile(
    r"(!?)\[([^\[\]\n]{0,400}|\[\d{1,3}\])\]\(([^()\n]{0,2000}(?:\([^()\n]{0,200}\)[^()\n]{0,2000})?)\)"
)
# With a scheme, or what a browser completes with its own at the start of a link or an attribute.
_address: Final = re.compile(
    r"(?:\b[a-z][a-z0-9+.-]{1,20}:[/\\]{2}|(?<=[(<=\"'])\s?[/\\]{2}|\bwww\.)[^\s<>\"'()\[\]]*", re.IGNORECASE
)
_ENDS: Final = ".,;:!?*_"


class KnownAddresses:
    def __init__(self, sections: Sequence[FusedSection]) -> None:
        self._text = "\n".join(text for one in sections for text in (one.text, *(each.url for each in one.passages)))

    def keep(self, text: str) -> str:
        """The text without unknown addresses."""
        for _ in range(_DEPTH):
            text = _link.sub(self._keep_link, text)
        return _address.sub(self._keep_address, text)

    def _has(self, address: str) -> bool:
        return address.lower().startswith(("http://", "https://")) and address in self._text

    def _keep_link(self, link: re.Match[str]) -> str:
        picture, words, target = link.groups()
        address = next(iter(target.split()), "").strip("<>")
        if not picture and self._has(address):
            return link[0]
        return words if picture or not words.strip("[]").isdecimal() else f"[{words.strip('[]')}]"

    def _keep_address(self, match: re.Match[str]) -> str:
        address = match[0].rstrip(_ENDS)
        return match[0] if self._has(address) else REMOVED + match[0][len(address) :]
