"""What a comparison of decisions found: counts, then the questions that change, then what could not be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from turnout.core.profile import Profile
from turnout.explain.explanation import spell
from turnout.runtime.diff import Diff, DiffRow, Pair, ranked
from turnout.text.count import counted

from .screen import Glyphs, quoted, say, visible
from .shape import Screen, bar, columns, style_of

# How much of a long question is quoted.
QUOTED = 160
# Cells of the longest bar.
BAR = 20


def draw_diff(
    screen: Screen,
    old: Profile | None,
    new: Profile,
    found: Diff,
    policies: Mapping[str, Mapping[str, tuple[Any, Any]]],
) -> None:
    """Of two profiles; without an old one, of what was recorded and what is decided now."""
    glyphs = screen.glyphs
    heads = [Text.assemble((one.name, "bold"), (f" {one.hash}", "dim")) for one in (old, new) if one is not None]
    screen.print(Text(f" {glyphs.arrow} ").join(heads))
    if old is None:
        _draw_replay(screen, found)
    now = "" if old is not None else " now"
    # "0 of 0" would sound as if all were well.
    if (old is not None or found.hashes) and (found.decided or not found.errors):
        said = f"{found.changed:,} of {counted(found.decided, 'question')} get another route{now}, {found.share:.1%}"
        screen.say((said, "bold yellow" if found.changed else "bold green"))
    if _moved(found.routes) or _moved(found.outcomes):
        screen.inset(_counts(found, glyphs))
    list_changes(screen, found.changes, found.changed)
    for reason, count in found.skipped.items():
        screen.say((f"{counted(count, 'row')} {reason}", "yellow"))
    if found.errors:
        screen.say((f"{found.errors:,} of {counted(found.rows, 'row')} could not be read, such as", "bold red"))
        for message in found.messages:
            screen.inset(Text(visible(message)))
    for route, fields in policies.items():
        told = "; ".join(
            f"{name} {_say(was, glyphs)} {glyphs.arrow} {_say(now, glyphs)}" for name, (was, now) in fields.items()
        )
        screen.say(("policy ", "dim"), (visible(route), "bold"), f"  {told}")


def _draw_replay(screen: Screen, found: Diff) -> None:
    """Decisions of this very profile, which must come out the same again; then whose the others are."""
    if found.replayed:
        same = f"{counted(found.replayed, 'decision')} of this profile, all the same again"
        broken = f"{found.differing:,} of {counted(found.replayed, 'decision')} of this profile differ, which none may"
        screen.print(Text(broken, "bold red") if found.differing else Text(same, "bold green"))
        list_changes(screen, found.differences, found.differing)
    if found.hashes:
        screen.say((f"decided by another profile: {', '.join(sorted(found.hashes))}", "dim"))
    elif not found.replayed:
        screen.say(("no decisions to compare with", "yellow"))


def list_changes(screen: Screen, changes: list[DiffRow], total: int) -> None:
    """The questions with both decisions, and how many are not listed."""
    glyphs = screen.glyphs
    for change in changes:
        screen.print()
        screen.inset(_question(change, glyphs))
        screen.inset(_sides(change), "    ")
    if total > len(changes):
        screen.say((f"\n  and {total - len(changes):,} more (--limit lists them)", "dim"))


def _moved(pairs: Counter[Pair]) -> list[tuple[Pair, int]]:
    return [(pair, count) for pair, count in ranked(pairs) if pair[0] != pair[1]]


def _counts(found: Diff, glyphs: Glyphs) -> Table:
    grid = columns("", "", "right", "right", "wrap")
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


def _question(change: DiffRow, glyphs: Glyphs) -> Text:
    ident = "" if change.id is None else f"  {visible(str(msgspec.json.decode(change.id)))}"
    return Text.assemble((f"row {change.row:,}{ident}  ", "dim"), quoted(change.text.strip(), glyphs, QUOTED))


def _sides(change: DiffRow) -> Table:
    """What each of the two chose, by whom, and what fired."""
    grid = columns("", "", "", "", "fold")
    for label, side in (("old", change.old), ("new", change.new)):
        fired = Text("; ".join(map(visible, side.reasons)) or "nothing fired", "dim")
        who = Text(f"{side.confidence:.2f} {visible(side.by)}")
        route = Text(visible(side.route), "bold")
        grid.add_row(Text(label, "dim"), route, Text(side.outcome, style_of(side.outcome)), who, fired)
    return grid


def _say(value: object, glyphs: Glyphs) -> str:
    if value is None:
        return "nothing"
    return say(value, glyphs) if not isinstance(value, dict) else visible(str(value))
