"""What a decision and its answer cost, and how they ended: recorded exactly once, whatever happens.

Deciding costs money, too: a layer may ask a model. Under a budget the most that a model can cost is reserved before it
is asked, and the real cost is booked afterwards. A model without a price is not asked then. One that did not answer in
time is booked at its most, because the provider may bill it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Literal

from msgspec.structs import replace

from turnout.core.aside import aside
from turnout.core.decision import Decision, Step, new_id
from turnout.core.errors import Refused
from turnout.core.profile import PlacedLayer, Profile
from turnout.core.query import Query
from turnout.core.router import Router
from turnout.models.ask import Models
from turnout.models.generate import Attempt, Completion, Generation, Money
from turnout.models.price import Usage, cost_usd, most_usd
from turnout.models.slot import Slot, Slots
from turnout.models.spend import Bound, bound, may_think_unseen
from turnout.models.wire.value import ModelRequest
from turnout.store import Outcome, Store
from turnout.store.row import spending

from .caller import Caller

# A token has at least one byte of a text, and more than three of an instruction, which is prose.
PROSE_BYTES = 3
# The tokens that mark the turns of a prompt, and those that a provider adds for a tool: 313 to 346 with Anthropic.
TURN_TOKENS, TOOL_TOKENS = 16, 400

Ended = Literal["answered", "refused", "failed", "cancelled"]


class Ledger:
    def __init__(self, store: Store | None, slots: Slots) -> None:
        self.store = store
        self.slots = slots
        self.is_strict = store is not None and store.is_strict
        self._compared: dict[str, list[Slot]] = {}

    def compared(self, profile: Profile) -> list[Slot]:
        """The slots of a profile's routes, one for each price: to know what an answer might have cost."""
        found = self._compared.get(profile.hash)
        if found is None:
            names = {profile.policies[route].model or route.lower() for route in profile.routes}
            slots = [slot for name in names if (slot := self.slots.find(name)) is not None]
            found = self._compared[profile.hash] = list({slot.prices or slot.id: slot for slot in slots}.values())
        return found

    def open(self, decision: Decision, caller: Caller) -> Account:
        """The account of a decision: a context that closes the account when it ends."""
        return Account(self, decision, caller)


class Spending:
    """The sums over the generations of an account. A sum is unknown if one of its prices is."""

    def __init__(self) -> None:
        self.slot: Slot | None = None
        """Of the last answer."""
        self.slot_name: str | None = None
        """Its name in the profile."""
        self.attempts: list[Attempt] = []
        self.input_tokens: int | None = None
        self.output_tokens: int | None = None
        self.cost_usd: float | None = None
        self.baseline_usd: float | None = None
        self.booked_usd = 0.0
        self.is_estimated = False

    def add(self, slot: Slot, slot_name: str, usage: Usage, compared: Sequence[Slot]) -> float | None:
        """Add an answer, and what the most expensive of `compared` would have cost; returns the answer's cost."""
        is_first, self.slot, self.slot_name = self.slot is None, slot, slot_name
        self.input_tokens = usage.input_tokens + (self.input_tokens or 0)
        self.output_tokens = usage.output_tokens + (self.output_tokens or 0)
        cost, baseline = cost_usd(slot, usage), most_usd(compared, usage)
        self.cost_usd = cost if is_first else _sum(self.cost_usd, cost)
        self.baseline_usd = baseline if is_first else _sum(self.baseline_usd, baseline)
        return cost


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


