"""What deciding may cost, and what it did: a layer that is not sure may ask a model, and that is paid for.

Under a budget the most a model can cost is set aside before it is asked, and what it did cost is booked after it. A
model without a price is not asked then. One that was asked and did not answer in time is booked at the most, since its
provider may bill it.
"""

from __future__ import annotations

import asyncio

from turnout.core.decision import Decision, Step
from turnout.core.ident import new_id
from turnout.core.profile import Placed
from turnout.core.query import Query
from turnout.core.router import Router
from turnout.models.price import Usage, cost_usd
from turnout.models.slot import Slots
from turnout.store import Store

from .caller import Budget, Caller

# A token is at least one byte of a text. Of an instruction, which is its profile's prose, it is more than three.
PROSE_BYTES = 3
# What marks the turns of a prompt, and what a provider puts around the one tool that a reply is to be given with, which
# is 313 to 346 tokens with Anthropic's models.
TURN_TOKENS, TOOL_TOKENS = 16, 400


async def decide(router: Router, query: Query, caller: Caller, slots: Slots, store: Store | None) -> Decision:
    """Decide under the caller's budget; refused where it does not cover what a model that is needed may cost.

    What it did cost, `spent_usd`, is booked with the decision by whom this returns to. A client that leaves ends it:
    then there is no decision, and what was asked for it is booked here.
    """
    caller.budget.check()
    deposit = Deposit(caller.budget, slots)
    try:
        return await router.route(query, admit=deposit.admit)
    except asyncio.CancelledError:
        caller.budget.settle(0.0, deposit.usd)
        if store is not None:
            store.spend(new_id(), caller.key_id, deposit.usd)
        raise
    finally:
        caller.budget.settle(deposit.usd, 0.0)


class Deposit:
    """What is set aside of a budget for the models that are asked about one question."""

    def __init__(self, budget: Budget, slots: Slots) -> None:
        self.budget = budget
        self.slots = slots
        self.usd = 0.0

    def admit(self, place: Placed, query: Query) -> str:
        """Set aside what a layer may cost; why it is not to be asked, if it is not."""
        worst = worst_usd(place, query, self.slots)
        if worst is not None:
            self.usd += self.budget.reserve(worst)
        elif self.budget.left_usd is not None:
            return "its model has no known price, and this key has a budget: it was not asked"
        return ""


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
    asked = [(whole.query, step) for whole in (decision, *decision.parts) for step in whole.steps]
    costs = [_step_usd(step, query, slots) for query, step in asked if step.place.cost == "network"]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None


def _step_usd(step: Step, query: Query, slots: Slots) -> float | None:
    said = step.verdict or step.fault
    told = said.evidence[1:2] if said is not None else ()
    if told and isinstance(told[0], float):
        return told[0]
    unanswered = step.ended == "timeout" and step.elapsed_ns > 0
    return worst_usd(step.place, query, slots) if unanswered or told == (None,) else None
