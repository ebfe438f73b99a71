"""The longest answer of each model family, and whether it has hidden reasoning.

Facts from the providers' model pages. A slot's own `max_output_tokens` overrides them; an unlisted family gets a limit
that every chat model in use accepts.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from .slot import Slot

# The shortest maximum among the chat models that are still served.
COMMON_TOKENS = 4096


class Family(NamedTuple):
    pattern: str
    max_output_tokens: int
    thinks: bool = False
    """It reasons before it answers, bills that as output, and does not show all of it."""


# The first match counts. A model's name may have a prefix with its maker, as on OpenRouter.
FAMILIES = (
    Family(r"claude-opus-4[-.][678]", 128_000),
    Family(r"claude-opus-4[-.]5", 64_000),
    Family(r"claude-opus-4", 32_000),
    Family(r"claude-(sonnet|haiku|opus)-[4-9]|claude-3[-.]7", 64_000),
    Family(r"claude-3[-.]5", 8192),
    Family(r"claude", 4096),
    Family(r"gpt-5.*chat", 16_384),
    Family(r"gpt-5", 128_000, thinks=True),
    Family(r"gpt-4\.1", 32_768),
    Family(r"gpt-4o|chatgpt-4o", 16_384),
    Family(r"o1-mini", 65_536, thinks=True),
    Family(r"o1-preview", 32_768, thinks=True),
    Family(r"o[1-9]", 100_000, thinks=True),
    Family(r"gemini-(2\.5|[3-9]|(flash|pro|flash-lite)-latest)", 65_535, thinks=True),
    Family(r"gemini", 8192),
    Family(r"deepseek-(reasoner|r1)", 32_768),
    Family(r"deepseek", 8192),
    Family(r"grok-(3-mini|4|code)", 16_384, thinks=True),
    Family(r"codex-mini", 100_000, thinks=True),
)
OTHERS = Family("", COMMON_TOKENS)


@lru_cache(maxsize=512)
def _family(model: str) -> Family:
    name = model.rpartition("/")[2].lower()
    return next((family for family in FAMILIES if re.match(family.pattern, name)), OTHERS)


def max_output_tokens(slot: Slot) -> int:
    return slot.max_output_tokens if slot.max_output_tokens is not None else _family(slot.model).max_output_tokens


def thinks_silently(slot: Slot) -> bool:
    """Whether the model may bill output that it does not stream."""
    return _family(slot.model).thinks