class Account(Money):
    """What a decision and its answer cost, and how they ended."""

    def __init__(self, ledger: Ledger, decision: Decision, caller: Caller) -> None:
        self.ledger = ledger
        self.decision = decision
        self.caller = caller
        self.generation: Generation | None = None
        self.ended: Ended | None = None
        """How it ended; None: like its generation."""
        self.remembered_tokens: int | None = None
        """Of the answer that the request follows, if it was given here."""
        self.fallback: str | None = None
        """Why another model answered than the chosen one."""
        self.sources: tuple[str, ...] | None = None
        """The sources that were used."""
        self.retrieval: bool | None = None
        """Whether retrieval ran; None if it is unknown."""
        self.parts: list[tuple[Decision, Outcome]] = []
        """How the parts of the question ended: each has its own row."""
        self.extra: dict[str, object] = {}
        """More fields for the log."""
        self._started = time.monotonic()
        self._deciding_usd = spent_usd(decision, ledger.slots)
        self._held: Bound | None = None
        """What is reserved for the current attempt; None without a budget, and between attempts."""
        self._attempted: Slot | None = None
        """The slot that was asked last."""
        self._lost_usd = 0.0
        """What attempts without an answer may have cost."""
        self._recorded = False
        """Whether the decision is in the log."""
        self.spending = Spending()
        self.is_open = True
        self._kept_open = False

    def __enter__(self) -> Account:
        if self._deciding_usd:
            self.caller.budget.settle(0.0, self._deciding_usd)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Refused):
            self.ended = "refused"
        if not self._kept_open:
            self.close()

    def keep_open(self) -> Account:
        """Leave the account open when its context ends, for a stream to `close` it."""
        self._kept_open = True
        return self

    def close(self) -> None:
        """Record how it ended. Only the first call does anything."""
        if self.is_open:
            self.is_open = False
            self._close(self.ended or (self.generation.ended if self.generation is not None else "cancelled"))
            self.generation = None  # it refers to this account: a cycle would wait for the garbage collector

    @property
    def spent_usd(self) -> float:
        """What was booked for the calls that have ended."""
        return self._lost_usd + self.spending.booked_usd

    async def record(self) -> None:
        """Log the decision now, before a model is asked. Otherwise it is logged with its outcome at the end."""
        if self.ledger.store is not None:
            self._recorded = True
            await record(self.ledger.store, self.decision, key_id=self.caller.key_id)

    def generate(
        self, models: Models, request: ModelRequest, headers: Mapping[str, str], total_s: float | None = None
    ) -> Generation:
        """A generation that this account pays for; the previous one must have ended."""
        if self.generation is not None:
            self._settle()
        self.is_limited = self.caller.budget.is_limited
        self.generation = Generation(models, request, headers=headers, money=self, total_s=total_s)
        return self.generation

    # --- attempts

    def hold(self, request: ModelRequest, slot: Slot) -> Bound | None:
        budget = self.caller.budget
        left = budget.left_usd if budget.is_limited else None
        if left is None:
            return None
        most = bound(request, slot, self.remembered_tokens, left)
        budget.reserve(most.usd)
        self._held, self._attempted = most, slot
        return most

    def release(self, lost_usd: float = 0.0) -> None:
        if self._held is not None:
            self.caller.budget.settle(self._held.usd, lost_usd)
            self._lost_usd += lost_usd
            self._held = None

    def unseen_usd(self) -> float:
        if self._held is None or self._attempted is None or self.generation is None:
            return 0.0
        request = self.generation.request
        all_of_it = not request.stream or may_think_unseen(request, self._attempted)
        return self._held.usd if all_of_it else self._held.input_usd

    # --- the end

    def usage(self, ended: str, completion: Completion) -> tuple[Usage, bool]:
        """The tokens, and whether they are an estimate, because the provider did not count the whole answer."""
        assert self.generation is not None  # noqa: S101 - it is what completed
        request, counted = self.generation.request, completion.usage
        # Some providers report only zeros, for all tokens or for the output.
        wrote = completion.written > 0 if request.stream else completion.is_uncounted
        is_missing = not (counted.input_tokens or counted.output_tokens) or (wrote and not counted.output_tokens)
        # In a stream only a count after the last words is of the whole answer.
        if not is_missing and (counted.final or (ended == "answered" and not request.stream)):
            return counted, False
        written = max(1, counted.output_tokens, completion.written)
        return replace(counted, input_tokens=counted.input_tokens or request.tokens, output_tokens=written), True

    def _settle(self) -> None:
        """Book the generation that has ended, if there is one."""
        generation, spent = self.generation, self.spending
        completion = generation.completion if generation is not None else None
        cost, estimated = None, False
        if generation is not None:
            spent.attempts += generation.attempts
        if generation is not None and completion is not None:
            slot, compared = completion.slot, self.ledger.compared(self.decision.profile)
            usage, estimated = self.usage(generation.ended, completion)
            cost = spent.add(slot, self._named(slot), usage, compared)
            spent.is_estimated |= estimated
        amount_usd = cost or 0.0
        if self._held is not None:
            amount_usd = self._amount_to_book(self._held, cost, completion, estimated)
            self.caller.budget.settle(self._held.usd, amount_usd)
            self._held = None
        elif amount_usd:
            self.caller.budget.settle(0.0, amount_usd)
        spent.booked_usd += amount_usd

    def _close(self, ended: Ended) -> None:
        self._settle()
        if self.ledger.store is None:
            return
        spent = self.spending
        extra: dict[str, object] = {"attempts": spent.attempts, **self.extra}
        extra |= {"estimated_tokens": True} if spent.is_estimated else {}
        extra |= {"lost_usd": self._lost_usd} if self._lost_usd else {}
        # Not awaited even in `strict`: the decision is committed, and lost outcomes are counted.
        self.ledger.store.close_account(
            self.decision,
            Outcome(
                ended=ended,
                slot=spent.slot_name,
                model=spent.slot.id if spent.slot is not None else None,
                attempts=len(spent.attempts),
                input_tokens=spent.input_tokens,
                output_tokens=spent.output_tokens,
                cost_usd=spent.cost_usd,
                baseline_usd=spent.baseline_usd,
                classifier_usd=self._deciding_usd,
                fallback=self.fallback,
                elapsed_ms=(time.monotonic() - self._started) * 1000,
                sources=self.sources,
                retrieval=self.retrieval,
                extra=extra,
            ),
            parts=self.parts,
            key_id=self.caller.key_id,
            spent_usd=(self._deciding_usd or 0.0) + self._lost_usd + spent.booked_usd,
            decided=self._recorded,
        )

    def _amount_to_book(self, held: Bound, cost: float | None, completion: Completion | None, estimated: bool) -> float:
        """What is booked on the key: what the provider counted, or else what we counted, at most what was reserved."""
        if self.generation is None or completion is None:
            return self.unseen_usd()  # the client left while an attempt was under way
        slot, request, usage = completion.slot, self.generation.request, completion.usage
        hosted = slot.hosted_tools_usd or 0.0 if request.hosted else 0.0
        if not estimated:
            return (cost or 0.0) + hosted
        read = cost_usd(slot, replace(usage, output_tokens=0)) if usage.input_tokens else None
        written = cost_usd(slot, Usage(0, max(1, usage.output_tokens, completion.written))) or 0.0
        if may_think_unseen(request, slot):
            written = held.usd
        counted = held.input_usd if read is None else read + hosted
        # Input that the provider counted is billed, whatever was reserved.
        return max(read or 0.0, min(held.usd, counted + written))

    def _named(self, slot: Slot) -> str:
        """The name of a slot in the profile: a slot that stands in for the one in the policy has that one's name."""
        wanted = self.decision.profile.policies[self.decision.routes[0]].model
        if wanted is None or wanted == slot.name:
            return slot.name
        return wanted if self.ledger.slots.find(wanted) is slot else slot.name


