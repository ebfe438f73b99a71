"""Numbers as people write them: 1,234.5 and 1.234,5, "two hundred and fifty", 3.2 million, 5 km, the 1990s.

Invariant: `agree` alone decides whether two numbers match, and it tolerates a different digit only as far as the words
around the number do ("about", "over", "million").
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

# How far off a number may be that is called "about" so much, or "over" so much, as a share of it.
ABOUT: Final = 0.05
OVER: Final = 0.25
DECADE: Final = "decade"
MONTH: Final = "month of the year"
DAY: Final = "day of month "
VERSION: Final = "version "

PATTERN: Final = r"(?<!\w)\d{1,3}(?:[ ']\d{3})+(?:[.,]\d+)?(?![\d])|\d+(?:[.,]\d+)*"
_GROUPED: Final = re.compile(r"\d{1,3}(?:([ '.,])\d{3})(?:\1\d{3})*(?:(?!\1)[.,]\d+)?")


class Number(Struct, frozen=True):
    """A quantity with its unit."""

    value: float
    unit: str = ""
    """A unit's name, DECADE, MONTH, or DAY with the month; empty if there is none."""
    hedge: str = ""
    """about, over or under."""
    grain: float = 0.0
    """The value of the last digit, if the spelling rounds the number: 0.1 million in "3.2 million"."""
    spelled: str = ""


def read_number(text: str, *, comma: bool) -> tuple[float, float] | None:
    """The value of some digits, and of the last of them; `comma` if decimals follow a comma. None for a version or an
    address: 1.2.3."""
    grouped = _GROUPED.fullmatch(text)
    if grouped is None and len(re.findall("[.,]", text)) > 1:
        return None
    separator = grouped[1] if grouped else ""
    # A single group is ambiguous: 1.234 is more than a thousand in German, and less than two in English.
    if grouped and separator in ",." and len(text) <= 7 and (separator == ",") == comma:
        separator = ""
    plain = text.replace(separator, "") if separator else text
    plain = plain.replace(",", ".")
    decimals = len(plain.partition(".")[2])
    # A float has no more than 17 digits.
    return float(plain[:40]), 10.0**-decimals


def bounds(claimed: Number) -> tuple[float, float]:
    """The lowest and the highest value that agree with a number."""
    value = claimed.value
    off = max(claimed.grain / 2, 1e-9 * abs(value))
    low, high = value - off, value + off
    if claimed.unit == DECADE:
        return low, value + 9
    match claimed.hedge:
        case "about":
            return min(low, value - ABOUT * abs(value)), max(high, value + ABOUT * abs(value))
        case "over":
            return low, max(high, value + OVER * abs(value))
        case "under":
            return min(low, value - OVER * abs(value)), high
        case _:
            return low, high


def agree(claimed: Number, source: Number) -> bool:
    """Whether a number in a source supports a claimed one."""
    low, high = bounds(claimed)
    return low <= source.value <= high and _units_agree(claimed.unit, source.unit)


def _units_agree(claimed: str, source: str) -> bool:
    """Whether two units can be the same; a missing one can be any unit of measure."""
    if claimed == source or (claimed == DECADE and not source):
        return True
    if claimed:
        return not source and not claimed.startswith((MONTH, DAY, VERSION))
    return not source.startswith((MONTH, DECADE, VERSION))
