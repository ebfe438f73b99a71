"""The lines of `turnout log`: a table as wide as the screen, to which rows can be added."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from turnout.store import Logged

from .screen import Glyphs, missing_text, visible
from .shape import style_of

# The end of an id identifies a decision (its beginning is the time): 40 bits.
SHORT_ID = 8
# A question is cut to the width of the terminal, or else to this many characters.
UNCUT = 300
# If a question would get fewer cells than this, other columns are left out, in this order.
QUESTION, YIELDING = 24, ("profile", "by", "score")
# Cells of the routes; longer ones are cut.
WIDEST = 24


class DecisionLines:
    """A table to which rows can be added: each column is as wide as its widest cell so far."""

    def __init__(self, rows: Iterable[Logged], glyphs: Glyphs, width: int | None, *, tenants: bool = False) -> None:
        self.glyphs = glyphs
        self.width = width
        """Cells of the terminal; None without one."""
        rows = list(rows)
        self.names = ["time", "id", "", "route", "score", "by"]
        if len({row.profile for row in rows}) > 1:
            self.names.append("profile")
        if tenants:
            self.names.append("tenant")
        self._measure(rows)
        for name in YIELDING:
            if width is not None and name in self.names and width - sum(self.widths) - 2 * len(self.widths) < QUESTION:
                self.names.remove(name)
                self._measure(rows)

    def _measure(self, rows: list[Logged]) -> None:
        self.widths = [len(name) for name in self.names]
        for row in rows:
            self._cells(row)

    def head(self) -> Text:
        return Text("  ".join((*map(str.ljust, self.names, self.widths), "question")), "dim")

    def line(self, row: Logged) -> Text:
        line = Text()
        for (cell, style), width in zip(self._cells(row), self.widths, strict=True):
            line.append(cell + " " * (width - cell_len(cell)), style)
            line.append("  ")
        question, style = self._question(row)
        room = max(self.width - line.cell_len, 8) if self.width is not None else UNCUT
        if cell_len(question) > room:
            question = set_cell_size(question, room - cell_len(self.glyphs.dots)).rstrip() + self.glyphs.dots
        line.append(question, style)
        line.rstrip()
        return line

    def _cells(self, row: Logged) -> list[tuple[str, str]]:
        style = style_of(row.outcome)
        route = visible(" + ".join(row.routes))
        if cell_len(route) > WIDEST:
            route = set_cell_size(route, WIDEST - 1) + self.glyphs.dots[:1]
        cells = {
            "time": (_when(row.created_ms), "dim"),
            "id": (row.id[-SHORT_ID:], "cyan"),
            "": (row.outcome, style),
            "route": (route, "bold"),
            "score": (f"{row.confidence:.2f}", ""),
            "by": (visible(row.by), ""),
            "profile": (visible(row.profile), "dim"),
            "tenant": (visible(row.tenant) or "(none)", "dim"),
        }
        shown = [cells[name] for name in self.names]
        self.widths = [max(width, cell_len(cell)) for width, (cell, _) in zip(self.widths, shown, strict=True)]
        return shown

    def _question(self, row: Logged) -> tuple[str, str]:
        if row.question is None:
            return missing_text(row, self.glyphs.dots), "dim"
        # No screen shows more than this of it.
        shown = visible(row.question[: 4 * UNCUT]).strip()
        return (shown, "") if shown else ("(blank)", "dim")


def _when(created_ms: int) -> str:
    """The time of day; on another day than today, with the date."""
    when = datetime.fromtimestamp(created_ms / 1000)
    return when.strftime("%H:%M:%S" if when.date() == datetime.now().date() else "%m-%d %H:%M")
