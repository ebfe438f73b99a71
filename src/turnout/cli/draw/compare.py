"""Two decisions on each of many questions: what is counted, what is kept, and how it is told.

A question changes when its routes do. Counts cover every question; of those that change, only as many are kept as are
listed, so that memory stays constant however long the file is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from turnout.core.decision import Decision

from ..rows import KEPT_ERRORS
from .outcome import spell, style_of
from .screen import Glyphs, counted, glyphs_for, visible, width_of
from .shape import Rail, bar

# How much of a long question is quoted.
QUOTED = 160
# Cells of the longest bar.
BAR = 20

Pair = tuple[str, str]


class Side(Struct, frozen=True):
    """One of the two decisions on a question."""

    route: str
    confidence: float
    by: str
    outcome: str
    reasons: tuple[str, ...]
    """What fired, as people read it."""

    @staticmethod
    def of(decision: Decision) -> Side:
        reasons = [*decision.reasons, *(reason for part in decision.parts for reason in part.reasons)]
        told = tuple(reason.text for reason in reasons)
        return Side(" + ".join(decision.routes), decision.confidence, decision.by, decision.outcome, told)


class Change(Struct, frozen=True, omit_defaults=True):
    row: int
    text: str
    old: Side
    new: Side
    id: msgspec.Raw | None = None


class Compared(NamedTuple):
    """What came of some rows."""

    rows: int
    errors: int
    routes: Counter[Pair]
    outcomes: Counter[Pair]
    changes: list[Change]
    messages: list[str]
    size: int = 0
    skipped: int = 0
    """Rows that had no decision to compare with."""

    def plus(self, other: Compared, limit: int) -> Compared:
        return Compared(
            self.rows + other.rows,
            self.errors + other.errors,
            self.routes + other.routes,
            self.outcomes + other.outcomes,
            (self.changes + other.changes)[:limit],
            (self.messages + other.messages)[:KEPT_ERRORS],
            self.size + other.size,
            self.skipped + other.skipped,
        )

    @property
    def decided(self) -> int:
        return self.routes.total()

    @property
    def changed(self) -> int:
        return sum(count for (old, new), count in self.routes.items() if old != new)

    def form(self) -> dict[str, Any]:
        """The JSON form, without the names of what is compared."""
        return {
            "rows": self.rows,
            "errors": self.errors,
            "changed": self.changed,
            "share": self.changed / self.decided if self.decided else 0.0,
            "routes": _counted(self.routes),
            "outcomes": _counted(self.outcomes),
            "changes": self.changes,
        }


def nothing() -> Compared:
    return Compared(0, 0, Counter(), Counter(), [], [])


def _counted(pairs: Counter[Pair]) -> list[dict[str, str | int]]:
    return [{"old": old, "new": new, "count": count} for (old, new), count in ranked(pairs)]


def ranked(pairs: Counter[Pair]) -> list[tuple[Pair, int]]:
    """Most frequent first; by name where that leaves a choice, so that workers cannot change the order."""
    return sorted(pairs.items(), key=lambda item: (-item[1], item[0]))


def report(screen: Console, found: Compared, *, what: str, quiet: bool = False) -> None:
    """Counts, then the questions, then what could not be decided. `quiet` leaves out the counts of no comparison."""
    glyphs = glyphs_for(screen)
    if found.errors and not found.decided:
        quiet = True  # "0 of 0" would sound as if all were well
    if not quiet:
        share = found.changed / found.decided if found.decided else 0.0
        said = f"{found.changed:,} of {counted(found.decided, 'question')} {what}, {share:.1%}"
        screen.print(Text(said, "bold yellow" if found.changed else "bold green"))
    if _moved(found.routes) or _moved(found.outcomes):
        screen.print(Rail(_counts(found, glyphs), "  "), width=width_of(screen))
    list_changes(screen, found.changes, found.changed)
    if found.skipped:
        screen.print(Text(f"{counted(found.skipped, 'row')} had no decision to compare with", "yellow"))
    if found.errors:
        screen.print(Text(f"{found.errors:,} of {counted(found.rows, 'row')} could not be read, such as", "bold red"))
        for message in found.messages:
            screen.print(Rail(Text(visible(message)), "  "))


def list_changes(screen: Console, changes: list[Change], total: int) -> None:
    """The questions with both decisions, and how many are not listed."""
    glyphs, width = glyphs_for(screen), width_of(screen)
    for change in changes:
        screen.print()
        screen.print(Rail(_question(change, glyphs), "  "), width=width)
        screen.print(Rail(_sides(change), "    "), width=width)
    if total > len(changes):
        screen.print(Text(f"\n  and {total - len(changes):,} more (--limit lists them)", "dim"))


def _moved(pairs: Counter[Pair]) -> list[tuple[Pair, int]]:
    return [(pair, count) for pair, count in ranked(pairs) if pair[0] != pair[1]]


def _counts(found: Compared, glyphs: Glyphs) -> Table:
    grid = Table.grid(padding=(0, 2))
    justifies: tuple[Literal["left", "right"], ...] = ("left", "left", "right", "right")
    for justify in justifies:
        grid.add_column(justify=justify, no_wrap=True)
    grid.add_column()
    for title, pairs in (("routes", found.routes), ("outcomes", found.outcomes)):
        for number, (pair, count) in enumerate(_moved(pairs)):
            share = count / found.decided
            last: RenderableType = bar(share, BAR, glyphs, "cyan")
            if title == "outcomes":
                # Who decided, where that is what shifted; else how.
                told = 1 if pair[0][0] == pair[1][0] else 0
                last = Text(f" {glyphs.arrow} ".join(spell(letters)[told] for letters in pair), "dim")
            names = Text(f" {glyphs.arrow} ".join(map(visible, pair)), "bold")
            grid.add_row("" if number else Text(title, "dim"), names, f"{count:,}", f"{share:.1%}", last)
    return grid


def _question(change: Change, glyphs: Glyphs) -> Text:
    opening, closing = glyphs.quotes
    text = change.text.strip()
    shown = text if len(text) <= QUOTED else f"{text[: QUOTED - 1]}{glyphs.dots}"
    ident = "" if change.id is None else f"  {visible(str(msgspec.json.decode(change.id)))}"
    return Text.assemble((f"row {change.row:,}{ident}  ", "dim"), opening, visible(shown), closing)


def _sides(change: Change) -> Table:
    """What each of the two chose, by whom, and what fired."""
    grid = Table.grid(padding=(0, 2))
    for _ in range(4):
        grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for label, side in _labelled(change):
        fired = Text("; ".join(map(visible, side.reasons)) or "nothing fired", "dim")
        who = Text(f"{side.confidence:.2f} {visible(side.by)}")
        route = Text(visible(side.route), "bold")
        grid.add_row(Text(label, "dim"), route, Text(side.outcome, style_of(side.outcome)), who, fired)
    return grid


def _labelled(change: Change) -> Iterator[tuple[str, Side]]:
    yield "old", change.old
    yield "new", change.new
