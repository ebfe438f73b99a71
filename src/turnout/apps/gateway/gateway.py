"""A request's way: read it, decide, choose, try, answer, write down what happened.

Every answered request has one decision row and one outcome row, whatever happens in between: a client that goes away,
a stream that breaks, a provider that never answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import NamedTuple

from msgspec.structs import replace

from turnout.apps.caller import Caller, Refused
from turnout.apps.deciding import decide
from turnout.core.aside import aside
from turnout.core.decision import Decision
from turnout.core.errors import QueryError
from turnout.core.ident import new_id
from turnout.core.profile import Profile
from turnout.core.query import Query
from turnout.core.router import Router
from turnout.core.verdict import Reason
from turnout.models.ask import Models
from turnout.models.provider import Wire
from turnout.models.refusal import Refusal
from turnout.models.slot import Slot, Slots
from turnout.net.retry import RetryBudget
from turnout.store import Store
from turnout.store.redact import digest

from .account import Account, Headers, Ledger, Turned
from .chat import Chat
from .choose import Candidate, Choice, choose, unfit
from .conversation import Conversations, Pin, staying_saves
from .exchange import Begun, Exchange, Wrong
from .messages import Messages
from .relay import Relay
from .responses import Responses
from .upstream import Upstream
from .wire import Asked, Format

FORMATS: Mapping[Wire, Format] = {
    "openai-chat": Chat(),
    "anthropic-messages": Messages(),
    "openai-responses": Responses(),
}


# How a client asks Anthropic for a window beyond the model's usual one.
LONG_WINDOW = "context-1m"


class Answer(NamedTuple):
    """What goes back to the client."""

    status: int
    headers: Headers
    body: bytes | Relay


class Gateway:
    """Serves the three formats with one profile and the slots that are configured."""

    def __init__(self, router: Callable[[], Router], models: Models, store: Store | None) -> None:
        self.router = router
        """The router of the moment: a profile may be reloaded between two requests."""
        self.models = models
        self.store = store
        self.conversations = Conversations()
        self.retries = RetryBudget()
        self.live: set[Upstream] = set()
        """Streams that are being relayed."""

    def under(self, router: Callable[[], Router], models: Models) -> Gateway:
        """The same under other settings. Requests under way go on with the ones they began with."""
        other = copy(self)
        other.router, other.models = router, models
        return other

    @property
    def slots(self) -> Slots:
        return self.models.slots

    async def handle(self, wire: Wire, body: bytes, caller: Caller, headers: Mapping[str, str]) -> Answer:
        """Answer one request; every refusal in the client's own format."""
        form = FORMATS[wire]
        try:
            asked = await aside(len(body), form.read, body)
            if LONG_WINDOW in headers.get("anthropic-beta", ""):
                asked = replace(asked, extras=replace(asked.extras, long_window=True))
            turned = await self._decide(asked, caller)
            return await self._answer(form, asked, turned, caller, headers)
        except Refused as refused:
            return refusal(form, refused)
        except QueryError as error:
            return refusal(form, Refused(400, "invalid_request_error", str(error)))

    def cut(self) -> None:
        """End every stream now; each tells its client that it is incomplete."""
        for upstream in list(self.live):
            upstream.close()

    # --- deciding

    async def _decide(self, asked: Asked, caller: Caller) -> Turned:
        router = self.router()
        profile = router.profile
        caller.budget.check()
        if caller.ceiling is not None and caller.ceiling not in profile.routes:
            said = f"this key's ceiling {caller.ceiling} is no tier of the profile {profile.name}: use another key"
            raise Refused(403, "permission_error", said)
        pin = self.conversations.get(caller.tenant, asked.conversation)
        if pin is not None and _is_above(profile, pin.route, caller):
            pin = None  # another key of the tenant's began it
        bound = pin.provider if pin is not None and asked.bound else None
        session = self._session(asked, caller)
        query = replace(asked.query, tenant=caller.tenant or None, session=session, ceiling=caller.ceiling)
        named = self.slots.all_by_id(asked.model)
        if named:
            return self._passed_through(profile, query, asked, caller, named)
        if not asked.fresh and pin is not None and pin.route in profile.routes and not _forces(router, asked.model):
            return self._continued(profile, query, asked, caller, pin)
        query = replace(query, declared=asked.model)
        decision = await decide(router, query, caller, self.slots, self.store)
        if decision.outcome[0] == "D" and not caller.may_force:
            raise Refused(
                403, "permission_error", f"this key may not choose a tier itself: ask for `auto`, not {asked.model!r}"
            )
        if decision.outcome == "Dk":
            said = f"{asked.model!r} is above this key's ceiling {caller.ceiling}: ask for `auto` or a lower tier"
            raise Refused(403, "permission_error", said)
        choice = choose(profile, self.slots, asked, decision.route, caller, provider=bound)
        if bound is not None and pin is not None and not choice.candidates:
            # Nobody in the chain can read what the conversation carries; whoever wrote it can.
            return Turned(decision, self._first(choice, pin, asked, caller), "bound")
        if decision.outcome[0] != "D" and pin is not None:
            return self._pinned(profile, Turned(decision, choice), asked, caller, pin)
        return Turned(decision, choice)

    def _session(self, asked: Asked, caller: Caller) -> str:
        """What the log calls a conversation: keyed, since a bare hash of its beginning would tell what that was."""
        key = self.store.journal.encoder.key if self.store is not None else b""
        return digest(asked.conversation, caller.tenant, key)

    def _passed_through(
        self, profile: Profile, query: Query, asked: Asked, caller: Caller, named: Sequence[Slot]
    ) -> Turned:
        """The client names a configured model: it gets the first slot with it that it may have and that can take the
        request, or a refusal."""
        order = profile.routes
        routes = {slot.name: _route_of(profile, slot) for slot in named}
        allowed = [slot for slot in named if caller.may_force and not _is_above(profile, routes[slot.name], caller)]
        if not allowed:
            raise Refused(403, "permission_error", f"this key may not choose {named[0].id} itself: ask for `auto`")
        slot = next((one for one in allowed if unfit(one, asked, caller) is None), allowed[0])
        route, why = routes[slot.name], unfit(slot, asked, caller)
        told = Reason("gateway.passthrough", f"the caller named the model {slot.id}; no tier was chosen")
        decision = _made(profile, query, route or order[-1], 1.0, "passthrough", "D-", told)
        candidates = (Candidate(route or order[-1], slot),) if why is None else ()
        return Turned(decision, Choice(candidates, () if why is None else (why,)))

    def _continued(self, profile: Profile, query: Query, asked: Asked, caller: Caller, pin: Pin) -> Turned:
        """A turn without new words keeps its conversation's tier and model."""
        said = f"no new words of the user's in this turn: its conversation keeps {pin.route} and {pin.slot}"
        decision = _made(profile, query, pin.route, pin.confidence, "pin", "C-", Reason("pin.turn", said))
        choice = choose(profile, self.slots, asked, pin.route, caller, provider=pin.provider if asked.bound else None)
        return Turned(decision, self._first(choice, pin, asked, caller), "turn")

    def _pinned(self, profile: Profile, turned: Turned, asked: Asked, caller: Caller, pin: Pin) -> Turned:
        """A turn decided anew stays where its prompt is cached, while that is cheaper and no tier is lost."""
        decision, choice = turned.decision, turned.choice
        here = self.slots.find(pin.slot)
        if here is None or not choice.candidates or not self.conversations.is_warm(pin):
            return turned
        there = choice.candidates[0].slot
        order = profile.routes
        lower = order.index(decision.route) <= order.index(pin.route) if pin.route in order else False
        if lower and unfit(here, asked, caller) is None and staying_saves(here, there, pin.tokens, asked.tokens):
            return Turned(decision, self._first(choice, pin, asked, caller), "cache")
        return turned

    def _first(self, choice: Choice, pin: Pin, asked: Asked, caller: Caller) -> Choice:
        """The choice, the conversation's own slot before the others."""
        slot = self.slots.find(pin.slot)
        if slot is None or unfit(slot, asked, caller) is not None:
            return choice
        rest = tuple(one for one in choice.candidates if one.slot.endpoint != slot.endpoint)
        return Choice((Candidate(pin.route, slot), *rest), choice.skipped)

    # --- answering

    async def _answer(
        self, form: Format, asked: Asked, turned: Turned, caller: Caller, headers: Mapping[str, str]
    ) -> Answer:
        decision, choice = turned.decision, turned.choice
        account = Account(Ledger(self.store, self.slots, self.conversations), asked, turned, caller)
        exchange = Exchange(self.models, self.retries, form, asked, headers, account)
        finished = False
        try:
            if account.must_record:
                await account.record()
            if not choice.candidates:
                account.close("refused", None, exchange.attempts)
                finished = True
                return _none_fits(form, turned)
            with self.retries.request:
                found = await exchange.begin(choice.candidates)
            if isinstance(found, Begun):
                finished = asked.stream
                if asked.stream:
                    # From here on the stream closes the account.
                    body: bytes | Relay = Relay(form, found, exchange, account, self.live)
                else:
                    finished = True
                    account.close("answered", found, exchange.attempts)
                    body = found.first
                return Answer(200, account.headers(found, exchange.attempts), body)
            finished = True
            account.close("failed", None, exchange.attempts)
            return _failed(form, found, decision, exchange)
        except Refused:
            finished = True
            account.close("refused", None, exchange.attempts)
            raise
        finally:
            if not finished:
                account.close("cancelled", None, exchange.attempts)


