"""`turnout log`: the latest decisions, a line each, the newest last; with `--follow`, those to come as well."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Annotated, NamedTuple

from cyclopts import Parameter

from turnout.core.errors import NoLogYet, QueryError, StoreUnavailable, UnknownDecision
from turnout.store import Logged, Records, TimeSpan
from turnout.store.records import FIRST, PAGE

from ..draw.log import DecisionLines
from ..draw.outcome import HOW, WHO
from ..draw.screen import complain, console, glyphs_for, write_json
from ..option import JsonOption, OperatorOptions, SpanOptions
from ..question import session_name
from ..stored import left_out, nothing_there, row_form

LATEST = 20
# How often a follower looks.
LOOK_S = 0.5
# Processes commit in groups, so a decision may become visible after one with a later id; hardly ever this much after.
OVERLAP_S = 2.0

FollowOption = Annotated[
    bool, Parameter(name=("--follow", "-f"), negative=(), show_default=False, help="Go on, as decisions come in.")
]


class LogFilter(NamedTuple):
    """What the options ask for."""

    span: TimeSpan
    profile: str | None
    by: str | None
    route: str | None
    outcome: str | None
    session: str | None
    contains: str | None
    key: str | None = None

    def read(self, records: Records, *, above: str = FIRST, oldest_first: bool = False) -> Iterator[Logged]:
        return records.decisions(**self._asdict(), above=above, oldest_first=oldest_first)


def log(
    *,
    limit: Annotated[int, Parameter(name=("--limit", "-n"), help="How many, the latest.", metavar="N")] = LATEST,
    follow: FollowOption = False,
    which: SpanOptions = SpanOptions(),
    route: Annotated[str | None, Parameter(name="--route", help="Only those with this route.", metavar="NAME")] = None,
    by: Annotated[str | None, Parameter(name="--by", help="Only those this layer decided.", metavar="LAYER")] = None,
    outcome: Annotated[
        str | None, Parameter(name="--outcome", help="Only this outcome; `?` is any letter: 'L?'.", metavar="LETTERS")
    ] = None,
    text: Annotated[
        str | None, Parameter(name="--text", help="Only questions with these words in them.", metavar="WORDS")
    ] = None,
    session: Annotated[
        str | None, Parameter(name="--session", help="Only this session: its name, or its file.", metavar="NAME")
    ] = None,
    json: JsonOption = False,
    where: OperatorOptions = OperatorOptions(),
) -> int:
    if limit < 0:
        raise QueryError(f"--limit {limit}: a number from 0 up")
    names = (by, route, _letters(outcome), _session(session), text, where.key)
    wanted = LogFilter(which.span(), which.profile, *names)
    try:
        with where.open(create=follow) as store:
            records = where.records(store)
            follower = Follower(records, wanted) if follow else None
            rows = list(islice(wanted.read(records), limit))[::-1]
            write = _writer(rows, json=json, tenants=where.all_tenants)
            if limit and not rows and follower is None and not json:
                print(nothing_there(store, records, where))
            write(rows)
            if rows and not json and (said := left_out(store, records, where.key)):
                console().print(said, style="dim")
            if follower is not None:
                follower.seen.update(row.id for row in rows)
                while True:
                    time.sleep(LOOK_S)
                    write(follower.poll())
    except NoLogYet as nothing:
        if not json:
            print(nothing)
    return 0


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


class Follower:
    """Sees every decision that is committed from now on, once each.

    It asks for whatever is above the id that was the newest a while ago, so a decision that becomes visible late is not
    missed; what it has seen before it does not see again.
    """

    def __init__(self, records: Records, wanted: LogFilter, now: Callable[[], float] = time.monotonic) -> None:
        self.records = records
        self.wanted = wanted
        self.now = now
        page = list(islice(records.decisions(), PAGE))
        edge = page[0].created_ms - OVERLAP_S * 1000 if page else 0
        older = (row.id for row in page if row.created_ms < edge)
        self.above = next(older, FIRST if len(page) < PAGE else page[-1].id)
        self.seen = {row.id for row in page}
        self._newest: deque[tuple[float, str]] = deque()
        self._troubled = False

    def poll(self) -> list[Logged]:
        """What is new, in order."""
        try:
            newest = self._last()
            rows = list(self.wanted.read(self.records, above=self.above, oldest_first=True))
        except StoreUnavailable as error:
            # It may be back the next time; whoever watches is told once.
            if not self._troubled:
                complain(f"{error}; still trying")
            self._troubled = True
            return []
        self._troubled = False
        rows = [row for row in rows if row.id not in self.seen]
        self.seen.update(row.id for row in rows)
        now = self.now()
        self._newest.append((now, newest))
        while self._newest[0][0] <= now - OVERLAP_S:
            self.above = max(self.above, self._newest.popleft()[1])
        self.seen = {ident for ident in self.seen if ident > self.above}
        return rows

    def _last(self) -> str:
        try:
            return self.records.get("last").id
        except UnknownDecision:
            return FIRST


def _writer(rows: list[Logged], *, json: bool, tenants: bool) -> Callable[[Iterable[Logged]], None]:
    """What writes rows: as JSON, or as lines of a table that begins with these."""
    if json:

        def write_lines(rows: Iterable[Logged]) -> None:
            for row in rows:
                write_json(row_form(row))

        return write_lines

    screen = console()
    table = DecisionLines(rows, glyphs_for(screen), screen.width if screen.is_terminal else None, tenants=tenants)
    begun: list[bool] = []

    def write(rows: Iterable[Logged]) -> None:
        for row in rows:
            if not begun:
                screen.print(table.head(), soft_wrap=True)
                begun.append(True)
            screen.print(table.line(row), soft_wrap=True)

    return write
