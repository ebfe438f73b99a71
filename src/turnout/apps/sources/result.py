"""The result of a question: the sources that were meant, those that were tried and how each ended, those that answered.

Every claim of an answer about its sources (`source_used`, `fallback_occurred`, `cached`, `success`) is derived here
from the attempts alone, so that none can be untrue.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from turnout.apps.event import Citation, Event

from .fusion import FusedSection
from .plan import Plan, PlannedPart


class SourceAttempt(Struct, frozen=True, omit_defaults=True):
    """A request to one source, and how it ended."""

    source: str
    ended: str
    """`answered`, `empty`, `slow`, or the cause of the failure."""
    ms: float
    cached: bool = False
    said: str = ""
    """The message of a failure, or the note of an answer."""
    instead_of: tuple[str, ...] = ()
    """The sources that it was a fallback for."""


class PartResult(Struct, frozen=True):
    """The result of a part; all else is derived from `tried`."""

    text: str
    role: str
    intended_source: str
    source_used: str
    """The source of the answer, or `fusion`; without an answer, the source that was asked last."""
    result: str
    success: bool
    cached: bool
    fallback_occurred: bool
    latency_ms: float
    decision: str
    tried: tuple[SourceAttempt, ...]
    sources: tuple[str, ...]
    """The sources of the answer."""
    condition_met: bool | None = None
    """Whether a condition is the case; None if that cannot be judged, and for any other part."""


class PartEnded(Event, frozen=True, tag="part_ended"):
    """A part has ended."""

    part: int
    """Its place, from 0."""
    result: PartResult


class SearchResult(Event, frozen=True, tag="done"):
    """The result of a question: the body of `POST /search`, and the last event of a stream."""

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
    """A follow-up reworded to be understood alone; empty if it did not need that."""
    citations: tuple[Citation, ...] = ()
    """The citations of a written answer."""


def part_result(
    part: PlannedPart,
    tried: Sequence[SourceAttempt],
    sections: Sequence[FusedSection],
    text: str,
    latency_ms: float,
    condition_met: bool | None = None,
) -> PartResult:
    """The result of a part whose answer consists of `sections`."""
    used = tuple(section.source for section in sections)
    fallbacks = [one for one in tried if one.instead_of]
    if used:
        named = used[0] if len(used) == 1 else "fusion"
    else:
        # A single source and its fallback: the fallback was asked last.
        named = fallbacks[0].source if fallbacks and len(part.sources) == 1 else part.intended
    cached = {one.source: one.cached for one in tried}
    return PartResult(
        text=part.text,
        role=part.role,
        intended_source=part.intended,
        source_used=named,
        result=text,
        success=bool(used),
        cached=bool(used) and all(cached[name] for name in used),
        fallback_occurred=bool(fallbacks),
        latency_ms=round(latency_ms, 3),
        decision=part.decision,
        tried=tuple(tried),
        sources=used,
        condition_met=condition_met,
    )


def search_result(
    plan: Plan, parts: Sequence[PartResult], text: str, citations: Sequence[Citation] = ()
) -> SearchResult:
    """The result of a question from those of its parts."""
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
