"""What a decision and what follows it cost, and how it ended: written down exactly once, whatever happens.

Deciding is paid for, too: a layer that is not sure may ask a model. Under a budget the most a model can cost is set
aside before it is asked, and what it did cost is booked after it. A model without a price is not asked then. One that
was asked and did not answer in time is booked at the most, since its provider may bill it.
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
from turnout.core.profile import Placed, Profile
from turnout.core.query import Query
from turnout.core.router import Router
from turnout.models.ask import Models
from turnout.models.generate import Attempt, Completion, Generation, Money
from turnout.models.price import Usage, cost_usd, most_usd
from turnout.models.slot import Slot, Slots
from turnout.models.spend import Bound, bound, may_think_unseen
from turnout.models.wire.value import ModelRequest
from turnout.store import Outcome, Store

from .caller import Caller

# A token is at least one byte of a text. Of an instruction, which is its profile's prose, it is more than three.
PROSE_BYTES = 3
# What marks the turns of a prompt, and what a provider puts around the one tool that a reply is to be given with, which
# is 313 to 346 tokens with Anthropic's models.
TURN_TOKENS, TOOL_TOKENS = 16, 400

Ended = Literal["answered", "refused", "failed", "cancelled"]


class Ledger:
    """Where accounts are kept."""

    def __init__(self, store: Store | None, slots: Slots) -> None:
        self.store = store
        self.slots = slots
        self.is_strict = store is not None and store.is_strict
        self._compared: dict[str, list[Slot]] = {}

    def compared(self, profile: Profile) -> list[Slot]:
        """The slots that a profile's routes name, of those with one price one: what an answer might have cost."""
        found = self._compared.get(profile.hash)
        if found is None:
            names = {profile.policies[route].model or route.lower() for route in profile.routes}
            slots = [slot for name in names if (slot := self.slots.find(name)) is not None]
            found = self._compared[profile.hash] = list({slot.prices or slot.id: slot for slot in slots}.values())
        return found

    def open(self, decision: Decision, caller: Caller) -> Account:
        """The account of a decision, a context: it is closed when that ends, with what happened in it."""
        return Account(self, decision, caller)


