"""A request's way: read it, decide, choose, try, answer, write down what happened.

Every answered request has one decision row and one outcome row, whatever happens in between: a client that goes away,
a stream that breaks, a provider that never answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from copy import copy
from functools import partial
from types import MappingProxyType

from msgspec.structs import replace

from turnout.apps.app import Answer, AnsweringApp, Headers, refusal
from turnout.apps.caller import Caller
from turnout.apps.ledger import Account, Ledger, decide
from turnout.core.aside import INLINE
from turnout.core.decision import Decision
from turnout.core.errors import QueryError, Refused
from turnout.core.ident import new_id
from turnout.core.profile import Profile
from turnout.core.query import Query
from turnout.core.router import Router
from turnout.core.verdict import Reason
from turnout.models.ask import Models
from turnout.models.generate import Completion, Generation
from turnout.models.provider import Wire
from turnout.models.refusal import Refusal
from turnout.models.slot import Slot, Slots
from turnout.models.wire import FORMATS
from turnout.models.wire.value import ModelRequest
from turnout.store import Store
from turnout.store.redact import digest

from .choose import Chain, ChainSlot, choose, unfit
from .conversation import CACHED_TOKENS, Conversations, Pin, staying_saves
from .relay import relay

# How a client asks Anthropic for a window beyond the model's usual one.
LONG_WINDOW = "context-1m"


# What nearly all answers are: it tells nothing of where they are from.
KINDS = frozenset(("application/json", "text/event-stream", "text/event-stream; charset=utf-8"))
# Of a provider's headers, what a client may see.
SHOWN = {name: name.encode() for name in ("retry-after", "x-request-id", "request-id")}


class Stream:
    """What a client is sent of a stream. However it ends, even before its first piece was sent, it must be closed: the
    upstream is closed then, and the account."""

    def __init__(self, pieces: AsyncGenerator[bytes, None], close: Callable[[], None]) -> None:
        self._pieces = pieces
        self._close = close

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces

    async def aclose(self) -> None:
        try:
            await self._pieces.aclose()
        finally:
            self._close()


class Gateway:
    """Serves the three formats with one profile and the slots that are configured."""

    def __init__(
        self,
        router: Router,
        models: Models,
        store: Store | None,
        answering: Mapping[str, AnsweringApp] = MappingProxyType({}),
    ) -> None:
        self.router = router
        self.models = models
        self.store = store
        self.ledger = Ledger(store, models.slots)
        self.answering = answering
        """Applications that answer themselves, by the name of the model they are asked for as."""
        self.conversations = Conversations()

    def under(self, router: Router, models: Models) -> Gateway:
        """The same under other settings. Requests under way go on with the ones they began with."""
        other = copy(self)
        other.router, other.models, other.ledger = router, models, Ledger(self.store, models.slots)
        return other

    @property
    def slots(self) -> Slots:
        return self.models.slots

    async def handle(self, wire: Wire, body: bytes, caller: Caller, headers: Mapping[str, str]) -> Answer:
        """Answer one request; every refusal in the client's own format."""
        form = FORMATS[wire]
        try:
            request = form.read(body) if len(body) <= INLINE else await asyncio.to_thread(form.read, body)
            if request.model in self.answering:
                return await relay(self.answering[request.model], request, caller)
            if LONG_WINDOW in headers.get("anthropic-beta", ""):
                request = replace(request, long_window=True)
            decision, choice = await self._decide(request, caller)
            return await self._answer(request, decision, choice, caller, headers)
        except Refused as refused:
            return refusal(form, refused)
        except QueryError as error:
            return refusal(form, Refused(400, "invalid_request_error", str(error)))

    # --- deciding

    async def _decide(self, request: ModelRequest, caller: Caller) -> tuple[Decision, Chain]:
        router, slots = self.router, self.models.slots
        profile = router.profile
        if caller.ceiling is not None and caller.ceiling not in profile.routes:
            said = f"this key's ceiling {caller.ceiling} is no tier of the profile {profile.name}: use another key"
            raise Refused(403, "permission_error", said)
        pin = self.conversations.get(caller.tenant, request.conversation)
        if pin is not None and caller.ceiling is not None and _is_above(profile, pin.route, caller):
            pin = None  # another key of the tenant's began it
        bound = pin.provider if pin is not None and request.bound else None
        # What the log calls a conversation: keyed, since a bare hash of its beginning would tell what that was.
        key = self.store.journal.encoder.key if self.store is not None else b""
        session = digest(request.conversation, caller.tenant, key)
        tenant, turns = caller.tenant or None, request.turns
        query = Query(turns=turns, declared=request.model, tenant=tenant, session=session, ceiling=caller.ceiling)
        if "/" in request.model and (named := slots.all_by_id(request.model)):  # `auto` and the tiers have none
            caller.budget.check()
            return self._passed_through(profile, replace(query, declared=None), request, caller, named)
        if not request.fresh and pin is not None and pin.route in profile.routes and not _forces(router, request.model):
            caller.budget.check()
            return self._continued(profile, replace(query, declared=None), request, caller, pin)
        decision = await decide(router, query, caller, slots, self.store)
        route = decision.routes[0]
        if decision.outcome[0] == "D" and not caller.may_force:
            raise Refused(
                403, "permission_error", f"this key may not choose a tier itself: ask for `auto`, not {request.model!r}"
            )
        if decision.outcome == "Dk":
            said = f"{request.model!r} is above this key's ceiling {caller.ceiling}: ask for `auto` or a lower tier"
            raise Refused(403, "permission_error", said)
        choice = choose(profile, slots, request, route, caller, provider=bound)
        if bound is not None and pin is not None and not choice.candidates:
            # No slot in the chain can read what the conversation carries; the one that wrote it can.
            choice = self._first(choice, pin, request, caller, "bound")
        elif decision.outcome[0] != "D" and pin is not None:
            choice = self._pinned(profile, route, choice, request, caller, pin)
        return decision, choice

    def _passed_through(
        self, profile: Profile, query: Query, request: ModelRequest, caller: Caller, named: Sequence[Slot]
    ) -> tuple[Decision, Chain]:
        """The client names a configured model: it gets the first slot with it that it may have and that can take the
        request, or a refusal."""
        order = profile.routes
        routes = {slot.name: _route_of(profile, slot) for slot in named}
        allowed = [slot for slot in named if caller.may_force and not _is_above(profile, routes[slot.name], caller)]
        if not allowed:
            raise Refused(403, "permission_error", f"this key may not choose {named[0].id} itself: ask for `auto`")
        slot = next((one for one in allowed if unfit(one, request, caller) is None), allowed[0])
        route, why = routes[slot.name], unfit(slot, request, caller)
        told = Reason("gateway.passthrough", f"the caller named the model {slot.id}; no tier was chosen")
        decision = _made(profile, query, route or order[-1], 1.0, "passthrough", "D-", told)
        candidates = (ChainSlot(route or order[-1], slot),) if why is None else ()
        return decision, Chain(candidates, () if why is None else (why,))

    def _continued(
        self, profile: Profile, query: Query, request: ModelRequest, caller: Caller, pin: Pin
    ) -> tuple[Decision, Chain]:
        """A turn without new words keeps its conversation's tier and model."""
        said = f"no new words of the user's in this turn: its conversation keeps {pin.route} and {pin.slot}"
        decision = _made(profile, query, pin.route, pin.confidence, "pin", "C-", Reason("pin.turn", said))
        provider = pin.provider if request.bound else None
        choice = choose(profile, self.slots, request, pin.route, caller, provider=provider)
        return decision, self._first(choice, pin, request, caller, "turn")

    def _pinned(
        self, profile: Profile, route: str, choice: Chain, request: ModelRequest, caller: Caller, pin: Pin
    ) -> Chain:
        """A turn decided anew stays where its prompt is cached, while that is cheaper and no tier is lost."""
        if pin.tokens < CACHED_TOKENS or not choice.candidates or not self.conversations.is_warm(pin):
            return choice
        here = self.slots.find(pin.slot)
        if here is None:
            return choice
        there = choice.candidates[0].slot
        order = profile.routes
        lower = order.index(route) <= order.index(pin.route) if pin.route in order else False
        if lower and unfit(here, request, caller) is None and staying_saves(here, there, pin.tokens, request.tokens):
            return self._first(choice, pin, request, caller, "cache")
        return choice

    def _first(self, choice: Chain, pin: Pin, request: ModelRequest, caller: Caller, why: str) -> Chain:
        """The choice, the conversation's own slot before the others."""
        slot = self.slots.find(pin.slot)
        if slot is None or unfit(slot, request, caller) is not None:
            return choice._replace(pinned=why)
        rest = tuple(one for one in choice.candidates if one.slot.endpoint != slot.endpoint)
        return Chain((ChainSlot(pin.route, slot), *rest), choice.skipped, why)

    # --- answering

    async def _answer(
        self, request: ModelRequest, decision: Decision, choice: Chain, caller: Caller, headers: Mapping[str, str]
    ) -> Answer:
        form, how = FORMATS[request.wire], method(decision)
        slots = [one.slot for one in choice.candidates]
        # In `strict`, before a stream begins, and where its text is long, for which there is a thread.
        is_long = sum([len(turn.text) for turn in request.turns]) > INLINE
        is_first = request.stream or is_long or self.ledger.is_strict
        with self.ledger.open(decision, caller) as account:
            account.extra = {"method": how, "wire": request.wire}
            if choice.skipped:
                account.extra["skipped"] = choice.skipped
            if choice.pinned:
                account.extra["pinned"] = choice.pinned
            if is_first:
                await account.record()
            if not choice.candidates:
                account.ended = "refused"
                return refusal(form, _none_fits(choice), decision.id)
            if request.follows:
                pin = self.conversations.get(caller.tenant, request.conversation)
                account.remembered_tokens = pin.tokens if pin is not None else None
            generation = account.generate(self.models, request, headers)
            found = await generation.start(slots)
            if not isinstance(found, Completion):
                return refusal(form, _failure(found, generation), decision.id, found)
            told = _headers(decision, choice, generation, found, how)
            if not request.stream:
                self._close(account, choice, generation, found)
                return Answer(200, told, found.first)
            self.models.live.add(found.upstream)
            close = partial(self._end_stream, account.keep_open(), choice, generation, found)
            return Answer(200, told, Stream(generation.stream(found, decision.id), close))

    def _end_stream(self, account: Account, choice: Chain, generation: Generation, completion: Completion) -> None:
        self.models.live.discard(completion.upstream)
        completion.upstream.close()
        if account.is_open:
            self._close(account, choice, generation, completion)

    def _close(self, account: Account, choice: Chain, generation: Generation, completion: Completion) -> None:
        """Write down how an answer came about; and remember who gave it, for the conversation's next turn."""
        slot, first, decision = completion.slot, choice.candidates[0].slot, account.decision
        route = next(one.route for one in choice.candidates if one.slot is slot)
        if slot.endpoint != first.endpoint:
            # Two slots may have one model in two places: then only the slot's name tells which.
            account.fallback = f"{first.id}{f' ({first.name})' if first.id == slot.id else ''} did not answer"
        elif not choice.pinned and route != decision.routes[0]:
            account.fallback = f"no slot for {decision.routes[0]} could be used"
        account.close()
        if generation.ended != "answered":
            return
        tokens = (account.spending.input_tokens or 0) + (account.spending.output_tokens or 0)
        for name in filter(None, (generation.request.conversation, completion.id)):
            self.conversations.keep(account.caller.tenant, name, route, slot, decision.confidence, tokens)


