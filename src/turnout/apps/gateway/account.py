"""What one request costs and how it ends, written down exactly once."""

from __future__ import annotations

import asyncio
import time
from functools import lru_cache
from typing import Literal, NamedTuple

from msgspec.structs import replace

from turnout.apps.caller import Caller
from turnout.apps.deciding import spent_usd
from turnout.core.aside import aside
from turnout.core.decision import Decision
from turnout.core.profile import Profile
from turnout.models.price import Usage, cost_usd
from turnout.models.slot import Slot, Slots
from turnout.store import Outcome, Store

from .choose import Choice
from .conversation import Conversations
from .exchange import Attempt, Begun
from .method import method
from .spend import Bound, bound, may_think_unseen
from .wire import Asked

# Of a provider's headers, what a client may see.
SHOWN = {name: name.encode() for name in ("retry-after", "x-request-id", "request-id")}

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
        self.deciding_usd = spent_usd(self.decision, ledger.slots)
        caller.budget.settle(0.0, self.deciding_usd or 0.0)
        self.held: Bound | None = None
        """What is reserved for the attempt under way; None without a budget, and between attempts."""
        self.attempted: Slot | None = None
        """Who was asked last."""
        self.lost_usd = 0.0
        """What attempts without an answer may have cost."""
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
            await record(self.ledger.store, self.decision, key_id=self.caller.key_id)

    def hold(self, slot: Slot) -> Bound | None:
        """Reserve the most an attempt at this slot can cost; refused if the budget does not afford it."""
        budget = self.caller.budget
        left = budget.left_usd
        if left is None:
            return None
        most = bound(self.asked, slot, self._remembered, left)
        budget.reserve(most.usd)
        self.held, self.attempted = most, slot
        return most

    def release(self, lost_usd: float = 0.0) -> None:
        """An attempt has ended without an answer, and may have cost something all the same."""
        if self.held is not None:
            self.caller.budget.settle(self.held.usd, lost_usd)
            self.lost_usd += lost_usd
            self.held = None

    def unseen_usd(self, slot: Slot) -> float:
        """What an attempt may be billed at most of which nothing was relayed."""
        if self.held is None:
            return 0.0
        all_of_it = not self.asked.stream or may_think_unseen(self.asked, slot)
        return self.held.usd if all_of_it else self.held.input_usd

    @property
    def _remembered(self) -> int | None:
        """The tokens of the answer this request follows, if it was given here."""
        if not self.asked.extras.follows:
            return None
        pin = self.ledger.conversations.get(self.caller.tenant, self.asked.conversation)
        return pin.tokens if pin is not None else None

    def headers(self, begun: Begun, attempts: list[Attempt]) -> Headers:
        decision = self.decision
        slot, theirs = begun.candidate.slot, begun.upstream.headers
        told = [
            (b"content-type", slot.conceal(theirs.get("content-type", "application/json"))),
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
        told += [(name, slot.conceal(theirs[key])) for key, name in SHOWN.items() if key in theirs]
        if self.turned.pinned:
            told.append((b"x-turnout-pinned", self.turned.pinned))
        if self.asked.stream:
            told.append((b"cache-control", "no-cache"))
        return [(name, value.encode("latin-1", "replace")) for name, value in told]

    def close(self, ended: Ended, begun: Begun | None, attempts: list[Attempt]) -> None:
        if self.closed:
            return
        self.closed = True
        slot = begun.candidate.slot if begun is not None else None
        usage, estimated = self._usage(ended, begun)
        cost = cost_usd(slot, usage) if slot is not None and usage is not None else None
        booked = self._booked(cost, begun, estimated)
        self.caller.budget.settle(self.held.usd if self.held is not None else 0.0, booked)
        self.held = None
        if begun is not None and slot is not None and ended == "answered":
            conversations, asked = self.ledger.conversations, self.asked
            tokens = asked.tokens if usage is None else usage.input_tokens + usage.output_tokens
            for name in filter(None, (asked.conversation, begun.stored)):
                conversations.keep(
                    self.caller.tenant, name, begun.candidate.route, slot, self.decision.confidence, tokens
                )
        if self.ledger.store is None:
            return
        chosen = self.turned.choice.candidates[0].slot if self.turned.choice.candidates else None
        fallback = None
        if slot is not None and chosen is not None and slot.endpoint != chosen.endpoint:
            # Two slots may have one model in two places: then only the slot's name tells which.
            fallback = f"{chosen.id}{f' ({chosen.name})' if chosen.id == slot.id else ''} did not answer"
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
        extra |= {"lost_usd": self.lost_usd} if self.lost_usd else {}
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
                classifier_usd=self.deciding_usd,
                fallback=fallback,
                elapsed_ms=(time.monotonic() - self.started) * 1000,
                extra=extra,
            ),
            key_id=self.caller.key_id,
            spent_usd=(self.deciding_usd or 0.0) + self.lost_usd + booked,
            decided=self.recorded,
        )

    def _usage(self, ended: Ended, begun: Begun | None) -> tuple[Usage | None, bool]:
        """The provider's count; where it gave none of the whole answer, an estimate, and said to be one."""
        if begun is None:
            return None, False
        told = begun.usage
        # Some report nothing but zeros, for all or for what they wrote.
        unsaid = not told.is_told or (self.asked.stream and not told.output_tokens and begun.written > 0)
        # An answer in one piece is counted as a whole; a stream only by a count that came after its last words.
        if not unsaid and (told.final or (ended == "answered" and not self.asked.stream)):
            return told, False
        written = max(1, told.output_tokens, begun.written)
        return replace(told, input_tokens=told.input_tokens or self.asked.tokens, output_tokens=written), True

    def _booked(self, cost: float | None, begun: Begun | None, estimated: bool) -> float:
        """What is booked on the key: what the provider counted. Where it did not, what we counted, and no more than was
        reserved."""
        if self.held is None:
            return cost or 0.0
        if begun is None:
            # The client left while an attempt was under way.
            return self.unseen_usd(self.attempted) if self.attempted is not None else 0.0
        slot = begun.candidate.slot
        hosted = slot.hosted_tools_usd or 0.0 if self.asked.extras.hosted else 0.0
        if not estimated:
            return (cost or 0.0) + hosted
        told = begun.usage
        read = cost_usd(slot, replace(told, output_tokens=0)) if told.input_tokens else None
        written = cost_usd(slot, Usage(0, max(1, told.output_tokens, begun.written))) or 0.0
        if may_think_unseen(self.asked, slot):
            written = self.held.usd
        counted = self.held.input_usd if read is None else read + hosted
        # What it said it had read is billed, whatever was reserved.
        return max(read or 0.0, min(self.held.usd, counted + written))

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
