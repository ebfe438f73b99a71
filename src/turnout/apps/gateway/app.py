"""The gateway as an application: generations in each format, the models a client may ask for, a count of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from turnout.apps.app import Answer, AppCommand, Call, Route, answer
from turnout.apps.caller import Caller
from turnout.core.aside import aside
from turnout.core.errors import Refused
from turnout.models.provider import Wire
from turnout.models.wire import FORMATS
from turnout.models.wire.format import name_in, read_members
from turnout.runtime.runtime import Runtime

from .gateway import Gateway


class GatewayApp:
    name: ClassVar = "gateway"
    commands: ClassVar[Sequence[AppCommand]] = ()

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.gateway = Gateway(runtime.router, runtime.models, runtime.store, runtime.answering)
        """Under the settings of the moment. A request keeps the one it began with."""
        runtime.on_reload.append(self._renew)
        self.routes = (
            Route("POST", "/v1/chat/completions", "ask", self.chat, asks=True),
            Route("POST", "/v1/messages", "ask", self.messages, asks=True),
            Route("POST", "/v1/messages/count_tokens", "ask", self.count_tokens),
            Route("POST", "/v1/responses", "ask", self.responses, asks=True),
            Route("GET", "/v1/models", "ask", self.list_models),
            Route("GET", "/v1/models/{id:path}", "ask", self.show_model),
        )

    def _renew(self) -> None:
        self.gateway = self.gateway.under(self.runtime.router, self.runtime.models)

    async def chat(self, call: Call) -> Answer:
        """OpenAI's chat completions; model `auto` lets Turnout choose."""
        return await self._generate("openai-chat", call)

    async def messages(self, call: Call) -> Answer:
        """Anthropic's messages; model `auto` lets Turnout choose."""
        return await self._generate("anthropic-messages", call)

    async def responses(self, call: Call) -> Answer:
        """OpenAI's responses, where a configured slot speaks them."""
        return await self._generate("openai-responses", call)

    async def _generate(self, wire: Wire, call: Call) -> Answer:
        if call.caller.profiles is not None and self._model(call.body) not in self.runtime.answering:
            call.check_profile()  # refused where the gateway's profile is none of the caller's
        return await self.gateway.handle(wire, call.body, call.caller, call.headers)

    def _model(self, body: bytes) -> str:
        """Whom a request asks for; an application checks its own profile."""
        try:
            return name_in(read_members(body), "model")
        except Refused:  # it is refused again, in the client's format
            return ""

    async def count_tokens(self, call: Call) -> Answer:
        """How many tokens a request has, about: the provider that would count is not chosen yet."""
        asked = await aside(len(call.body), FORMATS["anthropic-messages"].read, call.body)
        return answer({"input_tokens": max(1, asked.tokens)})

    async def list_models(self, call: Call) -> Answer:
        """What may be asked for."""
        found = [_shape(name) for name in self._names(call.caller)]
        ends = {"first_id": found[0]["id"], "last_id": found[-1]["id"], "has_more": False}
        return answer({"object": "list", "data": found, **ends})

    async def show_model(self, call: Call) -> Answer:
        """One model."""
        name = call.params["id"]
        if name not in self._names(call.caller):
            raise Refused(404, "model_not_found", f"no model {name[:80]!r} (see GET /v1/models)")
        return answer(_shape(name))

    def _names(self, caller: Caller) -> list[str]:
        """`auto`, what applications answer to, the tiers by name, and the configured models."""
        answering = sorted(self.runtime.answering)
        if not caller.may_force:
            return ["auto", *answering]
        tiers = [f"turnout/{route.lower()}" for route in self.runtime.router.profile.routes]
        slots = sorted({slot.id for slot in self.runtime.models.slots.slots.values() if slot.usable})
        return ["auto", *answering, *tiers, *slots]


def _shape(name: str) -> dict[str, Any]:
    """An entry that clients of both formats can read."""
    owner = name.partition("/")[0] if "/" in name else "turnout"
    openai = {"id": name, "object": "model", "created": 0, "owned_by": owner}
    return openai | {"type": "model", "display_name": name, "created_at": "1970-01-01T00:00:00Z"}
