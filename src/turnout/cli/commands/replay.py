"""`turnout replay`: decides again what a batch has decided, and says whether anything came out differently.

With the profile that decided then, nothing may: a decision is a function of profile and question, so a difference is a
fault of the engine or of a layer. With another profile it is an ordinary comparison.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, NamedTuple

import msgspec
from cyclopts import Parameter
from msgspec import Struct

from turnout.config.load import load_profile
from turnout.core.decision import Decision
from turnout.core.errors import QueryError, TurnoutError
from turnout.core.profile import Profile
from turnout.core.query import Query
from turnout.core.verdict import Reason

from ..draw.compare import Change, Compared, Pair, Side, nothing, report
from ..draw.screen import console, counted, write_json
from ..option import DEFAULT_PROFILE, ConfigOption, JsonOption, LimitOption, ProfileOption, WorkersOption
from ..question import UNREADABLE
from ..rows import KEPT_ERRORS, Chunk, chunks, encode_id, read_row, router_of, spread
from ..stream import reading, watched, workers_for
from .diff import LISTED, limit_of


class RecordedPart(Struct):
    reasons: tuple[Reason, ...] = ()


class Recorded(Struct):
    """What a row must have kept of a decision; the rest of its JSON form is not compared."""

    profile_hash: str
    routes: tuple[str, ...]
    confidence: float
    by: str
    outcome: str
    reasons: tuple[Reason, ...] = ()
    parts: tuple[RecordedPart, ...] = ()

    def side(self) -> Side:
        reasons = [*self.reasons, *(reason for part in self.parts for reason in part.reasons)]
        told = tuple(reason.text for reason in reasons)
        return Side(" + ".join(self.routes), self.confidence, self.by, self.outcome, told)

    def agrees(self, decision: Decision) -> bool:
        found = (decision.routes, decision.outcome, decision.confidence, decision.by)
        return (self.routes, self.outcome, self.confidence, self.by) == found


class Task(NamedTuple):
    profile: str
    config: str | None
    limit: int


class Replayed(NamedTuple):
    """What came of some rows."""

    replayed: int
    """Decisions of this very profile."""
    differing: int
    differences: list[Change]
    hashes: Counter[str]
    """The other profiles, and how many decisions each made."""
    other: Compared

    @property
    def rows(self) -> int:
        return self.other.rows

    @property
    def size(self) -> int:
        return self.other.size

    def plus(self, more: Replayed, limit: int) -> Replayed:
        return Replayed(
            self.replayed + more.replayed,
            self.differing + more.differing,
            (self.differences + more.differences)[:limit],
            self.hashes + more.hashes,
            self.other.plus(more.other, limit),
        )


def replay(
    source: Annotated[str, Parameter(name="FILE", help="What turnout batch --with-text has written; `-` reads stdin.")],
    /,
    *,
    profile: ProfileOption = DEFAULT_PROFILE,
    json: JsonOption = False,
    limit: LimitOption = LISTED,
    workers: WorkersOption = None,
    config: ConfigOption = None,
) -> int:
    count = workers_for(workers)
    task = Task(profile, config, limit_of(limit))
    from turnout.models.embed import find_embedder

    loaded = load_profile(profile, config=config, embedder=find_embedder())
    found = Replayed(0, 0, [], Counter(), nothing())
    with reading(source) as (rows, size):
        for part in watched(spread(replay_chunk, task, chunks(rows), count), size):
            found = found.plus(part, task.limit)
    if json:
        write_json(msgspec.json.encode(_form(loaded, found)))
    else:
        _print(loaded, found)
    return 1 if found.differing or found.other.errors else 0


def replay_chunk(task: Task, chunk: Chunk) -> Replayed:
    router = router_of(task.profile, task.config)
    routes: Counter[Pair] = Counter()
    outcomes: Counter[Pair] = Counter()
    hashes: Counter[str] = Counter()
    changes: list[Change] = []
    differences: list[Change] = []
    messages: list[str] = []
    replayed = differing = skipped = errors = 0
    for number, line in enumerate(chunk.lines, chunk.first):
        try:
            row = read_row(line)
            if "decision" not in row and "error" in row:
                skipped += 1
                continue
            recorded = _recorded(row)
            text = _text(row, number)
            decision = router.route_sync(Query(text))
            ident = msgspec.Raw(encode_id(row["id"])) if "id" in row else None
        except QueryError as error:
            errors += 1
            messages.append(f"row {number}: {error}")
            continue
        was, now = recorded.side(), Side.of(decision)
        if recorded.profile_hash == router.profile.hash:
            replayed += 1
            if not recorded.agrees(decision):
                differing += 1
                differences.append(Change(number, text, was, now, ident))
            continue
        hashes[recorded.profile_hash] += 1
        routes[was.route, now.route] += 1
        outcomes[was.outcome, now.outcome] += 1
        if was.route != now.route and len(changes) < task.limit:
            changes.append(Change(number, text, was, now, ident))
    rows = len(chunk.lines)
    other = Compared(rows, errors, routes, outcomes, changes, messages[:KEPT_ERRORS], chunk.size, skipped)
    return Replayed(replayed, differing, differences[: task.limit], hashes, other)


def _recorded(row: dict[str, msgspec.Raw]) -> Recorded:
    if "decision" not in row:
        raise QueryError("neither a decision nor an error: is this what turnout batch has written?")
    try:
        recorded = _decision.decode(row["decision"])
    except UNREADABLE as error:
        raise QueryError(f"its decision cannot be read: {error}") from None
    if not recorded.routes or not _is_outcome(recorded.outcome):
        raise QueryError("its decision cannot be read: no route, or no outcome of two letters")
    return recorded


def _is_outcome(letters: str) -> bool:
    from ..draw.outcome import HOW, WHO

    return len(letters) == 2 and letters[0] in WHO and letters[1] in HOW


def _text(row: dict[str, msgspec.Raw], number: int) -> str:
    if "text" not in row:
        raise TurnoutError(f"row {number} has no text to decide again: make the file with turnout batch --with-text")
    try:
        return _string.decode(row["text"])
    except UNREADABLE as error:
        raise QueryError(f"field 'text' is not text: {error}") from None


_decision = msgspec.json.Decoder(Recorded)
_string = msgspec.json.Decoder(str)


def _form(profile: Profile, found: Replayed) -> dict[str, object]:
    return {
        "profile": profile.name,
        "profile_hash": profile.hash,
        "replayed": found.replayed,
        "differing": found.differing,
        "differences": found.differences,
        "skipped": found.other.skipped,
        "hashes": dict(sorted(found.hashes.items())),
        **found.other.form(),
    }


def _print(profile: Profile, found: Replayed) -> None:
    from rich.text import Text

    from ..draw.compare import list_changes

    screen = console()
    screen.print(Text.assemble((profile.name, "bold"), (f" {profile.hash}", "dim")))
    if found.replayed:
        same = f"{counted(found.replayed, 'decision')} of this profile, all the same again"
        broken = f"{found.differing:,} of {counted(found.replayed, 'decision')} of this profile differ, which none may"
        screen.print(Text(broken, "bold red") if found.differing else Text(same, "bold green"))
        list_changes(screen, found.differences, found.differing)
    if found.hashes:
        screen.print(Text(f"decided by another profile: {', '.join(sorted(found.hashes))}", "dim"))
    elif not found.replayed:
        screen.print(Text("no decisions to compare with", "yellow"))
    report(screen, found.other, what="get another route now", quiet=not found.hashes)
