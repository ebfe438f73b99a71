"""Finds the line of each key of a TOML text, which tomllib does not report.

The text, which tomllib has accepted already, is read once, left to right, into a tree of lines. Open arrays and inline
tables are kept on a stack, so there is no recursion.

Invariant: the paths found are exactly the keys and indexes of `tomllib.loads(source)`, down to `DEEPEST` parts, in time
linear in the text. A table has the line of its own header; an implied table that of its first mention.
"""

import re
import tomllib
from collections.abc import Iterable
from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]

# Profiles nest less than ten deep. Without a limit, paths take memory quadratic in the depth: 1 GB for a header of
# 16,000 dotted parts (32 KB). A deeper path has the line of its ancestor at this depth.
DEEPEST = 64

# Commas are skipped like blanks: the next token says whether an element follows.
_GAP = re.compile(r"[ \t\r\n,]*(?:#[^\n]*[ \t\r\n,]*)*")
# The character after a part of a key says what follows: "." another part, "=" a value, "]" the end of a header.
_PART = re.compile(r"""[ \t]*("[^"\\]*(?:\\.[^"\\]*)*"|'[^']*'|[\w-]+)[ \t]*([.=\]]?)[ \t]*""")
# Up to two quotes may stand before the closing three. A bare value runs to its delimiter: a date may hold a space.
_SCALAR = re.compile(
    r'''"""[^"\\]*(?:(?:\\.|"{1,2}(?!"))[^"\\]*)*"{3,5}'''
    r"""|'''[^']*(?:'{1,2}(?!')[^']*)*'{3,5}"""
    r"""|"[^"\\]*(?:\\.[^"\\]*)*"|'[^']*'|[^,\]}#\n]*""",
    re.DOTALL,
)
# Anchored at the end, because the message may quote a key with any text in it.
_PLACE = re.compile(r"\(at line (\d+), column \d+\)\Z")


class _Node:
    """A key or an array element: its line and its children."""

    __slots__ = ("children", "is_array", "line")

    def __init__(self, line: int) -> None:
        self.line = line
        self.children: dict[str | int, _Node] = {}
        self.is_array = False

    def append(self, line: int) -> "_Node":
        self.is_array = True
        element = self.children[len(self.children)] = _Node(line)
        return element

    def descend(self, names: Iterable[str], line: int) -> "_Node":
        node = self
        for name in names:
            # A name after an array of tables belongs to its last table.
            inside = node.children[len(node.children) - 1] if node.is_array else node
            child = inside.children.get(name)
            if child is None:
                child = inside.children[name] = _Node(line)
            node = child
        return node


def locate(source: str) -> dict[Path, int]:
    """The 1-based line of every key and every array element of a text that tomllib accepts."""
    root = table = _Node(1)
    opened: list[_Node] = []
    line, counted, pos = 1, 0, 0
    while (pos := _skip(_GAP, source, pos)) < len(source):
        line += source.count("\n", counted, pos)
        counted = pos
        if opened and source[pos] in "]}":
            opened.pop()
            pos += 1
            continue
        if not opened and source[pos] == "[":
            is_array = source.startswith("[[", pos)
            names, pos = _read_key(source, pos + 1 + is_array)
            table = root.descend(names, line)
            if is_array:
                table = table.append(line)
                pos += 1
            table.line = line
            continue
        if opened and opened[-1].is_array:
            node = opened[-1].append(line)
        else:
            names, pos = _read_key(source, pos)
            if not names:
                # Unknown syntax, perhaps of a later TOML version: stop, to avoid an endless loop.
                break
            node = (opened[-1] if opened else table).descend(names, line)
        if source.startswith(("[", "{"), pos):
            node.is_array = source[pos] == "["
            opened.append(node)
            pos += 1
        else:
            pos = _skip(_SCALAR, source, pos)
    return _flatten(root)


def syntax_line(error: tomllib.TOMLDecodeError) -> int | None:
    """The line of a syntax error; None if Python (before 3.14) says only "at end of document"."""
    place = _PLACE.search(str(error))
    return getattr(error, "lineno", None) or (int(place[1]) if place else None)


def _skip(pattern: re.Pattern[str], source: str, pos: int) -> int:
    found = pattern.match(source, pos)
    return found.end() if found else pos


def _read_key(source: str, pos: int) -> tuple[list[str], int]:
    names: list[str] = []
    while part := _PART.match(source, pos):
        names.append(_unquote(part[1]))
        pos = part.end()
        if part[2] != ".":
            break
    return names, pos


def _unquote(part: str) -> str:
    if part[0] not in "\"'":
        return part
    if "\\" in part:
        # Decoded by tomllib, which knows the escapes of its TOML version.
        return str(tomllib.loads(f"key = {part}")["key"])
    return part[1:-1]


def _flatten(root: _Node) -> dict[Path, int]:
    lines: dict[Path, int] = {}
    pending: list[tuple[Path, _Node]] = [((), root)]
    while pending:
        path, node = pending.pop()
        for key, child in node.children.items():
            inner = (*path, key)
            lines[inner] = child.line
            if child.children and len(inner) < DEEPEST:
                pending.append((inner, child))
    return lines
