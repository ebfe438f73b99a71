"""What another profile would change of the decisions that were logged: decided again beside everything else, in bounds.

Local layers judge anew; a network layer answers as it did then, and is never asked. Both profiles are put the same
question with the same answers, so that a difference is the profile's. The work gives way: it takes at most half of one
core, and as many rows as were asked for.
"""

from __future__ import annotations

import time
from collections import Counter
from itertools import islice

import msgspec
from msgspec import Struct, field

from turnout.core.errors import QueryError
from turnout.core.query import Query
from turnout.core.registry import kinds
from turnout.core.router import Router
from turnout.core.verdict import Answer, Verdict
from turnout.store import Logged, Records

# As long as it may keep the interpreter to itself, and then rests: others are served meanwhile.
WORK_S = 0.004
# How many changes are listed.
LISTED = 20
# The most rows that are decided again: some ten seconds at half a core.
MOST = 10_000


class RecordedStep(Struct):
    layer: str
    kind: str
    verdict: Verdict | None = None


class RecordedTrace(Struct):
    """Of a decision's JSON form, what its layers said."""

    trace: tuple[RecordedStep, ...] = ()
    parts: tuple[RecordedTrace, ...] = ()


_trace = msgspec.json.Decoder(RecordedTrace)


def recorded_answers(row: Logged) -> dict[str, list[Answer]]:
    """What network layers said of a logged decision, by their ids, in order."""
    found: dict[str, list[Answer]] = {}
    whole = _trace.decode(row.body)
    for one in (whole, *whole.parts):
        for step in one.trace:
            kind = kinds().get(step.kind)
            if kind is None or kind.cost == "network":
                found.setdefault(step.layer, []).append(step.verdict)
    return found


class EffectRow(Struct, frozen=True):
    """One decision that would be another."""

    id: str
    text: str
    old: str
    new: str


class Effect(Struct):
    """What came of it so far. Written by the thread that works, read by the page."""

    most: int = MOST
    rows: int = 0
    changed: int = 0
    unread: int = 0
    """Rows without the text to decide again."""
    recorded: int = 0
    """Rows for which a network layer's answer was taken from the log."""
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    changes: list[EffectRow] = field(default_factory=list)
    ended: bool = False
    stopped: bool = False
    """Set to end the work early."""

    @property
    def share(self) -> float:
        return self.changed / self.rows if self.rows else 0.0


def measure_effect(records: Records, old: Router, new: Router, effect: Effect) -> None:
    """Decide the newest of the profile's logged questions with both; blocking, for a thread."""
    try:
        began = time.perf_counter()
        for row in islice(records.decisions(profile=old.profile.name), effect.most):
            if effect.stopped:
                break
            _compare(row, old, new, effect)
            if (worked := time.perf_counter() - began) >= WORK_S:
                time.sleep(worked)
                began = time.perf_counter()
    finally:
        effect.ended = True


def _compare(row: Logged, old: Router, new: Router, effect: Effect) -> None:
    if row.question is None or row.kept != "full":
        effect.unread += 1
        return
    query, recorded = row.asked or Query(row.question), recorded_answers(row)
    try:
        was = row.routes if row.profile_hash == old.profile.hash else old.route_recorded(query, recorded).routes
        now = new.route_recorded(query, recorded).routes
    except QueryError:  # declared a route that the profile has no more, say
        effect.unread += 1
        return
    effect.rows += 1
    effect.recorded += bool(recorded)
    if was != now:
        pair = " + ".join(was), " + ".join(now)
        effect.changed += 1
        effect.pairs[pair] += 1
        if len(effect.changes) < LISTED:
            effect.changes.append(EffectRow(row.id, row.question, *pair))
