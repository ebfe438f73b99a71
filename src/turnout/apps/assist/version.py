"""Versions of a library: which one is newer, and which one a question names.

Numbers compare as numbers, so that 3.9 is older than 3.11; a release is newer than its pre-releases (3.13rc1), and a
version without a number (`latest`, `main`) is the newest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_parts = re.compile(r"\d+|[a-z]+")
# A version as people write it: 3.11, v2, 2.x, 5.0.1-beta.
_written = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+){0,3})(?:\.x)?(?![\w])(?!\.\d)", re.IGNORECASE)
# Words that mark a whole number as a version.
_called = re.compile(r"(?:\bversions?|\brelease|\bversión|\bv\.?|@)\s*\Z", re.IGNORECASE)
_marked = re.compile(r"v\d|.*\.x\Z", re.IGNORECASE)


def order(version: str) -> tuple[object, ...]:
    """The key to sort versions by, the oldest first."""
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
    """The existing version that it means; empty if there is none."""


def find_version(question: str, library: str, versions: Iterable[str]) -> NamedVersion | None:
    """The version of a library that a question names; None if it names none. A number is a version if the library has
    it, or if it is marked as one: `v2`, `version 2`, or after the library's name."""
    known = sorted(versions, key=order, reverse=True)
    lowered, missing = question.casefold(), None
    for version in known:
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
        meant = next((one for one in known if _numbers(one) and _agrees(wanted, _numbers(one))), None)
        if meant is not None:
            return NamedVersion(said, meant)
        if is_called:
            missing = missing or NamedVersion(said, "")
    return missing


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"v?(\d+(?:\.\d+)*)", version, re.IGNORECASE)
    return tuple(int(part) for part in found[1].split(".")) if found else ()


def _agrees(wanted: tuple[int, ...], has: tuple[int, ...]) -> bool:
    """Whether one is the beginning of the other, such as 3.11 and 3.11.2."""
    shared = min(len(wanted), len(has))
    # 3 alone is too short for 3.11.2.
    return wanted[:shared] == has[:shared] and len(has) >= min(len(wanted), 2)
