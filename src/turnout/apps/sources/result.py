"""What became of a question, as values: which sources were meant, which were tried and how each ended, which answered.

Every statement of an answer about its sources (`source_used`, `fallback_occurred`, `cached`, `success`) is derived
here, from what was tried and from nothing else, so that none of them can say what did not happen.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from turnout.apps.event import Citation, Event

from .fusion import FusedSection
from .plan import Plan, PlannedPart


class Tried(Struct, frozen=True, omit_defaults=True):
    """How asking one source ended."""

    source: str
    ended: str
    """`answered`, `empty`, `slow`, or why it failed."""
    ms: float
    cached: bool = False
    said: str = ""
    """What it said instead of an answer, or that people must know beside it."""
    instead_of: tuple[str, ...] = ()
    """It was asked in the place of these."""


class PartResult(Struct, frozen=True):
    """What became of a part; `tried` is the whole truth."""

    text: str
    role: str
    intended_source: str
    source_used: str
    """Whose words the answer has; where there is none, who was asked last."""
    result: str
    success: bool
    cached: bool
    fallback_occurred: bool
    latency_ms: float
    decision: str
    tried: tuple[Tried, ...]
    sources: tuple[str, ...]
    """Whose words the answer has, by name."""
    condition_met: bool | None = None
    """Of a condition: whether it is the case; None if that cannot be judged, and of any other part."""


class PartEnded(Event, frozen=True, tag="part_ended"):
    """A part has run."""

    part: int
    """Its place, from 0."""
    result: PartResult


class SearchResult(Event, frozen=True, tag="done"):
    """The answer to a question: what `POST /search` returns, and the last event of a stream."""

    query: str
    source_used: str
    result: str
    success: bool
    cached: bool
    error: str | None
    fallback_occurred: bool
    parts: tuple[PartResult, ...]
    decision: str
    standalone: str = ""
    """A follow-up as it was understood; empty where it was understood as it is."""
    citations: tuple[Citation, ...] = ()
    """What the numbers of a written answer stand for."""


def part_result(
    part: PlannedPart,
    tried: Sequence[Tried],
    sections: Sequence[FusedSection],
    text: str,
    latency_ms: float,
    condition_met: bool | None = None,
) -> PartResult:
    """A part's result; `sections` are what the answer consists of."""
    used = tuple(section.source for section in sections)
    fell_back = [one for one in tried if one.instead_of]
    if used:
        named = used[0] if len(used) == 1 else "fusion"
    else:
        # Nobody answered: of one source and who was asked in its place, the latter was asked last.
        named = fell_back[0].source if fell_back and len(part.sources) == 1 else part.intended
    cached = {one.source: one.cached for one in tried}
    return PartResult(
        text=part.text,
        role=part.role,
        intended_source=part.intended,
        source_used=named,
        result=text,
        success=bool(used),
        cached=bool(used) and all(cached[name] for name in used),
        fallback_occurred=bool(fell_back),
        latency_ms=round(latency_ms, 3),
        decision=part.decision,
        tried=tuple(tried),
        sources=used,
        condition_met=condition_met,
    )


def search_result(
    plan: Plan, parts: Sequence[PartResult], text: str, citations: Sequence[Citation] = ()
) -> SearchResult:
    """The whole, of its parts."""
    failed = [part for part in parts if not part.success]
    return SearchResult(
        query=plan.question,
        source_used=parts[0].source_used if len(parts) == 1 else "fusion",
        result=text,
        success=len(failed) < len(parts),
        cached=all(part.cached for part in parts),
        error="\n".join(part.result for part in failed) or None,
        fallback_occurred=any(part.fallback_occurred for part in parts),
        parts=tuple(parts),
        decision=plan.decision,
        standalone=plan.standalone,
        citations=tuple(citations),
    )
