"""Versions of a library: which is the newer, and which one a question names.

Numbers compare as numbers, so that 3.9 is older than 3.11; a release is newer than what led to it (3.13rc1), and what
has no number at all (`latest`, `main`) is taken for the newest there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_parts = re.compile(r"\d+|[a-z]+")
# A version as people write it: 3.11, v2, 2.x, 5.0.1-beta.
_written = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+){0,3})(?:\.x)?(?![\w])(?!\.\d)", re.IGNORECASE)
# What says of a whole number that it is a version.
_called = re.compile(r"(?:\bversions?|\brelease|\bversión|\bv\.?|@)\s*\Z", re.IGNORECASE)
_marked = re.compile(r"v\d|.*\.x\Z", re.IGNORECASE)


def order(version: str) -> tuple[object, ...]:
    """A key to sort versions by, the oldest first."""
    numbers: list[tuple[int, int]] = []
    for part in _parts.findall(version.lower()):
        if part.isdigit():
            numbers.append((1, int(part)))
        elif numbers:
            numbers.append((-1, 0))  # 3.13rc1 comes before 3.13
            break
    return (not numbers, *numbers, (0, 0), version)


def newest(versions: Iterable[str]) -> str:
    return max(versions, key=order)


class NamedVersion(NamedTuple):
    """A version that a question names."""

    said: str
    version: str
    """The one that is meant, of those there are; empty if none is."""


def find_version(question: str, library: str, versions: Iterable[str]) -> NamedVersion | None:
    """Which of a library's versions a question names; None if it names none. A number is a version if it is that of
    one, or if something says so: `v2`, `version 2`, the library's name before it."""
    there = sorted(versions, key=order, reverse=True)
    lowered, missing = question.casefold(), None
    for version in there:
        if not _numbers(version) and re.search(
            rf"(?<!\w){re.escape(version.casefold())}(?= version\b| release\b)", lowered
        ):
            return NamedVersion(version, version)
    for found in _written.finditer(question):
        said, before = found[1], question[: found.start()]
        wanted = _numbers(said)
        is_called = bool(
            _called.search(before)
            or _marked.match(found[0])
            or before.casefold().rstrip(" -").endswith(library.casefold())
        )
        if len(wanted) == 1 and not is_called:
            continue
        meant = next((one for one in there if _numbers(one) and _agrees(wanted, _numbers(one))), None)
        if meant is not None:
            return NamedVersion(said, meant)
        if is_called:
            missing = missing or NamedVersion(said, "")
    return missing


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"v?(\d+(?:\.\d+)*)", version, re.IGNORECASE)
    return tuple(int(part) for part in found[1].split(".")) if found else ()


def _agrees(wanted: tuple[int, ...], has: tuple[int, ...]) -> bool:
    """Whether 3.11 was asked for and 3.11.2 is there, or the other way round."""
    shared = min(len(wanted), len(has))
    # Of 3.11.2 asked for, 3 alone is too little.
    return wanted[:shared] == has[:shared] and len(has) >= min(len(wanted), 2)
