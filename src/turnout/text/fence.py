"""Fences around text that a model must read as data. They cannot be guessed, and the text has nothing like them."""

from __future__ import annotations

import re
import secrets

_FENCE = re.compile("={5,}")
_LINE = re.compile(r"^===== \w+ =====$", re.MULTILINE)


def make_fence() -> str:
    return f"===== {secrets.token_hex(6)} ====="


def unfence(text: str) -> str:
    """The text without anything that a model could take for a fence."""
    return _FENCE.sub("====", text)


def outside(text: str) -> str:
    """The question after the last fence; the whole text if there is no fence."""
    return _LINE.split(text)[-1].strip().removeprefix("Question:").strip() or text
