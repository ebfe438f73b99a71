"""The headings of a text in Markdown, reStructuredText or Python, and the definitions in other languages.

Time is linear in the text; a text that is not what its file ending says has fewer headings, but is not an error.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from typing import NamedTuple

CODE = frozenset(
    (
        *(".py", ".pyi", ".js", ".mjs", ".jsx", ".ts", ".tsx", ".go", ".rs", ".java", ".kt", ".scala", ".c", ".h"),
        *(".cc", ".cpp", ".hpp", ".cs", ".rb", ".php", ".swift", ".lua", ".sh", ".bash", ".sql"),
    )
)
# A larger Python module is not parsed: it takes long, and is generated code.
PARSED = 1_000_000
# A longer line is not a heading.
LONGEST = 300


class Heading(NamedTuple):
    level: int
    name: str
    start: int
    """Where the heading begins."""
    body: int
    """Where the text under it begins."""
    anchor: str = ""
    """Its URL fragment, if the file has one."""


_hashes = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*\Z")
_fence = re.compile(r" {0,3}(`{3,}|~{3,})")
_underline = re.compile(r" {0,3}(=+|-{2,})[ \t]*\Z")
_block = re.compile(r" {0,3}(?:[>|]|[-*+] |\d+[.)] )|\s*\Z|    ")
_link = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_marks = re.compile(r"[`*]|\{#.*?\}")


def _lines(text: str) -> Iterator[tuple[int, str, int]]:
    """Each line: its offset, its text without the line end, and the next line's offset."""
    start = 0
    for line in text.splitlines(keepends=True):
        end = start + len(line)
        yield start, line.rstrip("\r\n"), end
        start = end


def _clean(name: str) -> str:
    return " ".join(_marks.sub("", _link.sub(r"\1", name[:LONGEST])).split())


def markdown(text: str) -> Iterator[Heading]:
    """`# ATX` and underlined headings, outside of code fences and front matter."""
    fence = ""
    matter = text.startswith(("---\n", "---\r\n"))
    before: tuple[int, str] | None = None
    """The line before, if it can be a heading that this line underlines."""
    for start, line, end in _lines(text):
        if matter and start:
            matter = line.rstrip() not in ("---", "...")
            continue
        if matter:
            continue
        if fenced := _fence.match(line):
            mark = fenced[1]
            if not fence:
                fence = mark
            elif mark.startswith(fence) and not line.strip().strip(mark[0]):
                fence = ""
            before = None
        elif fence:
            continue
        elif (hashes := _hashes.match(line)) and (name := _clean(hashes[2])):
            yield Heading(len(hashes[1]), name, start, end)
            before = None
        elif before and (under := _underline.match(line)):
            yield Heading(1 if under[1][0] == "=" else 2, _clean(before[1]), before[0], end)
            before = None
        else:
            # The last line of a paragraph can be underlined, but not that of a table, a list or a quotation.
            before = None if _block.match(line) or len(line) > LONGEST else (start, line)


_adorned = re.compile(r"([!-/:-@\[-`{-~])\1{2,}[ \t]*\Z")
_directive = re.compile(
    r"([ \t]*)\.\. (?:\w+:)?(?:function|class|method|classmethod|staticmethod|attribute|data|exception|decorator"
    r"|module|option|confval|envvar|opcode|macro|type|cmdoption):: +(\S.*)"
)
_role = re.compile(r":[\w:+-]+:`~?([^`<]*?)(?:\s*<[^`>]*>)?`")


def restructured(text: str) -> Iterator[Heading]:
    """Underlined titles, with levels in the order their marks first appear; and directives that document a name."""
    levels: dict[str, int] = {}
    lines = list(_lines(text))
    skip = -1
    for at, (start, line, _) in enumerate(lines):
        if at <= skip:
            continue
        if described := _directive.match(line):
            # Below all titles, nested by indentation. Parameters stay in the text.
            name = _clean(described[2].partition("(")[0])
            yield Heading(20 + len(described[1].expandtabs()), name, start, start, name.split(" ")[-1])
            continue
        over = bool(_adorned.match(line))
        title, under = (at + 1, at + 2) if over else (at, at + 1)
        if under >= len(lines):
            continue
        name, mark = lines[title][1].strip(), lines[under][1].rstrip()
        if not name or _adorned.match(name) or not _adorned.match(mark) or (over and mark != line.rstrip()):
            continue
        if (lines[title][1][:1].isspace() and not over) or len(mark) < min(len(name), 4):
            continue
        level = levels.setdefault(mark[0] * (2 if over else 1), len(levels) + 1)
        yield Heading(level, _clean(_role.sub(r"\1", name)), start, lines[under][2])
        skip = under


def python(text: str) -> Iterator[Heading]:
    """Classes and functions, methods under their class. Code that does not parse is read like other languages."""
    if len(text) > PARSED:
        return
    try:
        with warnings.catch_warnings():
            # Warnings about invalid escapes in the user's file do not concern us.
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        yield from code(text)
        return
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    yield from _definitions(tree.body, starts, 1, "")


def _definitions(body: list[ast.stmt], starts: list[int], level: int, inside: str) -> Iterator[Heading]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min((node.lineno, *(each.lineno for each in node.decorator_list)))
            name = f"{inside}{node.name}"
            yield Heading(level, name, starts[first - 1], starts[first - 1], name)
            if isinstance(node, ast.ClassDef):
                yield from _definitions(node.body, starts, level + 1, f"{name}.")


_definition = re.compile(
    r"(?:(?:export|default|pub(?:\(\w+\))?|public|private|protected|internal|static|abstract|final|async|unsafe|inline"
    r"|sealed|data|local|declare) +)*"
    r"(?:def|class|struct|enum|trait|interface|impl|func|function|fn|module|namespace|type|object|protocol|macro)\b\*?"
    r"[ \t]+(?:\([^()]{0,80}\)[ \t]*)?(?:<[^<>]{0,80}>[ \t]*)?([\w$:.~]+)"
)


def code(text: str) -> Iterator[Heading]:
    """Unindented lines that define a name."""
    for start, line, _ in _lines(text):
        if (defined := _definition.match(line)) and len(line) <= LONGEST:
            yield Heading(1, defined[1], start, start, defined[1])
