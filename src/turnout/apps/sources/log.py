"""Questions to sources in the log: what is written of them, the latest ones, and figures over all.

Fallbacks and cache hits are counted by part, so that those inside a split or conditional question are not missed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from turnout.core.decision import Decision
from turnout.store import Outcome
from turnout.store.records import Search

from .result import PartResult, SearchResult

# The specification's list.
TOP = 10


def note(result: SearchResult | PartResult) -> dict[str, Any]:
    """The fields of a result without a column. They contain no text, and so are the same at every redaction level."""
    fields: dict[str, Any] = {"cached": result.cached, "success": result.success}
    if isinstance(result, PartResult):
        fields["tried_ms"] = {one.source: one.ms for one in result.tried if not one.cached}
        fields["fell_back"] = {one.source: len(one.instead_of) for one in result.tried if one.instead_of}
    return fields


def why_fallback(part: PartResult) -> str | None:
    """Which fallback was asked instead of which sources, if any."""
    fallbacks = (f"{one.source} instead of {' and '.join(one.instead_of)}" for one in part.tried if one.instead_of)
    return next(fallbacks, None)


def part_outcomes(decision: Decision, result: SearchResult) -> list[tuple[Decision, Outcome]]:
    """The outcome of each part of a question; none if it was not split."""
    rows = {part.id: part for part in decision.parts}
    return [(rows[part.decision], part_outcome(part)) for part in result.parts if part.decision in rows]


def part_outcome(part: PartResult) -> Outcome:
    return Outcome(
        ended="answered" if part.success else "failed",
        fallback=why_fallback(part),
        elapsed_ms=part.latency_ms,
        sources=part.sources,
        extra=note(part),
    )


def wholes(rows: Iterable[Search]) -> Iterator[tuple[Search, list[Search]]]:
    """Each question with its parts; one that was not split is its own part. In the log, newest first, parts follow
    their question, perhaps with other rows between them."""
    waiting: dict[str, tuple[Search, list[Search]]] = {}
    for row in rows:
        if row.parent_id is None and not row.extra.get("parts"):
            yield row, [row]
        elif row.parent_id is None:
            waiting[row.id] = (row, [])
        elif row.parent_id in waiting:
            question, parts = waiting[row.parent_id]
            parts.insert(0, row)
            if len(parts) == question.extra["parts"]:
                yield waiting.pop(question.id)


def line(question: Search, parts: list[Search]) -> dict[str, Any]:
    """A question as `GET /logs` shows it."""
    return {
        "id": question.id,
        "query": question.question,
        "digest": question.digest,
        "created_ms": question.created_ms,
        "latency_ms": question.elapsed_ms,
        "success": question.ended == "answered",
        "cached": bool(question.extra.get("cached")),
        "fallback_occurred": any(part.fallback is not None for part in parts),
        "sources": question.sources,
        "parts": [
            {"id": part.id, "query": part.question, "intended": part.routes, "sources": part.sources,
             "fallback": part.fallback, "cached": bool(part.extra.get("cached")), "latency_ms": part.elapsed_ms}
            for part in parts
        ],
    }  # fmt: skip


def stats(rows: Iterable[Search]) -> dict[str, Any]:
    """The figures of `GET /logs/stats`."""
    asked: Counter[str] = Counter()
    shown: dict[str, str] = {}
    first_ms: dict[str, float] = {}
    latencies: list[float] = []
    by_source: defaultdict[str, list[float]] = defaultdict(list)
    targets: Counter[str] = Counter()
    answered = parts_seen = hits = fallbacks = 0
    for question, parts in wholes(rows):
        key = question.digest or question.question or question.id
        asked[key] += 1
        shown[key] = question.question or key
        answered += question.ended == "answered"
        if question.elapsed_ms is not None:
            latencies.append(question.elapsed_ms)
            if not question.extra.get("cached"):
                first_ms[key] = question.elapsed_ms  # newest first: the last one noted is the first that was asked
        for part in parts:
            parts_seen += 1
            hits += bool(part.extra.get("cached"))
            fallbacks += part.fallback is not None
            targets.update(part.extra.get("fell_back", {}).keys())
            for source, ms in part.extra.get("tried_ms", {}).items():
                by_source[source].append(ms)
    return {
        "total_queries": asked.total(),
        "unique_queries": len(asked),
        "learned_queries": sum(count > 1 for count in asked.values()),
        "cache_hit_rate_pct": _percent(hits, parts_seen),
        "success_rate_pct": _percent(answered, asked.total()),
        "fallback_count": fallbacks,
        "fallback_rate_pct": _percent(fallbacks, parts_seen),
        "avg_latency_ms": _mean(latencies),
        "ttfk_ms": _mean(first_ms.values()),
        "latency_by_source": {source: _mean(found) for source, found in sorted(by_source.items())},
        "fallback_by_target": dict(targets),
        "top_queries": [{"query": shown[key], "count": count} for key, count in asked.most_common(TOP)],
    }


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0


def _mean(values: Collection[float]) -> float | None:
    return round(sum(values) / len(values), 3) if values else None
