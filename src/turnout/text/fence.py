"""Text that a model reads as data: it stands between two fences that cannot be guessed, and holds nothing like one."""

from __future__ import annotations

import re
import secrets

_FENCE = re.compile("={5,}")
_LINE = re.compile(r"^===== \w+ =====$", re.MULTILINE)


def make_fence() -> str:
    return f"===== {secrets.token_hex(6)} ====="


def unfence(text: str) -> str:
    """The text without anything that a model could take for a fence, guessed or not."""
    return _FENCE.sub("====", text)


def outside(text: str) -> str:
    """What stands after the last fence: what is asked of the texts between them. The whole text, if there is none."""
    return _LINE.split(text)[-1].strip().removeprefix("Question:").strip() or text
