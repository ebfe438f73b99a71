"""How many tokens a text is, without a tokenizer: four UTF-16 units each, rounded down, as the tiers scorer counts."""

from __future__ import annotations

UNITS_PER_TOKEN = 4


def estimate(units: int) -> int:
    return units // UNITS_PER_TOKEN
