"""Any JSON endpoint, declared in the settings by its URL and by JSON pointers (RFC 6901) to the texts in its answer."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from msgspec import Struct

from turnout.text.page import plain

from .compat import compat_text_is_empty
from .fetch import Site, health_of, read_time
from .source import Empty, Failure, Health, Passage, Result, Source, SourceAnswer, SourceQuestion
from .terms import search_terms

# Items of a list that are shown.
SHOWN = 8
TEXT_CHARACTERS = 1500
_NOTHING = object()


class Pointers(Struct, frozen=True):
    """JSON pointers into the answer; all but `items` are relative to an item, or to the whole if there are no items."""

    text: str
    items: str = ""
    title: str = ""
    url: str = ""
    at: str = ""


class HttpJson(Source):
    def __init__(self, site: Site, path: str, pointers: Pointers, description: str = "") -> None:
        self.name = site.name
        self.description = description or f"what {site.origin.host} knows"
        self._site = site
        self._path = path
        """With the placeholders `{question}` and `{terms}`."""
        self._pointers = pointers

    async def ask(self, question: SourceQuestion) -> Result:
        terms = " ".join(search_terms(question.text, question.lang))
        got = await self._get(question.text, terms)
        if isinstance(got, Failure):
            return got
        whole = point(got, self._pointers.items)
        items = whole if isinstance(whole, list) else [whole] if whole is not None else []
        passages = [passage for item in items[:SHOWN] if (passage := self._passage(item)) is not None]
        text = "\n\n".join(f"{one.title}\n{one.text}".strip() for one in passages)
        return SourceAnswer(text, tuple(passages)) if passages else Empty()

    async def check(self) -> Health:
        async def look() -> Failure | None:
            got = await self._get("test", "test")
            if isinstance(got, Failure):
                return got
            # The list may be empty, but it has to be there.
            pointer = self._pointers.items or self._pointers.text
            is_missing = point(got, pointer, _NOTHING) is _NOTHING
            return self._site.misread(f"there is nothing at {pointer[:80]}") if is_missing else None

        return await health_of(look())

    async def _get(self, text: str, terms: str) -> Any:
        path = self._path.replace("{question}", quote(text, safe="")).replace("{terms}", quote(terms, safe=""))
        return await self._site.json(path, object)

    def _passage(self, item: object) -> Passage | None:
        def find(pointer: str) -> str:
            return _text(point(item, pointer)) if pointer else ""

        pointers = self._pointers
        text = plain(_text(point(item, pointers.text)))[:TEXT_CHARACTERS]
        # Only its text can tell that there is no result.
        if compat_text_is_empty(text):
            return None
        return Passage(text, plain(find(pointers.title)), find(pointers.url), read_time(find(pointers.at)))


def point(tree: Any, pointer: str, missing: Any = None) -> Any:
    """The value at a JSON pointer, or `missing`. An empty pointer means the whole document."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(tree, dict) and key in tree:
            tree = tree[key]
        elif isinstance(tree, list) and key.isdecimal() and len(key) < 10 and int(key) < len(tree):
            tree = tree[int(key)]
        else:
            return missing
    return tree


def _text(value: object) -> str:
    match value:
        case str():
            return value
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return str(value)
        case list():
            return ", ".join(filter(None, map(_text, value)))
        case _:
            return ""
