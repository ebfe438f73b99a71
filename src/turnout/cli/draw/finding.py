"""What an examination found, a row each: how it is, what was looked at, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from .screen import as_typed_here, visible
from .shape import Screen, columns

_STYLES = {"ok": "green", "note": "yellow"}
BAD = "bold red"


def draw_findings(screen: Screen, found: Sequence[tuple[str, str, str, str]]) -> int:
    """Print how each is, what was looked at, what was found and what to do about it; how many are bad, which is what
    is neither `ok` nor a `note`."""
    grid = columns("", "bold", "fold")
    for state, subject, said, advice in found:
        style = _STYLES.get(state, BAD)
        text = Text("\n".join(map(visible, said.split("\n"))))
        if advice:
            text.append(f"\n{screen.glyphs.arrow} {visible(as_typed_here(advice))}", style)
        grid.add_row(Text(state, style), subject, text)
    screen.inset(grid, "")
    screen.print()
    return sum(state not in _STYLES for state, *_ in found)
