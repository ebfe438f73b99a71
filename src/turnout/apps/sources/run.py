"""A plan as it runs: all parts at once, in each all of its sources at once, under one bound.

No source is waited for longer than the bound, whatever it does. One that may be replaced is given half of the time,
so that the one asked in its place has the other half. What is told of a source is what happened: every one that was
asked ends in exactly one `Tried`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from turnout.apps.event import (
    Event,
    FellBack,
    PartStarted,
    Section,
    SourceAnswered,
    SourceFailed,
    SourceSlow,
)
from turnout.core.verdict import contain

from .desk import Desk
from .frame import tell_part
from .fusion import FusedSection, cut, fuse
from .plan import Plan, PlannedPart, PlannedSource
from .result import PartEnded, PartResult, Tried, part_result
from .source import AskModel, Empty, Fact, SourceAnswer, SourceQuestion

# The specification's bound on what a caller waits for sources.
BOUND_S = 15.0
# Of it, what a source has that another one may be asked for.
FALLBACK_SHARE = 0.5

Judge = Callable[[str, Sequence[Fact]], bool | None]
"""Whether a condition is the case, by what is known; None: that does not tell."""


class Ran(NamedTuple):
    """A part that has run."""

    result: PartResult
    sections: Sequence[FusedSection]


async def run(
    plan: Plan, desk: Desk, judge: Judge, emit: Callable[[Event], None], *, tenant: str = "", bound_s: float = BOUND_S
) -> list[Ran]:
    """Every part, in the order of the plan."""
    return await run_all(prepare(plan, desk, emit, tenant=tenant, bound_s=bound_s), judge)


def prepare(
    plan: Plan,
    desk: Desk,
    emit: Callable[[Event], None],
    *,
    tenant: str = "",
    asks: AskModel | None = None,
    bound_s: float = BOUND_S,
) -> list[PartRun]:
    """What is about to run, and knows at any moment how far it is."""
    return [PartRun(number, part, desk, emit, tenant, asks, bound_s) for number, part in enumerate(plan.parts)]


async def run_all(runs: Sequence[PartRun], judge: Judge) -> list[Ran]:
    return await asyncio.gather(*(one.run(judge) for one in runs))


class PartRun:
    """One part under way."""

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
        self.began = self.clock()
        self.until = self.began + bound_s
        self.replaced_by = self.began + FALLBACK_SHARE * bound_s
        self.tried: dict[str, Tried] = {}
        self.answers: dict[str, SourceAnswer] = {}
        self.ended: PartResult | None = None
        self._replaced: list[str] = []
        """Sources in whose place another is asked."""
        self._replacing: asyncio.Task[bool] | None = None

    async def run(self, judge: Judge) -> Ran:
        part = self.part
        self.emit(PartStarted(self.number, part.text, part.role, part.names))
        await asyncio.gather(*(self._ask(source) for source in part.sources))
        tried = self._settle()
        found = [(one.source, self.answers[one.source]) for one in tried if one.source in self.answers]
        sections = fuse(found) if found else []
        met = None
        if part.role == "condition":
            facts = [fact for _, answer in found for fact in answer.facts]
            judged = contain(judge, part.text, facts) if facts else None
            met = judged if isinstance(judged, bool) else None
        text = tell_part(part, sections, tried, met)
        self.ended = part_result(part, tried, sections, text, self._since(self.began), met)
        self.emit(PartEnded(self.number, self.ended))
        return Ran(self.ended, sections)

    def so_far(self) -> PartResult:
        """What became of it; of a part that was left, as much as is known."""
        if self.ended is not None:
            return self.ended
        tried = self._settle()
        found = [(one.source, self.answers[one.source]) for one in tried if one.source in self.answers]
        return part_result(self.part, tried, fuse(found) if found else [], "", self._since(self.began))

    async def _ask(self, source: PlannedSource) -> None:
        """One source, and the one asked in its place: once, however many it stands in for."""
        if await self._try(source.name, self.replaced_by if source.fallback else self.until) or not source.fallback:
            return
        self.emit(FellBack(self.number, source.name, source.fallback))
        self._replaced.append(source.name)
        if self._replacing is None:
            self._replacing = asyncio.ensure_future(self._try(source.fallback, self.until))
        await self._replacing

    async def _try(self, name: str, until: float) -> bool:
        """Ask a source and note how that ended; whether it answered."""
        began = self.clock()
        try:
            async with asyncio.timeout_at(until):
                result, cached = await self.desk.ask(name, self.question, self.tenant)
        except TimeoutError:
            ms = self._since(began)
            self.tried[name] = Tried(name, "slow", ms)
            self.emit(SourceSlow(self.number, name, ms))
            return False
        ms = self._since(began)
        if isinstance(result, SourceAnswer):
            self.answers[name] = result
            self.tried[name] = Tried(name, "answered", ms, cached, result.note)
            self.emit(SourceAnswered(self.number, name, ms, cached))
            self.emit(Section(self.number, name, cut(result.text)))
            return True
        why, said = ("empty", "") if isinstance(result, Empty) else (str(result.why), result.said)
        self.tried[name] = Tried(name, why, ms, said=said)
        self.emit(SourceFailed(self.number, name, ms, why, said))
        return False

    def _since(self, began: float) -> float:
        return round((self.clock() - began) * 1000, 3)

    def _settle(self) -> list[Tried]:
        """Whom the plan names, in its order, with who was asked in the place of some behind the first of them."""
        settled = []
        instead = tuple(name for name in self.part.names if name in self._replaced)
        for source in self.part.sources:
            if source.name in self.tried:
                settled.append(self.tried[source.name])
            if instead[:1] == (source.name,) and source.fallback in self.tried:
                settled.append(replace(self.tried[source.fallback], instead_of=instead))
        return settled
