"""`turnout student shadow`: what a challenger would have decided, of the questions that really came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from turnout.core.errors import QueryError
from turnout.runtime.log import reading_log
from turnout.text.count import counted

from ..draw.screen import console, glyphs_for, visible, write_json
from ..option import (
    DEFAULT_PROFILE,
    JsonOption,
    ProfileOption,
    SinceOption,
    TenantOptions,
    UntilOption,
    hint,
    span_of,
)
from ..stream import progressing
from .promote import LayerOption, champion_name, embedder_here, needing_learn

if TYPE_CHECKING:
    from rich.console import Console

    from turnout.learn.shadow import Difference, Shadow

# Questions quoted, and pairs of routes listed; --json has all pairs.
LISTED = 10
# How much of a question is quoted.
QUOTED = 100


def shadow(
    *,
    profile: ProfileOption = DEFAULT_PROFILE,
    layer: LayerOption = None,
    model: Annotated[
        str | None,
        Parameter(name="--model", help="The challenger; by default the newest that does not serve.", metavar="DIGEST"),
    ] = None,
    limit: Annotated[
        int, Parameter(name="--limit", help="At most so many questions, the newest.", metavar="N")
    ] = 10_000,
    since: SinceOption = None,
    until: UntilOption = None,
    json: JsonOption = False,
    where: TenantOptions = TenantOptions(),
) -> int:
    if limit < 1:
        raise QueryError(f"--limit {limit}: at least 1 is needed")
    with needing_learn():
        from turnout.config.learning import learn_settings
        from turnout.learn.contest import open_contest
        from turnout.learn.shadow import shadow_log
    contest = open_contest(profile, layer=layer, digest=model, embedder=embedder_here(), config=where.config)
    span = span_of(since, until)
    with reading_log(where) as store, progressing("questions") as progress:
        found, differences = shadow_log(contest, store, tenant=where.tenant, span=span, most=limit, progress=progress)
    needed = learn_settings(where.config).shadow_decisions
    if json:
        shares = {"agreement": found.agreement, "old_accuracy": found.old.accuracy, "new_accuracy": found.new.accuracy}
        write_json(msgspec.json.encode({**msgspec.to_builtins(found), **shares, "needed": needed}))
    else:
        _print(console(), found, differences, needed, profile)
    return 0


def _print(screen: Console, found: Shadow, differences: list[Difference], needed: int, profile: str) -> None:
    from rich.table import Table
    from rich.text import Text

    from ..draw.shape import Rail

    glyphs = glyphs_for(screen)
    head = Text.assemble((f"{visible(found.profile)} {visible(found.layer)}", "bold"), f"  {found.challenger}")
    screen.print(head.append(f" beside {champion_name(found)}", "dim"), soft_wrap=True)
    screen.print(f"{counted(found.decisions, 'decision')}, {found.agreement:.1%} alike, {found.flips:,} in another way")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    for _ in range(2):
        grid.add_column(justify="right", no_wrap=True)
    grid.add_row("", Text("champion", "dim"), Text("challenger", "dim"))
    share = [f"{one.decided / max(found.decisions, 1):.1%}" for one in (found.old, found.new)]
    grid.add_row("decided here", *share)
    for name, old, new in (
        ("right, where people labelled", (found.old.right, found.old.labelled), (found.new.right, found.new.labelled)),
        ("as a model had said", (found.old.agreed, found.old.taught), (found.new.agreed, found.new.taught)),
    ):
        if old[1] or new[1]:
            grid.add_row(name, *(f"{hits / of:.1%} of {of:,}" if of else "none" for hits, of in (old, new)))
    screen.print(Rail(grid, "  "))
    for moved in found.moved[:LISTED]:
        change = Text.assemble(visible(moved.was), f" {glyphs.arrow} ", (visible(moved.now), "bold"))
        screen.print(Rail(change.append(f"  {moved.count:,}", "dim"), "  "))
    for one in differences[:LISTED]:
        start, end = glyphs.quotes
        text = one.text if len(one.text) <= QUOTED else one.text[:QUOTED] + glyphs.dots
        quoted = Text(f"{start}{visible(text)}{end} ", "dim")
        screen.print(Rail(quoted.append(f"{visible(one.was)} {glyphs.arrow} {visible(one.now)}"), "    "))
    for count, said in (
        (found.elsewhere, "were decided before they reached it"),
        (found.unread, "were logged without their text"),
        (found.refused, "are refused by this profile by now"),
    ):
        if count:
            screen.print(Text(f"{counted(count, 'question')} {said}", "dim"))
    if found.decisions < needed:
        screen.print(Text(f"a promotion asks for {needed:,} decisions: {needed - found.decisions:,} more", "yellow"))
    else:
        screen.print(f"enough for {hint('student', 'promote', '-p', profile)} ({needed:,} decisions)", soft_wrap=True)
