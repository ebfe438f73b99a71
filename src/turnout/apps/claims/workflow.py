"""The workflow of an audit, in a thread of its own: it runs and stores each step, emits its events, publishes the card.

Any process may run it again from the beginning: stored steps are not repeated, stored events are not emitted again,
and the card is made only of stored results.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
import time
from collections.abc import Callable, Sequence
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
from .durable import ProcessStopping, Workflows, open_workflows
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
# How soon an unavailable database is tried again.
AGAIN_S = 1.0
# How long `close` waits for the threads of audits: they end with their current step, which was cancelled.
IDLE_S = 5.0


class AuditWorkflow:
    """Runs audits. Their steps run in the event loop in which this was created."""

    def __init__(self, runtime: Runtime, store: Store, cards: KeepsCards, feed: Feed, reach: Reach) -> None:
        self.durable: Workflows
        self.callers: dict[str, Caller] = {}
        """The callers that started audits here, by key, so that all their audits share one budget object."""
        self._runtime = runtime
        self.store = store
        self.cards = cards
        self.feed = feed
        self.reach = reach
        self._loop = asyncio.get_running_loop()
        self._running: set[concurrent.futures.Future[Any]] = set()
        self._closing = False
        self._runs, self._idle = 0, threading.Condition()
        """How many audits run in threads of this process."""

    def open(self) -> None:
        """Blocking."""
        self.durable = open_workflows(self.store, self._run)

    def close(self) -> None:
        """Wait for the threads before the database is closed, or their errors would fail their audits. Blocking."""
        with self._idle:
            self._idle.wait_for(lambda: self._runs == 0, IDLE_S)
        self.durable.close()

    def stop(self) -> None:
        """Interrupt every audit; it continues in another process or later."""
        self._closing = True
        for future in list(self._running):
            future.cancel()

    def begin(self, order: AuditOrder) -> None:
        self.durable.start(order.pipeline_id, msgspec.to_builtins(order))
        with contextlib.suppress(StoreUnavailable):  # the audit emits it too, as soon as it can
            self.feed.append(order.tenant, order.session_id, _started(order), f"{order.pipeline_id} started")

    def _run(self, order: dict[str, Any]) -> dict[str, Any]:
        with self._idle:
            self._runs += 1
        try:
            return self._audit(msgspec.convert(order, AuditOrder))
        finally:
            with self._idle:
                self._runs -= 1
                self._idle.notify_all()

    def _audit(self, order: AuditOrder) -> dict[str, Any]:
        done: list[StepResult] = []
        self._emit(order, _started(order), "started")
        for step in STEPS:
            if step in AGENTS:
                self._emit(order, AgentStarted(pipeline_id=order.pipeline_id, agent=step), f"{step} started")
            stored = self.durable.step(step, partial(self._make, step, order, tuple(done)))
            result = msgspec.convert(stored, StepResult)
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
                self._emit(order, event, f"{step} completed")
        failed = self.durable.step(CARD, lambda: self._publish(order, done))["failed"]
        if failed:
            return self._fail(order, done, "publisher", failed)
        return self._finish(order, done)

    def _make(self, step: str, order: AuditOrder, done: Sequence[StepResult]) -> dict[str, Any]:
        """The result of a step, made in the event loop."""
        if self._is_stopping:
            raise ProcessStopping
        future = asyncio.run_coroutine_threadsafe(self._step(step, order, done), self._loop)
        self._running.add(future)
        found = contain(future.result)
        self._running.discard(future)
        if self._is_stopping:
            raise ProcessStopping
        result = StepResult("", failed=f"a mistake of ours: {found.detail}") if isinstance(found, Fault) else found
        stored: dict[str, Any] = msgspec.to_builtins(result)
        return stored

    async def _step(self, step: str, order: AuditOrder, done: Sequence[StepResult]) -> StepResult:
        """Make a step at the cost of the caller who asked for the audit."""
        models = self._runtime.models
        auditor = Auditor(models, self.reach.search, self.reach.read, self.reach.searches)
        caller = await self._payer(order)
        if caller is None:
            return StepResult(step, failed=f"the key {order.key_id} that asked for this audit is no longer valid")
        self.callers[order.key_id] = caller
        # The question has one row in the log; costs are booked step by step, so a process that dies owes nothing.
        with Ledger(None, models.slots).open(await self.decide(order), caller) as account:
            result = await auditor.run(step, order, done, account)
        if account.spent_usd:
            spent = (f"{order.pipeline_id}-{step}", order.key_id, account.spent_usd)
            await asyncio.to_thread(self.store.spend, *spent)
        return replace(result, spent_usd=account.spent_usd)

    async def _payer(self, order: AuditOrder) -> Caller | None:
        """The caller who asked, if its key is still valid: it may be revoked between two steps."""
        known = self.callers.get(order.key_id)
        try:
            found = await asyncio.to_thread(find_payer, self.store, order)
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
            self._retry(lambda: self._put(card))
        except TurnoutError as error:
            return {"failed": str(error)}
        return {"failed": ""}

    def _put(self, card: Card) -> None:
        # After a crash the same card may be there already.
        if self.cards.get(card.id) is None:
            self.cards.put(card)

    def _finish(self, order: AuditOrder, done: Sequence[StepResult]) -> dict[str, Any]:
        ident = order.pipeline_id
        elapsed = round(time.time() * 1000 - order.started_ms, 1)
        self._settle(order, done, "answered")
        self._emit(order, PipelineCompleted(pipeline_id=ident, claim_card_id=ident, elapsed_ms=elapsed), "completed")
        self._emit(order, ClaimCardReady(pipeline_id=ident, claim_card_id=ident), "ready")
        return {"card": ident}

    def _fail(self, order: AuditOrder, done: Sequence[StepResult], agent: str, reason: str) -> dict[str, Any]:
        self._settle(order, done, "failed")
        self._emit(order, PipelineFailed(pipeline_id=order.pipeline_id, agent=agent, reason=reason), "failed")
        return {"failed": reason, "agent": agent}

    def _settle(self, order: AuditOrder, done: Sequence[StepResult], ended: Ended) -> None:
        """Log the outcome of the question; the store keeps the first one."""
        spent = sum(one.spent_usd for one in done)
        extra = {"pipeline_id": order.pipeline_id}
        outcome = Outcome(ended=ended, model=done[-1].model if done else None, cost_usd=spent, extra=extra)
        with contextlib.suppress(TurnoutError):  # the row may have been deleted, or not be written yet
            self.store.settle(order.decision_id, outcome, tenant=order.tenant)

    def _emit(self, order: AuditOrder, event: ChatEvent, once: str) -> None:
        key = f"{order.pipeline_id} {once}"
        self._retry(lambda: self.feed.append(order.tenant, order.session_id, event, key))

    def _retry(self, write: Callable[[], object]) -> None:
        """Write until the database accepts it: an outage does not end an audit."""
        while not self._is_stopping:
            try:
                write()
            except StoreUnavailable:
                time.sleep(AGAIN_S)
            else:
                return
        raise ProcessStopping

    @property
    def _is_stopping(self) -> bool:
        return self._closing or self._loop.is_closed()


def _started(order: AuditOrder) -> PipelineStarted:
    return PipelineStarted(pipeline_id=order.pipeline_id, claim_text=order.claim_text, agents=AGENTS)
