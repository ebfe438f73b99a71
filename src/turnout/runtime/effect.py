"""Measures what another profile would change, by deciding logged questions again.

Local layers judge anew; network layers are not asked, but repeat their logged answers. Both profiles get the same
questions and answers, so every difference is due to the profile. The work runs in a thread, takes at most half of one
core, and stops after `most` rows.
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

# After working this long, the thread sleeps for as long, so that requests are served meanwhile.
WORK_S = 0.004
# How many changes to list.
LISTED = 20
# Rows to decide again: some ten seconds at half a core.
MOST = 10_000


class RecordedStep(Struct):
    layer: str
    kind: str
    verdict: Verdict | None = None


class RecordedTrace(Struct):
    """The verdicts of the layers in a decision's JSON form."""

    trace: tuple[RecordedStep, ...] = ()
    parts: tuple[RecordedTrace, ...] = ()


_trace = msgspec.json.Decoder(RecordedTrace)


def recorded_answers(row: Logged) -> dict[str, list[Answer]]:
    """The verdicts of network layers in a logged decision, by layer id, in order."""
    found: dict[str, list[Answer]] = {}
    whole = _trace.decode(row.body)
    for step in (step for part in (whole, *whole.parts) for step in part.trace):
        kind = kinds().get(step.kind)
        if kind is None or kind.cost == "network":
            found.setdefault(step.layer, []).append(step.verdict)
    return found


class EffectRow(Struct, frozen=True):
    """One decision that would change."""

    id: str
    text: str
    old: str
    new: str


class Effect(Struct):
    """The result so far. Written by the working thread, read by the page."""

    most: int = MOST
    rows: int = 0
    changed: int = 0
    unread: int = 0
    """Rows that could not be decided again."""
    recorded: int = 0
    """Rows for which a network layer's logged answer was used."""
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    changes: list[EffectRow] = field(default_factory=list)
    ended: bool = False
    stopped: bool = False
    """Set to end the work early."""

    @property
    def share(self) -> float:
        return self.changed / self.rows if self.rows else 0.0


def measure_effect(records: Records, old: Router, new: Router, effect: Effect) -> None:
    """Decide the newest of the profile's logged questions with both profiles. Blocks: call it in a thread."""
    try:
        started = time.perf_counter()
        for row in islice(records.decisions(profile=old.profile.name), effect.most):
            if effect.stopped:
                break
            _compare(row, old, new, effect)
            if (worked := time.perf_counter() - started) >= WORK_S:
                time.sleep(worked)
                started = time.perf_counter()
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
    except QueryError:  # for example, it declared a route that the profile no longer has
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
