"""The text around sources' answers: the verdict on a condition, the sources without an answer, the part answered.

A condition has three framings, each with the real answer: it is the case, it is not, it cannot be judged. An answer
names every source that was tried and is not in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from turnout.apps.event import Citation

from .fusion import FusedSection, label, quote
from .plan import Plan, PlannedPart
from .result import PartResult, SourceAttempt

_WHY = {
    "empty": "has nothing about this",
    "slow": "did not answer in time",
    "not_configured": "is not configured",
    "unreachable": "cannot be reached",
    "timeout": "took too long",
    "denied": "refused us",
    "malformed": "sent something unreadable",
    "error": "failed",
}


def tell_part(
    part: PlannedPart, sections: Sequence[FusedSection], tried: Sequence[SourceAttempt], met: bool | None
) -> str:
    """The answer to a part."""
    body = [sections[0].text if len(sections) == 1 else label(sections)] if sections else []
    used = [section.source for section in sections]
    return "\n\n".join((*_verdict(part, met), *body, *_notes(tried, used)))


def _verdict(part: PlannedPart, met: bool | None) -> Iterator[str]:
    """The verdict on a condition; nothing for any other part."""
    condition, then = part.text.rstrip(" .?!"), part.then.rstrip(" .!")
    if part.role != "condition":
        return
    if met is None:
        yield f"It cannot be judged whether this is the case: {condition}. (It was to decide: {then}.)"
    elif met:
        yield f"It is the case: {condition}. So: {then}."
    else:
        yield f"It is not the case: {condition}. So this does not apply: {then}."


def _notes(tried: Sequence[SourceAttempt], used: Sequence[str]) -> Iterator[str]:
    """The notes of the sources in the answer, and the sources missing from it."""
    yield from (quote(one.said) for one in tried if one.source in used and one.said)
    if missing := [f"{one.source} {_WHY.get(one.ended, one.ended)}" for one in tried if one.ended != "answered"]:
        yield f"{'Not in this answer' if used else 'Nothing was found'}: {'; '.join(missing)}."


def tell_rest(plan: Plan, parts: Sequence[PartResult]) -> str:
    """The text after sections that have been shown already: verdicts, notes, and missing sources."""
    return "\n\n".join(filter(None, map(tell_rest_of, plan.parts, parts)))


def tell_rest_of(planned: PlannedPart, part: PartResult) -> str:
    return "\n\n".join((*_verdict(planned, part.condition_met), *_notes(part.tried, part.sources)))


def tell_citation(cited: Citation) -> str:
    place = " ".join(filter(None, (cited.title, cited.url)))
    return f"[{cited.number}] {cited.source}{f': {place}' if place else ''}"


def tell_all(parts: Sequence[PartResult]) -> str:
    """The answers to all parts: a single one alone, several each below the words it answers."""
    if len(parts) == 1:
        return parts[0].result
    return "\n\n".join(part.result if part.role == "condition" else f"{part.text}\n{part.result}" for part in parts)
