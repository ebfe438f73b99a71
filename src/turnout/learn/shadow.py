"""Runs a challenger beside the champion on logged questions.

Each question is decided twice, with either model in the profile, and the decisions are only counted. No language model
is asked: if the local layers are not sure, the question counts as passed on. Questions that never reach the model, such
as those with a declared route, are not counted.

The result that is stored beside the challenger has numbers and names of routes, but no text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from turnout.core.decision import Decision
from turnout.core.errors import LearnError, QueryError
from turnout.core.query import Query
from turnout.store import Records, TimeSpan
from turnout.store.row import asked_text, now_ms
from turnout.store.stats import ALWAYS
from turnout.store.store import StoreReader

from .contest import Contest
from .dataset import JOIN
from .registry import note, note_file

PASSED_ON = "(passed on)"
"""Stands for a route if no local layer was sure, so that a language model would have been asked."""
# The default number of questions: ten times what a promotion needs.
MOST = 10_000
# Differing questions that are quoted; the stored result has none.
QUOTED = 50
NOTE = "shadow"


class LoggedQuestion(NamedTuple):
    """A question of the log."""

    query: Query
    human: str | None = None
    """The label by a person."""
    teacher: str | None = None
    """The label by a language model."""


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
    """The results of one of the two models."""

    decided: int = 0
    """Questions decided by any local layer."""
    labelled: int = 0
    """Decided questions that a person has labelled."""
    right: int = 0
    taught: int = 0
    """Decided questions that only a language model has labelled."""
    agreed: int = 0
    """Those of `taught` that were decided as the language model said."""

    @property
    def accuracy(self) -> float | None:
        return self.right / self.labelled if self.labelled else None


class Shadow(Struct, frozen=True):
    """The result of a run beside the champion."""

    profile: str
    layer: str
    challenger: str
    champion: str
    at_ms: int
    decisions: int = 0
    """Questions that reached either model."""
    same: int = 0
    flips: int = 0
    """Questions that both decide, but differently."""
    moved: tuple[RouteChange, ...] = ()
    """The changes of route, the most frequent first."""
    old: ShadowSide = ShadowSide()
    new: ShadowSide = ShadowSide()
    elsewhere: int = 0
    """Questions that were decided before they reached the model."""
    unread: int = 0
    """Questions whose text was not kept."""
    refused: int = 0
    """Questions that the profile now refuses, such as those that declare a route it no longer has."""

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
    """Decide the newest logged questions with the challenger and with the champion, and store the result."""
    questions, unread = logged(store.records(tenant), contest.profile, span=span, most=most)
    if not questions:
        why = f"{unread:,} were logged without their text" if unread else "none is logged in that span"
        raise LearnError(
            f"no question of {contest.profile!r} to decide again: {why} "
            '(text = "full" in [store] keeps it; --since, --tenant and --db choose others)'
        )
    run = shadow(contest, questions, unread=unread, progress=progress)
    keep(run.shadow)
    return run


def shadow(
    contest: Contest,
    questions: Sequence[LoggedQuestion],
    *,
    unread: int = 0,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> ShadowRun:
    """Decide every question with both models. Without a champion, its side counts as passed on."""
    layer, old_router = contest.layer, contest.old
    moved: Counter[tuple[str, str]] = Counter()
    sides = (Counter[str](), Counter[str]())
    counts: Counter[str] = Counter()
    differences: list[Difference] = []
    for number, asked in enumerate(questions, 1):
        progress(number, len(questions))
        try:
            new = contest.new.route_sync(asked.query)
            old = old_router.route_sync(asked.query) if old_router is not None else None
        except QueryError:
            counts["refused"] += 1
            continue
        if not (reached(new, layer) or (old is not None and reached(old, layer))):
            counts["elsewhere"] += 1
            continue
        was, now = routed(old) if old is not None else PASSED_ON, routed(new)
        for side, route in zip(sides, (was, now), strict=True):
            _count(side, route, asked)
        counts["decisions"] += 1
        if was == now:
            counts["same"] += 1
        else:
            moved[was, now] += 1
            counts["flips"] += PASSED_ON not in (was, now)
            if len(differences) < QUOTED:
                differences.append(Difference(asked_text(asked.query), was, now, asked.human))
    result = Shadow(
        profile=contest.profile,
        layer=layer,
        champion=contest.champion,
        challenger=contest.challenger.digest,
        at_ms=now_ms(),
        moved=tuple(RouteChange(was, now, count) for (was, now), count in moved.most_common()),
        old=ShadowSide(**sides[0]),
        new=ShadowSide(**sides[1]),
        unread=unread,
        **counts,
    )
    return ShadowRun(result, differences)


def _count(side: Counter[str], routes: str, asked: LoggedQuestion) -> None:
    if routes == PASSED_ON:
        return
    first = routes.split(JOIN, maxsplit=1)[0]
    side["decided"] += 1
    if asked.human is not None:
        side["labelled"] += 1
        side["right"] += first == asked.human
    elif asked.teacher is not None:
        side["taught"] += 1
        side["agreed"] += first == asked.teacher


def routed(decision: Decision) -> str:
    """The routes of a decision, or PASSED_ON if no local layer was sure."""
    sure = decision.chosen is not None or decision.by in ("default", "parts")
    return JOIN.join(decision.routes) if sure else PASSED_ON


def reached(decision: Decision, layer: str) -> bool:
    """Whether the question, or a part of it, reached that layer."""
    return any(step.place.id == layer for step in decision.steps) or any(reached(one, layer) for one in decision.parts)


def logged(
    records: Records, profile: str, *, span: TimeSpan = ALWAYS, most: int = MOST
) -> tuple[list[LoggedQuestion], int]:
    """The newest questions of the log with their whole text and their labels, and the number of those without text."""
    labels = {one.id: (one.human, one.teacher) for one in records.labels(span=span, profile=profile)}
    questions: list[LoggedQuestion] = []
    unread = 0
    for row in records.decisions(span=span, profile=profile):
        if len(questions) >= most:
            break
        query = row.asked or Query(row.question or "")
        if row.kept != "full" or not asked_text(query).strip():
            unread += 1
            continue
        questions.append(LoggedQuestion(query, *labels.get(row.id, (None, None))))
    return questions, unread


def keep(result: Shadow) -> None:
    """Store the result of a run beside the challenger; it replaces that of an earlier run."""
    note(result.profile, result.layer, result.challenger, NOTE, msgspec.json.encode(result))


def kept(profile: str, layer: str, challenger: str) -> Shadow | None:
    """The result of the last run of a challenger, if there is one."""
    try:
        return msgspec.json.decode(note_file(profile, layer, challenger, NOTE).read_bytes(), type=Shadow)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
