"""Runs a plan: all parts at once, and in each all sources at once, within one time limit.

No source is awaited longer than that. One with a fallback has half of the time, so that the fallback has the other
half. Each source that was asked ends in exactly one `SourceAttempt`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from turnout.apps.event import Event, FellBack, PartStarted, Section, SourceAnswered, SourceFailed, SourceSlow
from turnout.core.verdict import contain

from .desk import Desk
from .frame import tell_part
from .fusion import FusedSection, cut, fuse
from .plan import Plan, PlannedPart, PlannedSource
from .result import PartEnded, PartResult, SourceAttempt, part_result
from .source import AskModel, Empty, Fact, SourceAnswer, SourceQuestion

# The specification's limit on the time a caller waits for sources.
BOUND_S = 15.0
# The share of it that a source with a fallback has.
FALLBACK_SHARE = 0.5

Judge = Callable[[str, Sequence[Fact]], bool | None]
"""Whether a condition is the case by the facts; None if they do not tell."""


class FinishedPart(NamedTuple):
    result: PartResult
    sections: Sequence[FusedSection]


def prepare(
    plan: Plan,
    desk: Desk,
    emit: Callable[[Event], None],
    *,
    tenant: str = "",
    asks: AskModel | None = None,
    bound_s: float = BOUND_S,
) -> list[PartRun]:
    """The parts of a plan, ready to run."""
    return [PartRun(number, part, desk, emit, tenant, asks, bound_s) for number, part in enumerate(plan.parts)]


async def run_all(runs: Sequence[PartRun], judge: Judge) -> list[FinishedPart]:
    return await asyncio.gather(*(one.run(judge) for one in runs))


class PartRun:
    """One part that runs; its result so far is known at any moment."""

    def __init__(
        self,
        number: int,
        part: PlannedPart,
        desk: Desk,
        emit: Callable[[Event], None],
        tenant: str,
        asks: AskModel | None,
        bound_s: float,
    ) -> None:
        self.number = number
        self.part = part
        self.desk = desk
        self.emit = emit
        self.tenant = tenant
        self.question = SourceQuestion(part.text, asks=asks)
        self.clock = asyncio.get_running_loop().time
        self.started = self.clock()
        self.until = self.started + bound_s
        self.fallback_from = self.started + FALLBACK_SHARE * bound_s
        self.tried: dict[str, SourceAttempt] = {}
        self.answers: dict[str, SourceAnswer] = {}
        self.ended: PartResult | None = None
        self._replaced: list[str] = []
        """Sources whose fallback is asked."""
        self._replacing: asyncio.Task[bool] | None = None

    async def run(self, judge: Judge) -> FinishedPart:
        part = self.part
        self.emit(PartStarted(self.number, part.text, part.role, part.names))
        await asyncio.gather(*(self._ask(source) for source in part.sources))
        tried, answered = self._settle()
        sections = fuse(answered)
        met = None
        if part.role == "condition":
            facts = [fact for _, answer in answered for fact in answer.facts]
            judged = contain(judge, part.text, facts) if facts else None
            met = judged if isinstance(judged, bool) else None
        text = tell_part(part, sections, tried, met)
        self.ended = part_result(part, tried, sections, text, self._ms_since(self.started), met)
        self.emit(PartEnded(self.number, self.ended))
        return FinishedPart(self.ended, sections)

    def so_far(self) -> PartResult:
        """The result; of an unfinished part, as much as is known."""
        if self.ended is not None:
            return self.ended
        tried, answered = self._settle()
        return part_result(self.part, tried, fuse(answered), "", self._ms_since(self.started))

    async def _ask(self, source: PlannedSource) -> None:
        """Ask a source, then its fallback if needed; a fallback of several sources is asked once."""
        if await self._try(source.name, self.fallback_from if source.fallback else self.until) or not source.fallback:
            return
        self.emit(FellBack(self.number, source.name, source.fallback))
        self._replaced.append(source.name)
        if self._replacing is None:
            self._replacing = asyncio.ensure_future(self._try(source.fallback, self.until))
        await self._replacing

    async def _try(self, name: str, until: float) -> bool:
        """Ask a source and note how that ended; returns whether it answered."""
        started = self.clock()
        try:
            async with asyncio.timeout_at(until):
                result, cached = await self.desk.ask(name, self.question, self.tenant)
        except TimeoutError:
            ms = self._ms_since(started)
            self.tried[name] = SourceAttempt(name, "slow", ms)
            self.emit(SourceSlow(self.number, name, ms))
            return False
        ms = self._ms_since(started)
        if isinstance(result, SourceAnswer):
            self.answers[name] = result
            self.tried[name] = SourceAttempt(name, "answered", ms, cached, result.note)
            self.emit(SourceAnswered(self.number, name, ms, cached))
            self.emit(Section(self.number, name, cut(result.text)))
            return True
        why, message = ("empty", "") if isinstance(result, Empty) else (str(result.why), result.said)
        self.tried[name] = SourceAttempt(name, why, ms, said=message)
        self.emit(SourceFailed(self.number, name, ms, why, message))
        return False

    def _ms_since(self, started: float) -> float:
        return round((self.clock() - started) * 1000, 3)

    def _settle(self) -> tuple[list[SourceAttempt], list[tuple[str, SourceAnswer]]]:
        """All attempts in the order of the plan, a fallback after the first of its sources; and the answers."""
        tried = []
        instead = tuple(name for name in self.part.names if name in self._replaced)
        for source in self.part.sources:
            if source.name in self.tried:
                tried.append(self.tried[source.name])
            if instead[:1] == (source.name,) and source.fallback in self.tried:
                tried.append(replace(self.tried[source.fallback], instead_of=instead))
        return tried, [(one.source, self.answers[one.source]) for one in tried if one.source in self.answers]
