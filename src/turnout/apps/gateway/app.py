"""The gateway: generations in each format, the list of models, a count of tokens.

A request is read, decided, sent to the chosen models in turn until one answers, and logged. Every answered request has
one decision row and one outcome row, even if the client leaves, the stream breaks or no provider answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from copy import copy
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

from msgspec.structs import replace

from turnout.apps.app import Answer, AnsweringApp, AppCommand, Call, Headers, Route, StreamBody, answer, refusal
from turnout.apps.caller import Caller
from turnout.apps.ledger import Account, Ledger
from turnout.core.aside import INLINE, aside
from turnout.core.decision import Decision
from turnout.core.errors import QueryError, Refused
from turnout.core.router import Router
from turnout.models.ask import Models
from turnout.models.generate import Completion, Generation
from turnout.models.provider import Wire
from turnout.models.refusal import Refusal
from turnout.models.slot import Slot
from turnout.models.wire import FORMATS
from turnout.models.wire.format import name_in, read_members
from turnout.models.wire.value import ModelRequest
from turnout.runtime.runtime import Runtime
from turnout.store import Store

from .choose import Chain, Conversations, ModelChoice
from .relay import relay

# A client asks Anthropic for a longer context window with this beta header.
LONG_WINDOW = "context-1m"


class GatewayApp:
    name: ClassVar = "gateway"
    commands: ClassVar[Sequence[AppCommand]] = ()

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.gateway = Gateway(runtime.router, runtime.models, runtime.store, runtime.chat_apps)
        """Replaced after a reload; a request keeps the one it started with."""
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
        if call.caller.profiles is not None and self._model(call.body) not in self.runtime.chat_apps:
            call.check_profile()
        return await self.gateway.handle(wire, call.body, call.caller, call.headers)

    def _model(self, body: bytes) -> str:
        """The model that a request names; an application checks its own profile."""
        try:
            return name_in(read_members(body), "model")
        except Refused:  # refused again later, in the client's format
            return ""

    async def count_tokens(self, call: Call) -> Answer:
        """How many tokens a request has, about: the provider that would count is not chosen yet."""
        asked = await aside(len(call.body), FORMATS["anthropic-messages"].read, call.body)
        return answer({"input_tokens": max(1, asked.tokens)})

    async def list_models(self, call: Call) -> Answer:
        """What may be asked for."""
        models = [_shape(name) for name in self._names(call.caller)]
        ends = {"first_id": models[0]["id"], "last_id": models[-1]["id"], "has_more": False}
        return answer({"object": "list", "data": models, **ends})

    async def show_model(self, call: Call) -> Answer:
        """One model."""
        name = call.params["id"]
        if name not in self._names(call.caller):
            raise Refused(404, "model_not_found", f"no model {name[:80]!r} (see GET /v1/models)")
        return answer(_shape(name))

    def _names(self, caller: Caller) -> list[str]:
        """`auto`, the models of applications, the tiers and the configured models."""
        chat_apps = sorted(self.runtime.chat_apps)
        if not caller.may_force:
            return ["auto", *chat_apps]
        tiers = [f"turnout/{route.lower()}" for route in self.runtime.router.profile.routes]
        slots = sorted({slot.id for slot in self.runtime.models.slots.slots.values() if slot.usable})
        return ["auto", *chat_apps, *tiers, *slots]


def _shape(name: str) -> dict[str, Any]:
    """An entry of the list that clients of both formats can read."""
    owner = name.partition("/")[0] if "/" in name else "turnout"
    openai = {"id": name, "object": "model", "created": 0, "owned_by": owner}
    return openai | {"type": "model", "display_name": name, "created_at": "1970-01-01T00:00:00Z"}


class Gateway:
    """Serves the three formats with one profile and the configured slots."""

    def __init__(
        self,
        router: Router,
        models: Models,
        store: Store | None,
        chat_apps: Mapping[str, AnsweringApp] = MappingProxyType({}),
    ) -> None:
        self.router = router
        self.models = models
        self.store = store
        self.ledger = Ledger(store, models.slots)
        self.chat_apps = chat_apps
        """Applications that answer themselves, by their model names."""
        self.conversations = Conversations(store.journal.encoder.key if store is not None else b"")

    def under(self, router: Router, models: Models) -> Gateway:
        """The same gateway with other settings; requests under way keep the old ones."""
        other = copy(self)
        other.router, other.models, other.ledger = router, models, Ledger(self.store, models.slots)
        return other

    async def handle(self, wire: Wire, body: bytes, caller: Caller, headers: Mapping[str, str]) -> Answer:
        """Answer a request; refusals are in the client's format."""
        form = FORMATS[wire]
        try:
            request = form.read(body) if len(body) <= INLINE else await asyncio.to_thread(form.read, body)
            if request.model in self.chat_apps:
                return await relay(self.chat_apps[request.model], request, caller)
            if LONG_WINDOW in headers.get("anthropic-beta", ""):
                request = replace(request, long_window=True)
            choice = ModelChoice(self.router, self.ledger, self.conversations, request, caller)
            decision, chain = await choice.decide()
            return await self._answer(request, decision, chain, caller, headers)
        except Refused as refused:
            return refusal(form, refused)
        except QueryError as error:
            return refusal(form, Refused(400, "invalid_request_error", str(error)))

    async def _answer(
        self, request: ModelRequest, decision: Decision, chain: Chain, caller: Caller, headers: Mapping[str, str]
    ) -> Answer:
        form, how, slots = FORMATS[request.wire], method(decision), [one.slot for one in chain.candidates]
        # The decision is logged first in `strict`, for a stream, and for a long text, which a thread logs.
        is_long = sum([len(turn.text) for turn in request.turns]) > INLINE
        is_first = request.stream or is_long or self.ledger.is_strict
        with self.ledger.open(decision, caller) as account:
            account.extra = {"method": how, "wire": request.wire}
            if chain.skipped:
                account.extra["skipped"] = chain.skipped
            if chain.pinned:
                account.extra["pinned"] = chain.pinned
            if is_first:
                await account.record()
            if not chain.candidates:
                account.ended = "refused"
                return refusal(form, _none_fits(chain), decision.id)
            if request.follows:
                pin = self.conversations.get(caller.tenant, decision.query.session or "")
                account.remembered_tokens = pin.tokens if pin is not None else None
            generation = account.generate(self.models, request, headers)
            result = await generation.start(slots)
            if not isinstance(result, Completion):
                return refusal(form, _failure(result, generation), decision.id, result)
            route = next(one.route for one in chain.candidates if one.slot is result.slot)
            account.fallback = _fallback(decision, chain, route, result.slot)
            sent = _headers(decision, chain, generation, result, how)
            if request.stream:
                self.models.live.add(result.upstream)
                close = partial(self._end_stream, account.keep_open(), route, generation, result)
                return Answer(200, sent, StreamBody(generation.stream(result, decision.id), close))
        self.conversations.remember(account, route, generation, result)
        return Answer(200, sent, result.first)

    async def _end_stream(self, account: Account, route: str, generation: Generation, completion: Completion) -> None:
        self.models.live.discard(completion.upstream)
        completion.upstream.close()
        if account.is_open:
            account.close()
            self.conversations.remember(account, route, generation, completion)


