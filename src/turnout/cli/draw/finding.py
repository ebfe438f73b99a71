"""What an examination found, a row each: how it is, what was looked at, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rich.text import Text

from .screen import visible
from .shape import Screen, columns

_STYLES = {"ok": "green", "note": "yellow"}
BAD = "bold red"


class FindingRow(Protocol):
    """Something that was looked at; what is neither `ok` nor a `note` is bad."""

    @property
    def state(self) -> str: ...
    @property
    def subject(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def advice(self) -> str: ...


def draw_findings(screen: Screen, found: Sequence[FindingRow]) -> int:
    """Print them; how many are bad."""
    grid = columns("", "", "fold")
    for finding in found:
        style = _STYLES.get(finding.state, BAD)
        text = Text("\n".join(map(visible, finding.text.split("\n"))))
        if finding.advice:
            text.append(f"\n{screen.glyphs.arrow} {visible(finding.advice)}", style)
        grid.add_row(Text(finding.state, style), Text(finding.subject, "bold"), text)
    screen.inset(grid, "")
    screen.print()
    return sum(finding.state not in _STYLES for finding in found)
