"""Numbers as they are written, as values: 1,234.5 and 1.234,5, "two hundred and fifty", 3.2 million, 5 km, the 1990s.

Invariant: what two numbers have to agree in is decided by `agree` alone, and it is never kinder to a changed digit than
the words around the number are ("about", "over", "million").
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

# A number that is called "about" so much may be off by this share; one that is "over" so much, by this one.
ABOUT: Final = 0.05
OVER: Final = 0.25
DECADE: Final = "decade"
MONTH: Final = "month of the year"
DAY: Final = "day of month "
VERSION: Final = "version "

PATTERN: Final = r"(?<!\w)\d{1,3}(?:[ ']\d{3})+(?:[.,]\d+)?(?![\d])|\d+(?:[.,]\d+)*"
_GROUPED: Final = re.compile(r"\d{1,3}(?:([ '.,])\d{3})(?:\1\d{3})*(?:(?!\1)[.,]\d+)?")


class Number(Struct, frozen=True):
    """How much of what."""

    value: float
    unit: str = ""
    """One of the names of units, DECADE, MONTH, DAY with the month; empty where none stands beside it."""
    hedge: str = ""
    """about, over, under."""
    grain: float = 0.0
    """How much the last digit is worth in a number that is rounded by its spelling: 0.1 million in "3.2 million"."""
    spelled: str = ""


def read_number(text: str, *, comma: bool) -> tuple[float, float] | None:
    """What digits say, and what their last one is worth; `comma` where a comma stands before decimals. None for what is
    no number but a version or an address: 1.2.3."""
    grouped = _GROUPED.fullmatch(text)
    if grouped is None and len(re.findall("[.,]", text)) > 1:
        return None
    separator = grouped[1] if grouped else ""
    # One group only is ambiguous: 1.234 is a thousand and more in German, and less than two in English.
    if grouped and separator in ",." and len(text) <= 7 and (separator == ",") == comma:
        separator = ""
    plain = text.replace(separator, "") if separator else text
    plain = plain.replace(",", ".")
    decimals = len(plain.partition(".")[2])
    # Far more digits than anything is measured with; a float has no more than 17.
    return float(plain[:40]), 10.0**-decimals


def bounds(said: Number) -> tuple[float, float]:
    """Between which two values a number is what was said."""
    value = said.value
    off = max(said.grain / 2, 1e-9 * abs(value))
    low, high = value - off, value + off
    if said.unit == DECADE:
        return low, value + 9
    match said.hedge:
        case "about":
            return min(low, value - ABOUT * abs(value)), max(high, value + ABOUT * abs(value))
        case "over":
            return low, max(high, value + OVER * abs(value))
        case "under":
            return min(low, value - OVER * abs(value)), high
        case _:
            return low, high


def agree(said: Number, there: Number) -> bool:
    """Whether what was said of a number is borne out by one that is there."""
    low, high = bounds(said)
    return low <= there.value <= high and _are_of_a_kind(said.unit, there.unit)


def _are_of_a_kind(said: str, there: str) -> bool:
    """Whether two units can be the same; one that is not named can be any that measures."""
    if said == there or (said == DECADE and not there):
        return True
    if said:
        return not there and not said.startswith((MONTH, DAY, VERSION))
    return not there.startswith((MONTH, DECADE, VERSION))
