"""Any JSON endpoint, declared in the settings: where it is asked, and where in its answer the texts are.

Places in the answer are JSON pointers (RFC 6901). Nothing in the settings is code.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from turnout.text.page import plain

from .compat import compat_text_is_empty
from .fetch import Site, health_of
from .source import Empty, Failure, Health, Passage, Result, SourceAnswer, SourceQuestion
from .terms import search_terms

# How many items of a list are shown.
SHOWN = 8
TEXT_CHARACTERS = 1500


class Pointers(Struct, frozen=True):
    """Where things are in the answer; all but `items` within each item, or in the whole where there are none."""

    text: str
    items: str = ""
    title: str = ""
    url: str = ""
    at: str = ""


class HttpJson:
    def __init__(self, site: Site, path: str, pointers: Pointers, description: str = "") -> None:
        self.name = site.name
        self.description = description or f"what {site.origin.host} knows"
        self._site = site
        self._path = path
        """With `{question}` and `{terms}` where those go."""
        self._pointers = pointers

    async def ask(self, question: SourceQuestion) -> Result:
        terms = " ".join(search_terms(question.text, question.lang))
        got = await self._get(question.text, terms)
        if isinstance(got, Failure):
            return got
        whole = point(got, self._pointers.items)
        items = whole if isinstance(whole, list) else [whole] if whole is not None else []
        passages = [found for item in items[:SHOWN] if (found := self._passage(item)) is not None]
        text = "\n\n".join(f"{one.title}\n{one.text}".strip() for one in passages)
        return SourceAnswer(text, tuple(passages)) if passages else Empty(terms)

    async def check(self) -> Health:
        async def look() -> Failure | None:
            got = await self._get("test", "test")
            if isinstance(got, Failure):
                return got
            # Of a list with nothing in it all that can be seen is that it is there.
            pointer = self._pointers.items or self._pointers.text
            return None if leads(got, pointer) else self._site.misread(f"there is nothing at {pointer[:80]}")

        return await health_of(look())

    def words(self) -> Sequence[str]:
        return ()

    async def _get(self, text: str, terms: str) -> Any:
        path = self._path.replace("{question}", quote(text, safe="")).replace("{terms}", quote(terms, safe=""))
        return await self._site.json(path, object)

    def _passage(self, item: object) -> Passage | None:
        said = {name: _text(point(item, getattr(self._pointers, name))) for name in ("text", "title", "url", "at")}
        text = plain(said["text"])[:TEXT_CHARACTERS]
        # It cannot say that it has nothing but in words.
        if compat_text_is_empty(text):
            return None
        pointers = self._pointers
        return Passage(
            text,
            plain(said["title"]) if pointers.title else "",
            said["url"] if pointers.url else "",
            _moment(said["at"]) if pointers.at else None,
        )


def leads(tree: Any, pointer: str) -> bool:
    """Whether a JSON pointer leads to something, be it null."""
    above, _, key = pointer.rpartition("/")
    inside = point(tree, above)
    return not pointer or (isinstance(inside, dict) and _key(key) in inside) or point(tree, pointer) is not None


def _key(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def point(tree: Any, pointer: str) -> Any:
    """What a JSON pointer leads to; None if it leads nowhere. The empty one is the whole."""
    for part in pointer.split("/")[1:]:
        key = _key(part)
        if isinstance(tree, dict):
            tree = tree.get(key)
        elif isinstance(tree, list) and key.isdecimal() and len(key) < 10 and int(key) < len(tree):
            tree = tree[int(key)]
        else:
            return None
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


def _moment(said: str) -> datetime | None:
    try:
        return datetime.fromisoformat(said)
    except ValueError:
        return None
