"""Which models may answer a turn, in which order, and what is remembered of its conversation.

A turn without new words keeps its tier and model. Any other turn is decided anew, but keeps its model while a change
would cost more than it saves: a cached prompt costs a fraction, and another model pays for all of it again. Losing what
is remembered costs money, never correctness.

The policy names the chain of tiers. A slot is skipped, with a reason, if it does not speak the client's format, lacks
its key, takes no images or tools, is too small for the prompt or above the caller's ceiling, has no bound on its price
while the caller has a budget, or belongs to another provider than the signed state in the conversation.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from time import monotonic
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from turnout.apps.caller import Caller
from turnout.apps.ledger import Account, Ledger, decide
from turnout.core.decision import Decision, new_id
from turnout.core.errors import Refused
from turnout.core.query import Query
from turnout.core.router import Router
from turnout.core.verdict import Reason
from turnout.models.generate import Completion, Generation
from turnout.models.price import MILLION, context_of, prices_of
from turnout.models.slot import Endpoint, Slot
from turnout.models.spend import because, unbounded
from turnout.models.wire.value import ModelRequest
from turnout.store.row import digest

# The model name that leaves the choice to the profile, and the prefix of a route in the list of models.
AUTO, PREFIX = "auto", "turnout/"
# Providers keep a cached prompt for five minutes after its last use.
CACHED_S = 300.0
# The shortest prompt providers cache.
CACHED_TOKENS = 1024
REMEMBERED_S = 3600.0
# Each takes half a kilobyte; more than fit into a processor's cache would slow every request down.
CONVERSATIONS = 20_000
# The assumed length of an answer, for comparing the costs of two models.
COMPARED_TOKENS = 500
# The assumed length of an answer if the client sets no limit.
ANSWER_TOKENS = 1024


# --- what is remembered of a conversation


class Pin(Struct, frozen=True, gc=False):
    route: str
    slot: str
    provider: str
    confidence: float
    tokens: int
    """Of the conversation when it was last answered."""
    at: float


class Conversations:
    """Pins by tenant and name."""

    def __init__(self, key: bytes = b"", now: Callable[[], float] = monotonic) -> None:
        """`key` is the log's."""
        self._key = key
        self._now = now
        self._pins: OrderedDict[tuple[str, str], Pin] = OrderedDict()

    def name(self, tenant: str, conversation: str) -> str:
        """The name of a conversation here and in the log. Hashed, because a client may send twenty megabytes; with a
        key, because a plain hash of its beginning could be guessed."""
        return digest(conversation, tenant, self._key)

    def get(self, tenant: str, name: str) -> Pin | None:
        pin = self._pins.get((tenant, name))
        if pin is not None and self._now() - pin.at > REMEMBERED_S:
            del self._pins[tenant, name]
            return None
        return pin

    def keep(self, tenant: str, name: str, route: str, slot: Slot, confidence: float, tokens: int) -> None:
        key = tenant, name
        self._pins[key] = Pin(route, slot.name, slot.provider, confidence, tokens, self._now())
        self._pins.move_to_end(key)
        while len(self._pins) > CONVERSATIONS:
            self._pins.popitem(last=False)

    def remember(self, account: Account, route: str, generation: Generation, completion: Completion) -> None:
        """Remember which slot answered, for the next turn of the conversation or one that names this answer."""
        if generation.ended != "answered":
            return
        decision, tenant, spent = account.decision, account.caller.tenant, account.spending
        names = [decision.query.session or ""] if generation.request.conversation else []
        if completion.id:
            names.append(self.name(tenant, completion.id))
        tokens = (spent.input_tokens or 0) + (spent.output_tokens or 0)
        for name in names:
            self.keep(tenant, name, route, completion.slot, decision.confidence, tokens)

    def is_warm(self, pin: Pin) -> bool:
        """Whether the provider still has the prompt in its cache."""
        return pin.tokens >= CACHED_TOKENS and self._now() - pin.at < CACHED_S


def staying_saves(here: Slot, there: Slot, cached: int, tokens: int) -> bool:
    """Whether the next turn is cheaper with the slot that has the prompt cached."""
    stay, move = prices_of(here), prices_of(there)
    if stay is None or move is None or here.endpoint == there.endpoint:
        return False
    reread = stay.input_usd if stay.cached_input_usd is None else stay.cached_input_usd
    cached = min(cached, tokens)
    staying = cached * reread + (tokens - cached) * stay.input_usd + COMPARED_TOKENS * stay.output_usd
    moving = tokens * move.input_usd + COMPARED_TOKENS * move.output_usd
    return staying / MILLION <= moving / MILLION


