"""What one request costs and how it ends, written down exactly once."""

from __future__ import annotations

import asyncio
import time
from functools import lru_cache
from typing import Literal, NamedTuple

from turnout.apps.caller import Caller
from turnout.core.aside import aside
from turnout.core.decision import Decision
from turnout.core.profile import Profile
from turnout.models.price import Usage, cost_usd
from turnout.models.slot import Slots
from turnout.store import Outcome, Store

from .choose import ANSWER_TOKENS, Candidate, Choice
from .conversation import Conversations
from .exchange import Attempt, Begun
from .method import method
from .wire import TOKEN_CHARACTERS, Asked, decoded

# Of a provider's headers, what a client may see.
SHOWN = {name: name.encode() for name in ("retry-after", "x-request-id", "request-id")}
# A streamed token travels in an event of some forty times its size.
EVENT_FACTOR = 40

Headers = list[tuple[bytes, bytes]]
Ended = Literal["answered", "refused", "failed", "cancelled"]


class Turned(NamedTuple):
    """A decision, and where it leads."""

    decision: Decision
    choice: Choice
    pinned: str = ""
    """Why the conversation stays where it is; empty if it does not, or need not."""


class Ledger(NamedTuple):
    """Where accounts are kept."""

    store: Store | None
    slots: Slots
    conversations: Conversations


