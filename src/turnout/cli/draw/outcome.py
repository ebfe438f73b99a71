"""The two letters of an outcome (`turnout.core.verdict.Who` and `How`), spelled out."""

from __future__ import annotations

WHO: dict[str, str] = {
    "D": "declared by the caller",
    "R": "a hard rule",
    "S": "signals",
    "K": "keywords",
    "E": "an embedding",
    "L": "a language model",
    "A": "an agent",
    "C": "the cache",
    "F": "the fallback",
    "N": "nobody was asked",
}

HOW: dict[str, str] = {
    "-": "clean",
    "l": "every verdict was below its gate",
    "t": "a layer ran out of time",
    "e": "a layer failed",
    "i": "a layer gave an unusable verdict",
    "x": "a layer's breaker was open",
    "k": "clamped to the caller's ceiling",
    "h": "the best held verdict was used",
}


def spell(outcome: str) -> tuple[str, str]:
    """`Fl`: (`the fallback`, `every verdict was below its gate`)"""
    return WHO[outcome[0]], HOW[outcome[1]]


def style_of(outcome: str) -> str:
    """Green for clean, red where a layer broke, yellow for anything between."""
    return "bold green" if outcome[1] == "-" else "bold red" if outcome[1] in "teix" else "bold yellow"
