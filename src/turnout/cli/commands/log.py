"""`turnout log`: the latest decisions, a line each, the newest last; with `--follow`, those to come as well."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from turnout.core.errors import NoLogYet, QueryError, StoreUnavailable, UnknownDecision
from turnout.store import Logged, Records, Span
from turnout.store.records import FIRST, PAGE

from ..draw.outcome import HOW, WHO, style_of
from ..draw.screen import Glyphs, complain, console, glyphs_for, visible, write_json
from ..option import JsonOption, OperatorOptions, SpanOptions
from ..stored import left_out, nothing_there, row_form, unread

if TYPE_CHECKING:
    from rich.text import Text

LATEST = 20
# The end of an id, which tells decisions apart (its beginning is the time): 40 bits.
SHORT_ID = 8
# How often a follower looks.
LOOK_S = 0.5
# Processes commit in groups, so a decision may become visible after one with a later id; hardly ever this much after.
OVERLAP_S = 2.0
# A question is cut to the screen; where there is none, to this many characters.
UNCUT = 300
# Where a question would get fewer cells than this, other columns leave it their room, in this order.
QUESTION, YIELDING = 24, ("profile", "by", "score")
# Routes longer than this, or many of them, are cut.
WIDEST = 24

FollowOption = Annotated[
    bool, Parameter(name=("--follow", "-f"), negative=(), show_default=False, help="Go on, as decisions come in.")
]


class Wanted(NamedTuple):
    """What the options ask for."""

    span: Span
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
    wanted = Wanted(which.span(), which.profile, *names)
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
    import os

    from ..question import session_name

    return session_name(name) if name is not None and os.path.isfile(name) else name


class Follower:
    """Sees every decision that is committed from now on, once each.

    It asks for whatever is above the id that was the newest a while ago, so a decision that becomes visible late is not
    missed; what it has seen before it does not see again.
    """

    def __init__(self, records: Records, wanted: Wanted, now: Callable[[], float] = time.monotonic) -> None:
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
    table = Lines(rows, glyphs_for(screen), screen.width if screen.is_terminal else None, tenants=tenants)
    begun: list[bool] = []

    def write(rows: Iterable[Logged]) -> None:
        for row in rows:
            if not begun:
                screen.print(table.head(), soft_wrap=True)
                begun.append(True)
            screen.print(table.line(row), soft_wrap=True)

    return write


class Lines:
    """A table that grows at its end: columns are as wide as what they have held so far."""

    def __init__(self, rows: Iterable[Logged], glyphs: Glyphs, width: int | None, *, tenants: bool = False) -> None:
        self.glyphs = glyphs
        self.width = width
        """Cells of the screen; None where there is none."""
        rows = list(rows)
        self.names = ["time", "id", "", "route", "score", "by"]
        if len({row.profile for row in rows}) > 1:
            self.names.append("profile")
        if tenants:
            self.names.append("tenant")
        self._measure(rows)
        for name in YIELDING:
            if width is not None and name in self.names and width - sum(self.widths) - 2 * len(self.widths) < QUESTION:
                self.names.remove(name)
                self._measure(rows)

    def _measure(self, rows: list[Logged]) -> None:
        self.widths = [len(name) for name in self.names]
        for row in rows:
            self._cells(row)

    def head(self) -> Text:
        from rich.text import Text

        return Text("  ".join((*map(str.ljust, self.names, self.widths), "question")), "dim")

    def line(self, row: Logged) -> Text:
        from rich.cells import cell_len, set_cell_size
        from rich.text import Text

        line = Text()
        for (cell, style), width in zip(self._cells(row), self.widths, strict=True):
            line.append(cell + " " * (width - cell_len(cell)), style)
            line.append("  ")
        question, style = self._question(row)
        room = max(self.width - line.cell_len, 8) if self.width is not None else UNCUT
        if cell_len(question) > room:
            question = set_cell_size(question, room - cell_len(self.glyphs.dots)).rstrip() + self.glyphs.dots
        line.append(question, style)
        line.rstrip()
        return line

    def _cells(self, row: Logged) -> list[tuple[str, str]]:
        from rich.cells import cell_len, set_cell_size

        style = style_of(row.outcome)
        route = visible(" + ".join(row.routes))
        if cell_len(route) > WIDEST:
            route = set_cell_size(route, WIDEST - 1) + self.glyphs.dots[:1]
        cells = {
            "time": (_when(row.created_ms), "dim"),
            "id": (row.id[-SHORT_ID:], "cyan"),
            "": (row.outcome, style),
            "route": (route, "bold"),
            "score": (f"{row.confidence:.2f}", ""),
            "by": (visible(row.by), ""),
            "profile": (visible(row.profile), "dim"),
            "tenant": (visible(row.tenant) or "(none)", "dim"),
        }
        found = [cells[name] for name in self.names]
        self.widths = [max(width, cell_len(cell)) for width, (cell, _) in zip(self.widths, found, strict=True)]
        return found

    def _question(self, row: Logged) -> tuple[str, str]:
        if row.question is None:
            return unread(row, self.glyphs.dots), "dim"
        # More than any screen shows is not looked at.
        shown = visible(row.question[: 4 * UNCUT]).strip()
        return (shown, "") if shown else ("(blank)", "dim")


def _when(created_ms: int) -> str:
    """The time of day, for another day its date as well."""
    when = datetime.fromtimestamp(created_ms / 1000)
    return when.strftime("%H:%M:%S" if when.date() == datetime.now().date() else "%m-%d %H:%M")
