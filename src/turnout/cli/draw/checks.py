"""A list of checks: the name, value and limit of each, and what it means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.text import Text

from .screen import Glyphs, visible
from .shape import Rail


class CheckRow(NamedTuple):
    name: str
    value: str
    limit: str
    good: bool | None
    """None if it is unknown."""
    why: str = ""


def draw_checks(rows: Sequence[CheckRow], glyphs: Glyphs) -> RenderableType:
    """Two lines for each check: the numbers, and their meaning."""
    first = max((len(row.name) for row in rows), default=0)
    second = max((len(row.value) for row in rows), default=0)
    lines: list[RenderableType] = []
    for row in rows:
        sign, style = _SIGNS[row.good]
        head = Text.assemble((getattr(glyphs, sign), style), " ", (visible(row.name).ljust(first + 2), "bold"))
        head.append(visible(row.value).ljust(second + 2), "" if row.good else style)
        head.append(visible(row.limit), "dim")
        head.rstrip()
        lines.append(head)
        if row.why:
            lines.append(Rail(Text(visible(row.why), "dim" if row.good else ""), "    "))
    return Group(*lines)


_SIGNS: dict[bool | None, tuple[str, str]] = {
    True: ("yes", "green"),
    False: ("fault", "bold red"),
    None: ("passed", "dim"),
}
