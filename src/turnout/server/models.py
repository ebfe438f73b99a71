"""The models a client may ask for, and how many tokens a request has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from turnout.apps.caller import Caller
from turnout.apps.gateway.gateway import Answer
from turnout.core.aside import aside
from turnout.core.errors import Refused
from turnout.models.wire import FORMATS

from .api import answer

if TYPE_CHECKING:
    from .house import House


def names(house: House, caller: Caller) -> list[str]:
    """`auto`, the tiers by name, and the configured models."""
    profile = house.gateway.router().profile
    tiers = [f"turnout/{route.lower()}" for route in profile.routes] if caller.may_force else []
    slots = sorted({slot.id for slot in house.models.slots.slots.values() if slot.usable}) if caller.may_force else []
    return ["auto", *tiers, *slots]


async def list_models(house: House, caller: Caller, body: bytes, path: Mapping[str, str]) -> Answer:
    found = [_shape(name) for name in names(house, caller)]
    ends = {"first_id": found[0]["id"], "last_id": found[-1]["id"], "has_more": False}
    return answer({"object": "list", "data": found, **ends})


async def show_model(house: House, caller: Caller, body: bytes, path: Mapping[str, str]) -> Answer:
    if path["id"] not in names(house, caller):
        raise Refused(404, "model_not_found", f"no model {path['id'][:80]!r} (see GET /v1/models)")
    return answer(_shape(path["id"]))


def _shape(name: str) -> dict[str, Any]:
    """An entry that clients of both formats can read."""
    owner = name.partition("/")[0] if "/" in name else "turnout"
    openai = {"id": name, "object": "model", "created": 0, "owned_by": owner}
    return openai | {"type": "model", "display_name": name, "created_at": "1970-01-01T00:00:00Z"}


async def count_tokens(house: House, caller: Caller, body: bytes, path: Mapping[str, str]) -> Answer:
    """An estimate: the provider that would count is not chosen yet."""
    asked = await aside(len(body), FORMATS["anthropic-messages"].read, body)
    return answer({"input_tokens": max(1, asked.tokens)})