async def record(store: Store, decision: Decision, *, key_id: str = "", spent_usd: float = 0.0) -> None:
    """Log a decision before it is answered; in `strict`, wait until it is committed."""
    size = len(decision.query.text) + sum(len(turn.text) for turn in decision.query.turns)
    committed = await aside(size, store.append, decision, key_id=key_id, spent_usd=spent_usd)
    if committed is not None:
        await asyncio.wrap_future(committed)


async def decide(router: Router, query: Query, caller: Caller, slots: Slots, store: Store | None) -> Decision:
    """Decide under the caller's budget; refused if it does not cover what a layer's model may cost.

    The caller of this function books the real cost, `spent_usd`, with the decision. If the client leaves, there is no
    decision, and what was reserved is booked here.
    """
    budget, held_usd = caller.budget, 0.0
    if budget.is_limited:
        budget.check()

    def admit(place: PlacedLayer, query: Query) -> str:
        """Reserve what a layer may cost; the reason if it must not be asked."""
        nonlocal held_usd
        worst = worst_usd(place, query, slots)
        if worst is not None:
            held_usd += budget.reserve(worst)
        elif budget.left_usd is not None:
            return "its model has no known price, and this key has a budget: it was not asked"
        return ""

    try:
        return await router.route(query, admit=admit)
    except asyncio.CancelledError:
        budget.settle(0.0, held_usd)
        if store is not None and caller.key_id and held_usd:
            # Not awaited even in `strict`, as an outcome is not: there is no answer that depends on it.
            store.journal.post(spending(new_id(), caller.key_id, held_usd))
        raise
    finally:
        if held_usd:
            budget.settle(held_usd, 0.0)


def worst_usd(place: PlacedLayer, query: Query, slots: Slots) -> float | None:
    """The most that a layer's model can cost for a query: 0 without a model, None without a known price."""
    most = place.call.demand(query) if place.cost == "network" and place.call is not None else None
    if most is None:
        return 0.0
    slot = slots.find(most.slot) or slots.by_id(most.slot)
    if slot is None:
        return None
    read = most.prose_bytes // PROSE_BYTES + most.text_bytes + TURN_TOKENS
    if most.schema_bytes and slot.structured:
        read += most.schema_bytes + TOOL_TOKENS
    return cost_usd(slot, Usage(read, most.max_tokens))


def spent_usd(decision: Decision, slots: Slots) -> float | None:
    """What a decision cost: the models' own counts, or the most that one without a count can have cost. None if no
    model with a known price was asked."""
    asked = [
        (whole.query, step)
        for whole in (decision, *decision.parts)
        for step in whole.steps
        if step.place.cost == "network"
    ]
    known = [cost for query, step in asked if (cost := _step_usd(step, query, slots)) is not None]
    return sum(known) if known else None


def _step_usd(step: Step, query: Query, slots: Slots) -> float | None:
    result = step.verdict or step.fault
    cost = result.evidence[1:2] if result is not None else ()
    if cost and isinstance(cost[0], float):
        return cost[0]
    unanswered = step.ended == "timeout" and step.elapsed_ns > 0
    return worst_usd(step.place, query, slots) if unanswered or cost == (None,) else None
