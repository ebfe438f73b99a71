"""The two letters of an outcome, spelled out."""

from __future__ import annotations

from turnout.core.verdict import How, Who

WHO: dict[Who, str] = {
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

HOW: dict[How, str] = {
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
    who, how = outcome
    return WHO[who], HOW[how]  # type: ignore[index]


def style_of(outcome: str) -> str:
    """Green for clean, red where a layer broke, yellow for anything between."""
    return "bold green" if outcome[1] == "-" else "bold red" if outcome[1] in "teix" else "bold yellow"
