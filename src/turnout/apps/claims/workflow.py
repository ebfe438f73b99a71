"""The workflow of an audit, in a thread of its own: each step in its turn, told and stored, and the card at the end.

It may be run again from its beginning by any process: what was stored is not made again, what was told is not told
again, and the card is made of stored results alone.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from turnout.apps.ledger import Ended, Ledger
from turnout.core.errors import StoreUnavailable, TurnoutError
from turnout.core.query import Query
from turnout.core.verdict import Fault, contain
from turnout.store import Outcome, Store

from .agent import AGENTS
from .audit import STEPS, Auditor, AuditOrder, KeepsCards, StepResult, make_card, sum_up
from .card import Card, missing
from .durable import Stopped, Workflows, open_workflows
from .event import (
    AgentCompleted,
    AgentStarted,
    ChatEvent,
    ClaimCardReady,
    PipelineCompleted,
    PipelineFailed,
    PipelineStarted,
)
from .feed import Feed
from .payer import find_payer
from .settings import Reach

if TYPE_CHECKING:
    from turnout.apps.caller import Caller
    from turnout.core.decision import Decision
    from turnout.runtime.runtime import Runtime

PROFILE, ROUTE = "claims", "novel_claim"
CARD = "card"
# How soon a database that is away is tried again.
AGAIN_S = 1.0
# How long a close waits for the threads of audits: they end with the step they are in, which was cancelled.
IDLE_S = 5.0


class AuditWorkflow:
    """What a step is made with. Its steps run in the event loop that it was made in."""

    def __init__(self, runtime: Runtime, store: Store, cards: KeepsCards, feed: Feed, reach: Reach) -> None:
        self.durable: Workflows
        self.callers: dict[str, Caller] = {}
        """Who pays: those who asked here. A budget is one object, so that no burst can overspend."""
        self._runtime = runtime
        self._store = store
        self._cards = cards
        self._feed = feed
        self._reach = reach
        self._loop = asyncio.get_running_loop()
        self._running: set[concurrent.futures.Future[Any]] = set()
        self._closing = False
        self._runs, self._idle = 0, threading.Condition()
        """Audits that run in a thread of this process."""

    def open(self) -> None:
        """Blocking."""
        self.durable = open_workflows(self._store, self._run)

    def close(self) -> None:
        """Blocking. What a thread did after its database was closed would count as a mistake of its audit's."""
        with self._idle:
            self._idle.wait_for(lambda: self._runs == 0, IDLE_S)
        self.durable.close()

    def stop(self) -> None:
        """Let every audit end where it is, to go on elsewhere or later."""
        self._closing = True
        for future in list(self._running):
            future.cancel()

    def begin(self, order: AuditOrder) -> None:
        self.durable.start(order.pipeline_id, msgspec.to_builtins(order))
        with contextlib.suppress(StoreUnavailable):  # the audit tells it itself, as soon as it can
            self._feed.append(order.tenant, order.session_id, _started(order), f"{order.pipeline_id} started")

    def _run(self, told: dict[str, Any]) -> dict[str, Any]:
        with self._idle:
            self._runs += 1
        try:
            return self._audit(msgspec.convert(told, AuditOrder))
        finally:
            with self._idle:
                self._runs -= 1
                self._idle.notify_all()

    def _audit(self, order: AuditOrder) -> dict[str, Any]:
        done: list[StepResult] = []
        self._tell(order, _started(order), "started")
        for step in STEPS:
            if step in AGENTS:
                self._tell(order, AgentStarted(pipeline_id=order.pipeline_id, agent=step), f"{step} started")
            made = self.durable.step(step, partial(self._make, step, order, tuple(done)))
            result = msgspec.convert(made, StepResult)
            if result.failed:
                return self._fail(order, done, step, result.failed)
            done.append(result)
            if step in AGENTS:
                event = AgentCompleted(
                    pipeline_id=order.pipeline_id,
                    agent=step,
                    elapsed_ms=result.elapsed_ms,
                    model=result.model,
                    said=sum_up(result),
                )
                self._tell(order, event, f"{step} completed")
        failed = self.durable.step(CARD, lambda: self._publish(order, done))["failed"]
        if failed:
            return self._fail(order, done, "publisher", failed)
        return self._finish(order, done)

    def _make(self, step: str, order: AuditOrder, done: Sequence[StepResult]) -> dict[str, Any]:
        return self._in_loop(self._step(step, order, done))

    async def _step(self, step: str, order: AuditOrder, done: Sequence[StepResult]) -> dict[str, Any]:
        """Have an agent answer on the account of who asked."""
        models = self._runtime.models
        auditor = Auditor(models, self._reach.search, self._reach.read, self._reach.searches)
        caller = await self._payer(order)
        if caller is None:
            failed = f"the key {order.key_id} that asked for this audit is no longer valid"
            return dict(msgspec.to_builtins(StepResult(step, failed=failed)))
        self.callers[order.key_id] = caller
        # The log has one row for the question, and money is booked step by step: a process that dies owes nothing.
        with Ledger(None, models.slots).open(await self.decide(order), caller) as account:
            result = await auditor.run(step, order, done, account)
        if account.spent_usd:
            self._store.spend(f"{order.pipeline_id}-{step}", order.key_id, account.spent_usd)
        return dict(msgspec.to_builtins(replace(result, spent_usd=account.spent_usd)))

    async def _payer(self, order: AuditOrder) -> Caller | None:
        """Who asked, as long as its key is valid: a key may be revoked between two steps."""
        known = self.callers.get(order.key_id)
        try:
            found = await asyncio.to_thread(find_payer, self._store, order)
        except StoreUnavailable:
            if known is None:
                raise
            return known
        return found and (known or found)

    async def decide(self, order: AuditOrder) -> Decision:
        router = await self._runtime.find_router(PROFILE)
        query = Query(order.claim_text, declared=ROUTE, session=order.session_id or None, tenant=order.tenant or None)
        return router.route_sync(query)

    def _publish(self, order: AuditOrder, done: Sequence[StepResult]) -> dict[str, Any]:
        card = make_card(order, done)
        if lacks := missing(card):
            return {"failed": f"the card lacks {', '.join(lacks)}: it is not published"}
        try:
            self._patiently(lambda: self._put(card))
        except TurnoutError as error:
            return {"failed": str(error)}
        return {"failed": ""}

    def _put(self, card: Card) -> None:
        # After a kill the card may be there already; it has the same id and says the same.
        if self._cards.get(card.id) is None:
            self._cards.put(card)

    def _finish(self, order: AuditOrder, done: Sequence[StepResult]) -> dict[str, Any]:
        ident = order.pipeline_id
        elapsed = round(time.time() * 1000 - order.started_ms, 1)
        self._settle(order, done, "answered")
        self._tell(order, PipelineCompleted(pipeline_id=ident, claim_card_id=ident, elapsed_ms=elapsed), "completed")
        self._tell(order, ClaimCardReady(pipeline_id=ident, claim_card_id=ident), "ready")
        return {"card": ident}

    def _fail(self, order: AuditOrder, done: Sequence[StepResult], agent: str, reason: str) -> dict[str, Any]:
        self._settle(order, done, "failed")
        self._tell(order, PipelineFailed(pipeline_id=order.pipeline_id, agent=agent, reason=reason), "failed")
        return {"failed": reason, "agent": agent}

    def _settle(self, order: AuditOrder, done: Sequence[StepResult], ended: Ended) -> None:
        """The outcome of the question: the first that is said of it stands."""
        spent = sum(one.spent_usd for one in done)
        extra = {"pipeline_id": order.pipeline_id}
        outcome = Outcome(ended=ended, model=done[-1].model if done else None, cost_usd=spent, extra=extra)
        with contextlib.suppress(TurnoutError):  # the row may have been deleted, or not be written yet
            self._store.settle(order.decision_id, outcome, tenant=order.tenant)

    def _tell(self, order: AuditOrder, event: ChatEvent, once: str) -> None:
        key = f"{order.pipeline_id} {once}"
        self._patiently(lambda: self._feed.append(order.tenant, order.session_id, event, key))

    def _patiently(self, write: Callable[[], object]) -> None:
        """Write, as soon as the database takes it: one that is away for a while ends no audit."""
        while not self._is_stopping:
            try:
                write()
            except StoreUnavailable:
                time.sleep(AGAIN_S)
            else:
                return
        raise Stopped

    @property
    def _is_stopping(self) -> bool:
        return self._closing or self._loop.is_closed()

    def _in_loop(self, work: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
        """What a coroutine returns that runs where models are asked."""
        if self._is_stopping:
            work.close()
            raise Stopped
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._running.add(future)
        found = contain(future.result)
        self._running.discard(future)
        if self._is_stopping:
            raise Stopped
        if isinstance(found, Fault):
            return dict(msgspec.to_builtins(StepResult("", failed=f"a mistake of ours: {found.detail}")))
        made: dict[str, Any] = found
        return made


def _started(order: AuditOrder) -> PipelineStarted:
    return PipelineStarted(pipeline_id=order.pipeline_id, claim_text=order.claim_text, agents=AGENTS)
