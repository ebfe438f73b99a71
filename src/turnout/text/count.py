"""Counts of things, as people write them."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """`1 row`, `2,000 rows`"""
    return f"{count:,} {noun}{'s' * (count != 1)}"
