"""`turnout stats`: what the decision log says of its traffic.

The picture on top is the one that tells whether routing gets cheaper: a row for each stretch of time, who decided what
share of it, and the share a model had to be asked for. Signs and numbers say what colours say.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter

from turnout.core.errors import NoLogYet
from turnout.runtime.log import left_out, nothing_there, reading_log
from turnout.runtime.traffic import STRETCHES, Backlog, Stretch, backlog_of, changes_of, fitting, shift_of
from turnout.store import Stats
from turnout.store.keys import KeyUse

from ..draw.screen import console, visible, write_json
from ..draw.traffic import by_key, report
from ..option import JsonOption, OperatorOptions, SpanOptions


def stats(
    *,
    by: Annotated[
        Literal["hour", "day", "week", "key"] | None,
        Parameter(help="One row per hour, day or week, by default as it fits; `key`: spending by key."),
    ] = None,
    which: SpanOptions = SpanOptions(),
    json: JsonOption = False,
    where: OperatorOptions = OperatorOptions(),
) -> int:
    span, profile, key = which.span(), which.logged_as, where.key
    try:
        with reading_log(where) as store:
            records = where.records(store)
            if by == "key":
                used = store.keys.use(span=span, profile=profile, tenant=where.tenant or None, key=key)
                return _by_key(
                    used,
                    nothing_there(store, records, where, all_tenants=where.all_tenants) if not used else "",
                    json=json,
                )
            stretch = by or fitting(records, span, profile)
            shift = shift_of(stretch)
            bucket = STRETCHES[stretch]
            found = records.stats(span=span, profile=profile, key=key, bucket_ms=bucket, shift_ms=shift)
            waiting = backlog_of(store)
            empty = "" if found.decisions else nothing_there(store, records, where, all_tenants=where.all_tenants)
            without = "" if where.all_tenants else left_out(store, records, key)
    except NoLogYet as nothing:
        if json:
            raise
        print(visible(str(nothing)))
        return 0
    if json:
        write_json(form(found, stretch, waiting))
    elif empty:
        print(visible(empty))
    else:
        screen = console()
        picture = report(found, stretch, waiting, screen.glyphs, screen.room, changes_of(found))
        screen.print(picture, width=screen.room)
        if without:
            screen.say((without, "dim"))
    return 0


def _by_key(used: list[KeyUse], empty: str, *, json: bool) -> int:
    """Who spent what, over all tenants."""
    if json:
        write_json({"by": "key", "keys": used})
    elif empty:
        print(visible(empty))
    else:
        screen = console()
        screen.print(by_key(used), width=screen.room)
    return 0


def form(found: Stats, stretch: Stretch, waiting: Backlog) -> dict[str, object]:
    return {
        "by": stretch,
        **msgspec.structs.asdict(found),
        "saved_usd": found.saved_usd,
        "waiting": waiting,
        "changes": changes_of(found),
    }
