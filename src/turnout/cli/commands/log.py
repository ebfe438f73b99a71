"""`turnout log`: the latest decisions, a line each, newest last; with `--follow`, new ones as they are made."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Annotated

from cyclopts import Parameter

from turnout.core.errors import NoLogYet, QueryError
from turnout.explain.explanation import HOW, WHO
from turnout.runtime.log import left_out, nothing_there, reading_log, row_form, writing_log
from turnout.store import Logged
from turnout.store.follow import Follower
from turnout.store.records import LogFilter

from ..draw.log import DecisionLines
from ..draw.screen import complain, console, visible, write_json
from ..option import JsonOption, NameOption, NumberOption, OperatorOptions, SpanOptions
from ..question import session_name

LATEST = 20
# How often `--follow` looks for new decisions.
POLL_S = 0.5


def log(
    *,
    limit: Annotated[NumberOption, Parameter(name=("--limit", "-n"), help="How many, the latest.")] = LATEST,
    follow: Annotated[bool, Parameter(name=("--follow", "-f"), help="Keep listing decisions as they come in.")] = False,
    which: SpanOptions = SpanOptions(),
    route: Annotated[NameOption, Parameter(help="Only those with this route.")] = None,
    by: Annotated[str | None, Parameter(help="Only those this layer decided.", metavar="LAYER")] = None,
    outcome: Annotated[
        str | None, Parameter(help="Only this outcome; `?` is any letter: 'L?'.", metavar="LETTERS")
    ] = None,
    text: Annotated[str | None, Parameter(help="Only questions with these words in them.", metavar="WORDS")] = None,
    wrong: Annotated[bool, Parameter(help="Only those that were marked as wrong.")] = False,
    session: Annotated[NameOption, Parameter(help="Only this session: its name, or its file.")] = None,
    json: JsonOption = False,
    where: OperatorOptions = OperatorOptions(),
) -> None:
    if limit < 0:
        raise QueryError(f"--limit {limit}: a number from 0 up")
    values = (by, route, _letters(outcome), _session(session), text, where.key)
    wanted = LogFilter(which.span(), which.logged_as, *values, verdict="wrong" if wrong else None)
    try:
        with writing_log(where, create=True) if follow else reading_log(where) as store:
            if not follow:  # the first decision of a profile may be still to come
                which.check_profile(store)
            records = where.records(store)
            follower = Follower(records, wanted, complain) if follow else None
            rows = list(islice(records.decisions(**wanted._asdict()), limit))[::-1]
            write = _writer(rows, json=json, tenants=where.all_tenants)
            if limit and not rows and follower is None and not json:
                print(visible(nothing_there(store, records, where, all_tenants=where.all_tenants)))
            write(rows)
            if rows and not json and not where.all_tenants and (hidden := left_out(store, records, where.key)):
                console().say((hidden, "dim"))
            if follower is not None:
                follower.seen.update(row.id for row in rows)
                while True:
                    time.sleep(POLL_S)
                    write(follower.poll())
    except NoLogYet as nothing:
        if not json:
            print(visible(str(nothing)))


def _letters(outcome: str | None) -> str | None:
    if outcome is None:
        return None
    letters = f"{outcome:?<2}"
    if len(letters) == 2 and letters[0] in (*WHO, "?") and letters[1] in (*HOW, "?"):
        return letters
    raise QueryError(
        f"--outcome {outcome[:20]!r}: two letters, who ({' '.join(WHO)}) and how ({' '.join(HOW)}), `?` for any"
    )


def _session(name: str | None) -> str | None:
    return session_name(name) if name is not None and os.path.isfile(name) else name


def _writer(rows: list[Logged], *, json: bool, tenants: bool) -> Callable[[Iterable[Logged]], None]:
    """A function that writes rows, as JSON or as lines of a table that begins with these."""
    screen = console()
    table = DecisionLines(rows, screen.glyphs, screen.width if screen.is_terminal else None, tenants=tenants)
    head = [table.head()]

    def write(rows: Iterable[Logged]) -> None:
        for row in rows:
            if json:
                write_json(row_form(row))
                continue
            while head:  # above the first row only
                screen.say(head.pop())
            screen.say(table.line(row))

    return write
