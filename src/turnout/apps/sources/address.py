"""Addresses in a written answer: one that no section has is taken out, and no picture is loaded.

A page can tell a model to write a link whose address holds what another source said of the home; a chat client that
shows Markdown loads a picture by itself, and a reader may follow a link. An address that stands in the sections as it
is was known to those who wrote them, and carries nothing out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from .fusion import FusedSection

REMOVED: Final = "(an address that is not in the sources)"
# Links in links: a picture in one.
_DEPTH: Final = 3
_link: Final = re.compile(
    r"(!?)\[([^\[\]\n]{0,400}|\[\d{1,3}\])\]\(([^()\n]{0,2000}(?:\([^()\n]{0,200}\)[^()\n]{0,2000})?)\)"
)
# With a scheme, or what a browser reads as one of its own where a link or an attribute begins.
_address: Final = re.compile(
    r"(?:\b[a-z][a-z0-9+.-]{1,20}:[/\\]{2}|(?<=[(<=\"'])\s?[/\\]{2}|\bwww\.)[^\s<>\"'()\[\]]*", re.IGNORECASE
)
_ENDS: Final = ".,;:!?*_"


class KnownAddresses:
    def __init__(self, sections: Sequence[FusedSection]) -> None:
        self._said = "\n".join(text for one in sections for text in (one.text, *(each.url for each in one.passages)))

    def keep(self, text: str) -> str:
        """The text without any other address."""
        for _ in range(_DEPTH):
            text = _link.sub(self._keep_link, text)
        return _address.sub(self._keep_address, text)

    def _has(self, address: str) -> bool:
        return address.lower().startswith(("http://", "https://")) and address in self._said

    def _keep_link(self, link: re.Match[str]) -> str:
        picture, words, target = link.groups()
        address = next(iter(target.split()), "").strip("<>")
        if not picture and self._has(address):
            return link[0]
        return words if picture or not words.strip("[]").isdecimal() else f"[{words.strip('[]')}]"

    def _keep_address(self, found: re.Match[str]) -> str:
        address = found[0].rstrip(_ENDS)
        return found[0] if self._has(address) else REMOVED + found[0][len(address) :]
