"""Models: the model of each slot, its state and its price."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from turnout.apps.app import Answer, Call, Route
from turnout.models.ask import Models
from turnout.models.price import context_of, prices_of
from turnout.models.slot import Prices

if TYPE_CHECKING:
    from .console import Console


class SlotRow(Struct, frozen=True):
    name: str
    model: str
    state: str
    """`ready`, or why it cannot answer."""
    is_ready: bool
    prices: Prices | None
    context_tokens: int | None


def slot_rows(models: Models) -> list[SlotRow]:
    rows = []
    for name, slot in models.slots.slots.items():
        breaker = models.breaker(slot).state
        state = f"its key is missing: {slot.needs_key}" if slot.needs_key else "ready"
        if breaker != "closed":
            state = f"its breaker is {breaker}: it failed too often"
        rows.append(SlotRow(name, slot.id, state, state == "ready", prices_of(slot), context_of(slot)))
    return rows


def model_routes(console: Console) -> Sequence[Route]:
    async def models(call: Call) -> Answer:
        """The models that fill the slots."""
        found = console.runtime.models
        return console.show(call, "models.html", here="/models", rows=slot_rows(found), slots=found.slots)

    return [Route("GET", "/models", "admin", models, is_page=True)]
