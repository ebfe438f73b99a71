"""How numbers, times and shares are written on a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any


def count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def share(value: float | None) -> str:
    """A share of one, as percent."""
    return "–" if value is None else f"{100 * value:.1f} %"


def usd(value: float | None) -> str:
    """Small amounts keep the digits that matter."""
    if value is None:
        return "–"
    return f"${value:,.2f}" if abs(value) >= 1 or value == 0 else f"${value:.3g}"


def duration(us: float | None) -> str:
    """Microseconds, in the unit one reads."""
    if us is None:
        return "–"
    for limit, factor, unit in ((1_000, 1, "µs"), (1_000_000, 1_000, "ms")):
        if us < limit:
            return f"{us / factor:.3g} {unit}"
    return f"{us / 1_000_000:.3g} s"


def moment(ms: int | None) -> str:
    """A time in UTC; the page's script puts it into the reader's own."""
    return "–" if ms is None else datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def tone(outcome: str) -> str:
    """The colour of two letters: good for clean, bad where a layer broke, a warning for anything between."""
    return "good" if outcome[1:] == "-" else "bad" if outcome[1:] in ("t", "e", "i", "x") else "warn"


FILTERS: Mapping[str, Callable[..., Any]] = {
    "count": count,
    "share": share,
    "usd": usd,
    "duration": duration,
    "moment": moment,
    "tone": tone,
}
