"""`turnout drift`: has the traffic changed since the champion learnt from it?"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from turnout.core.errors import LearnError
from turnout.store import Span

from .option import ConfigOption, DbOption, JsonOption, ProfileOption, SinceOption, TenantOption
from .promote import PROMOTED, LayerOption, embedder_here, needing_learn
from .screen import console, counted, glyphs_for, visible, write_json
from .stored import moment, reading_log

if TYPE_CHECKING:
    from rich.console import Console

    from turnout.learn.drift import Drift

# What is recent unless told, where no model says when it learnt: a month.
RECENT_MS = 30 * 24 * 3_600_000


def drift(
    *,
    profile: ProfileOption = PROMOTED,
    layer: LayerOption = None,
    since: SinceOption = None,
    against: Annotated[
        str | None,
        Parameter(
            name="--against",
            help="Compare with what was logged from then until --since; everything before it unless told.",
            metavar="WHEN",
        ),
    ] = None,
    tenant: TenantOption = "",
    json: JsonOption = False,
    db: DbOption = None,
    config: ConfigOption = None,
) -> int:
    with needing_learn():
        from turnout.learn.contest import champion_router
        from turnout.learn.drift import LEAST, compare, judge_of, window
        from turnout.learn.registry import trained_ms
    router, name, digest = champion_router(profile, layer=layer, embedder=embedder_here(), config=config)
    own = router.profile.name
    begin = moment(since, "--since") if since is not None else trained_ms(own, name) or _now() - RECENT_MS
    start = moment(against, "--against") if against is not None else 0
    if start >= begin:
        raise LearnError(f"--against {against} is not before --since: there is nothing between them to compare with")
    with reading_log(db, config) as store:
        records = store.records(tenant)
        before = window(records, own, Span(start, begin))
        recent = window(records, own, Span(begin))
    judge = judge_of(router, name) if digest is not None else None
    found = compare(before, recent, judge=judge, judged_by=digest or "")
    if json:
        write_json(msgspec.json.encode({**msgspec.to_builtins(found), "drifted": found.drifted, "since_ms": begin}))
    else:
        _print(console(), own, found, begin, LEAST)
    return 1 if found.drifted else 0


def _now() -> int:
    return time.time_ns() // 1_000_000


def _print(screen: Console, profile: str, found: Drift, begin: int, least: int) -> None:
    from rich.text import Text

    from .checks import Row, draw_checks
    from .shape import Rail
    from .stored import clock

    glyphs = glyphs_for(screen)
    head = Text.assemble((visible(profile), "bold"), f"  {counted(found.recent, 'decision')} since {clock(begin)}")
    screen.print(head.append(f", {found.before:,} before", "dim"), soft_wrap=True)
    if not found.enough:
        screen.print(f"too few to tell: {least} on either side are needed (--since, --against, --tenant choose others)")
        return
    rows = []
    for one in found.measures:
        known = one.p is not None and one.effect is not None and one.limit is not None
        value = f"{one.statistic} {one.effect:.3f}" if known else "unknown"
        limit = f"drift from {one.limit:.2f}; p = {one.p:.2g}" if known else ""
        rows.append(Row(one.name, value, limit, (not one.drifted) if known else None, one.said))
    screen.print(Rail(draw_checks(rows, glyphs), "  "))
    if found.drifted:
        screen.print(
            Text(f"drift in {', '.join(found.drifted)}: turnout train -p {visible(profile)} --from-log", "bold red")
        )
    else:
        screen.print(Text("no drift", "bold green"))
