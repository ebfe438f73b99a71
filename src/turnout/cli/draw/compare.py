"""A comparison of decisions: counts, then the questions that change, then what could not be compared."""

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

from .screen import Glyphs, format_value, quoted, visible
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
    """Draw the difference between two profiles or, without an old one, between recorded decisions and those of now."""
    glyphs = screen.glyphs
    heads = [Text.assemble((one.name, "bold"), (f" {one.hash}", "dim")) for one in (old, new) if one is not None]
    screen.print(Text(f" {glyphs.arrow} ").join(heads))
    if old is None:
        _draw_replay(screen, found)
    now = "" if old is not None else " now"
    # "0 of 0" would look like success.
    if (old is not None or found.hashes) and (found.decided or not found.errors):
        changed = f"{found.changed:,} of {counted(found.decided, 'question')} get another route{now}, {found.share:.1%}"
        screen.say((changed, "bold yellow" if found.changed else "bold green"))
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
        changes = [f"{name} {_format_change(pair, glyphs)}" for name, pair in fields.items()]
        screen.say(("policy ", "dim"), (visible(route), "bold"), f"  {'; '.join(changes)}")


def _draw_replay(screen: Screen, found: Diff) -> None:
    """Draw the decisions of this very profile, which must be the same again, and name the profiles of the others."""
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
    """Print the questions with both decisions, and how many are not listed."""
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
                # Who decided, if that changed; else how.
                which = 1 if pair[0][0] == pair[1][0] else 0
                last = Text(f" {glyphs.arrow} ".join(spell(letters)[which] for letters in pair), "dim")
            names = Text(f" {glyphs.arrow} ".join(map(visible, pair)), "bold")
            grid.add_row("" if number else Text(title, "dim"), names, f"{count:,}", f"{share:.1%}", last)
    return grid


def _question(change: DiffRow, glyphs: Glyphs) -> Text:
    ident = "" if change.id is None else f"  {visible(str(msgspec.json.decode(change.id)))}"
    return Text.assemble((f"row {change.row:,}{ident}  ", "dim"), quoted(change.text.strip(), glyphs, QUOTED))


def _sides(change: DiffRow) -> Table:
    """Both decisions: route, outcome, layer, and what fired."""
    grid = columns("", "", "", "", "fold")
    for label, side in (("old", change.old), ("new", change.new)):
        fired = Text("; ".join(map(visible, side.reasons)) or "nothing fired", "dim")
        who = Text(f"{side.confidence:.2f} {visible(side.by)}")
        route = Text(visible(side.route), "bold")
        grid.add_row(Text(label, "dim"), route, Text(side.outcome, style_of(side.outcome)), who, fired)
    return grid


def _format_change(pair: tuple[Any, Any], glyphs: Glyphs) -> str:
    return f" {glyphs.arrow} ".join("nothing" if value is None else format_value(value, glyphs) for value in pair)