def _fallback(decision: Decision, chain: Chain, route: str, slot: Slot) -> str | None:
    """Why another model answers than the chosen one, if one does."""
    first = chain.candidates[0].slot
    if slot.endpoint != first.endpoint:
        # Two slots may have the same model at two endpoints: then only the slot's name tells which.
        return f"{first.id}{f' ({first.name})' if first.id == slot.id else ''} did not answer"
    if not chain.pinned and route != decision.routes[0]:
        return f"no slot for {decision.routes[0]} could be used"
    return None


def _headers(decision: Decision, chain: Chain, generation: Generation, completion: Completion, method: str) -> Headers:
    slot = completion.slot
    headers = [
        (b"content-type", completion.headers.get("content-type", "application/json")),
        (b"x-turnout-decision", decision.id),
        (b"x-turnout-route", decision.routes[0]),
        (b"x-turnout-layer", decision.by),
        (b"x-turnout-outcome", decision.outcome),
        (b"x-turnout-method", method),
        (b"x-turnout-confidence", f"{decision.confidence:.3f}"),
        (b"x-turnout-model", slot.id),
        (b"x-turnout-slot", slot.name),
        (b"x-turnout-attempts", str(len(generation.attempts))),
    ]
    headers += [(name.encode(), value) for name, value in completion.headers.items() if name != "content-type"]
    if chain.pinned:
        headers.append((b"x-turnout-pinned", chain.pinned))
    if generation.request.stream:
        headers.append((b"cache-control", "no-cache"))
    return [(name, value.encode("latin-1", "replace")) for name, value in headers]


def method(decision: Decision) -> str:
    """How the tier was chosen, in the specification's words: forced, packed-default, rule-based, llm-confirmed,
    llm-override, llm-skipped, llm-failed, llm-invalid, pinned."""
    who, how = decision.outcome[0], decision.outcome[1]
    if who == "D":
        return "forced"
    if decision.by == "pin":
        return "pinned"
    if decision.remarks and any(reason.code == "extract.packed_empty" for reason in decision.remarks):
        return "packed-default"
    if who in ("L", "A", "C"):
        held = decision.held
        same = held is not None and held.verdict is not None and held.verdict.routes == decision.routes
        return "llm-confirmed" if same else "llm-override"
    if who == "F":
        return {"i": "llm-invalid", "t": "llm-failed", "e": "llm-failed", "x": "llm-failed"}.get(how, "llm-skipped")
    return "rule-based"


def _none_fits(chain: Chain) -> Refused:
    why = "; ".join(reason.text for reason in chain.skipped) or "no slot is configured for it"
    codes = {reason.code for reason in chain.skipped}
    status, kind = 503, "no_model_available"
    if "slot.window" in codes:
        status, kind = 413, "context_length_exceeded"
    elif "slot.unpriced" in codes:
        status, kind = 403, "permission_error"
    return Refused(status, kind, f"no model can take this request: {why}")


def _failure(error: Refusal | None, generation: Generation) -> Refused:
    if error is not None:
        message = error.message or "the provider refused the request without saying why"
        return Refused(error.status, "invalid_request_error", message)
    tried = "; ".join(generation.client_notes)
    if {attempt.status for attempt in generation.attempts} == {429}:
        message = f"every model is busy: {tried}"
        return Refused(429, "rate_limit_exceeded", message, retry_after_s=generation.retry_after_s)
    if {attempt.ended for attempt in generation.attempts} == {"timeout"}:
        return Refused(504, "timeout", f"no model answered in time: {tried}")
    return Refused(502, "upstream_error", f"no model answered: {tried}")
