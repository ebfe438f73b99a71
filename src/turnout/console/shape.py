"""Formats of numbers, times and shares on a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape


def count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def share(value: float | None) -> str:
    """A share of 1 as percent."""
    return "–" if value is None else f"{100 * value:.1f} %"


def number(value: float | None) -> str:
    """Three digits; whole numbers as they are."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.3g}"


def size(value: float | None) -> str:
    """A large number in thousands, millions or billions."""
    if value is None:
        return "–"
    for limit, unit in ((1e9, "B"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if unit == 'k' else limit):.3g}{unit}"
    return f"{value:,.0f}"


def ticks(text: str) -> Markup:
    """Text between backticks as code."""
    pieces = text.split("`")
    marked = (
        Markup("<code>{}</code>").format(piece) if number % 2 else escape(piece) for number, piece in enumerate(pieces)
    )
    return Markup("").join(marked) if len(pieces) % 2 else escape(text)


def usd(value: float | None) -> str:
    """Small amounts keep the digits that matter."""
    if value is None:
        return "–"
    return f"${value:,.2f}" if abs(value) >= 1 or value == 0 else f"${value:.3g}"


def duration(us: float | None) -> str:
    """Microseconds in a readable unit."""
    if us is None:
        return "–"
    for limit, factor, unit in ((1_000, 1, "µs"), (1_000_000, 1_000, "ms")):
        if us < limit:
            return f"{us / factor:.3g} {unit}"
    return f"{us / 1_000_000:.3g} s"


def moment(ms: int | None) -> str:
    """A time in UTC; the page's script converts it to the reader's time zone."""
    return "–" if ms is None else datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def tone(outcome: str) -> str:
    """The colour of an outcome: good if clean, bad if a layer failed, else a warning."""
    return "good" if outcome[1:] == "-" else "bad" if outcome[1:] in ("t", "e", "i", "x") else "warn"


_FORMATS: Sequence[Callable[..., Any]] = (count, share, number, size, ticks, usd, duration, moment, tone)
FILTERS = {one.__name__: one for one in _FORMATS}
