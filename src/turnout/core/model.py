"""What a layer may ask of a language model: one closed question, one short reply. Who answers is not its affair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct


class Prompt(Struct, frozen=True):
    system: str
    """The instruction; never a word of the user's."""
    user: str
    """The user's text, fenced as data."""
    max_tokens: int
    deadline_ms: float
    schema: Mapping[str, Any] | None = None
    """The shape of a reply, for models that can be held to one."""


class Demand(Struct, frozen=True):
    """The most that a layer puts to a model about one question, and has answered."""

    slot: str
    prose_bytes: int
    """The instruction and what surrounds the question."""
    text_bytes: int
    """The user's text."""
    max_tokens: int
    schema_bytes: int = 0
    """The shape of the reply, for models that can be held to one."""


class Reply(Struct, frozen=True):
    text: str
    model: str
    cost_usd: float | None = None
    """None: the model's price is unknown."""


class Asks(Protocol):
    """Puts prompts to the models that fill slots."""

    def has(self, slot: str) -> bool:
        """Whether a model fills the slot and can be used."""
        ...

    def is_open(self, slot: str) -> bool:
        """Whether the slot's breaker is open: nothing is sent just now."""
        ...

    async def ask(self, slot: str, prompt: Prompt, /) -> Reply:
        """The reply; raises NetError if there is none."""
        ...
