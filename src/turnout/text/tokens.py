"""Estimates tokens without a tokenizer: four UTF-16 units each, rounded down, as the tiers scorer does."""

from __future__ import annotations

UNITS_PER_TOKEN = 4


def estimate(units: int) -> int:
    return units // UNITS_PER_TOKEN
