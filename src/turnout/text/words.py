"""Word lists, from one TOML file for each language, read on first use. `en.toml` explains the format.

Invariant: a list never changes, and a name that no file has is an error, not an empty list.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any


class Words:
    """The lists of one table as attributes; those of several languages are joined."""

    def __init__(self, table: str, *languages: str) -> None:
        self._table = table
        self._languages = languages

    def __getattr__(self, name: str) -> frozenset[str]:
        if name.startswith("_"):
            raise AttributeError(name)
        found = frozenset(self._find(self._table, name))
        # Cached as an attribute.
        setattr(self, name, found)
        return found

    def _find(self, table: str, name: str) -> Iterator[str]:
        lists = [found for language in self._languages if (found := read_table(table, language).get(name)) is not None]
        if not lists:
            raise AttributeError(f"no list {table}.{name} in {' or '.join(self._languages)}.toml")
        for entries in lists:
            for entry in entries.split() if isinstance(entries, str) else entries:
                if entry.startswith("@"):
                    other, _, included = entry[1:].rpartition(".")
                    yield from self._find(other or table, included)
                else:
                    yield entry


def match_phrase(words: Sequence[str], phrases: frozenset[str], at: int = 0) -> int:
    """The number of words in the longest of the phrases that begins at this position; 0 if none does."""
    for phrase in _by_first_word(phrases).get(words[at], ()) if at < len(words) else ():
        if tuple(words[at : at + len(phrase)]) == phrase:
            return len(phrase)
    return 0


@cache
def _by_first_word(phrases: frozenset[str]) -> dict[str, list[tuple[str, ...]]]:
    found: dict[str, list[tuple[str, ...]]] = {}
    for phrase in sorted((tuple(phrase.split()) for phrase in phrases), key=len, reverse=True):
        found.setdefault(phrase[0], []).append(phrase)
    return found


def read_table(table: str, language: str) -> dict[str, Any]:
    """One table of a language's file."""
    found: dict[str, Any] = _read(language).get(table, {})
    return found


@cache
def _read(language: str) -> dict[str, Any]:
    return tomllib.loads(files("turnout.text").joinpath(f"{language}.toml").read_text("utf-8"))