class Spending:
    """What the generations of an account came to. A sum with something of no known price has none."""

    def __init__(self) -> None:
        self.slot: Slot | None = None
        """Who answered last."""
        self.slot_name: str | None = None
        """What the profile calls it."""
        self.attempts: list[Attempt] = []
        self.input_tokens: int | None = None
        self.output_tokens: int | None = None
        self.cost_usd: float | None = None
        self.baseline_usd: float | None = None
        self.booked_usd = 0.0
        self.is_estimated = False

    def add(self, slot: Slot, slot_name: str, usage: Usage, compared: Sequence[Slot]) -> float | None:
        """One more answer; returns what it cost. Besides, what the most expensive of these slots would have cost."""
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
    """What a decision and its answer cost, and how they end."""

    def __init__(self, ledger: Ledger, decision: Decision, caller: Caller) -> None:
        self.ledger = ledger
        self.decision = decision
        self.caller = caller
        self.generation: Generation | None = None
        self.ended: Ended | None = None
        """How it ends; None: as its generation does."""
        self.remembered_tokens: int | None = None
        """Of the answer that the request follows, if it was given here."""
        self.fallback: str | None = None
        """Why another model answered than was chosen."""
        self.sources: tuple[str, ...] | None = None
        """The sources that were used."""
        self.retrieval: bool | None = None
        """Whether retrieval ran; None where it is unknown."""
        self.parts: list[tuple[Decision, Outcome]] = []
        """How the parts of the question ended, each in a row of its own."""
        self.extra: dict[str, object] = {}
        """What else the log keeps."""
        self._started = time.monotonic()
        self._deciding_usd = spent_usd(decision, ledger.slots)
        self._held: Bound | None = None
        """What is reserved for the attempt under way; None without a budget, and between attempts."""
        self._attempted: Slot | None = None
        """Who was asked last."""
        self._lost_usd = 0.0
        """What attempts without an answer may have cost."""
        self._recorded = False
        """The decision is written down."""
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
        """Not to be closed with its context, but by `close`, when its stream has ended."""
        self._kept_open = True
        return self

    def close(self) -> None:
        """Write down how it ended; once, however often it is called."""
        if self.is_open:
            self.is_open = False
            self._close(self.ended or (self.generation.ended if self.generation is not None else "cancelled"))
            self.generation = None  # which refers to its account in turn: a circle would wait for the collector

    @property
    def spent_usd(self) -> float:
        """What the calls that have ended were booked at."""
        return self._lost_usd + self.spending.booked_usd

    async def record(self) -> None:
        """Write the decision down before a model is asked; else it is written with its outcome, at the end."""
        if self.ledger.store is not None:
            self._recorded = True
            await record(self.ledger.store, self.decision, key_id=self.caller.key_id)

    def generate(
        self, models: Models, request: ModelRequest, headers: Mapping[str, str], total_s: float | None = None
    ) -> Generation:
        """A generation that this account pays for, when the one before it has ended."""
        if self.generation is not None:
            self._book()
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
        """The provider's count; where it gave none of the whole answer, an estimate, and said to be one."""
        assert self.generation is not None  # noqa: S101 - it is what completed
        request, told = self.generation.request, completion.usage
        # Some report nothing but zeros, for all or for what they wrote.
        wrote = completion.written > 0 if request.stream else completion.is_uncounted
        unsaid = not (told.input_tokens or told.output_tokens) or (wrote and not told.output_tokens)
        # An answer in one piece is counted as a whole; a stream only by a count that came after its last words.
        if not unsaid and (told.final or (ended == "answered" and not request.stream)):
            return told, False
        written = max(1, told.output_tokens, completion.written)
        return replace(told, input_tokens=told.input_tokens or request.tokens, output_tokens=written), True

    def _book(self) -> None:
        """Add the generation that has ended, if there is one, to what this account paid for."""
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
        booked = cost or 0.0
        if self._held is not None:
            booked = self._booked(self._held, cost, completion, estimated)
            self.caller.budget.settle(self._held.usd, booked)
            self._held = None
        elif booked:
            self.caller.budget.settle(0.0, booked)
        spent.booked_usd += booked

    def _close(self, ended: Ended) -> None:
        self._book()
        if self.ledger.store is None:
            return
        spent = self.spending
        extra: dict[str, object] = {"attempts": spent.attempts, **self.extra}
        extra |= {"estimated_tokens": True} if spent.is_estimated else {}
        extra |= {"lost_usd": self._lost_usd} if self._lost_usd else {}
        # In `strict` this one is not waited for: the decision is committed, and what is lost is counted.
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

    def _booked(self, held: Bound, cost: float | None, completion: Completion | None, estimated: bool) -> float:
        """What is booked on the key: what the provider counted. Where it did not, what we counted, and no more than was
        reserved."""
        if self.generation is None or completion is None:
            return self.unseen_usd()  # the client left while an attempt was under way
        slot, request, told = completion.slot, self.generation.request, completion.usage
        hosted = slot.hosted_tools_usd or 0.0 if request.hosted else 0.0
        if not estimated:
            return (cost or 0.0) + hosted
        read = cost_usd(slot, replace(told, output_tokens=0)) if told.input_tokens else None
        written = cost_usd(slot, Usage(0, max(1, told.output_tokens, completion.written))) or 0.0
        if may_think_unseen(request, slot):
            written = held.usd
        counted = held.input_usd if read is None else read + hosted
        # What it said it had read is billed, whatever was reserved.
        return max(read or 0.0, min(held.usd, counted + written))

    def _named(self, slot: Slot) -> str:
        """A slot in the profile's own words: one that stands in for the slot a policy names is that slot."""
        wanted = self.decision.profile.policies[self.decision.routes[0]].model
        if wanted is None or wanted == slot.name:
            return slot.name
        return wanted if self.ledger.slots.find(wanted) is slot else slot.name


async def record(store: Store, decision: Decision, *, key_id: str = "", spent_usd: float = 0.0) -> None:
    """Write a decision down before it is answered, without holding up the others in `strict`."""
    size = len(decision.query.text) + sum(len(turn.text) for turn in decision.query.turns)
    done = await aside(size, store.append, decision, key_id=key_id, spent_usd=spent_usd)
    if done is not None:
        await asyncio.wrap_future(done)


async def decide(router: Router, query: Query, caller: Caller, slots: Slots, store: Store | None) -> Decision:
    """Decide under the caller's budget; refused where it does not cover what a model that is needed may cost.

    What it did cost, `spent_usd`, is booked with the decision by whom this returns to. A client that leaves ends it:
    then there is no decision, and what was asked for it is booked here.
    """
    budget, held_usd = caller.budget, 0.0
    if budget.is_limited:
        budget.check()

    def admit(place: Placed, query: Query) -> str:
        """Set aside what a layer may cost; why it is not to be asked, if it is not."""
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
        if store is not None:
            store.spend(new_id(), caller.key_id, held_usd)
        raise
    finally:
        if held_usd:
            budget.settle(held_usd, 0.0)


def worst_usd(place: Placed, query: Query, slots: Slots) -> float | None:
    """The most that asking a layer about a query can cost; None if its model has no known price. A layer that asks no
    model costs nothing."""
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
    """What it cost to decide: what the models said, and of one that did not say, the most it can have been. None if no
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
    said = step.verdict or step.fault
    told = said.evidence[1:2] if said is not None else ()
    if told and isinstance(told[0], float):
        return told[0]
    unanswered = step.ended == "timeout" and step.elapsed_ns > 0
    return worst_usd(step.place, query, slots) if unanswered or told == (None,) else None
