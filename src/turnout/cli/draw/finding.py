"""The findings of an examination in a table: the state and subject of each, what was found, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from .screen import as_typed_here, visible, visible_lines
from .shape import Screen, columns

_STYLES = {"ok": "green", "note": "yellow"}
BAD = "bold red"


def draw_findings(screen: Screen, found: Sequence[tuple[str, str, str, str]]) -> int:
    """Print state, subject, text and advice of each; returns how many are bad: neither `ok` nor a `note`."""
    grid = columns("", "bold", "fold")
    for state, subject, message, advice in found:
        style = _STYLES.get(state, BAD)
        text = Text(visible_lines(message))
        if advice:
            text.append(f"\n{screen.glyphs.arrow} {visible(as_typed_here(advice))}", style)
        grid.add_row(Text(state, style), subject, text)
    screen.inset(grid, "")
    screen.print()
    return sum(state not in _STYLES for state, *_ in found)
