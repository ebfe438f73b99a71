"""A challenger beside the champion: what it would have decided, of the questions that really came.

Logged questions are decided twice, with either model in its place in the profile, and the answers go nowhere but into
counts. No model is asked: where the local layers are not sure, the question counts as passed on. Questions that never
reach the model in question, such as those with a declared route, say nothing about it and are not counted.

What is kept beside the challenger holds numbers and names of routes, and no text.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from turnout.core.decision import Decision
from turnout.core.errors import LearnError, QueryError
from turnout.core.query import Query
from turnout.store import Records, TimeSpan
from turnout.store.row import asked_text
from turnout.store.stats import ALWAYS
from turnout.store.store import StoreReader

from .contest import Contest
from .registry import note, note_file

PASSED_ON = "(passed on)"
"""In place of a route: no local layer was sure, so a language model would have been asked."""
# Logged questions that are decided again by default: ten times what a promotion asks for.
MOST = 10_000
# Questions quoted where the two differ; the file beside the model has none.
QUOTED = 50
NOTE = "shadow"


class LoggedQuestion(NamedTuple):
    """A question of the log."""

    query: Query
    human: str | None = None
    """What a person says it is."""
    teacher: str | None = None
    """What a language model said."""


class RouteChange(Struct, frozen=True):
    """How many questions went from one route to another."""

    was: str
    now: str
    count: int


class Difference(Struct, frozen=True):
    text: str
    was: str
    now: str
    human: str | None = None


class ShadowSide(Struct, frozen=True):
    """How one of the two fared."""

    decided: int = 0
    """Questions a local layer decided, this model or one beside it."""
    labelled: int = 0
    """Of those, questions a person has labelled."""
    right: int = 0
    taught: int = 0
    """Of those decided, questions a language model was asked about at the time and no person has labelled."""
    agreed: int = 0
    """Of those, decided as the language model did."""

    @property
    def accuracy(self) -> float | None:
        return self.right / self.labelled if self.labelled else None


class Shadow(Struct, frozen=True):
    """What a run beside the champion found."""

    profile: str
    layer: str
    challenger: str
    champion: str
    at_ms: int
    decisions: int = 0
    """Questions that reached the model, of either side."""
    same: int = 0
    flips: int = 0
    """Questions both decide, in different ways."""
    moved: tuple[RouteChange, ...] = ()
    """Every pair that differs, the most frequent first."""
    old: ShadowSide = ShadowSide()
    new: ShadowSide = ShadowSide()
    elsewhere: int = 0
    """Questions that were decided before they reached the model."""
    unread: int = 0
    """Questions whose text was not kept."""
    refused: int = 0
    """Questions this profile refuses by now, such as those that declare a route it no longer has."""

    @property
    def agreement(self) -> float:
        return self.same / self.decisions if self.decisions else 0.0


class ShadowRun(NamedTuple):
    shadow: Shadow
    differences: list[Difference]


def shadow_log(
    contest: Contest,
    store: StoreReader,
    *,
    tenant: str = "",
    span: TimeSpan = ALWAYS,
    most: int = MOST,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> ShadowRun:
    """Decide the newest logged questions with a challenger and with the champion, and keep what was found."""
    questions, unread = logged(store.records(tenant), contest.profile, span=span, most=most)
    if not questions:
        why = f"{unread:,} were logged without their text" if unread else "none is logged in that span"
        raise LearnError(
            f"no question of {contest.profile!r} to decide again: {why} "
            '(text = "full" in [store] keeps it; --since, --tenant and --db choose others)'
        )
    found = shadow(contest, questions, unread=unread, progress=progress)
    keep(found.shadow)
    return found


def shadow(
    contest: Contest,
    questions: Sequence[LoggedQuestion],
    *,
    unread: int = 0,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> ShadowRun:
    """Decide every question with both. Where nothing serves yet, what would reach the challenger is passed on."""
    layer, old_router = contest.layer, contest.old
    moved: Counter[tuple[str, str]] = Counter()
    sides = (Counter[str](), Counter[str]())
    found: Counter[str] = Counter()
    differences: list[Difference] = []
    for number, asked in enumerate(questions, 1):
        progress(number, len(questions))
        try:
            new = contest.new.route_sync(asked.query)
            old = old_router.route_sync(asked.query) if old_router is not None else None
        except QueryError:
            found["refused"] += 1
            continue
        if not (reached(new, layer) or (old is not None and reached(old, layer))):
            found["elsewhere"] += 1
            continue
        was, now = routed(old) if old is not None else PASSED_ON, routed(new)
        for side, route in zip(sides, (was, now), strict=True):
            _count(side, route, asked)
        found["decisions"] += 1
        if was == now:
            found["same"] += 1
        else:
            moved[was, now] += 1
            found["flips"] += PASSED_ON not in (was, now)
            if len(differences) < QUOTED:
                differences.append(Difference(asked_text(asked.query), was, now, asked.human))
    made = Shadow(
        profile=contest.profile,
        layer=layer,
        champion=contest.champion,
        challenger=contest.challenger.digest,
        at_ms=time.time_ns() // 1_000_000,
        moved=tuple(RouteChange(was, now, count) for (was, now), count in moved.most_common()),
        old=ShadowSide(**sides[0]),
        new=ShadowSide(**sides[1]),
        unread=unread,
        **found,
    )
    return ShadowRun(made, differences)


def _count(side: Counter[str], route: str, asked: LoggedQuestion) -> None:
    if route == PASSED_ON:
        return
    side["decided"] += 1
    if asked.human is not None:
        side["labelled"] += 1
        side["right"] += route.split(" + ", maxsplit=1)[0] == asked.human
    elif asked.teacher is not None:
        side["taught"] += 1
        side["agreed"] += route.split(" + ", maxsplit=1)[0] == asked.teacher


def routed(decision: Decision) -> str:
    """Where a question goes, or that no local layer was sure."""
    sure = decision.chosen is not None or decision.by in ("default", "parts")
    return " + ".join(decision.routes) if sure else PASSED_ON


def reached(decision: Decision, layer: str) -> bool:
    """Whether the question, or a part of it, came as far as that layer."""
    return any(step.place.id == layer for step in decision.steps) or any(reached(one, layer) for one in decision.parts)


def logged(
    records: Records, profile: str, *, span: TimeSpan = ALWAYS, most: int = MOST
) -> tuple[list[LoggedQuestion], int]:
    """The newest questions of the log whose text was kept whole, with what people and models say they are; and how many
    there are whose text was not kept."""
    said = {one.id: (one.human, one.teacher) for one in records.labels(span=span, profile=profile)}
    questions: list[LoggedQuestion] = []
    unread = 0
    for row in records.decisions(span=span, profile=profile):
        if len(questions) >= most:
            break
        query = row.asked or Query(row.question or "")
        if row.kept != "full" or not asked_text(query).strip():
            unread += 1
            continue
        questions.append(LoggedQuestion(query, *said.get(row.id, (None, None))))
    return questions, unread


def keep(found: Shadow) -> None:
    """Put what a run found beside the challenger: the last run counts, the same questions never twice."""
    note(found.profile, found.layer, found.challenger, NOTE, msgspec.json.encode(found))


def kept(profile: str, layer: str, challenger: str) -> Shadow | None:
    """What the last run of a challenger found, if there was one."""
    try:
        said = note_file(profile, layer, challenger, NOTE).read_bytes()
        return msgspec.json.decode(said, type=Shadow)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
