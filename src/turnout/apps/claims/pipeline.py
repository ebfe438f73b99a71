"""An audit that survives its process: five agents, each of whose results is stored before the next one starts.

The caller gets an id at once and can follow the session's events before, during and after the audit. A killed process
loses only its current step; however often an audit is resumed, it makes one card.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from turnout.apps.request import invalid
from turnout.core.decision import new_id
from turnout.core.errors import Refused, StoreError, StoreUnavailable
from turnout.core.verdict import Fault, contain
from turnout.store.session_log import open_session_log

from .audit import AuditOrder, KeepsCards
from .card import Card
from .event import ChatEvent
from .feed import Feed
from .settings import Reach, open_reach
from .workflow import CARD, AuditWorkflow

if TYPE_CHECKING:
    from turnout.apps.caller import Caller
    from turnout.runtime.runtime import Runtime

# As many as a question may have.
CLAIM_CHARACTERS = 2000
# How often to look for workers that are gone, and for the end of an audit that another process runs.
WATCH_S, POLL_S = 10.0, 0.25


class AuditFailed(Struct, frozen=True):
    """An audit that ended without a card."""

    pipeline_id: str
    agent: str
    reason: str


class AuditPipeline:
    """The pipeline of a process, made by `open_pipeline`. Used inside one running event loop."""

    def __init__(self, workflow: AuditWorkflow) -> None:
        self._workflow = workflow
        self._closed = False
        self._watching: asyncio.Task[None] | None = None

    async def start(
        self, claim_text: str, context: str = "", *, session_id: str, caller: Caller, decision_id: str = ""
    ) -> str:
        """Start an audit at the caller's cost and return its id at once. `decision_id` is that of the question that led
        to it; without one, the audit is logged as a question of its own."""
        claim = " ".join(claim_text.split())
        if not 0 < len(claim) <= CLAIM_CHARACTERS:
            count = f"a claim has 1 to {CLAIM_CHARACTERS:,} characters, this one {len(claim):,}"
            raise invalid(f"{count}: state it in a sentence")
        caller.budget.check()
        self._workflow.callers[caller.key_id] = caller
        order = AuditOrder(
            new_id(), claim, context, session_id, caller.tenant, caller.key_id, decision_id, time.time_ns() // 1_000_000
        )
        if not decision_id:
            decision = await self._workflow.decide(order)
            self._workflow.store.append(decision, key_id=caller.key_id)
            order = replace(order, decision_id=decision.id)
        started = await asyncio.to_thread(contain, self._workflow.begin, order)
        if isinstance(started, Fault):
            raise Refused(503, "not_available", f"the audit cannot be stored now: {started.detail}")
        return order.pipeline_id

    def events(
        self, session_id: str, after: int = 0, *, tenant: str, follow: bool = False
    ) -> AsyncGenerator[ChatEvent, None]:
        """The events of a session after a number, in order, then new ones as they come. It ends after the last event
        if that ends a question; with `follow`, never."""
        return self._workflow.feed.listen(tenant, session_id, after, follow)

    async def emit(self, session_id: str, event: ChatEvent, *, tenant: str, key: str = "") -> ChatEvent:
        """Store an event, send it to all followers and return it with its number. A `key` is stored only once."""
        return await asyncio.to_thread(self._workflow.feed.append, tenant, session_id, event, key)

    async def result(self, pipeline_id: str) -> Card | AuditFailed:
        """Wait for the end of an audit; its card, or why there is none. Raises Refused for an unknown id."""
        ended = None
        while ended is None:
            with contextlib.suppress(StoreUnavailable):
                ended = await asyncio.to_thread(self._workflow.durable.ended, pipeline_id)
            if ended is None:
                await asyncio.sleep(POLL_S)
        output = ended.output or {}
        if reason := output.get("failed") or ended.error:
            return AuditFailed(pipeline_id, output.get("agent", ""), reason)
        card = await asyncio.to_thread(self._workflow.cards.get, str(output["card"]))
        return card or AuditFailed(pipeline_id, CARD, f"the card {output['card']} is no longer in the library")

    async def resume(self) -> int:
        """Continue the audits of processes that are gone, now and as long as this process runs; returns how many there
        are now. A server calls it when it starts."""
        taken = await asyncio.to_thread(self._workflow.durable.take_over)
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch())
        return len(taken)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_S)
            with contextlib.suppress(StoreError):  # the database may come back
                await asyncio.to_thread(self._workflow.durable.take_over)

    async def close(self) -> None:
        """Stop. Unfinished audits continue in another open pipeline, or when one is opened again."""
        if self._closed:
            return
        self._closed = True
        if self._watching is not None:
            self._watching.cancel()
        self._workflow.stop()
        await asyncio.to_thread(self._workflow.close)
        await self._workflow.feed.close()
        await self._workflow.reach.close()


async def open_pipeline(runtime: Runtime, library: KeepsCards, reach: Reach | None = None) -> AuditPipeline:
    """Open the pipeline of a process. Raises Refused without a store, or without the extra `claims`. Without `reach`,
    the settings say where audits may look."""
    if runtime.store is None:
        raise Refused(503, "not_available", "an audit needs a store: start with one")
    reach = reach or open_reach(runtime.config)
    log = await asyncio.to_thread(open_session_log, runtime.store)
    workflow = AuditWorkflow(runtime, runtime.store, library, Feed(log), reach)
    try:
        await asyncio.to_thread(workflow.open)
    except Refused:
        await asyncio.to_thread(log.close)
        await reach.close()
        raise
    return AuditPipeline(workflow)