def refusal(form: Format, refused: Refused, decision: str = "") -> Answer:
    headers = [(b"content-type", b"application/json")]
    if refused.retry_after_s is not None:
        headers.append((b"retry-after", str(max(1, round(refused.retry_after_s))).encode()))
    return Answer(refused.status, headers, form.error(refused.status, refused.kind, str(refused), decision))


def _is_above(profile: Profile, route: str | None, caller: Caller) -> bool:
    """Whether a route is dearer than the caller's ceiling; one that is no tier is."""
    order = profile.routes
    return caller.ceiling is not None and (route not in order or order.index(route) > order.index(caller.ceiling))


def _route_of(profile: Profile, slot: Slot) -> str | None:
    """The tier a slot serves."""
    return next((name for name in profile.routes if profile.policies[name].model == slot.name), None)


def _made(
    profile: Profile, query: Query, route: str, confidence: float, by: str, outcome: str, why: Reason
) -> Decision:
    """A decision no layer had to make."""
    return Decision(profile, query, (route,), confidence, 0.0, by, outcome, remarks=(why,), id=new_id())


def _forces(router: Router, model: str) -> bool:
    """Whether the client names a tier: looked up without asking anybody."""
    if model.strip().casefold() in router.profile.undeclared:
        return False
    return router.route_sync(Query(declared=model)).outcome[0] == "D"


