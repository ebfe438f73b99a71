"""Streams an answer as chat text: the parts in order, each below the words it answers.

A part with one source is written when it has ended, one with several section by section; later parts wait for earlier
ones. Chat clients render Markdown, so that pictures in the text are escaped.
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

# Markup that a Markdown client loads by itself, which would tell a stranger that the answer was read.
_loads: Final = re.compile(
    r"!(?=\[)|<(?=(?:img|image|picture|source|video|audio|track|i?frame|object|embed|svg|style|link|script|input)\b)",
    re.IGNORECASE,
)


def unload(text: str) -> str:
    """The text with a backslash before markup that would be loaded."""
    return _loads.sub(r"\\\g<0>", text)


def without_loads(event: Event) -> Event:
    """The event as a chat client gets it."""
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
        """The place of the part that is being written."""
        self._sections: defaultdict[int, list[Section]] = defaultdict(list)
        """Waiting sections, by part."""
        self._ended: dict[int, PartResult] = {}
        self._heading = self._head()
        self._is_first = True

    def tell(self, event: Event) -> str:
        """The text that an event adds."""
        match event:
            case Section() if len(self._parts[event.part].sources) > 1:
                self._sections[event.part].append(event)
            case PartEnded():
                self._ended[event.part] = event.result
            case _:
                return ""
        return unload("".join(map(self._block, self._due())))

    def _due(self) -> Iterator[str]:
        """The blocks that can be written now."""
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
        """The line above the part; a condition has none, since its verdict repeats it."""
        part = self._parts[self._now] if 1 < len(self._parts) > self._now else None
        return f"{part.text}\n" if part is not None and part.role != "condition" else ""

    def _block(self, text: str) -> str:
        heading, self._heading = self._heading, ""
        apart, self._is_first = "" if self._is_first else "\n\n", False
        return f"{apart}{heading}{text}"
