"""The words around what sources say: whether a condition is met, who had nothing, which part an answer is to.

Three framings of a condition, each with the real answer in it: it is the case, it is not, it cannot be judged. Nothing
is left unsaid: every source that was tried and is not in an answer is named in it.
"""

from __future__ import annotations

from collections.abc import Sequence

from turnout.apps.event import Citation

from .fusion import FusedSection, label, quote
from .plan import Plan, PlannedPart
from .result import PartResult, Tried

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


def tell_part(part: PlannedPart, sections: Sequence[FusedSection], tried: Sequence[Tried], met: bool | None) -> str:
    """The answer to a part."""
    if not sections:
        body = f"Nothing was found: {_list(tried)}."
    elif len(sections) == 1:
        body = sections[0].text
    else:
        body = label(sections)
    used = {section.source for section in sections}
    notes = [quote(one.said) for one in tried if one.source in used and one.said]
    if sections and (missing := [one for one in tried if one.ended != "answered"]):
        notes.append(f"Not in this answer: {_list(missing)}.")
    body = "\n\n".join((body, *notes))
    return f"{_verdict(part, met)}\n\n{body}" if part.role == "condition" else body


def _verdict(part: PlannedPart, met: bool | None) -> str:
    condition, then = part.text.rstrip(" .?!"), part.then.rstrip(" .!")
    if met is None:
        return f"It cannot be judged whether this is the case: {condition}. (It was to decide: {then}.)"
    if met:
        return f"It is the case: {condition}. So: {then}."
    return f"It is not the case: {condition}. So this does not apply: {then}."


def _list(tried: Sequence[Tried]) -> str:
    return "; ".join(f"{one.source} {_WHY.get(one.ended, one.ended)}" for one in tried)


def tell_rest(plan: Plan, parts: Sequence[PartResult]) -> str:
    """What is left to say where the sections have been shown already: verdicts, and who is missing."""
    return "\n\n".join(
        said for planned, part in zip(plan.parts, parts, strict=True) if (said := tell_rest_of(planned, part))
    )


def tell_rest_of(planned: PlannedPart, part: PartResult) -> str:
    said = [_verdict(planned, part.condition_met)] if part.role == "condition" else []
    said += [quote(one.said) for one in part.tried if one.source in part.sources and one.said]
    if missing := [one for one in part.tried if one.ended != "answered"]:
        said.append(f"{'Not in this answer' if part.success else 'Nothing was found'}: {_list(missing)}.")
    return "\n\n".join(said)


def tell_citation(cited: Citation) -> str:
    """What a number stands for."""
    place = " ".join(filter(None, (cited.title, cited.url)))
    return f"[{cited.number}] {cited.source}{f': {place}' if place else ''}"


def tell_all(parts: Sequence[PartResult]) -> str:
    """The answers to all parts; of one alone its answer, else each below the words it answers."""
    if len(parts) == 1:
        return parts[0].result
    return "\n\n".join(part.result if part.role == "condition" else f"{part.text}\n{part.result}" for part in parts)
