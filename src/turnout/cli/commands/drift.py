"""`turnout student drift`: has the traffic changed since the champion learnt from it?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from turnout.runtime.log import reading_log
from turnout.text.count import counted

from ..draw.screen import console, glyphs_for, visible, write_json
from ..option import DEFAULT_PROFILE, JsonOption, ProfileOption, SinceOption, TenantOptions, hint, moment
from .promote import LayerOption, embedder_here, needing_learn

if TYPE_CHECKING:
    from rich.console import Console

    from turnout.learn.drift import Drift


def drift(
    *,
    profile: ProfileOption = DEFAULT_PROFILE,
    layer: LayerOption = None,
    since: SinceOption = None,
    against: Annotated[
        str | None,
        Parameter(
            name="--against",
            help="Compare with what was logged from then until --since; by default, with everything before it.",
            metavar="WHEN",
        ),
    ] = None,
    json: JsonOption = False,
    where: TenantOptions = TenantOptions(),
) -> int:
    with needing_learn():
        from turnout.learn.contest import open_serving
        from turnout.learn.drift import LEAST, measure_drift
    serving = open_serving(profile, layer=layer, embedder=embedder_here(), config=where.config)
    with reading_log(where) as store:
        found, begin = measure_drift(
            serving,
            store,
            tenant=where.tenant,
            since_ms=moment(since, "--since") if since is not None else None,
            against_ms=moment(against, "--against") if against is not None else 0,
        )
    if json:
        write_json(msgspec.json.encode({**msgspec.to_builtins(found), "drifted": found.drifted, "since_ms": begin}))
    else:
        train = hint("train", "-p", profile, "--from-log")
        _print(console(), serving.router.profile.name, found, begin, LEAST, train)
    return 1 if found.drifted else 0


def _print(screen: Console, profile: str, found: Drift, begin: int, least: int, train: str) -> None:
    from rich.text import Text

    from ..draw.checks import CheckRow, draw_checks
    from ..draw.screen import clock
    from ..draw.shape import Rail

    glyphs = glyphs_for(screen)
    head = Text.assemble((visible(profile), "bold"), f"  {counted(found.recent, 'decision')} since {clock(begin)}")
    screen.print(head.append(f", {found.before:,} before", "dim"), soft_wrap=True)
    if not found.enough:
        screen.print(f"too few to tell: {least} on either side are needed (--since, --against, --tenant choose others)")
        return
    rows = []
    for one in found.measures:
        known = one.p is not None and one.effect is not None
        value = f"{one.statistic} {one.effect:.3f}" if known else "unknown"
        limit = f"drift from {one.limit:.2f}; p = {one.p:.2g}" if known else ""
        rows.append(CheckRow(one.name, value, limit, (not one.drifted) if known else None, one.said))
    screen.print(Rail(draw_checks(rows, glyphs), "  "))
    if found.drifted:
        screen.print(Text(f"drift in {', '.join(found.drifted)}: {train}", "bold red"), soft_wrap=True)
    else:
        screen.print(Text("no drift", "bold green"))