# --- who may answer


class ChainSlot(NamedTuple):
    route: str
    """The tier it serves."""
    slot: Slot


class Chain(NamedTuple):
    candidates: tuple[ChainSlot, ...]
    skipped: tuple[Reason, ...]
    pinned: str = ""
    """Why the conversation keeps its slot; empty if it does not, or need not."""


class ModelChoice:
    """Decides which model answers a request."""

    def __init__(
        self, router: Router, ledger: Ledger, conversations: Conversations, request: ModelRequest, caller: Caller
    ) -> None:
        self.router = router
        self.profile = router.profile
        self.slots = ledger.slots
        self.store = ledger.store
        self.conversations = conversations
        self.request = request
        self.caller = caller

    async def decide(self) -> tuple[Decision, Chain]:
        profile, request, caller = self.profile, self.request, self.caller
        if caller.ceiling is not None and caller.ceiling not in profile.routes:
            message = (
                f"this key's ceiling {caller.ceiling} is not a tier of the profile {profile.name}: use another key"
            )
            raise Refused(403, "permission_error", message)
        session = self.conversations.name(caller.tenant, request.conversation)
        pin = self.conversations.get(caller.tenant, session)
        if pin is not None and caller.ceiling is not None and self._is_above(pin.route):
            pin = None  # another key of the tenant began the conversation
        tenant, turns = caller.tenant or None, request.turns
        query = Query(turns=turns, declared=self._declared(), tenant=tenant, session=session, ceiling=caller.ceiling)
        if "/" in request.model and (named := self.slots.all_by_id(request.model)):  # `auto` and the tiers have none
            caller.budget.check()
            return self._pass_through(replace(query, declared=None), named)
        if not request.fresh and pin is not None and pin.route in profile.routes and not self._is_forced():
            caller.budget.check()
            return self._continue(replace(query, declared=None), pin)
        decision = await decide(self.router, query, caller, self.slots, self.store)
        if decision.outcome[0] == "D" and not caller.may_force:
            raise Refused(
                403, "permission_error", f"this key may not choose a tier itself: ask for `auto`, not {request.model!r}"
            )
        if decision.outcome == "Dk":
            message = f"{request.model!r} is above this key's ceiling {caller.ceiling}: ask for `auto` or a lower tier"
            raise Refused(403, "permission_error", message)
        chain = self._chain(decision.routes[0], pin)
        if request.bound and pin is not None and not chain.candidates:
            # No slot in the chain can read the conversation's signed state; the one that wrote it can.
            chain = self._put_first(chain, pin, "bound")
        elif decision.outcome[0] != "D" and pin is not None:
            chain = self._keep_cached(decision.routes[0], chain, pin)
        return decision, chain

    def _pass_through(self, query: Query, named: Sequence[Slot]) -> tuple[Decision, Chain]:
        """The client names a configured model: the first of its slots that is allowed and can take the request, or a
        refusal."""
        order, request, caller = self.profile.routes, self.request, self.caller
        routes = {slot.name: self._route_of(slot) for slot in named}
        allowed = [slot for slot in named if caller.may_force and not self._is_above(routes[slot.name])]
        if not allowed:
            raise Refused(403, "permission_error", f"this key may not choose {named[0].id} itself: ask for `auto`")
        slot = next((one for one in allowed if unfit(one, request, caller) is None), allowed[0])
        route, why = routes[slot.name] or order[-1], unfit(slot, request, caller)
        reason = Reason("gateway.passthrough", f"the caller named the model {slot.id}; no tier was chosen")
        decision = self._decide_alone(query, route, 1.0, "passthrough", "D-", reason)
        return decision, Chain((ChainSlot(route, slot),), ()) if why is None else Chain((), (why,))

    def _continue(self, query: Query, pin: Pin) -> tuple[Decision, Chain]:
        """A turn without new words keeps its conversation's tier and model."""
        text = f"no new words of the user's in this turn: its conversation keeps {pin.route} and {pin.slot}"
        decision = self._decide_alone(query, pin.route, pin.confidence, "pin", "C-", Reason("pin.turn", text))
        return decision, self._put_first(self._chain(pin.route, pin), pin, "turn")

    def _chain(self, route: str, pin: Pin | None) -> Chain:
        """The chain of a route; only one provider's slots if the conversation carries that provider's state."""
        profile, slots, request, caller = self.profile, self.slots, self.request, self.caller
        provider = pin.provider if pin is not None and request.bound else None
        chain = profile.policies[route].chain or (route,)
        if caller.ceiling is not None:
            allowed = profile.routes_up_to(caller.ceiling)
            chain = tuple(name for name in chain if name in allowed)
        candidates: list[ChainSlot] = []
        skipped: list[Reason] = []
        seen: set[Endpoint] = set()
        for name in chain:
            wanted = profile.policies[name].model or name.lower()
            slot = slots.slots.get(wanted) or slots.slot_for(wanted)
            if slot is None:
                text = f"{wanted}: no such slot is configured (turnout models set {wanted} PROVIDER/MODEL)"
                skipped.append(Reason("slot.missing", text))
                continue
            if slot.endpoint in seen:
                continue
            why = unfit(slot, request, caller, provider)
            if why is None:
                candidates.append(ChainSlot(name, slot))
                seen.add(slot.endpoint)
            else:
                skipped.append(why)
        return Chain(tuple(candidates), tuple(skipped))

    def _keep_cached(self, route: str, chain: Chain, pin: Pin) -> Chain:
        """A turn decided anew keeps the slot with its cached prompt, if that is cheaper and of no lower tier."""
        if pin.tokens < CACHED_TOKENS or not chain.candidates or not self.conversations.is_warm(pin):
            return chain
        here = self.slots.find(pin.slot)
        if here is None:
            return chain
        there, order, tokens = chain.candidates[0].slot, self.profile.routes, self.request.tokens
        lower = order.index(route) <= order.index(pin.route) if pin.route in order else False
        if lower and unfit(here, self.request, self.caller) is None and staying_saves(here, there, pin.tokens, tokens):
            return self._put_first(chain, pin, "cache")
        return chain

    def _put_first(self, chain: Chain, pin: Pin, why: str) -> Chain:
        """The chain with the conversation's slot first."""
        slot = self.slots.find(pin.slot)
        if slot is None or unfit(slot, self.request, self.caller) is not None:
            return chain._replace(pinned=why)
        rest = tuple(one for one in chain.candidates if one.slot.endpoint != slot.endpoint)
        return Chain((ChainSlot(pin.route, slot), *rest), chain.skipped, why)

    def _is_above(self, route: str | None) -> bool:
        """Whether a route is above the caller's ceiling; None and unknown routes are."""
        ceiling = self.caller.ceiling
        return ceiling is not None and route not in self.profile.routes_up_to(ceiling)

    def _is_forced(self) -> bool:
        """Whether the client names a tier, found out without asking a model."""
        declared = self._declared()
        if declared is None or declared.strip().casefold() in self.profile.undeclared:
            return False
        return self.router.route_sync(Query(declared=declared)).outcome[0] == "D"

    def _declared(self) -> str | None:
        """The route that the client names as its model; None for `auto`."""
        model = self.request.model
        if model.strip().casefold() == AUTO:
            return None
        # As in the list of models; a profile may accept other names, too.
        named = model.removeprefix(PREFIX)
        return named if named != model and named in map(str.lower, self.profile.routes) else model

    def _route_of(self, slot: Slot) -> str | None:
        """The tier that a slot serves."""
        policies = self.profile.policies
        return next((name for name in self.profile.routes if policies[name].model == slot.name), None)

    def _decide_alone(
        self, query: Query, route: str, confidence: float, by: str, outcome: str, why: Reason
    ) -> Decision:
        """A decision without any layer."""
        return Decision(self.profile, query, (route,), confidence, 0.0, by, outcome, remarks=(why,), id=new_id())


def unfit(slot: Slot, request: ModelRequest, caller: Caller, provider: str | None = None) -> Reason | None:
    """Why a slot cannot take a request; None if it can."""
    if slot.needs_key:
        return because(slot, "slot.key", f"its key is missing, {slot.needs_key} is empty")
    if request.wire not in slot.wires:
        return because(slot, "slot.wire", f"does not speak {request.wire}, only {', '.join(slot.wires)}")
    if provider is not None and slot.provider != provider:
        return because(slot, "slot.bound", f"the conversation carries state only {provider} can read")
    if request.images and not slot.images:
        return because(slot, "slot.images", "takes no images")
    if request.tools and not slot.tools:
        return because(slot, "slot.tools", "takes no tools")
    window = slot.context_tokens if slot.is_looked_up else context_of(slot)
    needed = request.tokens + (request.max_tokens or ANSWER_TOKENS)
    if window is not None and needed > window:
        return because(slot, "slot.window", f"about {needed:,} tokens do not fit into its {window:,}")
    return unbounded(request, slot) if caller.budget.is_limited else None