class Account:
    """What one request costs and how it ends, written down exactly once."""

    def __init__(self, ledger: Ledger, asked: Asked, turned: Turned, caller: Caller) -> None:
        self.ledger = ledger
        self.asked = asked
        self.turned = turned
        self.decision = turned.decision
        self.caller = caller
        self.started = time.monotonic()
        self.reserved_usd = 0.0
        self.recorded = False
        """The decision is written down."""
        self.closed = False

    @property
    def must_record(self) -> bool:
        """Whether the decision is to be written down before anybody is asked: in `strict`, before a stream begins, and
        where its text is long, for which there is a thread. Else it is written with its outcome, at the end."""
        store = self.ledger.store
        early = self.asked.stream or self.asked.is_long or (store is not None and store.is_strict)
        return store is not None and not self.recorded and early

    async def record(self) -> None:
        """Write the decision down, without holding up the others in `strict`."""
        if self.ledger.store is not None:
            self.recorded = True
            await record(self.ledger.store, self.decision)

    def reserve(self, candidates: tuple[Candidate, ...]) -> None:
        """Set aside what the dearest candidate might cost."""
        if self.caller.budget.budget_usd is None:
            return
        answers = max(1, decoded(self.asked.fields, "n", int, 1))
        usage = Usage(self.asked.tokens, (self.asked.max_tokens or ANSWER_TOKENS) * answers)
        worst = max(cost_usd(candidate.slot, usage) or 0.0 for candidate in candidates)
        self.reserved_usd = self.caller.budget.reserve(worst + (classifier_usd(self.decision) or 0.0))

    def headers(self, begun: Begun, attempts: list[Attempt]) -> Headers:
        decision = self.decision
        slot, theirs = begun.candidate.slot, begun.upstream.headers
        told = [
            (b"content-type", slot.hide(theirs.get("content-type", "application/json"))),
            (b"x-turnout-decision", decision.id),
            (b"x-turnout-route", decision.route),
            (b"x-turnout-layer", decision.by),
            (b"x-turnout-outcome", decision.outcome),
            (b"x-turnout-method", method(decision)),
            (b"x-turnout-confidence", f"{decision.confidence:.3f}"),
            (b"x-turnout-model", slot.id),
            (b"x-turnout-slot", slot.name),
            (b"x-turnout-attempts", str(len(attempts))),
        ]
        told += [(name, slot.hide(theirs[key])) for key, name in SHOWN.items() if key in theirs]
        if self.turned.pinned:
            told.append((b"x-turnout-pinned", self.turned.pinned))
        if self.asked.stream:
            told.append((b"cache-control", "no-cache"))
        return [(name, value.encode("latin-1", "replace")) for name, value in told]

    def close(self, ended: Ended, begun: Begun | None, attempts: list[Attempt], *, written: int = 0) -> None:
        if self.closed:
            return
        self.closed = True
        slot = begun.candidate.slot if begun is not None else None
        usage, estimated = self._usage(begun, written)
        cost = cost_usd(slot, usage) if slot is not None and usage is not None else None
        deciding = classifier_usd(self.decision)
        spent = (cost or 0.0) + (deciding or 0.0)
        self.caller.budget.settle(self.reserved_usd, spent)
        if begun is not None and slot is not None and ended == "answered":
            conversations, asked = self.ledger.conversations, self.asked
            tokens = asked.tokens if usage is None else usage.input_tokens + usage.output_tokens
            for name in filter(None, (asked.conversation, begun.stored)):
                conversations.keep(
                    self.caller.tenant, name, begun.candidate.route, slot, self.decision.confidence, tokens
                )
        if self.ledger.store is None:
            return
        chosen = self.turned.choice.candidates[0].slot.id if self.turned.choice.candidates else None
        fallback = None
        if slot is not None and slot.id != chosen:
            fallback = f"{chosen} did not answer"
        elif (
            slot is not None
            and begun is not None
            and not self.turned.pinned
            and begun.candidate.route != self.decision.route
        ):
            fallback = f"no slot for {self.decision.route} could be used"
        extra: dict[str, object] = {"attempts": attempts, "method": method(self.decision), "wire": self.asked.wire}
        extra |= {"skipped": self.turned.choice.skipped} if self.turned.choice.skipped else {}
        extra |= {"pinned": self.turned.pinned} if self.turned.pinned else {}
        extra |= {"estimated_tokens": True} if estimated else {}
        # In `strict` nobody waits for this one: the decision is committed, and what is lost is counted.
        self.ledger.store.close_account(
            self.decision,
            Outcome(
                ended=ended,
                slot=slot.name if slot is not None else None,
                model=slot.id if slot is not None else None,
                attempts=len(attempts),
                input_tokens=usage.input_tokens if usage is not None else None,
                output_tokens=usage.output_tokens if usage is not None else None,
                cost_usd=cost,
                baseline_usd=self._baseline(usage) if usage is not None else None,
                classifier_usd=deciding,
                fallback=fallback,
                elapsed_ms=(time.monotonic() - self.started) * 1000,
                extra=extra,
            ),
            key_id=self.caller.key_id,
            spent_usd=spent,
            decided=self.recorded,
        )

    def _usage(self, begun: Begun | None, written: int) -> tuple[Usage | None, bool]:
        """The provider's count; where it gave none, an estimate, and said to be one."""
        if begun is None:
            return None, False
        if begun.usage.input_tokens or begun.usage.output_tokens:
            return begun.usage, False
        said = (
            written // (TOKEN_CHARACTERS * EVENT_FACTOR) if self.asked.stream else len(begun.first) // TOKEN_CHARACTERS
        )
        return Usage(self.asked.tokens, max(1, said)), True

    def _baseline(self, usage: Usage) -> float | None:
        """What the dearest slot of the profile would have cost."""
        slots = map(self.ledger.slots.find, _slot_names(self.decision.profile))
        costs = [cost for slot in slots if slot is not None and (cost := cost_usd(slot, usage)) is not None]
        return max(costs, default=None)


@lru_cache(maxsize=8)
def _slot_names(profile: Profile) -> tuple[str, ...]:
    """The slots a profile's routes name."""
    return tuple(dict.fromkeys(profile.policies[route].model or route.lower() for route in profile.routes))


async def record(store: Store, decision: Decision, *, key_id: str = "", spent_usd: float = 0.0) -> None:
    """Write a decision down before it is answered, without holding up the others in `strict`."""
    size = len(decision.query.text) + sum(len(turn.text) for turn in decision.query.turns)
    done = await aside(size, store.append, decision, key_id=key_id, spent_usd=spent_usd)
    if done is not None:
        await asyncio.wrap_future(done)


def classifier_usd(decision: Decision) -> float | None:
    """What deciding cost: the sum over the models that were asked; None if no price is known, or none was asked."""
    costs = [
        said.evidence[1]
        for step in decision.steps
        if step.place.cost == "network" and (said := step.verdict or step.fault) is not None and len(said.evidence) > 1
    ]
    known = [cost for cost in costs if isinstance(cost, float)]
    return sum(known) if known else None
