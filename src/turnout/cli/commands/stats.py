"""`turnout stats`: statistics of the decision log.

The picture shows whether routing gets cheaper: a row for each stretch of time with the layers' shares of its decisions,
and the share for which a model was asked. Signs and numbers repeat what colours say.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter

from turnout.core.errors import NoLogYet
from turnout.runtime.log import left_out, nothing_there, reading_log
from turnout.runtime.traffic import STRETCHES, Backlog, Stretch, backlog_of, changes_of, fitting, shift_of
from turnout.store import Records, Stats
from turnout.store.store import StoreReader

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
) -> None:
    span, profile = which.span(), which.logged_as
    try:
        with reading_log(where) as store:
            which.check_profile(store)
            records = where.records(store)
            if by == "key":
                used = store.keys.use(span=span, profile=profile, tenant=where.tenant or None, key=where.key)
                is_empty = not used
                if json:
                    write_json({"by": "key", "keys": used})
                elif used:
                    screen = console()
                    screen.print(by_key(used), width=screen.room)
            else:
                stretch = by or fitting(records, span, profile)
                bucket, shift = STRETCHES[stretch], shift_of(stretch)
                found = records.stats(span=span, profile=profile, key=where.key, bucket_ms=bucket, shift_ms=shift)
                is_empty = not found.decisions
                if json:
                    write_json(_form(found, stretch, backlog_of(store)))
                elif not is_empty:
                    _draw(found, stretch, store, records, where)
            if is_empty and not json:
                print(visible(nothing_there(store, records, where, all_tenants=where.all_tenants)))
    except NoLogYet as nothing:
        if json:
            raise
        print(visible(str(nothing)))


def _draw(found: Stats, stretch: Stretch, store: StoreReader, records: Records, where: OperatorOptions) -> None:
    screen = console()
    picture = report(found, stretch, backlog_of(store), screen.glyphs, screen.room, changes_of(found))
    screen.print(picture, width=screen.room)
    if not where.all_tenants and (hidden := left_out(store, records, where.key)):
        screen.say((hidden, "dim"))


def _form(found: Stats, stretch: Stretch, backlog: Backlog) -> dict[str, object]:
    return {
        "by": stretch,
        **msgspec.structs.asdict(found),
        "saved_usd": found.saved_usd,
        "waiting": backlog,
        "changes": changes_of(found),
    }
