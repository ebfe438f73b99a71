"""An answer as a chat shows it while it comes about: the parts in their order, each below the words it answers.

A part of one source is told when it has ended, one of several section by section; what belongs to a later part waits
until those before it are told. Chat clients show Markdown: what a page says loads no picture there.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from turnout.apps.event import Event, Section, Token

from .frame import tell_rest_of
from .fusion import quote
from .plan import Plan
from .result import PartEnded, PartResult, SearchResult

# What a client that shows Markdown would load by itself, and so tell a stranger that it was read.
_loads: Final = re.compile(
    r"!(?=\[)|<(?=(?:img|image|picture|source|video|audio|track|i?frame|object|embed|svg|style|link|script|input)\b)",
    re.IGNORECASE,
)


def unload(text: str) -> str:
    """The text with a backslash before what would be loaded: it is read, and nothing is fetched."""
    return _loads.sub(r"\\\g<0>", text)


def without_loads(event: Event) -> Event:
    """What a chat client is told of an event."""
    match event:
        case Token():
            return replace(event, text=unload(event.text))
        case SearchResult():
            return replace(event, result=unload(event.result))
        case _:
            return event


class PartsInOrder:
    def __init__(self, plan: Plan) -> None:
        self._parts = plan.parts
        self._now = 0
        """The part that is told now."""
        self._sections: defaultdict[int, list[Section]] = defaultdict(list)
        """Of each part, those that wait."""
        self._ended: dict[int, PartResult] = {}
        self._heading = self._head()
        self._is_first = True

    def tell(self, event: Event) -> str:
        """What an event adds to the text."""
        match event:
            case Section() if len(self._parts[event.part].sources) > 1:
                self._sections[event.part].append(event)
            case PartEnded():
                self._ended[event.part] = event.result
            case _:
                return ""
        return unload("".join(map(self._block, self._due())))

    def _due(self) -> Iterator[str]:
        """What can be told by now."""
        while self._now < len(self._parts):
            for section in self._sections.pop(self._now, ()):
                yield f"[{section.source}]\n{quote(section.text)}"
            if (ended := self._ended.get(self._now)) is None:
                return
            planned = self._parts[self._now]
            if rest := tell_rest_of(planned, ended) if len(planned.sources) > 1 else ended.result:
                yield rest
            self._now += 1
            self._heading = self._head()

    def _head(self) -> str:
        """The words that stand above the part; those of a condition are in its verdict."""
        part = self._parts[self._now] if 1 < len(self._parts) > self._now else None
        return f"{part.text}\n" if part is not None and part.role != "condition" else ""

    def _block(self, text: str) -> str:
        heading, self._heading = self._heading, ""
        apart, self._is_first = "" if self._is_first else "\n\n", False
        return f"{apart}{heading}{text}"
