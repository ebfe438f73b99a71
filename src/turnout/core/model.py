"""What a layer may ask of a language model, whichever model it is: one closed question, one short reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct


class Prompt(Struct, frozen=True):
    system: str
    """The instruction; nothing of the user's text."""
    user: str
    """The user's text, fenced as data."""
    max_tokens: int
    deadline_ms: float
    schema: Mapping[str, Any] | None = None
    """The reply's JSON Schema, for models with structured output."""


class Demand(Struct, frozen=True):
    """The most that a layer sends to a model about one question and gets back."""

    slot: str
    prose_bytes: int
    """The instruction and the text around the question."""
    text_bytes: int
    """The user's text."""
    max_tokens: int
    schema_bytes: int = 0
    """The reply's JSON Schema."""


class Reply(Struct, frozen=True):
    text: str
    model: str
    cost_usd: float | None = None
    """None if the model's price is unknown."""


class Asks(Protocol):
    """Sends prompts to the models in the slots."""

    def has(self, slot: str) -> bool:
        """Whether the slot has a model that can be used."""
        ...

    def is_open(self, slot: str) -> bool:
        """Whether the slot's circuit breaker is open, so that nothing is sent."""
        ...

    async def ask(self, slot: str, prompt: Prompt, /) -> Reply:
        """The reply; raises NetError if there is none."""
        ...
