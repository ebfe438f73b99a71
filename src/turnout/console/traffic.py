"""Traffic: who decides what share of it, and how that changes; how fast, at what cost, and what was wrong.

The first picture is the one that tells whether routing gets cheaper: each stretch of time with the share that every
layer decided. A view looks at one span of time and reads no more of the log than that.
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
from turnout.store import Records, Stats, TimeSpan
from turnout.store.report import RuleReport, report

if TYPE_CHECKING:
    from .console import Console


class SpanChoice(NamedTuple):
    """A span of time one can look at, and how it is cut."""

    name: str
    title: str
    length_ms: int
    bucket_ms: int


SPANS = (
    SpanChoice("hour", "last hour", HOUR_MS, 5 * 60_000),
    SpanChoice("day", "last 24 hours", DAY_MS, HOUR_MS),
    SpanChoice("week", "last 7 days", 7 * DAY_MS, 6 * HOUR_MS),
    SpanChoice("month", "last 30 days", 30 * DAY_MS, DAY_MS),
)
# Colours of the picture, in the order of the layers' shares; the style sheet has as many.
COLOURS = 8
# Of a bar, the space to the next one included.
BAR = 10


class BarPart(Struct, frozen=True):
    """A layer's part of a bar, in the units of a picture that is 100 high."""

    colour: int
    y: float
    height: float
    title: str


class Bar(Struct, frozen=True):
    x: int
    start_ms: int
    parts: tuple[BarPart, ...]
    decisions: int
    model_share: float


def bars(found: Stats, bucket_ms: int) -> list[Bar]:
    """The convergence picture: each stretch as a bar of shares, where it is in time, the layers in one order in all."""
    order = {layer: min(number, COLOURS - 1) for number, layer in enumerate(found.layers)}
    drawn = []
    for bucket in found.buckets:
        place = (bucket.start_ms - found.buckets[0].start_ms) // bucket_ms
        parts, y = [], 0.0
        for layer in found.layers:
            count = bucket.layers.get(layer, 0)
            height = 100.0 * count / bucket.decisions
            if count:
                title = f"{layer}: {count:,} of {bucket.decisions:,} ({height:.1f} %)"
                parts.append(BarPart(order[layer], round(y, 3), round(height, 3), title))
            y += height
        drawn.append(Bar(BAR * place, bucket.start_ms, tuple(parts), bucket.decisions, bucket.model_share))
    return drawn


def traffic_routes(console: Console) -> Sequence[Route]:
    async def traffic(call: Call) -> Answer:
        """Traffic: shares of the layers over time, outcomes, latency, cost, violations."""
        span = _span(call.options.get("span", "day"))
        profile, key = call.options.get("profile") or None, call.options.get("key") or None
        records = console.records(call)
        found, rules = await asyncio.to_thread(_look, records, span, profile, key)
        values: dict[str, Any] = {
            "bars": bars(found, span.bucket_ms),
            "found": found,
            "colours": {layer: min(number, COLOURS - 1) for number, layer in enumerate(found.layers)},
            "rules": rules,
            "width": BAR * max(span.length_ms // span.bucket_ms, 1) + BAR,
            "spell": spell,
            "span": span,
            "spans": SPANS,
            "profile": profile or "",
            "profiles": sorted({*found.profiles, *([profile] if profile else ())}),
            "key": key or "",
        }
        return console.show(call, "traffic.html", here="/traffic", **values)

    return [Route("GET", "/traffic", "decisions:read", traffic, is_page=True)]


def _span(name: str) -> SpanChoice:
    found = next((span for span in SPANS if span.name == name), None)
    if found is None:
        known = ", ".join(span.name for span in SPANS)
        raise Refused(422, "invalid_request_error", f"span {name[:40]!r} is none of {known}")
    return found


def _look(records: Records, chosen: SpanChoice, profile: str | None, key: str | None) -> tuple[Stats, list[RuleReport]]:
    span = TimeSpan(since_ms=round(time.time() * 1000) - chosen.length_ms)
    shift = shift_of("day")
    found = records.stats(span=span, profile=profile, key=key, bucket_ms=chosen.bucket_ms, shift_ms=shift)
    return found, report(records, span=span, profile=profile)
