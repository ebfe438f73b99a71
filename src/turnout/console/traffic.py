"""Traffic: the share that each layer decides over time, with latency, cost, keys and failures.

The first picture shows whether routing gets cheaper: a bar for each stretch of time with the share of every layer. Past
hours were counted before, so a month is read as quickly as a day.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from turnout.apps.app import Answer, Call, Route
from turnout.apps.request import invalid
from turnout.explain.explanation import spell
from turnout.runtime.traffic import DAY_MS, HOUR_MS, shift_of
from turnout.store import Checked, Records, Stats, TimeSpan
from turnout.store.backend import hour_of
from turnout.store.report import RuleReport, report
from turnout.store.traffic import Traffic

if TYPE_CHECKING:
    from .console import Console


class SpanChoice(NamedTuple):
    """A span of time to choose, and the length of its bars."""

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
# The width of a bar and the space to the next one.
BAR = 10
# Keys in the table; others are found with the field above it.
SHOWN_KEYS = 50


class BarPart(Struct, frozen=True):
    """A layer's part of a bar; the picture is 100 units high."""

    colour: int
    y: float
    height: float
    title: str


class Bar(Struct, frozen=True):
    x: int
    start_ms: int
    first_ms: int
    """When the first bar begins."""
    parts: tuple[BarPart, ...]
    decisions: int
    height: float
    """The number of its decisions, relative to 100 for the busiest bar."""
    model_share: float


def colours_of(found: Stats) -> dict[str, int]:
    """The colour of each layer, the same in all bars."""
    return {layer: min(number, COLOURS - 1) for number, layer in enumerate(found.layers)}


def bars(found: Stats, bucket_ms: int, first_ms: int | None = None) -> list[Bar]:
    """The bars of the picture: the shares in each stretch of time, and its place."""
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
        drawn.append(Bar(BAR * place, bucket.start_ms, first, tuple(parts), bucket.decisions, tall, bucket.model_share))
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
        raise invalid(f"span {name[:40]!r} is none of {known}")
    return found


def _begin(chosen: SpanChoice, shift_ms: int) -> int:
    """When the first bar begins. Traffic is counted by hours of UTC, so bars begin with one, even if local days begin
    at half past."""
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