def _headers(decision: Decision, choice: Chain, generation: Generation, completion: Completion, method: str) -> Headers:
    slot, theirs = completion.slot, completion.upstream.headers
    kind = theirs.get("content-type", "application/json")
    told = [
        (b"content-type", kind if kind in KINDS else slot.conceal(kind)),
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
    for key, name in SHOWN.items():
        if key in theirs:
            told.append((name, slot.conceal(theirs[key])))
    if choice.pinned:
        told.append((b"x-turnout-pinned", choice.pinned))
    if generation.request.stream:
        told.append((b"cache-control", "no-cache"))
    return [(name, value.encode("latin-1", "replace")) for name, value in told]


def method(decision: Decision) -> str:
    """How a tier came about, in the words of the specification: forced, packed-default, rule-based, llm-confirmed,
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


def _is_above(profile: Profile, route: str | None, caller: Caller) -> bool:
    """Whether a route is more expensive than the caller's ceiling; one that is no tier is."""
    return caller.ceiling is not None and route not in profile.routes_up_to(caller.ceiling)


def _route_of(profile: Profile, slot: Slot) -> str | None:
    """The tier a slot serves."""
    return next((name for name in profile.routes if profile.policies[name].model == slot.name), None)


def _made(
    profile: Profile, query: Query, route: str, confidence: float, by: str, outcome: str, why: Reason
) -> Decision:
    """A decision no layer had to make."""
    return Decision(profile, query, (route,), confidence, 0.0, by, outcome, remarks=(why,), id=new_id())


def _forces(router: Router, model: str) -> bool:
    """Whether the client names a tier: looked up without asking a model."""
    if model.strip().casefold() in router.profile.undeclared:
        return False
    return router.route_sync(Query(declared=model)).outcome[0] == "D"


def _none_fits(choice: Chain) -> Refused:
    told = "; ".join(reason.text for reason in choice.skipped) or "no slot is configured for it"
    codes = {reason.code for reason in choice.skipped}
    status, kind = 503, "no_model_available"
    if "slot.window" in codes:
        status, kind = 413, "context_length_exceeded"
    elif "slot.unpriced" in codes:
        status, kind = 403, "permission_error"
    return Refused(status, kind, f"no model can take this request: {told}")


def _failure(error: Refusal | None, generation: Generation) -> Refused:
    if error is not None:
        said = error.message or "the provider refused the request without saying why"
        return Refused(error.status, "invalid_request_error", said)
    tried = "; ".join(generation.told)
    if {attempt.status for attempt in generation.attempts} == {429}:
        said = f"every model is busy: {tried}"
        return Refused(429, "rate_limit_exceeded", said, retry_after_s=generation.retry_after_s)
    if {attempt.ended for attempt in generation.attempts} == {"timeout"}:
        return Refused(504, "timeout", f"no model answered in time: {tried}")
    return Refused(502, "upstream_error", f"no model answered: {tried}")