def _none_fits(form: Format, turned: Turned) -> Answer:
    told = "; ".join(reason.text for reason in turned.choice.skipped) or "no slot is configured for it"
    said = f"no model can take this request: {told}"
    codes = {reason.code for reason in turned.choice.skipped}
    status, kind = 503, "no_model_available"
    if "slot.window" in codes:
        status, kind = 413, "context_length_exceeded"
    elif "slot.unpriced" in codes:
        status, kind = 403, "permission_error"
    return _error(form, status, kind, said, turned.decision)


def _failed(form: Format, found: Wrong | None, decision: Decision, exchange: Exchange) -> Answer:
    attempts = exchange.attempts
    if found is not None:
        refusal = found.refusal
        said = refusal.message or "the provider refused the request without saying why"
        return _error(form, refusal.status, "invalid_request_error", said, decision, refusal)
    statuses = {attempt.status for attempt in attempts}
    endings = {attempt.ended for attempt in attempts}
    tried = "; ".join(exchange.told)
    if statuses == {429}:
        busy = _error(form, 429, "rate_limit_exceeded", f"every model is busy: {tried}", decision)
        if exchange.retry_after_s is not None:
            busy.headers.append((b"retry-after", str(math.ceil(exchange.retry_after_s)).encode()))
        return busy
    if endings == {"timeout"}:
        return _error(form, 504, "timeout", f"no model answered in time: {tried}", decision)
    return _error(form, 502, "upstream_error", f"no model answered: {tried}", decision)


def _error(
    form: Format, status: int, kind: str, message: str, decision: Decision, refusal: Refusal | None = None
) -> Answer:
    headers = [(b"content-type", b"application/json"), (b"x-turnout-decision", decision.id.encode())]
    return Answer(status, headers, form.error(status, kind, message, decision.id, refusal))
