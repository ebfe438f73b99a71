"""Traffic: who decides what share of it, and how that changes; how fast, at what cost, for which key, what went wrong.

The first picture is the one that tells whether routing gets cheaper: each stretch of time with the share that every
layer decided. Hours that are over were counted before: a month is read as quickly as a day.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from turnout.apps.app import Answer, Call, Route
from turnout.core.errors import Refused
from turnout.explain.explanation import spell
from turnout.runtime.traffic import DAY_MS, HOUR_MS, shift_of
from turnout.store import Checked, Records, Stats, TimeSpan
from turnout.store.backend import hour_of
from turnout.store.report import RuleReport, report
from turnout.store.traffic import Traffic

if TYPE_CHECKING:
    from .console import Console


class SpanChoice(NamedTuple):
    """A span of time one can look at, and how it is cut."""

    name: str
    title: str
    length_ms: int
    bucket_ms: int


SPANS = (
    SpanChoice("hour", "Hour", HOUR_MS, 5 * 60_000),
    SpanChoice("day", "24 hours", DAY_MS, HOUR_MS),
    SpanChoice("week", "7 days", 7 * DAY_MS, 6 * HOUR_MS),
    SpanChoice("month", "30 days", 30 * DAY_MS, DAY_MS),
)
# Colours of the picture, in the order of the layers' shares; the style sheet has as many.
COLOURS = 8
# Of a bar, the space to the next one included.
BAR = 10
# Keys in the table; more are found through the field above it.
SHOWN_KEYS = 50


class BarPart(Struct, frozen=True):
    """A layer's part of a bar, in the units of a picture that is 100 high."""

    colour: int
    y: float
    height: float
    title: str


class Bar(Struct, frozen=True):
    x: int
    start_ms: int
    first_ms: int
    """When the first of all begins."""
    parts: tuple[BarPart, ...]
    decisions: int
    height: float
    """Of its decisions, where the busiest stretch has 100."""
    model_share: float


def colours_of(found: Stats) -> dict[str, int]:
    """The layers in one order in all bars."""
    return {layer: min(number, COLOURS - 1) for number, layer in enumerate(found.layers)}


def bars(found: Stats, bucket_ms: int, first_ms: int | None = None) -> list[Bar]:
    """The convergence picture: each stretch as a bar of shares, where it is in time."""
    order, drawn = colours_of(found), []
    first = first_ms if first_ms is not None else found.buckets[0].start_ms if found.buckets else 0
    most = max((bucket.decisions for bucket in found.buckets), default=1)
    for bucket in found.buckets:
        place = max(bucket.start_ms - first, 0) // bucket_ms
        parts, y = [], 0.0
        for layer in found.layers:
            count = bucket.layers.get(layer, 0)
            height = 100.0 * count / bucket.decisions
            if count:
                title = f"{layer}: {count:,} of {bucket.decisions:,} ({height:.1f} %)"
                parts.append(BarPart(order[layer], round(y, 3), round(height, 3), title))
            y += height
        tall = round(100.0 * bucket.decisions / most, 2)
        whole = (bucket.decisions, tall, bucket.model_share)
        drawn.append(Bar(BAR * place, bucket.start_ms, first, tuple(parts), *whole))
    return drawn


def traffic_routes(console: Console) -> Sequence[Route]:
    async def traffic(call: Call) -> Answer:
        """Traffic: shares of the layers over time, outcomes, latency, cost, keys, regret, violations."""
        span = _span(call.options.get("span", "day"))
        profile, key = call.options.get("profile") or None, call.options.get("key") or None
        shift = shift_of("day")
        since = _begin(span, shift)
        records = console.records(call)
        found, rules, known = await asyncio.to_thread(_look, records, since, span, profile, key)
        stats = found.stats
        values: dict[str, Any] = {
            "bars": bars(stats, span.bucket_ms, since),
            "places": span.length_ms // span.bucket_ms + 1,
            "traffic": found,
            "found": stats,
            "colours": colours_of(stats),
            "rules": rules,
            "spell": spell,
            "span": span,
            "spans": SPANS,
            "profile": profile or "",
            "profiles": sorted({*known[0], *([profile] if profile else ())}),
            "key": key or "",
            "key_ids": known[1],
            "shown_keys": found.keys[:SHOWN_KEYS],
        }
        return console.show(call, "traffic.html", here="/traffic", **values)

    return [Route("GET", "/traffic", "decisions:read", traffic, is_page=True)]


def _span(name: str) -> SpanChoice:
    found = next((span for span in SPANS if span.name == name), None)
    if found is None:
        known = ", ".join(span.name for span in SPANS)
        raise Refused(422, "invalid_request_error", f"span {name[:40]!r} is none of {known}")
    return found


def _begin(chosen: SpanChoice, shift_ms: int) -> int:
    """Where its first bar begins. Hours are counted from UTC's: where days begin at half past, theirs do not."""
    now = round(time.time() * 1000)
    begin = now - chosen.length_ms
    if chosen.bucket_ms < HOUR_MS:
        return begin // chosen.bucket_ms * chosen.bucket_ms
    return hour_of((begin + shift_ms) // chosen.bucket_ms * chosen.bucket_ms - shift_ms)


def _look(
    records: Records, since_ms: int, chosen: SpanChoice, profile: str | None, key: str | None
) -> tuple[Traffic, list[RuleReport], tuple[list[str], list[str]]]:
    span = TimeSpan(since_ms=since_ms)
    found = records.traffic(span=span, profile=profile, key=key, bucket_ms=chosen.bucket_ms, shift_ms=shift_of("day"))
    seen = [Checked(*whose, *counts) for whose, counts in found.checked.items()]
    kinds = records.kinds()
    known = sorted({kind.profile for kind in kinds}), sorted({kind.key_id for kind in kinds if kind.key_id})
    return found, report(records, span=span, profile=profile, checked=seen), known
