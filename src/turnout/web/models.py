"""The gateway's routes: generations in each format, the models a client may ask for, how many tokens a request has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.apps.caller import Caller
from turnout.apps.gateway.gateway import Answer
from turnout.core.aside import aside
from turnout.core.errors import Refused
from turnout.models.provider import Wire
from turnout.models.wire import FORMATS

from .api import answer
from .table import Call

if TYPE_CHECKING:
    from .server import Server


async def chat(server: Server, call: Call) -> Answer:
    """OpenAI's chat completions; model `auto` lets Turnout choose."""
    return await _generate(server, "openai-chat", call)


async def messages(server: Server, call: Call) -> Answer:
    """Anthropic's messages; model `auto` lets Turnout choose."""
    return await _generate(server, "anthropic-messages", call)


async def responses(server: Server, call: Call) -> Answer:
    """OpenAI's responses, where a configured slot speaks them."""
    return await _generate(server, "openai-responses", call)


async def _generate(server: Server, wire: Wire, call: Call) -> Answer:
    server.check_profile(call.caller)  # refused where the gateway's profile is none of the caller's
    return await server.gateway.handle(wire, call.body, call.caller, call.headers)


def names(server: Server, caller: Caller) -> list[str]:
    """`auto`, the tiers by name, and the configured models."""
    profile = server.gateway.router().profile
    tiers = [f"turnout/{route.lower()}" for route in profile.routes] if caller.may_force else []
    slots = sorted({slot.id for slot in server.models.slots.slots.values() if slot.usable}) if caller.may_force else []
    return ["auto", *tiers, *slots]


async def list_models(server: Server, call: Call) -> Answer:
    """What may be asked for."""
    found = [_shape(name) for name in names(server, call.caller)]
    ends = {"first_id": found[0]["id"], "last_id": found[-1]["id"], "has_more": False}
    return answer({"object": "list", "data": found, **ends})


async def show_model(server: Server, call: Call) -> Answer:
    """One model."""
    if call.params["id"] not in names(server, call.caller):
        raise Refused(404, "model_not_found", f"no model {call.params['id'][:80]!r} (see GET /v1/models)")
    return answer(_shape(call.params["id"]))


def _shape(name: str) -> dict[str, Any]:
    """An entry that clients of both formats can read."""
    owner = name.partition("/")[0] if "/" in name else "turnout"
    openai = {"id": name, "object": "model", "created": 0, "owned_by": owner}
    return openai | {"type": "model", "display_name": name, "created_at": "1970-01-01T00:00:00Z"}


async def count_tokens(server: Server, call: Call) -> Answer:
    """How many tokens a request has, about: the provider that would count is not chosen yet."""
    asked = await aside(len(call.body), FORMATS["anthropic-messages"].read, call.body)
    return answer({"input_tokens": max(1, asked.tokens)})
